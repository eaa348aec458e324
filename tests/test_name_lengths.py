"""Names of tests fit into a line of pytest's report."""

from __future__ import annotations

import ast

from tritonstack.paths import REPOSITORY

LIMIT = 90
"""Characters: a report's line has room for the name and its outcome."""


def test_functions_of_tests_have_names_under_the_limit() -> None:
    """All functions, as pytest makes ids of parameters that are functions."""
    names = {
        f"{path.relative_to(REPOSITORY)}:{node.lineno}": node.name
        for path in (REPOSITORY / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    assert len(names) > 1000
    assert {place: name for place, name in names.items() if len(name) >= LIMIT} == {}
