"""The contract changes only with its version.

Something is added: MINOR in ``tritonstack/outputs/contract.py`` rises. Something that readers know is removed, renamed
or gets another type: CONTRACT rises, MINOR is 0. Then ``python -m tests.outputs.contract`` writes the description.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.outputs import contract
from tests.outputs.contract import FILE, changes, described
from tritonstack.outputs.contract import CONTRACT, MINOR

COMMITTED: dict[str, Any] = json.loads(FILE.read_text())


def test_the_contract_is_the_committed_one() -> None:
    breaking, added = changes(COMMITTED, described())
    assert not breaking, "readers break: raise CONTRACT, set MINOR to 0, and run python -m tests.outputs.contract"
    assert not added, "raise MINOR, say it in docs/outputs.md, and run python -m tests.outputs.contract"
    assert (COMMITTED["contract"], COMMITTED["minor"]) == (CONTRACT, MINOR)


def removed(now: dict[str, Any]) -> None:
    del now["document"]["/artifacts/bucket"]


def renamed(now: dict[str, Any]) -> None:
    now["document"]["/artifacts/bucket_name"] = now["document"].pop("/artifacts/bucket")


def retyped(now: dict[str, Any]) -> None:
    now["parameters"]["serving"]["fields"]["/builds_on_deploy"] = "string"


def nullable(now: dict[str, Any]) -> None:
    now["document"]["/endpoints/*/arn"] = "null | string"


def moved(now: dict[str, Any]) -> None:
    now["parameters"]["artifacts"]["name"] = "/tritonstack/<environment>/outputs/artifacts"


def record_moved(now: dict[str, Any]) -> None:
    now["release_record"] = "/tritonstack/<environment>/<model>"


def output_renamed(now: dict[str, Any]) -> None:
    now["stack_outputs"]["serving"]["Endpoint"] = now["stack_outputs"]["serving"].pop("EndpointName")


@pytest.mark.parametrize("change", [removed, renamed, retyped, nullable, moved, record_moved, output_renamed])
def test_what_readers_break_on_needs_a_new_contract(
    change: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = copy.deepcopy(COMMITTED)
    change(now)
    assert changes(COMMITTED, now)[0]
    before = FILE.read_bytes()
    monkeypatch.setattr(contract, "described", lambda: {**now, "minor": MINOR + 1})
    assert contract.main() == 1, "a minor version does not excuse it"
    assert "needs a new contract" in capsys.readouterr().err
    assert FILE.read_bytes() == before


def test_what_is_added_needs_a_minor_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    now = copy.deepcopy(COMMITTED)
    now["document"]["/endpoints/*/colour"] = "string"
    assert changes(COMMITTED, now) == ([], ["added: document /endpoints/*/colour"])
    file = tmp_path / "contract-1.json"
    file.write_bytes(FILE.read_bytes())
    monkeypatch.setattr(contract, "FILE", file)
    monkeypatch.setattr(contract, "described", lambda: now)
    assert contract.main() == 1
    now["minor"] = MINOR + 1
    assert contract.main() == 0
    assert json.loads(file.read_text()) == now


def test_the_description_reaches_every_level_of_the_document() -> None:
    types = COMMITTED["document"]
    assert types["/endpoints/*/releases/*/digest"] == "string"
    assert types["/endpoints/*/mode"] == '"multi-model" | "single-model"'
    assert types["/endpoints/*/alarms"] == "array | null"
    assert types["/network/security_groups[]"] == "string"
    assert types["/observability"] == "null | object"
    assert types["/contract"] == "1"
