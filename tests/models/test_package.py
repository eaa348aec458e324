"""The client's modules import nothing that reads recipes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("recipe", "source", "inputs", "model_config")
IMPORTED = (
    "import json, sys, {module}; print(json.dumps(sorted(name for name in sys.modules if 'tritonstack' in name)))"
)


def imported_with(module: str) -> set[str]:
    """The modules of this project that a fresh Python has after one import."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(module=module)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", ["tritonstack.adapters", "tritonstack.client"])
def test_what_needs_no_recipe_does_not_import_how_recipes_are_read(module: str) -> None:
    found = imported_with(module)
    assert module in found
    assert not found & {f"tritonstack.models.{name}" for name in HEAVY}
    assert not any(name.startswith(("tritonstack.config", "tritonstack.catalogue")) for name in found)
