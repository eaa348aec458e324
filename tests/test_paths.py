"""Where things lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonstack import paths
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY, LocalPaths, find_project, project_folder, setup_command


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable names a project or a state folder."""
    monkeypatch.delenv("TRITONSTACK_PROJECT", raising=False)
    monkeypatch.delenv("TRITONSTACK_HOME", raising=False)


@pytest.mark.usefixtures("anywhere")
def test_the_state_lies_in_the_project_unless_a_variable_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "environments").mkdir()
    (tmp_path / "model_repos").mkdir()
    monkeypatch.chdir(tmp_path / "environments")
    assert LocalPaths.from_environment().root == tmp_path / ".local"
    monkeypatch.setenv("TRITONSTACK_HOME", "")
    assert LocalPaths.from_environment().root == tmp_path / ".local"
    monkeypatch.setenv("TRITONSTACK_HOME", "here")
    assert LocalPaths.from_environment().root == tmp_path / "environments" / "here"


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize(
    ("files", "start", "found"),
    [
        (["a/environments/dev.yaml", "a/model_repos/m/m/1/model.py"], "a/model_repos/m/m/1", "a"),
        (["a/environments/dev.yaml"], "a", "a"),
        (
            ["a/environments/dev.yaml", "a/examples/b/environments/dev.yaml"],
            "a/examples/b/environments",
            "a/examples/b",
        ),
        (["a/environments/dev.yaml", "a/environments/conda/bin/python"], "a/environments/conda", "a"),
        (["a/environments/conda/bin/python", "a/src/x"], "a/src", None),
        (["a/model_repos/m/recipe.yaml"], "a/model_repos", None),
    ],
    ids=["in a model", "its folder", "the nearest", "below environments", "other environments", "model folders alone"],
)
def test_a_project_is_found_upwards_from_the_working_folder(
    files: list[str], start: str, found: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path / start)
    assert find_project() == (None if found is None else tmp_path / found)
    if found is None:
        with pytest.raises(InputError, match=rf"(?s)^{tmp_path / start}\n.*no project.*tritonstack init my-serving"):
            project_folder()


@pytest.mark.usefixtures("anywhere")
def test_a_clone_is_a_project_in_each_of_its_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(REPOSITORY / "tritonstack" / "cli")
    assert project_folder() == REPOSITORY
    (tmp_path / "model_repos").mkdir()  # what a build in CodeBuild starts from
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    monkeypatch.chdir(tmp_path / "model_repos")
    assert project_folder() == tmp_path


def test_the_variable_names_the_project_wherever_a_command_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    assert project_folder() == tmp_path
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=rf"(?s)TRITONSTACK_PROJECT\n.*no such folder.*init {tmp_path / 'gone'}"):
        project_folder()


def test_the_remedy_of_a_missing_environment_is_that_of_a_clone_or_of_a_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (setup_command(), setup_command("torch")) == ("make setup", "python3 scripts/setup.py torch")
    monkeypatch.setattr(paths, "CHECKOUT", None)
    assert (setup_command(), setup_command("torch")) == ("tritonstack setup", "tritonstack setup torch")
