"""The engine step needs no newer Python than the oldest Triton image has (vermin reads which features a file uses)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tritonstack.engines import engine_step

OLDEST = "3.8"


def vermin(*files: Path) -> subprocess.CompletedProcess[str]:
    """Fails where a file needs a newer Python than the oldest."""
    program = str(Path(sys.executable).with_name("vermin"))
    arguments = [program, "--no-tips", f"--target={OLDEST}-", "--violations", *map(str, files)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_the_engine_step_needs_python_3_8_or_older() -> None:
    done = vermin(Path(str(engine_step.__file__)))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "newer", ["import tomllib\n", 'print("a.b".removesuffix(".b"))\n', "match 1:\n    case _:\n        pass\n"]
)
def test_the_check_refuses_what_only_a_newer_python_has(tmp_path: Path, newer: str) -> None:
    (tmp_path / "newer.py").write_text(newer)
    done = vermin(tmp_path / "newer.py")
    assert done.returncode == 1
    assert "Minimum required versions: 3." in done.stdout
