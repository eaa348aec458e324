"""Marks of tests that need an environment under ``.envs/`` which ``make setup`` does not make."""

from __future__ import annotations

import pytest

from tritonstack.paths import environment_python


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip where one of the environments is not made."""
    missing = " ".join(name for name in names if not environment_python(name).exists())
    return pytest.mark.skipif(bool(missing), reason=f"not made: python3 scripts/setup.py {missing}")
