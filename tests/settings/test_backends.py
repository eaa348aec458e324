"""Backends that models need against those of the endpoint's release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.environment_file import write_environment
from tritonstack.settings import Environment, check_backends, load_environment


def environment(folder: Path, endpoint: str = "") -> Environment:
    """A small environment whose endpoint serves ``digits-onnx``."""
    return load_environment(write_environment(folder, endpoint=endpoint))


@pytest.mark.parametrize("named", ["onnxruntime", "onnxruntime_onnx", "tensorrt_plan", "ensemble", "python", "dali"])
def test_backends_and_platforms_of_the_release_are_taken(named: str, tmp_path: Path) -> None:
    assert check_backends(environment(tmp_path), {"digits-onnx": [named]}) == []


@pytest.mark.parametrize("named", ["tensorflow", "tensorflow_savedmodel", "tensorflow_graphdef"])
def test_tensorflow_is_refused_from_25_03_on(named: str, tmp_path: Path) -> None:
    assert check_backends(environment(tmp_path), {"digits-onnx": [named]}) == []
    [problem] = check_backends(environment(tmp_path, 'release: "25.04"'), {"digits-onnx": [named]})
    assert problem.field == "endpoints[0].models[0]"
    assert named in problem.found
    assert "went after release 25.02" in problem.found
    assert "onnxruntime" in problem.allowed
    assert "25.02 or older" in problem.advice


def test_a_backend_that_came_and_went_is_explained_from_both_sides(tmp_path: Path) -> None:
    [late] = check_backends(environment(tmp_path), {"digits-onnx": ["fastertransformer"]})
    assert "went after release 23.05" in late.found


def test_a_misspelt_backend_is_refused_with_the_nearest(tmp_path: Path) -> None:
    [problem] = check_backends(environment(tmp_path), {"digits-onnx": ["onnxruntim"]})
    assert "which no release has" in problem.found
    assert "Did you mean onnxruntime?" in problem.advice


def test_a_backend_of_ones_own_can_be_named(tmp_path: Path) -> None:
    own = environment(tmp_path, "additional_backends: [mine]")
    assert check_backends(own, {"digits-onnx": ["mine"]}) == []


def test_every_model_and_backend_is_told_at_once_and_models_of_no_endpoint_are_ignored(tmp_path: Path) -> None:
    settings = environment(tmp_path, 'release: "25.04"\nmodels: [a, b]')
    problems = check_backends(settings, {"a": ["tensorflow", "x"], "b": ["y", "y"], "c": ["z"]}, file=Path("e.yaml"))
    assert [problem.field for problem in problems] == ["endpoints[0].models[0]"] * 2 + ["endpoints[0].models[1]"]
    assert {problem.file for problem in problems} == {"e.yaml"}
