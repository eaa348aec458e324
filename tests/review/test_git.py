"""Snapshots of a commit, read through git without a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.projects import commit, git
from tests.review.small import of, resource, serving, stack
from tritonstack.errors import InputError
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import read_snapshots_at, write_snapshots


def snapshots(image: str) -> Snapshots:
    return of(stack({**serving(image=image), "Ümlaut": resource("AWS::SNS::Topic", {"DisplayName": "ß → €"})}))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """``main`` with a second commit of its own, and HEAD on a branch that left before it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    write_snapshots(snapshots("base"), folder / "snapshots")
    commit(folder, "base")
    git(folder, "checkout", "--quiet", "-b", "branch")
    write_snapshots(snapshots("branch"), folder / "snapshots")
    commit(folder, "branch")
    git(folder, "checkout", "--quiet", "main")
    write_snapshots(snapshots("main"), folder / "snapshots")
    commit(folder, "main")
    git(folder, "checkout", "--quiet", "branch")
    return folder


def test_they_are_those_of_the_commit_where_head_left_the_ref(repository: Path) -> None:
    before = git(repository, "rev-parse", "main~1").strip()
    git(repository, "tag", "v1", "main")
    for ref in ("main", "v1", git(repository, "rev-parse", "main").strip()):
        assert read_snapshots_at(ref, repository=repository) == (before, snapshots("base"))


def test_the_working_tree_is_neither_read_nor_touched(repository: Path) -> None:
    write_snapshots(snapshots("uncommitted"), repository / "snapshots")
    before = git(repository, "status", "--porcelain")
    assert read_snapshots_at("HEAD", repository=repository)[1] == snapshots("branch")
    assert git(repository, "status", "--porcelain") == before


def test_a_project_inside_a_larger_repository_has_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "large" / "project"
    write_snapshots(snapshots("inner"), folder / "snapshots")
    write_snapshots(snapshots("outer"), tmp_path / "large" / "snapshots")
    git(folder.parent, "init", "--quiet")
    commit(folder.parent, "all")
    assert read_snapshots_at("HEAD", repository=folder)[1] == snapshots("inner")


def test_a_folder_outside_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no git repository"):
        read_snapshots_at("main", repository=tmp_path)


@pytest.mark.parametrize("ref", ["nobody", "--all", "main:snapshots", ""])
def test_an_unknown_ref_is_refused_by_name(repository: Path, ref: str) -> None:
    with pytest.raises(InputError, match="a branch, a tag or a commit") as raised:
        read_snapshots_at(ref, repository=repository)
    assert raised.value.problems[0].found == ref
    assert raised.value.problems[0].field == "--base"


def test_a_commit_without_snapshots_is_an_error_with_the_command_to_run(repository: Path) -> None:
    git(repository, "rm", "--quiet", "-r", "snapshots")
    last = commit(repository, "none")
    with pytest.raises(InputError, match="tritonstack snapshots") as raised:
        read_snapshots_at("HEAD", repository=repository)
    assert last[:12] in str(raised.value)


def test_a_shallow_clone_without_the_merge_base_is_an_error_with_the_command_to_deepen_it(repository: Path) -> None:
    clone = repository.parent / "clone"
    url = repository.as_uri()
    git(repository.parent, "clone", "--quiet", "--depth=1", "--no-single-branch", url, str(clone))
    with pytest.raises(InputError, match="no commit in common") as raised:
        read_snapshots_at("origin/main", repository=clone)
    assert "git fetch --unshallow" in raised.value.problems[0].advice
    git(clone, "fetch", "--quiet", "--unshallow")
    assert read_snapshots_at("origin/main", repository=clone)[1] == snapshots("base")


def test_a_hooks_variables_name_no_other_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert read_snapshots_at("main", repository=repository)[1] == snapshots("base")
