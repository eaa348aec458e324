"""Run something in the environment ``torch``."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".envs/torch/bin/python"

needs_torch = pytest.mark.skipif(
    not PYTHON.exists(), reason="the environment torch is not made: python3 scripts/setup.py torch"
)


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """``python ARGUMENTS`` there, with further environment variables."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2", **variables}
    return subprocess.run(
        [PYTHON, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def task(name: str, folder: Path, **variables: str) -> dict[str, Any]:
    """What a task of ``in_torch.py`` gives."""
    done = run(Path(__file__).with_name("in_torch.py"), name, folder, **variables)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def failure(name: str, folder: Path, **variables: str) -> str:
    """The sentence that a task of ``in_torch.py`` ends with."""
    done = run(Path(__file__).with_name("in_torch.py"), name, folder, **variables)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr
