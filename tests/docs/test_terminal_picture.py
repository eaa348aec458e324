"""README's recorded terminal: archives and table are those of now, and the picture shows every line."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

from rich.console import Console

from scripts.documentation.terminal_picture import COLUMNS, COMMANDS, OWN_MODEL, PICTURE, RECORDING, own_model_commands
from tests.docs.shell_commands import commands, problem
from tests.e2e.project import REPOSITORY
from tritonstack.releases.verification import SampleResponse
from tritonstack_local.commands.demo import Request, Row, table_of

AGAIN = "record it anew: python -m scripts.documentation.terminal_picture says how"
TEXT = (REPOSITORY / RECORDING).read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"


def test_the_recorded_archives_are_those_of_now() -> None:
    served = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "snapshots" / "local").glob("*.json"))
    digests = set(re.findall(r"\.([0-9a-f]{16})\.tar\.gz", TEXT))
    assert len(digests) == 2
    assert [digest for digest in digests if digest not in served] == [], AGAIN


def test_the_recorded_table_is_as_the_demo_prints_it_now() -> None:
    """Its figures, in the table that the code makes of them."""
    found = re.findall(r"^(digits-\w+) +(\d+) +([\d.]+) +(\S+) +(\S+)\n(\S+)\n(.+)$", TEXT, flags=re.MULTILINE)
    rows = [
        Row(
            request=Request(endpoint="local-digits", model=model, target_model=target, send=no_answer, file=""),
            answer=answer.strip(),
            cold_ms=float(cold),
            warm_ms=float(warm),
            evicted_by=evicted_by,
            again_ms=None if again == "-" else float(again),
        )
        for model, cold, warm, evicted_by, again, target, answer in found
    ]
    assert len(rows) == 2
    printed = io.StringIO()
    Console(file=printed, width=COLUMNS, highlight=False).print(table_of(rows))
    table = [line.rstrip() for line in printed.getvalue().splitlines()]
    start = TEXT.splitlines().index(table[0])
    assert TEXT.splitlines()[start : start + len(table)] == table, AGAIN


def test_the_recorded_commands_are_commands() -> None:
    assert typed(TEXT) == list(COMMANDS), AGAIN
    assert [said for each in COMMANDS for said in map(problem, commands(each)) if said] == []


def test_the_recorded_commands_are_those_of_the_page() -> None:
    """docs/getting-started.md, whose test of the installed wheel runs them."""
    text = (REPOSITORY / OWN_MODEL).read_text(encoding="utf-8")
    assert typed(text) == own_model_commands(), AGAIN
    assert re.search(r"^label +.*INT64|│ label +│ INT64", text, flags=re.MULTILINE), "it ends with a response"


def no_answer() -> SampleResponse:
    """No request is sent here."""
    raise NotImplementedError


def typed(text: str) -> list[str]:
    """The commands of a recording."""
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def test_the_picture_shows_every_recorded_line_and_loads_nothing() -> None:
    svg = (REPOSITORY / PICTURE).read_text(encoding="utf-8")
    shown = "".join(each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text"))  # noqa: S314 - our own
    assert "".join(shown.split()) == "".join(TEXT.split()), "a line is cut"
    assert not re.search(r"url\((?!#)|href|@import|<script", svg)
