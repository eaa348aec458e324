"""Model folders with overlays: findings of each variant, at the file that sets the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, write, write_double
from tritonstack.models.lint import Finding, lint_folder

OVERLAYS = """\
overlays:
  plain: {}
  batched: {config: [overlays/batched.pbtxt]}
"""


def _folder(root: Path, fragment: str, config: str = CONFIG) -> Path:
    folder = write_double(root)
    write(folder, {"overlays/batched.pbtxt": fragment, "double/config.pbtxt": config})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(OVERLAYS)
    return folder


def test_sound_overlays_have_no_finding(tmp_path: Path) -> None:
    assert lint_folder(_folder(tmp_path, "dynamic_batching { preferred_batch_size: 4 }\n")) == ()


@pytest.mark.parametrize(
    ("fragment", "rule", "line"),
    [
        ("# more\ndynamic_batching { preferred_batch_size: 9 }\n", "preferred-batch-size", 2),
        ("max_batch_size: 4\n\nmax_batch_size_: 8\n", "config", 3),
        ("instance_group [\n  { kind: KIND_CPU },\n  { kind: KIND_CPU gpus: 0 }\n]\n", "instance-gpus", 3),
    ],
)
def test_a_mistake_in_a_fragment_is_found_in_the_fragment(tmp_path: Path, fragment: str, rule: str, line: int) -> None:
    folder = _folder(tmp_path, fragment)
    (finding,) = lint_folder(folder)
    assert (finding.file, finding.rule, finding.line) == (folder / "overlays/batched.pbtxt", rule, line)


def test_a_mistake_of_the_base_is_found_once_and_in_the_base(tmp_path: Path) -> None:
    folder = _folder(
        tmp_path, "dynamic_batching { }\n", CONFIG.replace('output [ { name: "y"', 'output [ { name: "OOM"')
    )
    write(folder, {"sample/answer.json": (folder / "sample/answer.json").read_text().replace('"y"', '"OOM"')})
    (finding,) = lint_folder(folder)
    assert (finding.file, finding.rule, finding.line) == (folder / "double/config.pbtxt", "out-of-memory-in-name", 5)


def test_what_an_overlay_puts_right_is_no_finding_of_it(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "max_batch_size: 8\n", CONFIG.replace("max_batch_size: 8", "max_batch_size: -1"))
    text = (folder / "recipe.yaml").read_text()
    (folder / "recipe.yaml").write_text(text.replace("  plain: {}\n", ""))
    assert lint_folder(folder) == ()


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
