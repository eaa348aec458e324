"""The report as data, and its schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.review.reports import BASE, PRICES, before, document, report
from tests.review.small import of, resource, serving, stack
from tests.stacks.app_process import ROOT
from tritonstack.cli.schema import schema_text
from tritonstack.review.document import SCHEMA_ID, VERSION, EnvironmentEntry
from tritonstack.review.report import Known, report_of


def dev() -> EnvironmentEntry:
    return next(each for each in document().environments if each.name == "dev")


def test_the_committed_schema_is_current_and_has_an_id_with_its_version() -> None:
    text = (ROOT / "schemas/review.schema.json").read_text()
    assert text == schema_text("review")
    assert json.loads(text)["$id"] == SCHEMA_ID == f"urn:tritonstack:review:{VERSION}"


def test_a_document_is_as_its_schema_says_and_the_same_twice() -> None:
    text = document(fail_on="replacement").text()
    assert text == document(fail_on="replacement").text()
    jsonschema.Draft202012Validator(json.loads(schema_text("review"))).validate(json.loads(text))
    broken = json.loads(text)
    broken["environments"][0]["level"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, json.loads(schema_text("review")))


def test_a_new_resource_is_told_with_all_of_its_properties() -> None:
    [parameter] = [each for each in dev().resources if each.logical_id == "Parameter"]
    assert [(each.name, each.before, each.after) for each in parameter.properties][:2] == [
        ("Name", None, "/new"),
        ("Tags", None, parameter.properties[1].after),
    ]


def test_the_cost_stands_before_and_after_at_both_ends() -> None:
    cost = dev().cost
    assert cost.minimum_before is not None
    assert cost.maximum_after is not None
    assert (cost.minimum_before.usd_per_hour, cost.maximum_after.usd_per_hour) == (0.75, 1.5)


def test_an_unknown_price_is_no_number() -> None:
    new = {**before(), **serving(variant={"InstanceType": "ml.nowhere.xlarge"})}
    [entry] = document(report(before(), new, known=Known())).environments
    assert entry.cost.minimum_after is not None
    assert entry.cost.minimum_after.usd_per_hour is None
    assert "ml.nowhere.xlarge" in entry.cost.minimum_after.unknown[0]


def test_the_verdict_is_as_close_as_the_closest_of_its_phrases() -> None:
    [plain] = document(report(before(), {**before(), "N": resource("AWS::SNS::Topic")})).environments
    assert (plain.level, [each.text for each in plain.verdict]) == (
        "plain",
        ["1 new", "no endpoint's traffic is touched"],
    )
    [look] = document(
        report(before(), {**before(), "Queue": resource("AWS::SQS::Queue", {"FifoQueue": True})})
    ).environments
    assert look.level == "look at it"


def test_a_stack_that_the_app_lost_counts_on_both_sides() -> None:
    [lost] = [each for each in document().environments if each.name == "lost"]
    assert (lost.resources, lost.traffic, lost.permissions) == ((), (), ())
    assert lost.cost.minimum_before == lost.cost.minimum_after


def test_a_lost_stack_of_an_environment_that_stays_keeps_what_it_costs_and_may() -> None:
    both = of(stack(before(), name="serving"), stack({**serving(name="dev-other")}, name="other"))
    [entry] = document(report_of(both, of(stack(before(), name="serving")), base=BASE, known=PRICES)).environments
    assert entry.verdict[0].text == "the app no longer has dev-other, which no deployment removes"
    assert (entry.resources, entry.traffic, entry.permissions, entry.openings) == ((), (), (), ())
    assert entry.cost.minimum_after == entry.cost.minimum_before
    assert entry.cost.minimum_after is not None
    assert entry.cost.minimum_after.usd_per_hour == 1.5
