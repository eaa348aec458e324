"""Ensembles that load and whose requests fail: the linter warns, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.ensemble_requests import ENSEMBLES, write_ensemble
from tritonstack.lint import lint_folder


@pytest.mark.parametrize("name", ENSEMBLES)
def test_an_ensemble_whose_requests_fail_is_a_warning_and_no_other(tmp_path: Path, name: str) -> None:
    case = ENSEMBLES[name]
    assert ("finds" in case) == any(status != 200 for _, status in case["requests"])
    write_ensemble(tmp_path, case)
    found = [(finding.level, finding.rule) for finding in lint_folder(tmp_path)]
    assert found == ([("warning", case["finds"])] if "finds" in case else [])
