"""Model files against what releases' ONNX Runtime, PyTorch and DALI read."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from tests.cases import cases
from tests.lint.examples import pipeline, write_torchscript
from tests.lint.onnx_files import write_graph
from tritonstack.catalogue import model_formats
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.models.source_files import model_directories
from tritonstack.paths import REPOSITORY

FOLDERS = sorted(path.parent for path in (REPOSITORY / "model_repos").glob("*/recipe.yaml"))
OLDEST = "22.12"

GRAPH = {
    "inputs": [{"name": "x", "dtype": "FP32", "shape": ["batch", 4]}],
    "outputs": [{"name": "y", "dtype": "FP32", "shape": ["batch", 4]}],
}
TENSORS = """\
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
FORMAT_RULES = {"onnx-version", "torchscript-version", "torchscript-operator", "dali-operator", "dali-autoserialize"}


def _model(tmp_path: Path, backend: str) -> Path:
    """A repository of one model, as yet without its file; the folder of its version."""
    version = tmp_path / "models/net/1"
    version.mkdir(parents=True)
    line = f'backend: "{backend}"\n' if backend else ""
    (version.parent / "config.pbtxt").write_text(f'name: "net"\n{line}{TENSORS}')
    return version


def _found(folder: Path, release: str) -> list[str]:
    target = dataclasses.replace(ServingTarget.of_names(release=release, instance_type=None), name="")
    return [
        f"{finding.found}; {finding.allowed} [{finding.rule}]"
        for finding in lint_folder(folder, target=target)
        if finding.rule in FORMAT_RULES
    ]


@pytest.mark.parametrize(
    ("release", "opset"),
    [
        ("22.12", 17),
        ("23.10", 19),
        ("24.09", 21),
        ("26.04", 25),
    ],
)
def test_the_newest_operator_set_of_a_release_passes_and_the_next_does_not(
    tmp_path: Path, release: str, opset: int
) -> None:
    folder = _model(tmp_path, "onnxruntime")
    write_graph(folder / "model.onnx", GRAPH | {"opset": opset})
    assert _found(tmp_path / "models", release) == []
    write_graph(folder / "model.onnx", GRAPH | {"opset": opset + 1})
    (reported,) = _found(tmp_path / "models", release)
    assert reported.startswith(f"operator set {opset + 1}; operator set {opset} or older, which ")
    assert reported.endswith(f" of release {release} reads [onnx-version]")


def test_a_recipes_operator_set_is_compared_before_its_export_makes_the_graph(tmp_path: Path) -> None:
    source = REPOSITORY / "model_repos/roberta-large-onnx"
    folder = shutil.copytree(source, tmp_path / "model_repos/roberta-large-onnx")
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("opset: 17", "opset: 18"))
    (reported,) = _found(folder, OLDEST)
    assert reported.startswith(
        "operator set 18; operator set 17 or older, which at most ONNX Runtime 1.13.1 of release 22"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_model_folder_is_read_by_the_oldest_release(folder: Path) -> None:
    assert [path.name for path in model_directories(folder)]
    assert _found(folder, OLDEST) == []


@cases("code, lacks")
def test_operators_and_arguments_that_the_oldest_pytorch_lacks_are_named(
    tmp_path: Path, code: str, lacks: tuple[str, ...]
) -> None:
    write_torchscript(tmp_path / "model.pt", version=10, code=code)
    assert model_formats.beyond_torch(tmp_path / "model.pt") == lacks


@pytest.mark.parametrize(("release", "is_named"), [("22.12", True), ("23.03", False), ("24.09", False)])
def test_an_operator_with_a_listed_first_version_is_compared_with_the_releases_pytorch(
    tmp_path: Path, release: str, is_named: bool
) -> None:
    folder = _model(tmp_path, "pytorch")
    write_torchscript(folder / "model.pt", version=10, code="torch.scaled_dot_product_attention(x, x, x)")
    found = _found(tmp_path / "models", release)
    assert len(found) == is_named
    assert not is_named or "release 22.12 holds PyTorch 1.14.0a0" in found[0]


def test_operators_and_arguments_that_the_oldest_dali_lacks_are_named() -> None:
    content = pipeline(
        [
            {"name": "decoders__Image", "arguments": ["device", "output_type", "_display_name", "adjust_orientation"]},
            {"name": "experimental__Dilate", "arguments": []},
        ]
    )
    assert model_formats.beyond_dali(content) == ("decoders__Image(adjust_orientation)", "experimental__Dilate")
