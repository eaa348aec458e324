"""Messages and exit codes of commands that fail."""

from __future__ import annotations

import pytest

from tritonstack.errors import InputError, Problem, WorkFailedError, listing, nearest, visible


def test_a_problem_says_where_what_what_else_and_what_to_do() -> None:
    problem = Problem(file="environments/local.yaml", field="endpoints[0].mode", found="'x'", allowed="y", advice="z")
    assert str(problem).splitlines() == [
        "environments/local.yaml: endpoints[0].mode",
        "  found:   'x'",
        "  allowed: y",
        "  do:      z",
    ]


def test_a_problem_without_a_place_or_advice_has_no_empty_line() -> None:
    assert str(Problem(found="a", allowed="b")) == "  found:   a\n  allowed: b"
    assert str(Problem(field="NAME", found="a", allowed="b")).splitlines()[0] == "NAME"


@pytest.mark.parametrize(
    ("sign", "shown"),
    [("\u200b", "\\u200b"), ("\u202e", "\\u202e"), ("\x1b", "\\x1b"), ("\u00a0", "\\xa0"), ("\ud800", "\\ud800")],
)
def test_what_a_terminal_hides_or_obeys_is_shown_as_its_escape(sign: str, shown: str) -> None:
    problem = Problem(file=f"f{sign}", field=f"g{sign}", found=f"h{sign}", allowed=f"i{sign}", advice=f"j{sign}")
    for text in (str(problem), str(InputError([problem])), str(WorkFailedError(f"k{sign}"))):
        assert sign not in text
        assert shown in text
    assert visible("größer, 模型\n\tand more") == "größer, 模型\n\tand more"
    assert "\n" not in str(Problem(file="a\nb", found="c", allowed="d")).splitlines()[0]
    assert str(Problem(file="a\nb", found="c", allowed="d")).startswith("a\\nb\n")


def test_a_message_lists_a_dozen_names_in_short_and_once() -> None:
    names = [f"a-model-with-a-name-{number}" for number in range(24)]
    assert listing(names[:11]) == ", ".join(names[:11])
    assert listing(names) == f"{', '.join(names[:10])}, …, and 14 more"
    assert listing([], none="none there") == "none there"
    problems = [Problem(found=name, allowed=listing(names)) for name in ("one", "two")]
    text = str(InputError(problems))
    assert text.count("and 14 more") == 1
    assert text.splitlines()[-2:] == ["  found:   two", "  allowed: as above"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("wime", "Did you mean wine?"), ("Wine", "Did you mean wine?"), ("frobnicate", "")],
)
def test_the_nearest_name_is_proposed_whatever_its_case(name: str, sentence: str) -> None:
    assert nearest(name, ["wine", "digits-onnx"]) == sentence
