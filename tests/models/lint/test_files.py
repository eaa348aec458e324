"""Files that do not belong: found in what is packed, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, MODEL, write, write_double
from tritonstack.models.lint import lint_folder


@pytest.mark.parametrize("name", ["1/model.py~", "1/.model.py.swp", ".git/HEAD", ".DS_Store", "1/analysis.ipynb"])
def test_what_something_left_behind_is_found(tmp_path: Path, name: str) -> None:
    write(tmp_path / "r", {"double/config.pbtxt": CONFIG, "double/1/model.py": MODEL, f"double/{name}": ""})
    assert [finding.rule for finding in lint_folder(tmp_path / "r")] == ["stray-file"]


def test_what_a_recipe_does_not_pack_is_no_finding(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    write(folder, {"notes.ipynb": "", "export.py~": "", "sample/x.tmp": "", "double/1/__pycache__/x.pyc": ""})
    assert lint_folder(folder) == ()
    write(folder, {"double/1/notes.ipynb": ""})
    assert [finding.rule for finding in lint_folder(folder)] == ["stray-file"]


def test_a_link_leads_to_a_file_inside(tmp_path: Path) -> None:
    write(tmp_path / "r", {"double/config.pbtxt": CONFIG, "double/1/model.py": MODEL})
    version = tmp_path / "r/double/1"
    (version / "same.py").symlink_to("model.py")
    assert lint_folder(tmp_path / "r") == ()
    (version / "gone.py").symlink_to("nothing.py")
    (version / "outside").symlink_to(tmp_path)
    assert [(finding.rule, finding.file.name) for finding in lint_folder(tmp_path / "r")] == [
        ("link-outside", "gone.py"),
        ("link-outside", "outside"),
    ]
