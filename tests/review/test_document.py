"""The report as data with its schema, its values as text, and what a terminal shows of it."""

from __future__ import annotations

import io
import json
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from tests.cases import cases
from tests.review.reports import BASE, PRICES, before, document, report
from tests.review.small import of, resource, serving, stack
from tritonstack.cli.schema import schema_text
from tritonstack.review.change import ABSENT
from tritonstack.review.document import SCHEMA_ID, VERSION, ReviewDocument
from tritonstack.review.intrinsics import readable, references, texts_of
from tritonstack.review.report import Known, document_of
from tritonstack.review.views.pages import WHERE, show
from tritonstack.review.views.wording import diff_lines


def test_the_schema_has_an_id_with_its_version() -> None:
    assert json.loads(schema_text("review"))["$id"] == SCHEMA_ID == f"urn:tritonstack:review:{VERSION}"


def test_a_document_fits_its_schema_and_is_the_same_twice() -> None:
    text = document(fail_on="replacement").text()
    assert text == document(fail_on="replacement").text()
    jsonschema.Draft202012Validator(json.loads(schema_text("review"))).validate(json.loads(text))
    broken = json.loads(text)
    broken["environments"][0]["level"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, json.loads(schema_text("review")))


def test_an_unknown_price_is_no_number() -> None:
    new = {**before(), **serving(variant={"InstanceType": "ml.nowhere.xlarge"})}
    [entry] = report(before(), new, known=Known()).environments
    assert entry.cost.minimum_after.usd_per_hour is None
    assert "ml.nowhere.xlarge" in entry.cost.minimum_after.unknown[0]


def test_the_verdict_is_as_close_as_the_closest_of_its_phrases() -> None:
    [plain] = report(before(), {**before(), "N": resource("AWS::SNS::Topic")}).environments
    assert plain.level == "plain"
    assert [each.text for each in plain.verdict] == ["1 new", "no endpoint's traffic is touched"]
    fifo = {**before(), "Queue": resource("AWS::SQS::Queue", {"FifoQueue": True})}
    [look] = report(before(), fifo).environments
    assert look.level == "look at it"


def test_a_lost_stack_of_an_environment_that_stays_keeps_what_it_costs_and_may() -> None:
    both = of(stack(before(), name="serving"), stack({**serving(name="dev-other")}, name="other"))
    [entry] = document_of(both, of(stack(before(), name="serving")), base=BASE, known=PRICES).environments
    assert entry.verdict[0].text == "the app no longer has dev-other, which no deployment removes"
    assert (entry.resources, entry.traffic, entry.permissions, entry.openings) == ((), (), (), ())
    assert entry.cost.minimum_after == entry.cost.minimum_before
    assert entry.cost.minimum_after.usd_per_hour == 1.5


# Values, and the lines of their differences.


def test_every_form_of_a_reference_is_found() -> None:
    value = [
        {"Ref": "A"},
        {"Fn::GetAtt": ["B", "Arn"]},
        {"Fn::GetAtt": "C.Outputs.Name"},
        {"Fn::Sub": "${D}/${E.Arn}/${!Literal}"},
        {"Fn::Sub": ["${F}/${given}", {"given": {"Ref": "G"}}]},
        {"Fn::If": ["Condition", {"deep": [{"Ref": "H"}]}, {"Ref": "AWS::NoValue"}]},
        {"Ref": "not one", "Other": 1},
    ]
    assert set(references(value)) == {"A", "AWS::NoValue", "B", "C", "D", "E", "F", "G", "H"}


@cases("value, text")
def test_a_value_reads_on_one_line(value: Any, text: str) -> None:
    assert readable(value) == text


def test_values_of_two_types_never_read_the_same_nor_do_absent_and_empty_ones() -> None:
    assert texts_of(1, "1") == ("1", '"1"')
    assert texts_of(True, "true") == ("true", '"true"')
    assert texts_of(ABSENT, "") == (None, '""')


def test_a_long_list_is_shown_a_member_a_line() -> None:
    _, text = texts_of(ABSENT, [{"Fn::GetAtt": ["Bucket", "Arn"]}, "x" * 100])
    assert text is not None
    assert text.splitlines()[:2] == ["[", '  "${Bucket.Arn}",']


def test_lines_that_stay_far_from_a_difference_are_left_out() -> None:
    lines = [str(number) for number in range(30)]
    other = [*lines[:15], "other", *lines[16:]]
    changed = [f"{each.sign}{each.text}" for each in diff_lines("\n".join(lines), "\n".join(other))]
    assert changed == ["…13 unchanged lines", " 13", " 14", "-15", "+other", " 16", " 17", "…12 unchanged lines"]


# On a terminal: short enough to be read there.


def shown(given: ReviewDocument) -> list[str]:
    file = io.StringIO()
    show(given, Console(file=file, width=400, highlight=False))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def many(count: int) -> ReviewDocument:
    """As many new topics, and a bucket that is replaced."""
    topics = {f"T{n:02}": resource("AWS::SNS::Topic", {"DisplayName": f"topic {n}"}) for n in range(count)}
    bucket = resource("AWS::S3::Bucket", {"BucketName": "other"})
    return report(before(), {**before(), **topics, "Bucket": bucket})


def test_a_small_change_is_shown_with_its_values() -> None:
    lines = shown(many(0))
    assert "      - models" in lines
    assert "      + other" in lines
    assert not any("more" in line for line in lines)


def test_of_many_resources_dangerous_ones_are_named_the_rest_counted_and_listed_below() -> None:
    lines = shown(many(30))
    assert not any(line.startswith("  new: ") for line in lines)
    assert "  … 30 more resources, and properties" in lines
    assert "  replaced: serving/Bucket (AWS::S3::Bucket)" in lines
    assert "      + other" not in lines
    assert lines[-1] == f"Parts are left out: {WHERE}."


def test_what_is_replaced_is_never_counted_only() -> None:
    old, new = (
        {f"B{n:02}": resource("AWS::S3::Bucket", {"BucketName": f"{n}-{side}"}) for n in range(12)} for side in "ab"
    )
    lines = shown(report(old, new))
    assert sum(line.startswith("  replaced: ") for line in lines) == 12


def test_costs_are_shown_where_they_change() -> None:
    assert "    … no amount changes" in shown(many(0))
    more = shown(report(before(), {**before(), **serving(variant={"InstanceType": "ml.g5.2xlarge"})}))
    assert any(line.strip().startswith("endpoint dev-digits") and "0.75 → 1.50" in line for line in more)
