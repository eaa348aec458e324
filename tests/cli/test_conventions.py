"""How commands print: tables at full width where nobody's terminal limits them, JSON by one function."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from tests.e2e.project import REPOSITORY
from tritonstack.cli.conventions import echo, plain_table, print_json, result_console
from tritonstack.cli.progress import Steps

ARN = "arn:aws:sagemaker:us-east-1:111111111111:endpoint/" + "-".join(["long"] * 60)


@click.command
def table() -> None:
    """Prints a row that no terminal is wide enough for, a short one, and a sentence."""
    found = Table("name")
    found.add_column("value", overflow="fold")
    found.add_row("endpoint", Text(ARN))
    found.add_row("[short]", "x")
    console = result_console()
    console.print(found)
    console.print(f"sentence with {ARN} in it")


@pytest.mark.parametrize("variables", [{}, {"COLUMNS": "80"}, {"FORCE_COLOR": "1"}])
def test_without_a_terminal_a_row_is_a_line_and_ends_with_its_last_letter(variables: dict[str, str]) -> None:
    lines = CliRunner().invoke(table, env=variables).stdout.splitlines()
    assert len(lines) == 7
    assert lines[3].count(ARN) == 1
    assert "[short]" in lines[4]
    assert lines[-1] == f"sentence with {ARN} in it"
    assert not [line for line in lines if line != line.rstrip()]


@click.command
def ruled() -> None:
    """Prints a table with a line below its heading."""
    result_console().print(plain_table(("name", "value"), [("endpoint", ARN)]))


def test_without_a_terminal_a_line_below_a_heading_has_120_columns_however_long_a_row_is() -> None:
    lines = CliRunner().invoke(ruled).stdout.splitlines()
    assert [line for line in lines if ARN in line]
    assert [len(line) for line in lines if "─" in line] == [120]


def test_a_terminal_folds_what_is_longer_and_loses_nothing() -> None:
    code = "from tests.cli.test_conventions import table; table()"
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60", "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, env=environment, stdout=child) as process:
        os.close(child)
        shown = b""
        try:
            while part := os.read(parent, 65536):
                shown += part
        except OSError:  # the other end is closed: Linux's end of file of a terminal
            pass
        process.wait(20)
    os.close(parent)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()
    assert max(map(len, lines)) <= 60
    value = "".join(line.split("│")[2].strip() for line in lines if line.startswith("│") and "short" not in line)
    assert value == ARN


def test_json_keeps_letters_and_refuses_what_json_has_not(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "grün"})
    assert json.loads(capsys.readouterr().out) == {"name": "grün"}
    with pytest.raises(ValueError, match="JSON"):
        print_json({"x": float("nan")})


HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\u202ereversed\x9b\x7f"


def test_foreign_texts_move_no_cursor_and_turn_no_text_around(capsys: pytest.CaptureFixture[str]) -> None:
    table = plain_table(("name",), [[HOSTILE]])
    result_console().print(Text(HOSTILE))
    result_console().print(table)
    result_console(stderr=True).print(HOSTILE)
    Steps().note(HOSTILE)
    with Steps().step(HOSTILE) as step:
        step.say(HOSTILE)
        step.end_with(HOSTILE)
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    said = capsys.readouterr()
    assert [sign for sign in HOSTILE if not sign.isprintable() and sign in said.out + said.err] == []
    assert said.out.count("\\u202ereversed") == 3
    assert said.out.endswith("\\x1b]0;owned\\x07\\x1b[2J\\r\\u202ereversed\\x9b\\x7f\n")
    print_json({"name": HOSTILE})
    said = capsys.readouterr()
    assert json.loads(said.out) == {"name": HOSTILE}
    assert all(sign.isprintable() or sign == "\n" for sign in said.out)
