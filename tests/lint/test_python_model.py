"""Programs of Python models, read and never run."""

from __future__ import annotations

from pathlib import Path

from tests.models.folders import CONFIG, MODEL, write
from tritonstack.lint import Finding, lint_folder


def _lint(root: Path, files: dict[str, str], config: str = CONFIG) -> list[Finding]:
    write(root / "r", {"double/config.pbtxt": config, **files})
    return list(lint_folder(root / "r"))


def test_only_versions_that_are_served_are_read(tmp_path: Path) -> None:
    assert _lint(tmp_path, {"double/1/model.py": "broken(", "double/2/model.py": MODEL}) == []
    config = f"{CONFIG}version_policy {{ all {{ }} }}\n"
    assert [finding.rule for finding in _lint(tmp_path, {}, config)] == ["python-syntax"]
