"""The document: every field is there, each null has its reason, and the committed schema describes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.outputs.world import DIGEST, OTHER_DIGEST, PATH, SystemsManager, serving, settings, smallest, told, whole
from tritonstack.outputs.contract import OutputsDocument
from tritonstack.outputs.reading import document_of, nulls, read_outputs

SCHEMA_FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMA = json.loads(SCHEMA_FOLDER.joinpath("outputs.schema.json").read_text())
PARAMETER_SCHEMA = json.loads(SCHEMA_FOLDER.joinpath("outputs-parameter.schema.json").read_text())


def document(parameters: dict[str, Any]) -> OutputsDocument:
    return document_of(read_outputs(SystemsManager(parameters), settings()), environment="dev")


def test_everything_that_the_stacks_tell_is_in_the_document() -> None:
    made = document(whole())
    assert made.artifacts.bucket == "archives"
    assert made.network is not None
    assert made.network.subnets == {"us-east-1a": "subnet-1"}
    assert made.builds is not None
    assert made.builds.project == "builder"
    assert made.observability is not None
    assert made.observability.composite_alarms == {"critical": "dev-critical"}
    digits = made.endpoints["digits"]
    assert (digits.name, digits.stack, digits.parameter) == (
        "dev-digits",
        "dev-serving-digits",
        f"{PATH}serving-digits",
    )
    assert digits.alarms == ["dev-digits-latency"]
    record = digits.releases["double"]
    assert record.parameter == "/tritonstack/dev/digits/double"
    assert (record.digest, record.archive) == (DIGEST, f"double.{DIGEST}.tar.gz")


def without_dashboard() -> dict[str, Any]:
    return {**whole(), f"{PATH}observability": told("observability", dashboard=None)}


def without_alarms() -> dict[str, Any]:
    fields = ("alarm_topic_arn", "composite_alarms", "endpoint_alarms", "build_alarms")
    return {**whole(), f"{PATH}observability": told("observability", **dict.fromkeys(fields))}


def with_too_many_alarms() -> dict[str, Any]:
    return {**whole(), f"{PATH}observability": told("observability", endpoint_alarms=None, build_alarms=None)}


@pytest.mark.parametrize(
    ("parameters", "absent"),
    [
        (smallest(), {"/network", "/builds", "/observability", "/endpoints/digits/alarms"}),
        (whole(), {"/builds/engine_project"}),
        (without_dashboard(), {"/builds/engine_project", "/observability/dashboard"}),
        (
            without_alarms(),
            {"/builds/engine_project", "/observability/alarm_topic_arn", "/observability/composite_alarms",
             "/observability/build_alarms", "/endpoints/digits/alarms"},
        ),
        (
            with_too_many_alarms(),
            {"/builds/engine_project", "/observability/build_alarms", "/endpoints/digits/alarms"},
        ),
    ],
    ids=["smallest", "whole", "no dashboard", "no alarms", "many alarms"],
)  # fmt: skip
def test_what_is_not_there_is_null_with_a_reason_and_never_left_out(
    parameters: dict[str, Any], absent: set[str]
) -> None:
    text = document(parameters).text()
    read = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(read)
    assert set(read["absent"]) == absent == set(nulls(read))
    assert all(read["absent"].values())


def test_too_many_alarms_for_a_parameter_say_how_to_list_them() -> None:
    reason = document(with_too_many_alarms()).absent["/endpoints/digits/alarms"]
    assert "--alarm-name-prefix dev-" in reason


def test_the_same_outputs_are_the_same_bytes_whatever_the_order_that_they_are_read_in() -> None:
    parameters = {
        **whole(),
        f"{PATH}serving-other": serving("other"),
        "/tritonstack/dev/digits/another": OTHER_DIGEST,
    }
    backwards = dict(reversed(parameters.items()))
    assert document(parameters).text() == document(backwards).text()


@pytest.mark.parametrize("field", ["network", "endpoints", "absent", "contract"])
def test_the_schema_refuses_a_document_that_lacks_a_field(field: str) -> None:
    read = json.loads(document(whole()).text())
    del read[field]
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(read)


def test_the_schema_lets_fields_of_a_later_minor_version_pass_and_no_other_contract() -> None:
    read = json.loads(document(whole()).text())
    later = {**read, "minor": 3, "colour": "green", "artifacts": {**read["artifacts"], "colour": "green"}}
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(later)
    assert not validator.is_valid({**read, "contract": 2})


def test_the_schema_has_an_id_with_the_contracts_version() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:tritonstack:outputs:1"
    assert SCHEMA["properties"]["contract"]["const"] == 1


@pytest.mark.parametrize("kind", ["artifacts", "network", "builds", "serving", "observability"])
def test_the_schema_of_parameters_takes_what_a_stack_tells_and_misses_what_it_does_not(kind: str) -> None:
    validator = jsonschema.Draft202012Validator(PARAMETER_SCHEMA)
    value = serving("digits") if kind == "serving" else told(kind)
    validator.validate({**value, "colour": "of a later minor version"})
    for field in value:
        assert not validator.is_valid({name: each for name, each in value.items() if name != field}), field


def test_the_schema_of_parameters_has_an_id_with_the_contracts_version() -> None:
    jsonschema.Draft202012Validator.check_schema(PARAMETER_SCHEMA)
    assert PARAMETER_SCHEMA["$id"] == "urn:tritonstack:outputs-parameter:1"
