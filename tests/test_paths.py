"""Where things lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonstack import paths
from tritonstack.paths import REPOSITORY, LocalPaths, project_folder, setup_command


def test_the_state_lies_in_the_repository_unless_a_variable_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TRITONSTACK_HOME", raising=False)
    assert LocalPaths.from_environment().root == REPOSITORY / ".local"
    monkeypatch.setenv("TRITONSTACK_HOME", "")
    assert LocalPaths.from_environment().root == REPOSITORY / ".local"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITONSTACK_HOME", "here")
    assert LocalPaths.from_environment().root == tmp_path / "here"


def test_the_project_is_the_variable_s_else_this_folder_s_else_the_repository_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TRITONSTACK_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert project_folder() == REPOSITORY
    (tmp_path / "environments").mkdir()
    assert project_folder() == tmp_path
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path / "other"))
    assert project_folder() == tmp_path / "other"


def test_the_remedy_of_a_missing_environment_is_that_of_a_clone_or_of_a_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (setup_command(), setup_command("torch")) == ("make setup", "python3 scripts/setup.py torch")
    monkeypatch.setattr(paths, "CHECKOUT", None)
    assert (setup_command(), setup_command("torch")) == ("tritonstack setup", "tritonstack setup torch")
