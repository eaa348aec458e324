"""Model folders with overlays: findings of each variant, at the file that sets the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, write, write_double
from tritonstack.models.lint import lint_folder

OVERLAYS = "overlays: {plain: {}, batched: {config: [overlays/batched.pbtxt]}}\n"


def _folder(root: Path, fragment: str, config: str = CONFIG, overlays: str = OVERLAYS) -> Path:
    folder = write_double(root)
    write(folder, {"overlays/batched.pbtxt": fragment, "double/config.pbtxt": config})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(overlays)
    return folder


@pytest.mark.parametrize(
    ("fragment", "rule", "line"),
    [
        ("dynamic_batching { preferred_batch_size: 4 }\n", None, 0),
        ("# more\ndynamic_batching { preferred_batch_size: 9 }\n", "preferred-batch-size", 2),
        ("max_batch_size: 4\n\nmax_batch_size_: 8\n", "config", 3),
        ("\ndynamic_batching {\n", "config", 3),
        ("instance_group [\n  { kind: KIND_CPU },\n  { kind: KIND_CPU gpus: 0 }\n]\n", "instance-gpus", 3),
    ],
)
def test_a_mistake_in_a_fragment_is_found_in_the_fragment(
    tmp_path: Path, fragment: str, rule: str | None, line: int
) -> None:
    folder = _folder(tmp_path, fragment)
    found = [(finding.file, finding.rule, finding.line) for finding in lint_folder(folder)]
    assert found == ([(folder / "overlays/batched.pbtxt", rule, line)] if rule else [])


def test_a_mistake_of_the_base_is_found_once_and_in_the_base(tmp_path: Path) -> None:
    config = CONFIG.replace('output [ { name: "y"', 'output [ { name: "OOM"')
    folder = _folder(tmp_path, "dynamic_batching { }\n", config)
    write(folder, {"sample/answer.json": (folder / "sample/answer.json").read_text().replace('"y"', '"OOM"')})
    (finding,) = lint_folder(folder)
    assert (finding.file, finding.rule, finding.line) == (folder / "double/config.pbtxt", "out-of-memory-in-name", 5)


def test_what_an_overlay_puts_right_is_no_finding_of_it(tmp_path: Path) -> None:
    config = CONFIG.replace("max_batch_size: 8", "max_batch_size: -1")
    assert lint_folder(_folder(tmp_path, "max_batch_size: 8\n", config, OVERLAYS.replace("plain: {}, ", ""))) == ()


def test_a_fragment_that_is_not_there_names_the_field(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "")
    (folder / "overlays/batched.pbtxt").unlink()
    (finding,) = [each for each in lint_folder(folder) if each.level == "error"]
    assert (finding.file.name, finding.rule) == ("recipe.yaml", "recipe-file")
    assert finding.found.startswith("overlays.batched.config[0]: overlays/batched.pbtxt: No such file")
