"""Overlays are linted as the archives that they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import write, write_double
from tritonstack.models.lint import Finding, lint_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two overlays."""
    made = write_double(tmp_path)
    with (made / "recipe.yaml").open("a") as recipe:
        recipe.write("overlays: {plain: {}, batched: {config: [overlays/batched.pbtxt]}}\n")
    write(made, {"overlays/batched.pbtxt": "dynamic_batching { preferred_batch_size: [ 4 ] }\n"})
    return made


def errors(folder: Path) -> list[Finding]:
    """The errors among the findings."""
    return [finding for finding in lint_folder(folder) if finding.level == "error"]


def test_sound_overlays_are_sound(folder: Path) -> None:
    assert errors(folder) == []


def test_what_a_fragment_breaks_is_found_at_the_fragment(folder: Path) -> None:
    (folder / "overlays/batched.pbtxt").write_text("dynamic_batching { preferred_batch_size: [ 64 ] }\n")
    (finding,) = errors(folder)
    assert (finding.file, finding.rule) == (folder / "overlays/batched.pbtxt", "preferred-batch-size")


def test_what_the_base_breaks_is_found_once_with_its_line(folder: Path) -> None:
    config = folder / "double/config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size: 8", "max_batch_size: -8"))
    found = [finding for finding in errors(folder) if finding.rule == "max-batch-size" and finding.file == config]
    assert [finding.line for finding in found] == [3]


def test_a_fragment_that_is_not_there_names_the_field(folder: Path) -> None:
    (folder / "overlays/batched.pbtxt").unlink()
    (finding,) = errors(folder)
    assert (finding.file.name, finding.rule) == ("recipe.yaml", "recipe-file")
    assert finding.found.startswith("overlays.batched.config[0]: overlays/batched.pbtxt: No such file")


def test_a_fragment_that_is_no_text_format_has_its_line(folder: Path) -> None:
    (folder / "overlays/batched.pbtxt").write_text("\ndynamic_batching {\n")
    (finding,) = errors(folder)
    assert (finding.file.name, finding.rule) == ("batched.pbtxt", "config")
    assert finding.line > 0
