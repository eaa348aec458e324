"""What is wrong with an environment's outputs is said at once, each with the parameter and what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.outputs.world import DIGEST, ENDPOINT, PATH, SystemsManager, serving, settings, smallest, told, whole
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.outputs.reading import read_outputs

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
        read_outputs(SystemsManager(parameters, denied), settings(**changes))
    return str(raised.value)


def test_what_every_stack_tells_and_each_current_release_are_read() -> None:
    read = read_outputs(SystemsManager(whole()), settings())
    assert set(read.stacks) == {"artifacts", "network", "builds", "observability", "serving-digits"}
    assert read.releases == {"digits": {"double": DIGEST}}


def test_nothing_is_read_but_outputs_and_the_records_of_what_serves() -> None:
    systems = SystemsManager({**whole(), "/tritonstack/dev/other/model": DIGEST})
    read_outputs(systems, settings())
    assert systems.asked == ["/tritonstack/dev/_outputs", "/tritonstack/dev/digits"]


def test_nothing_deployed_is_one_problem_that_says_how_to_deploy() -> None:
    message = refused({})
    assert message.count("found:") == 1
    assert "/tritonstack/dev/_outputs/" in message
    assert "cdk deploy 'dev/*'" in message


def test_a_half_deployed_environment_names_every_missing_stack() -> None:
    second = {**ENDPOINT, "name": "second"}
    parameters = {**smallest(), f"{PATH}serving-digits": serving("digits", builds_on_deploy=True)}
    message = refused(
        parameters,
        endpoints=[ENDPOINT, second],
        dashboard=True,
        network=NETWORK,
    )
    for stack in ("builds", "network", "observability", "serving-second"):
        assert f"cdk deploy 'dev/{stack}'" in message
    assert message.count("found:") == 4


@pytest.mark.parametrize(("contract", "words"), [(0, "older version: cdk deploy 'dev/artifacts'"), (2, "newer")])
def test_another_contract_is_refused_with_what_to_do(contract: int, words: str) -> None:
    message = refused({**smallest(), f"{PATH}artifacts": told("artifacts", contract=contract)})
    assert f"found:   {contract}" in message
    assert words in message
    assert message.count("found:") == 1, "a stack that is there is not missing too"


def test_an_older_contract_is_told_as_such_where_its_fields_are_others() -> None:
    value = {"contract": 0, "kind": "artifacts", "bucket_name": "archives"}
    message = refused({**smallest(), f"{PATH}artifacts": value})
    assert "older version" in message
    assert "Field required" not in message


def test_fields_of_a_later_minor_version_are_passed_over() -> None:
    later = told("artifacts", minor=7, colour="green")
    read = read_outputs(SystemsManager({**smallest(), f"{PATH}artifacts": later}), settings())
    assert read.stacks["artifacts"]["bucket"] == "archives"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("not JSON", "Invalid JSON"),
        (json.dumps(told("artifacts", bucket=7)), "bucket"),
        (json.dumps({**told("artifacts"), "kind": "colour"}), "colour"),
        ('{"contract": 1}', "kind"),
    ],
)
def test_a_damaged_parameter_is_named_with_what_is_wrong_in_it(value: str, words: str) -> None:
    message = refused({**smallest(), f"{PATH}artifacts": value})
    assert f"{PATH}artifacts" in message
    assert words in message
    assert message.count("found:") == 1


def test_parameters_of_another_environment_account_or_region_are_refused() -> None:
    other = told("artifacts", environment="prod", account="210987654321", region="eu-west-1")
    message = refused({**smallest(), f"{PATH}artifacts": other})
    for words in ("'prod'", "'210987654321'", "'eu-west-1'", "environments/dev.yaml"):
        assert words in message
    assert message.count("found:") == 3


def test_the_records_that_another_environments_parameter_names_are_not_read() -> None:
    other = serving("digits", environment="prod", release_records="/tritonstack/prod/digits/")
    systems = SystemsManager({**smallest(), f"{PATH}serving-digits": other})
    with pytest.raises(InputError, match="'prod'"):
        read_outputs(systems, settings())
    assert systems.asked == ["/tritonstack/dev/_outputs"]


def test_a_path_that_may_not_be_read_is_failed_work_and_names_the_permission() -> None:
    with pytest.raises(WorkFailedError, match=r"ssm:GetParametersByPath.*docs/outputs\.md") as raised:
        read_outputs(SystemsManager(smallest(), denied=("/tritonstack/dev/_outputs",)), settings())
    assert "cdk deploy" not in str(raised.value), "whether something is missing is not known"


def test_everything_is_told_at_once_and_a_refusal_of_aws_makes_it_failed_work() -> None:
    parameters = {**smallest(), f"{PATH}artifacts": told("artifacts", contract=0)}
    with pytest.raises(WorkFailedError) as raised:
        read_outputs(SystemsManager(parameters, denied=("/tritonstack/dev/digits",)), settings(dashboard=True))
    for words in ("older version", "AccessDeniedException", "cdk deploy 'dev/observability'"):
        assert words in str(raised.value)


def test_a_record_that_holds_no_digest_is_refused() -> None:
    message = refused({**smallest(), "/tritonstack/dev/digits/double": "latest"})
    assert "/tritonstack/dev/digits/double" in message
    assert "'latest'" in message


def test_an_endpoint_that_left_the_file_is_told_while_its_stack_is_there() -> None:
    read = read_outputs(SystemsManager({**smallest(), f"{PATH}serving-old": serving("old")}), settings())
    assert set(read.serving()) == {"digits", "old"}
