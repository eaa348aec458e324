"""The emulator runs in an environment of its own, which has neither NumPy nor the packages of the client."""

from __future__ import annotations

import os
import subprocess

from tritonstack.paths import LIBRARY, environment_python

EVERY_MODULE = """
import importlib, pkgutil
import tritonstack_local.emulator as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_every_module_of_the_emulator_is_imported_with_the_packages_of_its_environment() -> None:
    ran = subprocess.run(
        [environment_python("emulator"), "-c", EVERY_MODULE],
        env={"PATH": os.defpath, "PYTHONPATH": str(LIBRARY)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr.count("Error:")) == (0, 0), ran.stderr
