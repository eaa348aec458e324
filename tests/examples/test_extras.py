"""Each extra alone in a clean environment: a command works, or answers with the line that installs what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases import cases
from tests.config.environment_file import write_environment
from tests.examples.installing import Installed, installed_alone
from tritonstack.extensions import EXTRAS

HELP = """
import contextlib, io, json, sys, traceback
import click
from tritonstack.cli.root import root, main

def paths(command, words, context):
    yield words
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        found = command.get_command(context, name)
        yield from paths(found, (*words, name), click.Context(found, info_name=name, parent=context))

answers, context = {}, click.Context(root)
for words in [*paths(root, (), context)]:
    said = io.StringIO()
    sys.argv = ["tritonstack", *words, "--help"]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            code = traceback.format_exc()
    answers[" ".join(words)] = [code, said.getvalue()]
print(json.dumps(answers))
"""
TOKENIZER: dict[str, object] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"hi": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
}  # fmt: skip
PROGRAMS = {
    "a text": """
import sys
from pathlib import Path
from tritonstack.client.tokenization import text_from
from tritonstack.errors import InputError
try:
    print(text_from([0], Path("tokenizer.json")))
except InputError as error:
    print(error)
sys.exit(2)
""",
    "a construct": """
import sys
try:
    from constructs_lib import Endpoint
except ModuleNotFoundError as error:
    print(error)
sys.exit(2)
""",
}
"""Uses of the package as a library, which end with exit code 2 whether they work or not."""


@pytest.fixture(scope="module", params=["", *sorted({*EXTRAS.values()})], ids=lambda extra: extra or "none")
def alone(request: pytest.FixtureRequest, installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with one extra, or with none."""
    extra: str = request.param
    return installed_alone(installed.wheel, tmp_path_factory.mktemp(extra or "none"), extra=extra)


def has(alone: Installed, module: str) -> bool:
    """Whether a module is in the environment."""
    return (alone.packages / module).exists()


def test_every_command_has_help_whatever_is_installed(alone: Installed, tmp_path: Path) -> None:
    answers = json.loads(alone.run("python3", "-c", HELP, folder=tmp_path).splitlines()[-1])
    assert {words: answer for words, answer in answers.items() if answer[0] != 0} == {}
    assert all("Usage: tritonstack" in text for _, text in answers.values())
    assert ("local up" in answers) == has(alone, "psutil")
    assert ("capacity bench" in answers) == has(alone, "psutil")
    assert {"add", "invoke", "init", "review"} <= answers.keys()


@cases("module, command, line")
def test_what_an_extra_is_for_works_or_names_the_line_that_installs_it(
    alone: Installed, tmp_path: Path, module: str, command: list[str], line: str
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (tmp_path / "app.py").write_text("import sys\nfrom tritonstack_stacks.app import main\nsys.exit(2)\n")
    (tmp_path / "environments").mkdir()
    write_environment(tmp_path / "environments")
    words = ["python3", "-c", PROGRAMS[command[0]]] if command[0] in PROGRAMS else command
    said = alone.run(*words, folder=tmp_path, expect=2)
    of_this_wheel = line.replace("'tritonstack[", f"'{alone.wheel}[")
    assert (of_this_wheel in said) == (not has(alone, module)), said
    assert "Traceback" not in said
