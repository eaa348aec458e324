"""docs/outputs.md: what its blocks name is in the contract, and its permissions are what is needed and no more."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.outputs.page import PAGE, blocks
from tests.outputs.test_contract import COMMITTED
from tests.outputs.world import ACCOUNT, REGION, account_with, settings, whole
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.outputs.reading import read_outputs


def block(language: str) -> str:
    """The one block of a language."""
    [found] = [each.text for each in blocks() if each.language == language]
    return found


def test_no_block_is_left_out() -> None:
    """Those of sh, python and yaml run in tests/e2e/local/test_outputs.py; the others are looked at here."""
    assert {each.language for each in blocks()} == {"sh", "python", "yaml", "hcl", "json"}
    assert PAGE.read_text().count("```") == 2 * len(blocks())


def test_terraform_reads_fields_and_a_parameter_of_the_contract() -> None:
    text, contract = block("hcl"), COMMITTED["parameters"]["serving"]
    wanted = contract["name"].replace("<environment>", "prod").replace("<endpoint>", "digits")
    assert re.findall(r'name = "([^"]+)"', text) == [wanted]
    named = set(re.findall(r"local\.digits\.(\w+)", text))
    assert named == {"endpoint_arn", "contract"}
    assert {f"/{name}" for name in named} <= set(contract["fields"])


def allowed(policy: list[dict[str, Any]], path: str) -> bool:
    """Whether the page's policy lets a caller list a path."""
    request = Request(
        principal=f"arn:aws:iam::{ACCOUNT}:role/reader",
        action="ssm:GetParametersByPath",
        resource=f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter{path}",
    )
    return evaluate(request, Policies(identity=policy)).allowed


def test_the_permissions_are_those_that_the_command_needs_and_no_more() -> None:
    policy = json.loads(block("json").replace("tritonstack/local/", "tritonstack/dev/"))["Statement"]
    systems = account_with(whole())
    read_outputs(systems, settings())
    assert [path for path in systems.parameter_reads if not allowed(policy, path)] == []
    named = {resource.partition("parameter")[2] for each in policy for resource in each["Resource"]}
    assert named == set(systems.parameter_reads), "more is allowed than is asked for"


def test_the_page_names_the_version_that_the_code_has() -> None:
    assert f"`contract` is {COMMITTED['contract']}, `minor` is {COMMITTED['minor']}." in PAGE.read_text()


def test_every_cloudformation_output_of_the_contract_is_on_the_page() -> None:
    for names in COMMITTED["stack_outputs"].values():
        assert [name for name in names if f"`{name}`" not in PAGE.read_text()] == []
