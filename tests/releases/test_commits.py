"""Commits of inputs, from real git repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.folders import RECIPE, write, write_double
from tritonstack.models.source import archives_of
from tritonstack.releases import commits
from tritonstack.releases.commits import UNCOMMITTED, UNKNOWN, commits_of

REPOSITORY = Path(__file__).resolve().parents[2]
EXPORTS = RECIPE + "exports: [{script: export.py, environment: exporters, produces: [double/1/weights.bin]}]\n"


class Repository:
    """A repository of the test's own, with two models."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.double, self.other = write_double(root), write_double(root, "other")
        write(root, {"requirements/exporters.txt": "numpy==1.0\n", "README.md": "nothing\n"})
        self.first = self.commit("first")

    def git(self, *arguments: str) -> str:
        """Run git here, without the settings of the person who runs the tests."""
        settings = ("-c", "user.name=tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *settings, *arguments], cwd=self.root, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        """Commit everything; the commit's id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}")
        return self.git("rev-parse", "HEAD")

    def model_commits(self, root: Path | None = None) -> dict[str, str]:
        """The commits of both models."""
        commits._commit.cache_clear()
        repositories = (root or self.root) / "model_repos"
        sources = {name: archives_of(repositories / name)[0] for name in ("double", "other")}
        return commits_of(sources, repositories)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_model_keeps_its_commit_while_others_change(repository: Repository) -> None:
    write(repository.other, {"sample/more.json": "{}"})
    second = repository.commit("second")
    write(repository.root, {"README.md": "something\n"})
    repository.commit("third")
    assert repository.model_commits() == {"double": repository.first, "other": second}


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write(folder, {"sample/new.json": "{}"}),
        lambda folder: (folder / "sample/request.json").unlink(),
        lambda folder: (folder / "recipe.yaml").write_text(RECIPE + "\n"),
    ],
    ids=["a new file", "a file that is gone", "the recipe"],
)
def test_every_difference_of_the_working_tree_counts_for_its_model_alone(
    repository: Repository, change: Callable[[Path], None]
) -> None:
    change(repository.double)
    assert repository.model_commits() == {"double": UNCOMMITTED, "other": repository.first}


def test_a_deleted_file_is_a_change_of_its_model(repository: Repository) -> None:
    (repository.double / "sample/request.json").rename(repository.root / "elsewhere.json")
    gone = repository.commit("gone")
    assert repository.model_commits() == {"double": gone, "other": repository.first}


def test_lock_files_and_used_folders_are_inputs_and_what_exports_make_is_none(repository: Repository) -> None:
    write(repository.double, {"recipe.yaml": EXPORTS, "export.py": ""})
    write(repository.other, {"recipe.yaml": RECIPE + "uses: [{folder: double, models: [double]}]\n"})
    both = repository.commit("exports and uses")
    assert repository.model_commits() == {"double": both, "other": both}
    write(repository.double, {"double/1/weights.bin": "made here"})
    assert repository.model_commits() == {"double": both, "other": both}
    write(repository.root, {"requirements/exporters.txt": "numpy==2.0\n"})
    locked = repository.commit("another lock file")
    assert repository.model_commits() == {"double": locked, "other": locked}
    write(repository.double.parent, {"_exporters/layers.py": ""})
    assert repository.model_commits() == {"double": UNCOMMITTED, "other": UNCOMMITTED}
    shared = repository.commit("what export scripts share")
    assert repository.model_commits() == {"double": shared, "other": shared}


def test_a_merged_change_is_the_merges(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "branch")
    write(repository.double, {"double/1/model.py": "# changed\n"})
    repository.commit("on the branch")
    repository.git("switch", "--quiet", "main")
    write(repository.root, {"README.md": "meanwhile\n"})
    repository.commit("meanwhile")
    repository.git("merge", "--quiet", "--no-ff", "--no-edit", "branch")
    assert repository.model_commits() == {"double": repository.git("rev-parse", "HEAD"), "other": repository.first}


def test_a_clone_reports_the_same_and_a_shallow_one_only_what_its_own_commits_changed(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("second")
    write(repository.double, {"double/1/model.py": "# changed\n"})
    third = repository.commit("third")
    whole = tmp_path.with_name(f"{tmp_path.name}-whole")
    repository.git("clone", "--quiet", str(repository.root), str(whole))
    assert repository.model_commits(whole) == repository.model_commits()
    clone = tmp_path.with_name(f"{tmp_path.name}-clone")
    repository.git("clone", "--quiet", "--depth=2", f"file://{repository.root}", str(clone))
    assert repository.model_commits(clone) == {"double": third, "other": UNKNOWN}
    write(clone / "model_repos/other", {"double/1/model.py": "# changed here\n"})
    assert repository.model_commits(clone)["other"] == UNCOMMITTED


def test_without_a_repository_a_commit_or_git_there_is_no_commit(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = {"double": UNKNOWN, "other": UNKNOWN}
    (repository.root / ".git").rename(tmp_path / "git")
    assert repository.model_commits() == nothing
    repository.git("init", "--quiet")
    assert repository.model_commits() == nothing, "there is no commit"
    (repository.root / ".git").rename(tmp_path / "empty")
    (tmp_path / "git").rename(repository.root / ".git")
    monkeypatch.setenv("PATH", str(repository.root))
    assert repository.model_commits() == nothing, "there is no git"


def test_a_hooks_variables_do_not_lead_to_another_repository(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(REPOSITORY / ".git"))
    assert repository.model_commits()["double"] == repository.first
