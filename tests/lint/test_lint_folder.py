"""The linter: lines, levels and what rules' pages do not show; the project's own folders are clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, write, write_double
from tritonstack.lint import lint_folder
from tritonstack.models.recipe import RECIPE
from tritonstack.paths import REPOSITORY


def test_the_projects_own_folders_have_no_finding() -> None:
    folders = [path.parent for path in (REPOSITORY / "model_repos").glob(f"*/{RECIPE}")]
    assert {folder.name for folder in folders} >= {"digits-onnx", "digits-ensemble"}
    assert [lint_folder(folder) for folder in folders] == [()] * len(folders)


OWN_PYTHON = """\
backend: "python"
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/1/model.py" } }
"""


@pytest.mark.parametrize(
    ("config", "dependency", "differs"),
    [
        ('platform: "tensorrt_plan"', "none", True),
        ('platform: "tensorrt_plan"', "engine", False),
        (OWN_PYTHON, "none", True),
        (OWN_PYTHON, "python", False),
    ],
)
def test_a_dependency_that_a_configuration_has_and_the_recipe_lacks_is_an_error(
    tmp_path: Path, config: str, dependency: str, *, differs: bool
) -> None:
    folder = write_double(tmp_path)
    text = CONFIG.replace('backend: "python"', config)
    write(folder, {"double/config.pbtxt": text})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(f"dependency: {dependency}\n")
    levels = [finding.level for finding in lint_folder(folder) if finding.rule == "dependency-differs"]
    assert levels == (["error"] if differs else [])


def test_files_that_an_export_makes_need_not_exist(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    (folder / "double/1/model.py").unlink()
    assert lint_folder(folder) != ()
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("exports: [{produces: [double/1/model.py]}]\n")
    write(folder, {"export.py": ""})
    assert lint_folder(folder) == ()


def test_what_a_recipe_does_not_pack_is_no_finding(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    write(folder, {"notes.ipynb": "", "export.py~": "", "sample/x.tmp": "", "double/1/__pycache__/x.pyc": ""})
    assert lint_folder(folder) == ()
    write(folder, {"double/1/notes.ipynb": ""})
    assert [finding.rule for finding in lint_folder(folder)] == ["stray-file"]


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
    config = CONFIG + "instance_group [ { kind: KIND_CPU gpus: 0 } ]\n"
    folder = _folder(tmp_path, "dynamic_batching { }\n", config)
    (finding,) = lint_folder(folder)
    assert (finding.file, finding.rule, finding.line) == (folder / "double/config.pbtxt", "instance-gpus", 6)


def test_what_an_overlay_puts_right_is_no_finding_of_it(tmp_path: Path) -> None:
    config = CONFIG.replace("max_batch_size: 8", "max_batch_size: -1")
    assert lint_folder(_folder(tmp_path, "max_batch_size: 8\n", config, OVERLAYS.replace("plain: {}, ", ""))) == ()


def test_a_fragment_that_is_not_there_names_the_field(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "")
    (folder / "overlays/batched.pbtxt").unlink()
    (finding,) = [each for each in lint_folder(folder) if each.level == "error"]
    assert (finding.file.name, finding.rule) == ("recipe.yaml", "recipe-file")
    assert finding.found.startswith("overlays.batched.config[0]: overlays/batched.pbtxt: No such file")
