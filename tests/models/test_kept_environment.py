"""A packed Python environment is made once for its requirements and its Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonstack.errors import InputError
from tritonstack.models import execution_environment as module
from tritonstack.models.execution_environment import PackedEnvironment, kept_environment
from tritonstack.models.recipe import ExecutionEnvironment

PART = ExecutionEnvironment(requirements="requirements.txt")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Pythons for which an environment was really made; each is a small file."""
    pythons: list[str] = []

    def make(_folder: Path, _part: object, python: str, target: Path, _report: object) -> PackedEnvironment:
        pythons.append(python)
        target.write_bytes(b"packed")
        return PackedEnvironment(
            path=target,
            python=python,
            packages={"numpy": "1.26.4"},
            way="wheels",
            hashed=True,
            bytes=6,
            sha256="0" * 64,
            unpacked_bytes=10,
        )

    monkeypatch.setattr(module, "make_execution_environment", make)
    return pythons


def kept(root: Path, python: str = "3.10") -> PackedEnvironment:
    """The environment of the folder ``t5`` in ``root``."""
    return kept_environment(root / "t5", PART, python=python, work=root / "exports", report=lambda _text: None)


def test_it_is_made_once_for_each_python_and_requirements_file(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5/requirements.txt").write_text("numpy==1.26.4\n")
    first = kept(tmp_path)
    assert first.path.name.startswith("t5.python-3.10.")
    assert kept(tmp_path) == first
    kept(tmp_path, "3.12")
    assert made == ["3.10", "3.12"]
    (tmp_path / "t5/requirements.txt").write_text("numpy==1.26.3\n")
    assert kept(tmp_path).path != first.path
    assert made == ["3.10", "3.12", "3.10"]


def test_one_that_was_cut_off_is_made_again(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "t5").mkdir()
    (tmp_path / "t5/requirements.txt").write_text("numpy==1.26.4\n")
    kept(tmp_path).path.write_bytes(b"pack")
    assert kept(tmp_path).path.read_bytes() == b"packed"
    assert made == ["3.10", "3.10"]


def test_a_missing_requirements_file_is_named(tmp_path: Path, made: list[str]) -> None:
    (tmp_path / "t5").mkdir()
    with pytest.raises(InputError, match=r"t5/requirements\.txt"):
        kept(tmp_path)
    assert made == []
