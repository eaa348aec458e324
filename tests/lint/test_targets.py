"""What an archive is linted for: instances, releases, engines and environments of Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cases import cases
from tests.models.folders import CONFIG, MODEL, write
from tritonstack.errors import InputError
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.paths import REPOSITORY

G4 = ServingTarget.of_names(release="24.09", instance_type="ml.g4dn.xlarge")
ENVIRONMENT = """\
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env" } }
"""
ENGINE = """\
description: A net.
kind: tensorrt
dependency: engine
engine: {shapes: {ids: {min: [2, 1], opt: [4, 8], max: [8, 16]}}}
exports:
  - produces: [net/1/model.onnx]
    graph:
      opset: 18
      inputs: [{name: ids, dtype: INT64, shape: [batch, length]}]
      outputs: [{name: y, dtype: FP32, shape: [batch, 3]}]
sample: {request: sample/request.json, answer: sample/answer.json}
"""
NET = """\
platform: "tensorrt_plan"
max_batch_size: 8
input [ { name: "ids" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""


def _rules(folder: Path, target: ServingTarget | None) -> list[str]:
    return [finding.rule for finding in lint_folder(folder, target=target)]


def _double(root: Path, config: str = CONFIG) -> Path:
    write(root / "r", {"double/config.pbtxt": config, "double/1/model.py": MODEL})
    return root / "r"


def _net(root: Path, config: str = NET) -> Path:
    folder = root / "model_repos" / "net"
    write(folder, {"recipe.yaml": ENGINE, "net/config.pbtxt": config, "export.py": ""})
    write(folder, {"sample/request.json": '{"inputs": []}', "sample/answer.json": '{"outputs": []}'})
    write(root, {"requirements/exporters.txt": "numpy==2.4.6\n"})
    return folder


def _engine_rules(folder: Path, target: ServingTarget | None = None) -> set[str]:
    return {rule for rule in _rules(folder, target) if rule.startswith("engine")}


def test_a_target_that_does_not_exist_is_refused_with_every_mistake() -> None:
    with pytest.raises(InputError) as caught:
        ServingTarget.of_names(release="19.01", instance_type="ml.nothing.xlarge")
    assert [problem.field for problem in caught.value.problems] == ["--release", "--instance-type"]


@pytest.mark.parametrize(("python", "rules"), [("3.10", []), ("3.12", ["environment-python"])])
def test_an_unpacked_environment_has_the_releases_python(tmp_path: Path, python: str, rules: list[str]) -> None:
    folder = _double(tmp_path, f"{CONFIG}{ENVIRONMENT}")
    write(folder, {"double/env/bin/activate": "", f"double/env/lib/python{python}/site.py": ""})
    assert _rules(folder, G4) == rules
    assert _rules(folder, None) == []
    write(folder, {"double/triton_python_backend_stub": ""})
    assert _rules(folder, G4) == [], "a stub of its own takes any Python"


@cases("old, new, rules")
def test_a_configuration_is_within_the_engines_profile(tmp_path: Path, old: str, new: str, rules: set[str]) -> None:
    assert _engine_rules(_net(tmp_path, NET.replace(old, new, 1))) == rules


def test_what_the_response_cache_takes_is_no_memory_for_archives(tmp_path: Path) -> None:
    folder = _double(tmp_path)
    for cache, rules in ((0, []), (13 * 2**30, ["archive-memory"])):
        target = replace(G4, unpacked_bytes=4 * 2**30, response_cache_bytes=cache)
        assert _rules(folder, target) == rules


def test_a_single_model_endpoint_names_its_only_ensemble_and_a_container_by_itself_does_not() -> None:
    folder = REPOSITORY / "model_repos" / "digits-ensemble"
    by_itself, of_settings = (
        {finding.rule for finding in lint_folder(folder, target=ServingTarget(multi_model=False, names_ensemble=named))}
        for named in (False, True)
    )
    assert by_itself == {"default-model"}
    assert of_settings == set()


def test_a_calibration_cache_is_a_file_of_the_folder_and_not_of_an_export(tmp_path: Path) -> None:
    folder = _net(tmp_path)
    recipe = ENGINE.replace("engine: {", "engine: {precision: int8, calibration_cache: net/1/c.cache, ")
    (folder / "recipe.yaml").write_text(recipe.replace("[net/1/model.onnx]", "[net/1/model.onnx, net/1/c.cache]"))
    found = [finding.found for finding in lint_folder(folder) if finding.rule == "recipe-file"]
    assert found == ["engine.calibration_cache: no file net/1/c.cache"]
