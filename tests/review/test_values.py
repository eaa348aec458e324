"""Values in a report, and the lines of their differences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.review.change import ABSENT
from tritonstack.review.document import texts_of
from tritonstack.review.views.wording import diff_lines


def signed(before: str | None, after: str | None) -> list[str]:
    return [f"{each.sign}{each.text}" for each in diff_lines(before, after)]


def test_values_of_two_types_never_read_the_same() -> None:
    assert texts_of(1, "1") == ("1", '"1"')
    assert texts_of(True, "true") == ("true", '"true"')


def test_what_is_absent_is_no_text_and_what_is_empty_is_seen() -> None:
    assert texts_of(ABSENT, "") == (None, '""')


def test_a_long_list_stands_a_member_a_line() -> None:
    _, text = texts_of(ABSENT, [{"Fn::GetAtt": ["Bucket", "Arn"]}, "x" * 100])
    assert text is not None
    assert text.splitlines()[:2] == ["[", '  "${Bucket.Arn}",']


def test_one_line_in_the_place_of_another_tells_what_differs() -> None:
    old, new = diff_lines("s3://bucket/24.09-t4/", "s3://bucket/24.09-a10g/")
    assert (old.head, old.changed, old.tail) == ("s3://bucket/24.09-", "t4", "/")
    assert new.changed == "a10g"


@pytest.mark.parametrize(("before", "after"), [("g4dn", "g5"), ("a", "abc"), ("aa", "aaa"), ("x y", "x")])
def test_what_differs_is_told_by_whole_words(before: str, after: str) -> None:
    old, new = diff_lines(before, after)
    assert (old.text, new.text) == (before, after)
    assert not old.head[-1:].isalnum()


def test_lines_that_stay_far_from_a_difference_are_left_out() -> None:
    lines = [str(number) for number in range(30)]
    other = [*lines[:15], "other", *lines[16:]]
    told = signed("\n".join(lines), "\n".join(other))
    assert told == ["…13 unchanged lines", " 13", " 14", "-15", "+other", " 16", " 17", "…12 unchanged lines"]


@given(st.text("ab1 -\n", max_size=30), st.text("ab1 -\n", max_size=30))
def test_the_lines_hold_both_values(before: str, after: str) -> None:
    lines = diff_lines(before, after)
    if any(each.sign == "…" for each in lines):
        return
    assert "\n".join(each.text for each in lines if each.sign in "- ") == before
    assert "\n".join(each.text for each in lines if each.sign in "+ ") == after
