"""The report on a terminal: short enough to be read there, and all of it where that is asked for."""

from __future__ import annotations

import io

from rich.console import Console

from tests.review.reports import before, document, report
from tests.review.small import resource, serving
from tritonstack.review.document import ReviewDocument
from tritonstack.review.views.pages import MOST_LINES, WHERE, show


def shown(given: ReviewDocument, *, verbose: bool = False) -> list[str]:
    file = io.StringIO()
    show(given, Console(file=file, width=400, highlight=False), verbose=verbose)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def many(count: int) -> ReviewDocument:
    """As many new topics, and a bucket that is replaced."""
    topics = {f"T{n:02}": resource("AWS::SNS::Topic", {"DisplayName": f"topic {n}"}) for n in range(count)}
    bucket = resource("AWS::S3::Bucket", {"BucketName": "other"})
    return document(report(before(), {**before(), **topics, "Bucket": bucket}))


def test_a_small_change_is_shown_with_its_values() -> None:
    lines = shown(many(0))
    assert "      - models" in lines
    assert "      + other" in lines
    assert not any(WHERE in line or "more" in line for line in lines)


def test_of_many_resources_the_first_are_shown_the_rest_is_counted_and_where_it_is_stands_below() -> None:
    lines = shown(many(30))
    assert sum(line.startswith("  new: ") for line in lines) == MOST_LINES
    assert "  new … 24 more" in lines
    assert "  replaced: serving/Bucket (AWS::S3::Bucket)" in lines
    assert "    BucketName  (replaces it)" in lines
    assert "      + other" not in lines
    assert lines[-1] == f"Parts are left out: {WHERE}."


def test_all_of_it_is_shown_where_that_is_asked_for() -> None:
    lines = shown(many(30), verbose=True)
    assert sum(line.startswith("  new: ") for line in lines) == 30
    assert "      + topic 29" in lines
    assert "      + other" in lines
    assert not any("more" in line for line in lines)


def test_what_is_replaced_is_never_counted_only() -> None:
    names = [f"B{n:02}" for n in range(12)]
    old, new = (
        {each: resource("AWS::S3::Bucket", {"BucketName": f"{each}-{side}".lower()}) for each in names} for side in "ab"
    )
    lines = shown(document(report(old, new)))
    assert sum(line.startswith("  replaced: ") for line in lines) == 12


def test_of_many_properties_the_first_are_shown() -> None:
    old, new = (
        resource("AWS::CloudWatch::Alarm", {f"P{n:02}": f"{side}{n}" for n in range(20)}) for side in ("old", "new")
    )
    few = document(report({**before(), "A": old}, {**before(), "A": new}))
    lines = shown(few)
    assert sum(line.startswith("    P") for line in lines) == MOST_LINES
    assert "    … 14 more properties" in lines
    assert sum(line.startswith("    P") for line in shown(few, verbose=True)) == 20
    others = {f"T{n:02}": resource("AWS::SNS::Topic", {}) for n in range(9)}
    named = shown(document(report({**before(), "A": old}, {**before(), **others, "A": new})))
    assert "    P00, P01, P02, P03, P04, P05 and 14 more" in named


def test_an_environment_that_costs_what_it_did_is_told_by_its_sums() -> None:
    same = shown(many(0))
    assert [line.split() for line in same if " 0.75 " in line] == [["all", "0.75", "0.75", "metrics,", "S3"]]
    more = shown(document(report(before(), {**before(), **serving(variant={"InstanceType": "ml.g5.2xlarge"})})))
    assert any(line.strip().startswith("endpoint dev-digits") and "0.75 → 1.50" in line for line in more)
