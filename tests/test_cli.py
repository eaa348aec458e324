"""The command line as a process: exit codes, and never a traceback for what a person did."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoints
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.tritonstack_local.fake_parts import wait_for
from tritonstack import VERSION
from tritonstack.cli import root as cli
from tritonstack.errors import InputError, Problem, WorkFailedError

REPOSITORY = Path(__file__).parents[1]


def tritonstack(*arguments: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m tritonstack``."""
    return subprocess.run(
        [sys.executable, "-m", "tritonstack", *arguments],
        env={**os.environ, "TRITONSTACK_HOME": str(home), **variables},
        cwd=REPOSITORY, text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def main_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The exit code of ``main`` where the command raises ``error``."""

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.root, "main", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


COMMANDS = [*cli.COMMANDS.items(), *(each for group in cli.groups().values() for each in group.lazy.items())]


@pytest.mark.parametrize(("name", "where"), COMMANDS)
def test_every_command_exists_and_its_help_is_a_sentence(name: str, where: tuple[str, str]) -> None:
    module, attribute = (*where[0].split(":"), "command")[:2]
    command = getattr(importlib.import_module(module), attribute)
    line = where[1]
    assert isinstance(command, click.Command)
    assert command.name == name
    assert line.endswith(".")
    assert command.help


def test_the_help_names_every_command_and_imports_none_of_them(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['tritonstack', '--help']; from tritonstack.cli.root import main\n"
        "try: main()\n"
        "finally: print([m for m in sys.modules if m.startswith('tritonstack.cli.') or '.commands.' in m])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, text=True, capture_output=True, check=True)
    assert result.stdout.endswith("['tritonstack.cli.root']\n")
    assert all(f"\n  {name} " in result.stdout for name in (*cli.COMMANDS, "capacity", "local"))


def test_a_group_is_there_only_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "groups", dict)
    monkeypatch.setattr(cli, "registered", lambda _group: EntryPoints())
    result = CliRunner().invoke(cli.root, ["local", "up"])
    assert (result.exit_code, "No such command 'local'" in result.stderr) == (2, True)


def test_a_group_without_its_dependencies_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "groups", dict)
    result = CliRunner().invoke(cli.root, ["local", "up"])
    assert (result.exit_code, "pip install 'tritonstack[local]'" in result.stderr) == (2, True)
    assert "local" not in CliRunner().invoke(cli.root, ["--help"]).stdout.split()


def test_a_command_without_its_group_is_pointed_at() -> None:
    result = CliRunner().invoke(cli.root, ["up"])
    assert (result.exit_code, "Did you mean 'local up'?" in result.stderr) == (2, True)


def test_the_version_is_the_project_s_also_where_the_project_is_not_installed(tmp_path: Path) -> None:
    assert tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"] == VERSION
    result = tritonstack("--version", home=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"tritonstack, version {VERSION}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["local"],
        ["local", "nothing"],
        ["local", "up", "--nothing"],
        ["local", "up", "more"],
        ["local", "up", "--port", "x"],
        ["local", "demo", "a", "b"],
        [],
    ],
)
def test_a_wrong_command_line_ends_with_2_and_says_where_help_is(arguments: list[str], tmp_path: Path) -> None:
    result = tritonstack(*arguments, home=tmp_path)
    assert result.returncode == 2
    assert "Usage: tritonstack" in result.stderr or "Usage: python -m tritonstack" in result.stderr
    assert "Traceback" not in result.stderr


def test_wrong_input_ends_with_2_and_failed_work_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(monkeypatch, InputError([Problem(found="a", allowed="b")])) == 2
    assert main_with(monkeypatch, WorkFailedError("the work failed")) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "  found:   a\n  allowed: b\nthe work failed\n"


@pytest.mark.parametrize("number", cli.REFUSED_BY_THE_MACHINE)
def test_what_the_machine_refuses_is_a_message_with_the_file(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(monkeypatch, OSError(number, os.strerror(number), "/some/file")) == 1
    assert capsys.readouterr().err.startswith(f"/some/file: {os.strerror(number)}\n")


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        main_with(monkeypatch, OSError(errno.ENOENT, "No such file", "/some/file"))
    with pytest.raises(KeyError):
        main_with(monkeypatch, KeyError("x"))


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ENOTDIR, errno.EEXIST])
def test_a_state_folder_that_cannot_be_made_is_a_message(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "file"
    home.touch()
    monkeypatch.setenv("TRITONSTACK_HOME", str(home))
    assert main_with(monkeypatch, OSError(error, os.strerror(error), str(home / "archives"))) == 1
    assert capsys.readouterr().err == f"{home}/archives: {os.strerror(error)}\n"
    home.unlink()
    home.mkdir()
    with pytest.raises(OSError, match="archives"):  # in a folder that is there it is a fault of ours
        main_with(monkeypatch, OSError(error, os.strerror(error), str(home / "archives")))


@pytest.mark.parametrize("arguments", [["build"], ["local", "up"]])
def test_a_state_folder_that_is_a_file_ends_without_a_traceback(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = tritonstack(*arguments, home=tmp_path / "file")
    assert result.returncode in (1, 2)
    assert "Traceback" not in result.stderr
    assert str(tmp_path / "file") in result.stderr


def test_a_command_s_own_exit_code_is_the_process_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.root, "main", lambda **_: 7)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 7


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "emulator.log"
    log.parent.mkdir()
    log.write_text("a line\n")
    output = tmp_path / "output"
    with (
        output.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tritonstack", "local", "logs", "emulator", "-f"],
            env={**os.environ, "TRITONSTACK_HOME": str(tmp_path)}, cwd=REPOSITORY,
            stdout=file, stderr=subprocess.PIPE, text=True,
        ) as following,
    ):  # fmt: skip
        wait_for(lambda: output.stat().st_size > 0)
        following.send_signal(signal.SIGINT)
        _, said = following.communicate(timeout=20)
    assert following.returncode == 130
    assert said.strip() == "interrupted"


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_reader_that_goes_away_gets_no_complaint(size: int, tmp_path: Path) -> None:
    """A short output is written when the process ends, a long one before."""
    log = tmp_path / "logs" / "emulator.log"
    log.parent.mkdir()
    log.write_text("a line of a log\n" * size)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        result = subprocess.run(
            [sys.executable, "-m", "tritonstack", "local", "logs", "emulator", "-n", str(size)],
            env={**os.environ, "TRITONSTACK_HOME": str(tmp_path)}, cwd=REPOSITORY,
            stdout=gone, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (result.returncode, result.stderr) == (1, "")
