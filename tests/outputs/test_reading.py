"""Outputs are read and checked, and make the document, variables and a table."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from tests.outputs.world import (
    DIGEST,
    ENDPOINT,
    PATH,
    account_with,
    outputs_document,
    serving,
    settings,
    smallest,
    whole,
)
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.outputs.contract import OutputsDocument
from tritonstack.outputs.reading import fields, read_outputs, table

NETWORK = {
    "imported": {
        "vpc_id": "vpc-1a",
        "subnets": {"us-east-1a": "subnet-1a", "us-east-1b": "subnet-1b"},
        "route_table_ids": ["rtb-1a"],
        "security_group_ids": ["sg-1a"],
    }
}


def refused(parameters: dict[str, Any], *, denied: tuple[str, ...] = (), **changes: Any) -> str:
    """The message where the input is wrong."""
    with pytest.raises(InputError) as raised:
        read_outputs(account_with(parameters, denied=denied), settings(**changes))
    return str(raised.value)


def test_nothing_is_read_but_outputs_and_the_records_of_what_serves() -> None:
    systems = account_with({**whole(), "/tritonstack/dev/other/model": DIGEST})
    read_outputs(systems, settings())
    assert systems.parameter_reads == ["/tritonstack/dev/_outputs", "/tritonstack/dev/digits"]


def test_nothing_deployed_is_one_problem_with_the_command_to_deploy() -> None:
    message = refused({})
    assert message.count("found:") == 1
    assert "/tritonstack/dev/_outputs/" in message
    assert "cdk deploy 'dev/*'" in message


def test_a_half_deployed_environment_names_every_missing_stack() -> None:
    parameters = {**smallest(), f"{PATH}serving-digits": serving("digits", builds_on_deploy=True)}
    endpoints = [ENDPOINT, {**ENDPOINT, "name": "second"}]
    message = refused(parameters, endpoints=endpoints, dashboard=True, network=NETWORK)
    for stack in ("builds", "network", "observability", "serving-second"):
        assert f"cdk deploy 'dev/{stack}'" in message
    assert message.count("found:") == 4


OLDER = "older version: cdk deploy 'dev/artifacts'"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (outputs_document("artifacts", contract=0), OLDER),
        ({"contract": 0, "kind": "artifacts", "bucket_name": "archives"}, OLDER),
        (outputs_document("artifacts", contract=2), "newer"),
    ],
    ids=["older", "older, with other fields", "newer"],
)
def test_another_contract_is_refused_with_what_to_do(value: dict[str, Any], words: str) -> None:
    message = refused({**smallest(), f"{PATH}artifacts": value})
    assert f"found:   {value['contract']}" in message
    assert words in message
    assert message.count("found:") == 1, "a stack that is there is not missing too"


def test_fields_of_a_later_minor_version_are_passed_over() -> None:
    later = outputs_document("artifacts", minor=7, colour="green")
    assert document({**smallest(), f"{PATH}artifacts": later}).artifacts["bucket"] == "archives"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("not JSON", "Invalid JSON"),
        (json.dumps(outputs_document("artifacts", bucket=7)), "bucket"),
        (json.dumps({**outputs_document("artifacts"), "kind": "colour"}), "colour"),
        ('{"contract": 1}', "kind"),
    ],
)
def test_a_damaged_parameter_is_named_with_what_is_wrong_in_it(value: str, words: str) -> None:
    message = refused({**smallest(), f"{PATH}artifacts": value})
    assert f"{PATH}artifacts" in message
    assert words in message
    assert message.count("found:") == 1


def test_parameters_of_another_environment_account_or_region_are_refused() -> None:
    other = outputs_document("artifacts", environment="prod", account="210987654321", region="eu-west-1")
    message = refused({**smallest(), f"{PATH}artifacts": other})
    for words in ("'prod'", "'210987654321'", "'eu-west-1'", "environments/dev.yaml"):
        assert words in message
    assert message.count("found:") == 3


def test_the_records_that_another_environments_parameter_names_are_not_read() -> None:
    other = serving("digits", environment="prod", release_records="/tritonstack/prod/digits/")
    systems = account_with({**smallest(), f"{PATH}serving-digits": other})
    with pytest.raises(InputError, match="'prod'"):
        read_outputs(systems, settings())
    assert systems.parameter_reads == ["/tritonstack/dev/_outputs"]


def test_a_path_that_may_not_be_read_is_failed_work_and_names_the_permission() -> None:
    with pytest.raises(WorkFailedError, match=r"/tritonstack/dev/_outputs.*AccessDenied.*GetParametersByPath"):
        read_outputs(account_with(smallest(), denied=("/tritonstack/dev/_outputs",)), settings())


def test_a_record_that_holds_no_digest_is_refused() -> None:
    message = refused({**smallest(), "/tritonstack/dev/digits/double": "latest"})
    assert "/tritonstack/dev/digits/double" in message
    assert "'latest'" in message


def test_an_endpoint_removed_from_the_file_is_reported_while_its_stack_exists() -> None:
    assert set(document({**smallest(), f"{PATH}serving-old": serving("old")}).endpoints) == {"digits", "old"}


SCHEMA_FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMA = json.loads(SCHEMA_FOLDER.joinpath("outputs.schema.json").read_text())
PARAMETER_SCHEMA = json.loads(SCHEMA_FOLDER.joinpath("outputs-parameter.schema.json").read_text())


def document(parameters: dict[str, Any]) -> OutputsDocument:
    return read_outputs(account_with(parameters), settings())


def test_everything_in_the_stacks_parameters_is_in_the_document() -> None:
    made = document(whole()).model_dump()
    digits = made["endpoints"]["digits"]
    record = digits["releases"]["double"]
    assert made["artifacts"]["bucket"] == "archives"
    assert made["network"]["subnets"] == {"us-east-1a": "subnet-1"}
    assert made["builds"]["project"] == "builder"
    assert made["observability"]["composite_alarms"] == {"critical": "dev-critical"}
    assert (digits["name"], digits["stack"]) == ("dev-digits", "dev-serving-digits")
    assert (digits["parameter"], digits["alarms"]) == (f"{PATH}serving-digits", ["dev-digits-latency"])
    assert record["parameter"] == "/tritonstack/dev/digits/double"
    assert (record["digest"], record["archive"]) == (DIGEST, f"double.{DIGEST}.tar.gz")


def watched(*absent: str) -> dict[str, Any]:
    """Everything, but without these fields of the observability stack."""
    return {**whole(), f"{PATH}observability": outputs_document("observability", **dict.fromkeys(absent))}


WITHOUT_ALARMS = watched("alarm_topic_arn", "composite_alarms", "endpoint_alarms", "build_alarms")
TOO_MANY_ALARMS = watched("endpoint_alarms", "build_alarms")


@pytest.mark.parametrize(
    ("parameters", "absent"),
    [
        (smallest(), {"/network", "/builds", "/observability", "/endpoints/digits/alarms"}),
        (whole(), {"/builds/engine_project"}),
        (watched("dashboard"), {"/builds/engine_project", "/observability/dashboard"}),
        (
            WITHOUT_ALARMS,
            {"/builds/engine_project", "/observability/alarm_topic_arn", "/observability/composite_alarms",
             "/observability/build_alarms", "/endpoints/digits/alarms"},
        ),
        (
            TOO_MANY_ALARMS,
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
    assert set(read["absent"]) == absent == {pointer for pointer, value in fields(read) if value is None}
    assert all(read["absent"].values())


@pytest.mark.parametrize("kind", ["artifacts", "network", "builds", "serving", "observability"])
def test_the_schema_of_parameters_accepts_a_stacks_value_and_reports_missing_fields(kind: str) -> None:
    validator = jsonschema.Draft202012Validator(PARAMETER_SCHEMA)
    value = serving("digits") if kind == "serving" else outputs_document(kind)
    validator.validate({**value, "colour": "of a later minor version"})
    for field in value:
        assert not validator.is_valid({name: each for name, each in value.items() if name != field}), field


def test_the_table_shows_why_something_is_missing() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(document({**smallest(), f"{PATH}serving-other": serving("other")})))
    printed = console.export_text()
    assert "endpoints.other.name" in printed
    assert "- (the environment has no network of its own" in printed
