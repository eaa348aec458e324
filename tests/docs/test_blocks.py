"""Each block of code of every page is run by a test, or its reason stands in blocks.yaml and it is checked."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cases import cases
from tests.docs.pages import SHELL, CodeBlock, code_blocks, pages, tokens
from tests.docs.registry import DATA, blocks_that, entries, entries_of, every_block, is_a_test, reads
from tests.docs.shell_commands import commands, filled, problem
from tritonstack.config import load_environment
from tritonstack.errors import InputError

EVERY = every_block()
INCOMPLETE = re.compile("^Missing (argument|option)|requires an argument")
"""What a sentence may leave out of a command that it names."""
WAYS = "a test that runs it (test:), a run on the local AWS (run:), or the reason why it cannot run here (checked:)"


@pytest.mark.parametrize("page", pages())
def test_every_block_has_exactly_one_entry(page: str) -> None:
    for block in code_blocks(page):
        assert len(entries_of(block)) == 1, f"{block}: {len(entries_of(block))} entries in {DATA.name}; give it {WAYS}"


def test_every_entry_is_about_a_block() -> None:
    for page, listed in entries().items():
        for entry in listed:
            assert any(entry.matches(block) for block in code_blocks(page)), f"{page}: no block is as {entry!r}"


def test_every_named_test_is_there_and_reads_the_page() -> None:
    named = {(block.page, entry.test) for block, entry in blocks_that(way="test") if entry.test}
    assert [test for _, test in named if not is_a_test(test)] == []
    assert [pair for pair in named if not reads(pair[1], pair[0])] == [], (
        "a test that does not name the page runs no block"
    )


@pytest.mark.parametrize("block", [block for block in EVERY if block.language in SHELL], ids=str)
def test_every_command_has_the_options_that_it_is_given(block: CodeBlock) -> None:
    subprocess.run(["bash", "-n"], input=filled(block.commands), text=True, check=True, capture_output=True)
    found = list(commands(block.commands))
    assert found, f"{block} holds no command"
    assert [said for said in map(problem, found) if said] == []


@pytest.mark.parametrize("page", pages())
def test_commands_in_the_text_have_the_options_that_they_are_given(page: str) -> None:
    spans = [child.content for token in tokens(page) for child in token.children or () if child.type == "code_inline"]
    for text in spans:
        if text.startswith(("tritonstack ", "make ", "cdk ")) and not {"[", "…", "|"} & set(text):
            wrong = [said for said in map(problem, commands(text)) if said and not INCOMPLETE.search(said)]
            assert wrong == [], f"{page}: `{text}`"


@pytest.mark.parametrize("block", [block for block in EVERY if block.language not in SHELL], ids=str)
def test_every_other_block_is_of_its_language(block: CodeBlock, tmp_path: Path) -> None:
    check_language(block, tmp_path)


@pytest.mark.parametrize(
    ("language", "text", "error"),
    [
        ("json", '{"a": 1,}', ValueError),
        ("python", "for x in y print(x)", SyntaxError),
        ("yaml", "a: [", yaml.YAMLError),
        ("yaml", "environment: dev\nregion: us-east-1\n", InputError),
        ("rust", "fn main() {}", AssertionError),
    ],
)
def test_a_block_that_is_not_of_its_language_is_found(
    language: str, text: str, error: type[Exception], tmp_path: Path
) -> None:
    block = CodeBlock(page="a.md", heading="", line=1, language=language, file="", text=text)
    with pytest.raises(error):
        check_language(block, tmp_path)


def check_language(block: CodeBlock, folder: Path) -> None:
    """Parse a block, an environment's file as the command line does."""
    match block.language:
        case "json":
            assert json_values(block.text)
        case "yaml":
            value = yaml.safe_load(block.text)
            if "environment" in value and "arrivals" not in value:  # what has calls is a scenario of that environment
                load_environment(environment_file(block, folder))
        case "python":
            compile(block.text, block.page, "exec")
        case _:
            tested = [entry.test for entry in entries_of(block)]
            assert block.file or any(tested), f"{block}: nothing reads a block of «{block.language}»"


def json_values(text: str) -> list[object]:
    """The values that stand one after the other in a block."""
    values, rest = [], text.strip()
    while rest:
        value, end = json.JSONDecoder().raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    return values


def environment_file(block: CodeBlock, folder: Path) -> Path:
    """The block as the file that its environment is called like."""
    path = folder / f"{yaml.safe_load(block.text)['environment']}.yaml"
    path.write_text(block.text)
    return path


@cases("line, said")
def test_a_command_that_is_not_there_is_found(line: str, said: str) -> None:
    [found] = [each for each in map(problem, commands(line)) if each]
    assert said in found
