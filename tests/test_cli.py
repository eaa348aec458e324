"""The command line as a process: exit codes, and never a traceback for what a person did."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoints
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from tests.cases import cases
from tests.tritonstack_local.fake_parts import wait_for
from tritonstack import VERSION
from tritonstack.cli import root as cli
from tritonstack.errors import DeclinedError, InputError, Problem, WorkFailedError

REPOSITORY = Path(__file__).parents[1]


def main_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The exit code of ``main`` where the command raises ``error``."""

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.root, "main", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of ``tritonstack <arguments>`` in this process; a traceback fails the test."""
    monkeypatch.setattr("sys.argv", ["tritonstack", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_help_names_every_command_and_imports_none_of_them(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['tritonstack', '--help']; from tritonstack.cli.root import main\n"
        "try: main()\n"
        "finally: print([m for m in sys.modules if m.startswith('tritonstack.cli.') or '.commands.' in m])"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, text=True, capture_output=True, check=True)
    assert result.stdout.endswith("['tritonstack.cli.root']\n")
    listed = re.findall(r"^(?:(\w+):|  (\w+(?: \w+)?) {2,})", result.stdout.partition("Options:")[2], re.MULTILINE)
    found: dict[str, list[str]] = {}
    for title, name in listed:
        if title:
            found[title] = []
        elif found:
            found[list(found)[-1]].append(name)
    assert found == {title: list(section) for title, section in cli.sections().items()}
    assert list(found) == ["Start", "Models", "Deploy", "Operate", "Review", "Local", "Capacity"]
    assert {"local deploy", "capacity bench"} <= {*found["Local"], *found["Capacity"]}


def every_command(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command and group below ``group``, by the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{path}{name} ")


EVERY = dict(every_command(cli.root))
PRINT_NOTHING_ELSE = {
    *("init", "setup", "add", "update", "remove", "snapshots", "schema", "dashboard", "proxy", "pipeline bootstrap"),
    *("capacity prices update", "local up", "local down", "local env", "local deploy", "local dev", "local destroy"),
}
"""Commands that have no result: they write files, serve, start, stop, or print lines for a shell."""


@pytest.mark.parametrize("name", EVERY)
def test_every_command_spells_its_options_as_the_others_do(name: str) -> None:
    command = EVERY[name]
    parameters = {each.name: each for each in command.params}
    environment = parameters.get("environment")
    if environment is not None:
        assert environment.opts == ["--environment", "-e"]
        assert environment.default in {"local", None}
    assert not [each for each in parameters.values() if each.metavar == "ENVIRONMENT" and each is not environment]
    if not isinstance(command, click.Group) and name not in PRINT_NOTHING_ELSE:
        json_flag = parameters["as_json"]
        assert isinstance(json_flag, click.Option)
        assert (json_flag.opts, json_flag.is_flag) == (["--json"], True)
    else:
        assert "as_json" not in parameters or isinstance(command, click.Group)


@pytest.mark.parametrize("name", EVERY)
def test_every_help_text_is_a_sentence(name: str) -> None:
    command = EVERY[name]
    assert command.name == name.rsplit(maxsplit=1)[-1]
    first = (command.help or "").partition("\n\n")[0].split()
    line = {name: text for section in cli.sections().values() for name, text in section.items()}.get(name, "A group.")
    texts = [line, " ".join(first), *(each.help for each in command.params if isinstance(each, click.Option))]
    for text in texts:
        assert text is not None, [each.name for each in command.params]
        sentence = re.sub(r"\s*\[default: .*\]$", "", text)
        assert re.match(r"[A-Z`]", sentence), text
        assert sentence.endswith((".", '".')), text


@cases("line, meant")
def test_a_mistyped_command_and_one_of_a_group_are_pointed_at(line: str, meant: str) -> None:
    result = CliRunner().invoke(cli.root, line.split())
    assert (result.exit_code, f"Did you mean {meant}" in result.stderr) == (2, True), result.stderr


def test_a_name_that_is_like_none_has_no_suggestion() -> None:
    assert "Did you mean" not in CliRunner().invoke(cli.root, ["frobnicate"]).stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("tritonstack rel", {"releases"}),
        ("tritonstack local de", {"deploy", "dev", "destroy", "demo"}),
        ("tritonstack verify -e prod", {"prod", "prod-eu"}),
    ],
)
def test_a_shell_completes_commands_and_environments(
    typed: str, offered: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    shell = BashComplete(cli.root, {}, "tritonstack", "_TRITONSTACK_COMPLETE")
    assert {line.partition(",")[2] for line in shell.complete().splitlines()} == offered


def test_a_group_is_there_only_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "groups", dict)
    monkeypatch.setattr(cli, "registered", lambda _group: EntryPoints())
    result = CliRunner().invoke(cli.root, ["local", "up"])
    assert (result.exit_code, "No such command 'local'" in result.stderr) == (2, True)


def test_a_group_without_its_dependencies_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "groups", dict)
    result = CliRunner().invoke(cli.root, ["local", "up"])
    assert (result.exit_code, "pip install 'tritonstack[local]'" in result.stderr) == (2, True)
    assert "Local:" not in CliRunner().invoke(cli.root, ["--help"]).stdout


def test_the_version_is_the_project_s_also_where_the_project_is_not_installed() -> None:
    assert tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"] == VERSION
    command = [sys.executable, "-m", "tritonstack", "--version"]
    result = subprocess.run(command, cwd=REPOSITORY, text=True, capture_output=True, timeout=60, check=True)
    assert result.stdout == f"tritonstack, version {VERSION}\n"


@cases("arguments")
def test_a_wrong_command_line_ends_with_2_and_says_where_help_is(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, *arguments) == 2
    assert re.match(r"Usage: .*tritonstack", capsys.readouterr().err)


def test_wrong_input_ends_with_2_and_failed_work_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(monkeypatch, InputError([Problem(found="a", allowed="b")])) == 2
    assert main_with(monkeypatch, WorkFailedError("the work failed")) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "  found:   a\n  allowed: b\nthe work failed\n"


def test_a_no_to_a_question_is_no_interruption_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(monkeypatch, DeclinedError()) == 1
    assert main_with(monkeypatch, click.exceptions.Abort()) == 130
    assert capsys.readouterr().err == "nothing was done\ninterrupted\n"


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


@pytest.mark.parametrize("arguments", [["build"], ["local", "up"]])
def test_a_state_folder_that_is_a_file_ends_without_a_traceback(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "file"))
    assert run_main(monkeypatch, *arguments) in (1, 2)
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_in_another_clone_a_command_says_whose_code_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("environments/local.yaml", "tritonstack/paths.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    monkeypatch.delenv("TRITONSTACK_PROJECT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run_main(monkeypatch, "lint") == 0
    noted, said = capsys.readouterr().err.splitlines()[:2]
    assert noted.startswith(f"note: {tmp_path} is a clone of tritonstack, and this command is that of {REPOSITORY};")
    assert noted.endswith(f"{tmp_path}/.envs/main/bin/tritonstack")
    assert said.startswith("no model folder in model_repos"), "it lints that clone, not its own"


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
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said


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
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith("no local AWS is running")
