"""``tritonstack docs``; and messages name pages by that command, as a wheel has no ``docs/`` beside it."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tritonstack.cli.docs import INDEX, docs_command, find_page, pages, section, with_commands
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY

PACKAGES = ("constructs_lib", "model_repos", "stacks", "tritonstack", "tritonstack_capacity", "tritonstack_local")
COMMAND = re.compile(r"tritonstack docs(?: ([a-z0-9][\w/-]*)(?:#([\w-]+))?)?")
FILE = re.compile(r"(?<![\w/-])docs/([\w/-]+)\.md")


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(docs_command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_without_a_page_each_is_listed_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anywhere: no project is needed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRITONSTACK_PROJECT", raising=False)
    rows = [line.split(maxsplit=1) for line in (_run() + _run("decisions")).splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows if len(row) != 2] == []
    assert {row[0] for row in rows} == {*pages(), "decisions"}
    assert rows[0][0] == "getting-started"
    assert {each["page"] for each in json.loads(_run("--json"))} == set(pages())


@pytest.mark.parametrize(
    ("named", "name"),
    [
        ("updates", "updates"),
        ("docs/updates.md", "updates"),
        ("settings", "reference/settings"),
        ("releases", "releases"),
        ("reference/releases", "reference/releases"),
        ("fidelity", "local/fidelity"),
        ("16", "decisions/0016-one-wheel"),
        ("capacity", "capacity"),
    ],
)
def test_a_page_is_found_by_its_name_its_last_part_its_path_or_a_decision_s_number(named: str, name: str) -> None:
    assert find_page(named).name == name


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("setings", r"(?s)found:   setings.*do:      tritonstack docs reference/settings$"),
        ("updates#two-variant", r"(?s)allowed: two-variants.*do:      tritonstack docs updates#two-variants, or"),
        ("zzz", r"(?s)do:      tritonstack docs, which lists all pages$"),
    ],
)
def test_an_unknown_page_or_section_is_refused_with_those_that_are_like_it(named: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _run(named)


def test_a_section_is_its_heading_with_what_is_below_it() -> None:
    text = section(find_page("troubleshooting"), "a-rollback-that-failed")
    assert text.startswith("## A rollback that failed\n")
    assert "### A variant that is no longer scaled\n" in text
    assert "\n## " not in text
    assert _run("troubleshooting#a-rollback-that-failed").startswith("## A rollback that failed\n")


def test_links_are_the_commands_that_print_what_they_lead_to() -> None:
    given = (
        "[Updates](updates.md), [new\nkey](../updates.md#change-the-key), [here](#below), [`x`](https://a.b/c), "
        "[all](README.md), [other](../examples/a/README.md) ![A fleet](pictures/fleet.svg)\n"
        "<!-- prices: make docs -->\n```console\n$ echo '[no](updates.md)'\n```\n"
    )
    assert with_commands(given.replace("../updates", "updates"), source="docs/operations.md") == (
        "Updates (`tritonstack docs updates`), new\nkey (`tritonstack docs updates#change-the-key`), here, "
        "`x` (https://a.b/c), all (`tritonstack docs`), other (`examples/a/README.md` of the repository) "
        "(picture: A fleet)\n```console\n$ echo '[no](updates.md)'\n```\n"
    )


@pytest.mark.parametrize("name", pages())
def test_no_page_shows_a_path_that_a_wheel_does_not_have(name: str) -> None:
    page = pages()[name]
    text = with_commands(page.text, source=page.source)
    assert re.findall(r"\]\([^)]*\.md[^)]*\)", text) == []
    assert [said for each in COMMAND.finditer(text) if (said := _wrong(each))] == []


def test_in_a_terminal_a_page_is_drawn_and_goes_through_the_pager() -> None:
    command = [sys.executable, "-m", "tritonstack", "docs", "glossary"]
    ours, theirs = pty.openpty()
    variables = {**os.environ, "PAGER": "sed s/^/paged:/", "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=variables, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    assert b"paged:" in shown
    assert b"# Glossary" not in shown


def _wrong(match: re.Match[str]) -> str:
    """What is wrong with a command that prints a page; empty where nothing is."""
    try:
        if match[1] and match[1] != "decisions":
            page = find_page(match[1])
            if page.name != match[1]:
                return f"{match[0]}: its name is {page.name}"
            if match[2]:
                section(page, match[2])
    except InputError as error:
        return f"{match[0]}: {error}"
    return ""


def _shown_texts() -> Iterator[tuple[str, str]]:
    """Place → text that a user may see: strings but docstrings of our own, help texts, and files of data."""
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*")):
            name = path.relative_to(REPOSITORY).as_posix()
            if path.suffix == ".py":
                yield from _strings(name, ast.parse(path.read_text(encoding="utf-8")))
            elif path.suffix in (".json", ".yaml", ".txt") or "/rules/" in name or "/new_project/" in name:
                lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
                yield from ((name, line) for line in lines if not re.match(r'\s*(#|- |"source"|source:)', line))
    for path in sorted((REPOSITORY / "schemas").glob("*.json")):
        yield path.name, path.read_text(encoding="utf-8")


def _strings(name: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                helps = isinstance(node, ast.FunctionDef) and any(
                    "command" in ast.unparse(d) for d in node.decorator_list
                )
                docstrings |= set() if helps else {id(each.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield f"{name}:{node.lineno}", node.value


def test_messages_and_help_texts_name_pages_by_the_command_that_prints_them() -> None:
    texts = list(_shown_texts())
    sources = {page.source for page in pages().values()}
    by_file = [f"{place}: {each[0]}" for place, text in texts for each in FILE.finditer(text) if each[0] in sources]
    assert by_file == []
    found = [(place, each) for place, text in texts for each in COMMAND.finditer(text)]
    assert len(found) > 20
    assert [f"{place}: {said}" for place, each in found if (said := _wrong(each))] == []


def test_the_index_has_every_page_of_the_packages_too() -> None:
    assert [page.name for page in pages().values() if not page.summary] == []
    assert INDEX not in {page.source for page in pages().values()}
