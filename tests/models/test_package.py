"""The client's modules import nothing that reads recipes."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("recipe", "source", "inputs", "model_config")
CODE = "import sys, tritonstack.client; print(*sys.modules)"


def test_what_needs_no_recipe_does_not_import_how_recipes_are_read() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert "tritonstack.adapters" in found
    assert not found & {f"tritonstack.models.{name}" for name in HEAVY}
    assert not any(name.startswith(("tritonstack.config", "tritonstack.catalogue")) for name in found)
