"""The linter: lines, levels and what rules' pages do not show; the project's own folders are clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import CONFIG, MODEL, write, write_double
from tritonstack.errors import InputError
from tritonstack.models.lint import Finding, lint_folder
from tritonstack.models.programs import REPOSITORY
from tritonstack.models.recipe import RECIPE

ENSEMBLE = """\
name: "both"
platform: "ensemble"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling {
  step [
    { model_name: "one" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "between" } },
    { model_name: "two" model_version: -1
      input_map { key: "x" value: "between" } output_map { key: "y" value: "y" } }
  ]
}
"""


def _warmup(batch_size: int, data_type: str, data: str) -> str:
    """A warm-up with one input."""
    inputs = f'inputs {{ key: "x" value {{ data_type: {data_type} dims: 1 {data} }} }}'
    return f'model_warmup {{ name: "w" batch_size: {batch_size} {inputs} }}'


def _rules(findings: tuple[Finding, ...]) -> list[tuple[str, int]]:
    return [(finding.rule, finding.line) for finding in findings]


def _repository(root: Path, config: str) -> Path:
    write(root / "r", {"double/config.pbtxt": config, "double/1/model.py": MODEL})
    return root / "r"


def test_the_projects_own_folders_have_no_finding() -> None:
    folders = [path.parent for path in (REPOSITORY / "model_repos").glob(f"*/{RECIPE}")]
    assert {folder.name for folder in folders} >= {"digits-onnx", "digits-ensemble"}
    assert [lint_folder(folder) for folder in folders] == [()] * len(folders)


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ('backend: "python"', 'backend: "python" platform: "tensorrt_plan"', "platform-ignored", 2),
        ("max_batch_size: 8", "max_batchsize: 8", "config", 3),
        ('"x" data_type: TYPE_FP32 dims: [ 1 ]', '"x" data_type: TYPE_FP32', "tensor-dims", 4),
        ('"x" data_type: TYPE_FP32 dims: [ 1 ]', '"x" data_type: TYPE_FP32 dims: [ 0 ]', "tensor-dims", 4),
        ('"x" data_type: TYPE_FP32 dims: [ 1 ]', '"x" data_type: TYPE_FP32 dims: [ -2 ]', "tensor-dims", 4),
        (
            "TYPE_FP32 dims: [ 1 ] } ]\noutput",
            "TYPE_FP32 dims: [ 6 ] reshape { shape: [ 2, 4 ] } } ]\noutput",
            "tensor-reshape",
            4,
        ),
        ('output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]', "", "auto-completed", 1),
    ],
)
def test_a_mistake_in_a_configuration_is_found_with_its_line(
    tmp_path: Path, old: str, new: str, rule: str, line: int
) -> None:
    assert old in CONFIG
    assert _rules(lint_folder(_repository(tmp_path, CONFIG.replace(old, new, 1)))) == [(rule, line)]


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ("dynamic_batching { preferred_batch_size: [ 4, 9 ] }", "preferred-batch-size"),
        ("dynamic_batching { preferred_batch_size: 0 }", "preferred-batch-size"),
        ("instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]", "instance-gpus"),
        ("instance_group [ { kind: KIND_GPU gpus: [ -1 ] } ]", "instance-gpus"),
        ("instance_group [ { gpus: [ -1 ] } ]", "instance-gpus"),
        (_warmup(0, "TYPE_FP32", "zero_data: true"), "warmup-skipped"),
        ('model_warmup { name: "w" batch_size: 1 }', "warmup-input"),
        (_warmup(1, "TYPE_INT32", "zero_data: true"), "warmup-input"),
        (
            'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/../e" } }',
            "execution-environment",
        ),
    ],
)
def test_what_a_rules_page_does_not_show_is_found_too(tmp_path: Path, more: str, rule: str) -> None:
    found = _rules(lint_folder(_repository(tmp_path, f"{CONFIG}{more}\n")))
    assert {name for name, _ in found} == {rule}
    assert 6 in {line for _, line in found}


def _layout(root: Path, *names: str) -> Path:
    for name in names:
        write(root / "r", {f"{name}/config.pbtxt": CONFIG.replace("double", name), f"{name}/1/model.py": MODEL})
    return root / "r"


def _both(root: Path, ensemble: str = ENSEMBLE) -> Path:
    repository = _layout(root, "one", "two")
    write(repository, {"both/config.pbtxt": ensemble})
    (repository / "both/1").mkdir()
    return repository


def test_scheduling_without_the_platform_is_no_ensemble_to_sagemaker(tmp_path: Path) -> None:
    rules = _rules(lint_folder(_both(tmp_path, ENSEMBLE.replace('platform: "ensemble"', ""))))
    assert {"several-models-no-ensemble", "ensemble-platform"} <= {rule for rule, _ in rules}


def test_a_repository_without_a_model_or_with_a_config_at_its_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    assert _rules(lint_folder(tmp_path / "r")) == [("no-model", 0)]
    write(tmp_path / "r", {"config.pbtxt": CONFIG})
    assert {rule for rule, _ in _rules(lint_folder(tmp_path / "r"))} == {"no-model", "config-at-root"}
    with pytest.raises(InputError, match="no such folder"):
        lint_folder(tmp_path / "gone")


def test_a_version_without_the_backends_file_and_a_model_without_version_are_found(tmp_path: Path) -> None:
    repository = _layout(tmp_path, "double")
    (repository / "double/1/model.py").unlink()
    assert _rules(lint_folder(repository)) == [("model-file", 0)]
    (repository / "double/1").rmdir()
    assert _rules(lint_folder(repository)) == [("no-version", 0)]


def test_more_than_five_directories_and_unused_models_are_warnings(tmp_path: Path) -> None:
    repository = _both(tmp_path)
    _layout(tmp_path, "three", "four", "five")
    found = lint_folder(repository)
    assert {finding.level for finding in found} == {"warning"}
    assert sorted(finding.rule for finding in found) == ["many-directories", *["unused-model"] * 3]


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ('key: "x" value: "x"', 'key: "q" value: "x"', "ensemble-map", 9),
        ('output_map { key: "y" value: "between" }', 'output_map { key: "q" value: "between" }', "ensemble-map", 9),
        (
            'value: "between" } output_map { key: "y" value: "y" }',
            'value: "lost" } output_map { key: "y" value: "y" }',
            "ensemble-tensor-missing",
            11,
        ),
        ('{ name: "x" data_type: TYPE_FP32', '{ name: "x" data_type: TYPE_INT32', "ensemble-tensor-differs", 9),
        ('"x" data_type: TYPE_FP32 dims: [ 1 ]', '"x" data_type: TYPE_FP32 dims: [ 2 ]', "ensemble-tensor-differs", 9),
    ],
)
def test_a_mistake_in_an_ensembles_graph_is_found_with_its_line(
    tmp_path: Path, old: str, new: str, rule: str, line: int
) -> None:
    assert old in ENSEMBLE
    found = lint_folder(_both(tmp_path, ENSEMBLE.replace(old, new, 1)))
    assert (rule, line) in _rules(found)
    assert {finding.file.parent.name for finding in found if finding.rule == rule} == {"both"}


TENSORRT = 'backend: "tensorrt"'
OWN_PYTHON = """\
backend: "python"
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/1/model.py" } }
"""


@pytest.mark.parametrize(
    ("config", "dependency", "differs"),
    [
        (TENSORRT, "none", True),
        (TENSORRT, "python", True),
        (TENSORRT, "engine", False),
        ('platform: "tensorrt_plan"', "none", True),
        (OWN_PYTHON, "none", True),
        (OWN_PYTHON, "python", False),
        (OWN_PYTHON, "engine", False),
        ('backend: "python"', "none", False),
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
