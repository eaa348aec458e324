"""Python models: what their program has to be, and where what is found stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, MODEL, write
from tritonstack.models.lint import Finding, lint_folder


def _lint(root: Path, files: dict[str, str], config: str = CONFIG) -> list[Finding]:
    write(root / "r", {"double/config.pbtxt": config, **files})
    return list(lint_folder(root / "r"))


@pytest.mark.parametrize(
    ("program", "rules"),
    [
        (MODEL, []),
        ("from helper import TritonPythonModel\n", []),
        ("from helper import *\n", []),
        ("class Model:\n    def execute(self, requests): ...\nTritonPythonModel = Model\n", []),
        ("class Base: ...\nclass TritonPythonModel(Base): ...\n", []),
        ("class TritonPythonModel:\n    execute = other\n", []),
        ("", ["python-class"]),
        ("TritonPythonModel\n", ["python-class"]),
        ("class TritonPythonModel:\n    def run(self): ...\n", ["python-execute"]),
        ("class TritonPythonModel\n", ["python-syntax"]),
        ("x = '\0'\n", ["python-syntax"]),
        ("if x:\n\ty = 1\n        z = 2\n", ["python-syntax"]),
    ],
)
def test_a_program_has_the_class_that_the_backend_takes(tmp_path: Path, program: str, rules: list[str]) -> None:
    assert [finding.rule for finding in _lint(tmp_path, {"double/1/model.py": program})] == rules


def test_a_mistake_in_the_grammar_has_its_line(tmp_path: Path) -> None:
    (finding,) = _lint(tmp_path, {"double/1/model.py": f"{MODEL}\n\ndef broken(:\n"})
    assert (finding.file.name, finding.line) == ("model.py", len(MODEL.splitlines()) + 3)


def test_only_versions_that_are_served_are_read(tmp_path: Path) -> None:
    assert _lint(tmp_path, {"double/1/model.py": "broken(", "double/2/model.py": MODEL}) == []
    config = f"{CONFIG}version_policy {{ all {{ }} }}\n"
    assert [finding.rule for finding in _lint(tmp_path, {}, config)] == ["python-syntax"]


def test_a_fetch_in_a_helper_is_found_with_line_and_column(tmp_path: Path) -> None:
    helper = "import requests\n\n\ndef weights(url):\n    return requests.get(url).content\n"
    (finding,) = _lint(tmp_path, {"double/1/model.py": MODEL, "double/1/helper.py": helper})
    assert (finding.rule, finding.file.name, finding.line, finding.column) == ("weights-fetched", "helper.py", 5, 12)
    assert finding.found == "requests.get(url)"


def test_a_helper_that_cannot_be_read_is_no_finding(tmp_path: Path) -> None:
    assert _lint(tmp_path, {"double/1/model.py": MODEL, "double/1/old.py": "print 'two'\n"}) == []
