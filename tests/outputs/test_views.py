"""The document as variables and as a table."""

from __future__ import annotations

import io
import subprocess
from typing import Any

import pytest
from rich.console import Console

from tests.outputs.world import PATH, SystemsManager, serving, settings, smallest, told, whole
from tritonstack.errors import InputError
from tritonstack.outputs.contract import OutputsDocument
from tritonstack.outputs.reading import document_of, read_outputs
from tritonstack.outputs.views import table, variables


def document(parameters: dict[str, Any]) -> OutputsDocument:
    return document_of(read_outputs(SystemsManager(parameters), settings()), environment="dev")


def test_variables_have_the_fields_path_as_name() -> None:
    lines = dict(line.split("=", 1) for line in variables(document(whole())).splitlines())
    assert lines["TRITONSTACK_ENDPOINTS__DIGITS__NAME"] == "dev-digits"
    assert lines["TRITONSTACK_NETWORK__SUBNETS__US_EAST_1A"] == "subnet-1"
    assert lines["TRITONSTACK_NETWORK__SECURITY_GROUPS"] == "sg-1,sg-2"
    assert lines["TRITONSTACK_BUILDS__ENGINE_PROJECT"] == ""


def test_a_shell_reads_the_variables_as_they_stand() -> None:
    script = f'{variables(document(whole()))}\nprintf "%s" "$TRITONSTACK_ENDPOINTS__DIGITS__MODEL_DATA_URL"'
    printed = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True).stdout
    assert printed == "s3://archives/endpoints/digits/24.09-t4/"


def test_two_fields_of_one_name_and_a_value_that_needs_quotes_are_both_refused() -> None:
    parameters = {
        **whole(),
        f"{PATH}artifacts": told("artifacts", bucket="$(id)"),
        f"{PATH}network": told("network", subnets={"a-b": "subnet-1", "a--b": "subnet-2", "a_b": "subnet-3"}),
    }
    with pytest.raises(InputError) as raised:
        variables(document(parameters))
    assert "artifacts.bucket" in str(raised.value)
    assert "TRITONSTACK_NETWORK__SUBNETS__A_B" in str(raised.value)
    assert str(raised.value).count("found:") == 2


def test_the_table_says_why_something_is_missing() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(document({**smallest(), f"{PATH}serving-other": serving("other")})))
    printed = console.export_text()
    assert "endpoints.other.name" in printed
    assert "- (the environment has no network of its own" in printed
