"""The contract changes only with its version.

A field is added: raise MINOR in ``tritonstack/outputs/contract.py``. A field that readers use is removed, renamed
or gets another type: raise CONTRACT, set MINOR to 0. Then ``python -m tests.outputs.contract`` writes the description.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.outputs.contract import FILE, changes, described
from tritonstack.outputs.contract import CONTRACT, MINOR

COMMITTED: dict[str, Any] = json.loads(FILE.read_text())


def test_the_contract_is_the_committed_one() -> None:
    breaking, added = changes(COMMITTED, described())
    assert not breaking, "readers break: raise CONTRACT, set MINOR to 0, and run python -m tests.outputs.contract"
    assert not added, "raise MINOR, say it in docs/outputs.md, and run python -m tests.outputs.contract"
    assert (COMMITTED["contract"], COMMITTED["minor"]) == (CONTRACT, MINOR)


BREAKING: dict[str, Callable[[dict[str, Any]], Any]] = {
    "removed": lambda now: now["document"].pop("/artifacts/bucket"),
    "nullable": lambda now: now["document"].update({"/endpoints/*/arn": "null | string"}),
    "parameter moved": lambda now: now["parameters"]["artifacts"].update(name="/tritonstack/outputs/artifacts"),
    "output renamed": lambda now: now["stack_outputs"]["serving"].pop("EndpointName"),
}


@pytest.mark.parametrize("change", BREAKING.values(), ids=BREAKING)
def test_what_readers_break_on_needs_a_new_contract(change: Callable[[dict[str, Any]], None]) -> None:
    now = copy.deepcopy(COMMITTED)
    change(now)
    breaking, added = changes(COMMITTED, now)
    assert (len(breaking), added) == (1, [])
