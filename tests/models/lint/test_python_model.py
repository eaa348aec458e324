"""Programs of Python models: calls that fetch weights, found and never run."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.cases import cases
from tests.models.folders import CONFIG, MODEL, write
from tritonstack.models.lint import Finding, lint_folder
from tritonstack.models.lint.python_model import fetches


def _lint(root: Path, files: dict[str, str], config: str = CONFIG) -> list[Finding]:
    write(root / "r", {"double/config.pbtxt": config, **files})
    return list(lint_folder(root / "r"))


def test_only_versions_that_are_served_are_read(tmp_path: Path) -> None:
    assert _lint(tmp_path, {"double/1/model.py": "broken(", "double/2/model.py": MODEL}) == []
    config = f"{CONFIG}version_policy {{ all {{ }} }}\n"
    assert [finding.rule for finding in _lint(tmp_path, {}, config)] == ["python-syntax"]


def test_a_fetch_in_a_helper_is_found_with_line_and_column(tmp_path: Path) -> None:
    helper = "import requests\n\n\ndef weights(url):\n    return requests.get(url).content\n"
    (finding,) = _lint(tmp_path, {"double/1/model.py": MODEL, "double/1/helper.py": helper})
    assert (finding.rule, finding.file.name, finding.line, finding.column) == ("weights-fetched", "helper.py", 5, 12)
    assert finding.found == "requests.get(url)"


def _found(program: str) -> list[int]:
    """The lines of calls that fetch something."""
    return [call.lineno for call in fetches(ast.parse(program))]


@cases("program")
def test_what_fetches_is_found_in_its_line(program: str) -> None:
    assert _found(program) == [2]


@cases("program")
def test_what_reads_files_of_the_archive_is_let_pass(program: str) -> None:
    assert _found(program) == []
