"""Parts of a build by themselves: reading a buildspec, unpacking a source, the shell, the choice of artifacts."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.codebuild.build import matching_files, unpack
from tritonstack_local.emulator.codebuild.buildspec import (
    ArtifactFiles,
    BuildspecError,
    PhaseError,
    read_buildspec,
)
from tritonstack_local.emulator.codebuild.shell import BuildShell


@pytest.mark.parametrize(
    ("wrong", "problems"),
    [
        (
            """
            version: 0.1
            env: {secrets-manager: {A: b}}
            phases: {build: {commands: echo, finally: ["true"]}}
            artifacts: {files: [a], exclude-paths: [a]}
            """,
            [
                "/version: 0.1 is not a valid enum value, allowed: 0.2",
                "/env: extraneous key [secrets-manager] is not permitted",
                "/phases/build/commands: must be of type array",
                "/phases/build: extraneous key [finally] is not permitted",
                "/artifacts: extraneous key [exclude-paths] is not permitted",
            ],
        ),
        (
            """
            version: 0.2
            phases: {}
            artifacts: {files: ["../*", "$HOME/*"]}
            """,
            [
                "/artifacts: '../*': a path within the source folder is needed",
                "/artifacts: '$HOME/*': the local AWS expands no variables in paths",
            ],
        ),
        ("", [": required key [version] not found", ": required key [phases] not found"]),
    ],
    ids=["parts", "paths", "nothing"],
)
def test_every_problem_of_a_buildspec_is_reported_at_once(wrong: str, problems: list[str]) -> None:
    with pytest.raises(BuildspecError) as refused:
        read_buildspec(wrong)
    assert str(refused.value).split("; ") == problems


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c.txt", "\\", "..\\.."]), min_size=1, max_size=5).map(
    "/".join
)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_no_name_in_a_zip_file_writes_outside_of_its_folder(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), "text")
    outside = tmp_path_factory.mktemp("outside")
    target = outside / "deep" / "target"
    target.mkdir(parents=True)
    try:
        unpack(content.getvalue(), "source.zip", target)
    except PhaseError as error:
        assert error.code == "CLIENT_ERROR"
    assert [path for path in outside.rglob("*") if not path.is_relative_to(target)] == [target.parent]


def test_only_the_right_to_execute_is_taken_over(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, mode in (("run.sh", 0o6755), ("read.txt", 0o644)):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, "text")
    unpack(content.getvalue(), "source.zip", tmp_path)
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o755
    assert not (tmp_path / "read.txt").stat().st_mode & 0o111


class Session:
    """A shell and the output of its commands."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        directory = folder / "src"
        directory.mkdir()
        environment = {"PATH": os.environ["PATH"], "CODEBUILD_BUILD_ID": f"test:{folder}"}
        self.shell = BuildShell(
            folder=folder / "tmp", directory=directory, environment=environment, line=self.lines.append
        )

    def run(self, command: str) -> int | None:
        return self.shell.run(command, interrupted=lambda: False, deadline=clock.deadline(30))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path)
    yield made
    made.shell.end()


def test_process_in_the_background_holds_up_no_command_and_ends_with_the_shell(session: Session) -> None:
    assert session.run("sleep 600 & echo $!") == 0
    [pid] = map(int, session.lines)
    assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    session.shell.end()
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_interrupted_command_runs_on_until_the_end(session: Session) -> None:
    assert session.shell.run("sleep 600", interrupted=lambda: True, deadline=clock.deadline(30)) is None
    assert session.shell.run("sleep 600", interrupted=lambda: False, deadline=clock.deadline(0)) is None
    children = [process for process in psutil.Process().children() if process.name() in ("sh", "bash")]
    assert len(children) >= 2
    session.shell.end()
    assert not any(process.is_running() for process in children)


def test_artifacts_leave_out_what_lies_behind_links(tmp_path: Path) -> None:
    outside, base = tmp_path / "outside", tmp_path / "src/out"
    for path in (outside / "secret.txt", base / "a.txt", base / "deep/b.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (base / "link").symlink_to(outside)
    files = ArtifactFiles(files=("**/*", "link/*"), base_directory="out")
    assert list(matching_files(files, tmp_path / "src")) == ["a.txt", "deep/b.txt"]
    with pytest.raises(PhaseError, match="no matching artifact paths found"):
        matching_files(ArtifactFiles(files=("b.txt",)), tmp_path / "src")
    with pytest.raises(PhaseError, match="no matching base directory path found for b"):
        matching_files(ArtifactFiles(files=("*",), base_directory="b"), tmp_path / "src")
