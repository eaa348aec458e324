"""``tritonstack clean`` removes what commands made, and nothing else; ``local down`` lists what stays."""

from __future__ import annotations

import json
import mmap
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner, Result

from tests.tritonstack_local.fake_parts import FakeParts, wait_for
from tritonstack import local_files, paths
from tritonstack.cli.root import root
from tritonstack.errors import InputError
from tritonstack.paths import LIBRARY
from tritonstack_local import leftovers

OLD = time.time() - 2 * leftovers.QUIET_SECONDS


def clean(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["clean", *arguments])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project over an installed wheel, with its sources and with what commands made; no other leftovers."""
    folder = tmp_path / "serving"
    for name in (
        "environments/local.yaml", "model_repos/iris/recipe.yaml", "app.py", ".venv/bin/python",
        ".envs/exporters/lib/a.py", "node_modules/aws-cdk/bin", ".local/archives/iris.0.tar.gz",
        ".local/logs/cdk.log", ".local/exports/iris/model.onnx", ".pytest_cache/x", "tests/__pycache__/a.pyc",
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("content")
    (folder / ".envs" / "main").symlink_to(folder / ".venv")
    monkeypatch.delenv(paths.HOME_VARIABLE, raising=False)
    monkeypatch.setattr(paths, "REPOSITORY", folder)
    monkeypatch.setattr(local_files, "CHECKOUT", None)
    monkeypatch.setattr(leftovers, "SHARED_MEMORY", tmp_path / "shm")
    monkeypatch.setattr(leftovers, "UNPACKED", (tmp_path / "tmp", "python_env_*"))
    monkeypatch.chdir(folder)
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() or path.is_symlink()}


SOURCES = {"environments/local.yaml", "model_repos/iris/recipe.yaml", "app.py", ".venv/bin/python"}


def test_what_commands_made_goes_and_sources_and_the_virtual_environment_stay(project: Path) -> None:
    result = clean("--yes")
    assert result.exit_code == 0, result.exception
    assert files(project) == SOURCES
    assert not (project / ".local").exists()
    assert "To make the environments again" in result.stderr
    for part in ("state and logs of the local AWS", ".local/logs", "node_modules", ".envs", "together"):
        assert part in result.stdout
    assert clean("--yes").stdout == "nothing to remove\n"


def test_one_kind_goes_alone_and_a_dry_run_removes_nothing(project: Path) -> None:
    before = files(project)
    listed = json.loads(clean("--dry-run", "--json").stdout)
    assert files(project) == before
    assert listed["removed"] is False
    assert {each["kind"] for each in listed["files"]} == {"environments", "builds", "state", "caches"}
    assert all(each["bytes"] > 0 for each in listed["files"])
    assert clean("builds", "--yes").exit_code == 0
    assert before - files(project) == {".local/archives/iris.0.tar.gz", ".local/exports/iris/model.onnx"}


def test_without_a_terminal_it_lists_and_names_the_command_that_removes(project: Path) -> None:
    before = files(project)
    result = clean("builds", "state")
    assert isinstance(result.exception, InputError)
    assert result.exception.problems[0].advice == "tritonstack clean builds state --yes"
    assert ".local/logs" in result.stdout
    assert files(project) == before


def test_what_git_tracks_stays_and_is_named(project: Path) -> None:
    (project / ".local" / "exports" / "iris" / "kept.txt").write_text("content")
    for command in (("init", "-q"), ("add", ".local/exports/iris/kept.txt", *SOURCES)):
        subprocess.run(["git", *command], cwd=project, check=True)
    result = clean("--yes")
    assert f"stays: {project / '.local/exports'}, in which git tracks files" in result.stderr
    assert {each for each in files(project) if not each.startswith(".git/")} == {
        *SOURCES, ".local/exports/iris/kept.txt", ".local/exports/iris/model.onnx",
    }  # fmt: skip


def test_a_state_folder_of_ones_own_loses_what_commands_made_there_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for name in ("archives/a.tar.gz", "lock", "notes.txt", "share/program"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("content")
    monkeypatch.setenv(paths.HOME_VARIABLE, str(home))
    assert clean("--yes").exit_code == 0
    assert files(home) == {"notes.txt", "share/program"}
    assert ".local/archives/iris.0.tar.gz" in files(project)


def test_outside_a_project_it_touches_nothing(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".local" / "archives").mkdir(parents=True)
    monkeypatch.setattr(paths, "REPOSITORY", tmp_path)
    result = clean("--yes")
    assert isinstance(result.exception, InputError)
    assert "so no project" in str(result.exception)
    assert (tmp_path / ".local" / "archives").is_dir()


def test_a_link_goes_and_what_it_leads_to_stays(project: Path, tmp_path: Path) -> None:
    (project / ".envs").rename(tmp_path / "shared")
    (project / ".envs").symlink_to(tmp_path / "shared")
    assert clean("environments", "--yes").exit_code == 0
    assert not (project / ".envs").is_symlink()
    assert (tmp_path / "shared" / "exporters" / "lib" / "a.py").is_file()


def test_while_the_local_aws_runs_nothing_is_removed(project: Path, parts: FakeParts) -> None:
    before = files(project)
    parts.up()
    result = clean("--yes")
    assert isinstance(result.exception, InputError)
    assert {each.advice for each in result.exception.problems} == {"tritonstack local down"}
    parts.stop()
    assert files(project) == before
    assert clean("--yes").exit_code == 0


def test_while_a_program_of_the_environments_runs_nothing_is_removed(project: Path) -> None:
    program = project / ".envs" / "exporters" / "bin" / "python"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    child = "[sys.argv[1], '-c', 'import time; time.sleep(600)']"  # which ends with it
    code = f"import subprocess, sys; subprocess.run({child})"
    with subprocess.Popen([".envs/exporters/bin/python", "-c", code, ".envs/exporters/bin/python"]) as process:
        started = psutil.Process(process.pid)
        try:
            wait_for(lambda: bool(started.children()))
            result = clean("--yes")
        finally:
            for each in (*started.children(), started):
                each.kill()
    assert isinstance(result.exception, InputError)
    (problem,) = result.exception.problems
    assert problem.field == f"process {process.pid}"
    assert problem.advice.startswith(f"kill {process.pid} ")
    assert program.is_symlink()


@pytest.fixture
def regions() -> Iterator[dict[str, Path]]:
    """Regions as Triton's Python backend names them: one is mapped, one is not, one was made just now."""
    made = {}
    for name in ("mapped", "left", "new"):
        path = Path("/dev/shm", f"{leftovers.TRITONS_REGION}test-{os.getpid()}-{name}")
        path.write_bytes(b"0" * mmap.PAGESIZE)
        if name != "new":
            os.utime(path, (OLD, OLD))
        made[name] = path
    yield made
    for path in made.values():
        path.unlink(missing_ok=True)


def test_of_tritons_regions_those_go_that_no_process_maps(
    project: Path, regions: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "SHARED_MEMORY", Path("/dev/shm"))
    descriptor = os.open(regions["mapped"], os.O_RDWR)
    with mmap.mmap(descriptor, mmap.PAGESIZE):
        os.close(descriptor)
        listed = leftovers.left_regions()
    ours = [path for path in listed if f"-{os.getpid()}-" in path.name and "test-" in path.name]
    assert ours == [regions["left"]]
    monkeypatch.setattr(leftovers, "left_regions", lambda: ours)
    assert clean("temporary", "--yes").exit_code == 0
    assert [name for name, path in regions.items() if path.exists()] == ["mapped", "new"]
    assert project.is_dir()


def test_empty_folders_of_the_python_backend_go_and_full_ones_stay(project: Path, tmp_path: Path) -> None:
    for name in ("python_env_a", "python_env_full", "python_env_new", "other"):
        (tmp_path / "tmp" / name).mkdir(parents=True)
    (tmp_path / "tmp" / "python_env_full" / "bin").mkdir()
    for name in ("python_env_a", "python_env_full", "other"):
        os.utime(tmp_path / "tmp" / name, (OLD, OLD))
    assert clean("temporary", "--yes").exit_code == 0
    left = {path.name for path in (tmp_path / "tmp").iterdir()}
    assert left == {"python_env_full", "python_env_new", "other"}
    assert (project / ".envs").is_dir()


def test_down_lists_what_stays_with_its_size_and_the_command_that_removes_it(project: Path, parts: FakeParts) -> None:
    parts.up()
    printed = CliRunner().invoke(root, ["local", "down"]).stdout
    assert printed.startswith("What stays on this machine:\n")
    assert re.search(r"kB  state and logs of the local AWS +.*home: \d+ \(", printed)
    assert re.search(r"kB  Python environments +\.envs\n", printed)
    assert printed.endswith("To remove it, with a list and a question: tritonstack clean\n")
    assert (project / ".envs").is_dir()


def test_every_name_that_a_command_makes_in_the_state_folder_is_removed() -> None:
    made = set()
    for package in ("tritonstack", "tritonstack_local", "tritonstack_capacity"):
        for file in (LIBRARY / package).rglob("*.py"):
            found = re.findall(r"(?:self|local|from_environment\(\))\.root / f?\"([^\"]+)\"", file.read_text())
            made |= {re.sub(r"\{.*?\}", "*", name) for name in found}
    assert "dashboard-*.html" in made
    assert made <= {*local_files.STATE, *local_files.BUILDS}
