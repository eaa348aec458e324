"""What the program of a Python model fetches while Triton loads it, found by reading it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cases import cases
from tests.models.folders import CONFIG, write
from tritonstack.lint import Finding, lint_folder
from tritonstack.lint.python.fetches import fetch_table

PARAMETERS = 'parameters { key: "hub_name" value { string_value: "org/model" } }\n'
RULES = {"weights": "weights-fetched", "network": "network-at-load"}
EXECUTE = "    def execute(self, requests):\n        return []\n"


def _found(root: Path, files: dict[str, str]) -> list[Finding]:
    write(root / "r", {"double/config.pbtxt": CONFIG + PARAMETERS, **files})
    return [each for each in lint_folder(root / "r") if each.rule in RULES.values()]


@cases("program")
def test_what_a_program_fetches_at_load_is_found_and_nothing_else(tmp_path: Path, program: str) -> None:
    lines = enumerate(program.splitlines(), start=1)
    expected = [(line, RULES[mark[1]]) for line, text in lines if (mark := re.search(r"# (\w+)$", text))]
    assert [(each.line, each.rule) for each in _found(tmp_path, {"double/1/model.py": program})] == expected


PROGRAM = f"""\
import os
from . import near
from .helper import Loader, settings
import shared.hub

class TritonPythonModel:
    def initialize(self, args):
        Loader(settings.NAME).load()
        near.load()
        shared.hub.load()
{EXECUTE}"""


def test_modules_in_the_program_s_folder_are_followed_and_their_unused_functions_are_not(tmp_path: Path) -> None:
    found = _found(
        tmp_path,
        {
            "double/1/model.py": PROGRAM,
            "double/1/settings.py": "NAME = 'org/model'\n",
            "double/1/helper.py": "from transformers import AutoModel\nimport settings\n\n\nclass Loader:\n"
            "    def __init__(self, name):\n        self.name = name\n\n    def load(self):\n"
            "        return AutoModel.from_pretrained(self.name)\n\n    def unused(self):\n"
            "        return AutoModel.from_pretrained('org/unused')\n",
            "double/1/near.py": "import nltk\n\n\ndef load():\n    nltk.download('punkt')\n",
            "double/shared/hub.py": "import nltk\n\nnltk.download('words')\n\n\ndef load():\n    pass\n",
            "double/1/unused.py": "import nltk\n\nnltk.download('words')\n",
        },
    )
    places = [(each.file.name, each.line, each.column, each.found) for each in found]
    assert places == [
        ("helper.py", 10, 16, "AutoModel.from_pretrained(self.name), which fetches org/model"),
        ("near.py", 5, 5, "nltk.download('punkt')"),
        ("hub.py", 3, 1, "nltk.download('words')"),
    ]


HOSTILE = {
    "functions that call each other": [f"def f{i}(x): f{i // 2}(x + 'a'); f{i // 3}(x + 'b')" for i in range(400)]
    + ["f399('x')"],
    "names that stand for each other": ["a = b", "b = a", "a.c(a + b)"] * 50,
    "a name that is doubled": ["import nltk", "a = 'x'", *["a = a + a"] * 200, "nltk.A.from_pretrained(a)"],
    "choices of choices": [f"def g{i}(): return g{i + 1}() if q else g{i + 1}()" for i in range(60)]
    + ["nltk.A.from_pretrained(g0())"],
    "a function that calls itself": ["class TritonPythonModel:", " def initialize(self, x): self.initialize([x])"],
    "classes that inherit each other": ["class A(B): pass", "class B(A): pass", "A().x.y()"],
    "blocks in blocks": [f"{' ' * i}if x:" for i in range(90)] + [" " * 90 + "x()"],
    "a long sum": ["import os", "os.system(" + "+".join(["'x'"] * 250) + ")"],
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE)
def test_a_program_that_is_built_to_last_is_read_in_a_bounded_number_of_steps(
    tmp_path: Path, program: list[str]
) -> None:
    assert _found(tmp_path, {"double/1/model.py": "\n".join(program)}) == []


def test_the_table_names_a_source_for_every_library_and_its_patterns_are_regular_expressions() -> None:
    table = fetch_table()
    assert [name for name, library in table.libraries.items() if "http" not in library.source] == []
    calls = [call for library in table.libraries.values() for call in library.calls]
    assert {call.values for call in calls if call.values} <= table.values.keys()
    for pattern in (*table.values.values(), *(each.pattern for each in table.commands), table.loopback):
        re.compile(pattern)
