"""The package gives its names without importing more than is asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tritonstack import models as archives

HEAVY = ("contents", "recipe", "source", "digest", "resolving", "model_config")
IMPORTED = (
    "import json, sys, {module}; print(json.dumps(sorted(name for name in sys.modules if 'tritonstack' in name)))"
)


def imported_with(module: str) -> set[str]:
    """The modules of this project that a fresh Python has after one import."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(module=module)], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", archives.__all__)
def test_every_name_of_the_package_is_there_and_of_the_module_that_defines_it(name: str) -> None:
    found = getattr(archives, name)
    assert found.__name__ == name
    assert found.__module__.startswith("tritonstack.models.")
    assert getattr(archives, name) is found


@pytest.mark.parametrize("module", ["tritonstack.models", "tritonstack.adapters", "tritonstack.client"])
def test_what_needs_no_recipe_does_not_import_how_recipes_are_read(module: str) -> None:
    found = imported_with(module)
    assert module in found
    assert not found & {f"tritonstack.models.{name}" for name in HEAVY}
    assert not any(name.startswith(("tritonstack.config", "tritonstack.catalogue")) for name in found)
