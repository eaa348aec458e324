"""The three ResNet folders: one model, and pretrained weights from a folder laid out like the hub."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exporters.torch_environment import ROOT, needs_torch, run, task

pytestmark = needs_torch

REVISION = "34c2154c194f829b11125337b98c8f5f9965ff19"
HUB = "microsoft/resnet-50"
TINY = {"embedding_size": 16, "hidden_sizes": [32, 64, 64, 128], "depths": [1, 1, 1, 1]}


def export(name: str, folder: Path, *, hub: Path | None = None, **changed: Any) -> subprocess.CompletedProcess[str]:
    """Run a folder's export script."""
    tensors = ("INPUT__0", "OUTPUT__0") if name == "resnet50-torchscript" else ("input", "output")
    graph = {
        "opset": 18,
        "inputs": [{"name": tensors[0], "dtype": "FP32", "shape": ["batch", 3, 224, 224]}],
        "outputs": [{"name": tensors[1], "dtype": "FP32", "shape": ["batch", 1000]}],
    }
    options = {
        "size": {} if hub else TINY,
        "weights": "pretrained" if hub else "random",
        "seed": 0,
        "source": {"hub": HUB, "revision": REVISION},
        "graph": graph,
        "max_batch_size": 3,
        "tolerance": 1e-4,
        **changed,
    }
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    arrays: dict[str, Any] = {tensors[0]: pixels}
    np.savez(folder / "sample.npz", **arrays)
    return run(
        ROOT / "model_repos" / name / "export.py",
        *("--target", folder / "files", "--options", json.dumps(options)),
        *("--report", folder / "report.json", "--sample", folder / "sample.npz"),
        **({"TRITONSTACK_HUB_FOLDER": str(hub)} if hub else {}),
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model saved as the hub has it."""
    folder = tmp_path_factory.mktemp("saved")
    task("hub_folder", folder)
    return folder


@pytest.fixture
def hub(saved: Path, tmp_path: Path) -> Path:
    """A folder laid out like the hub, with the revision that the recipes pin."""
    shutil.copytree(saved, tmp_path / "hub" / HUB / REVISION)
    return tmp_path / "hub"


def answer(folder: Path) -> list[float]:
    content = json.loads((folder / "files/sample/answer.json").read_text())
    data: list[float] = content["outputs"][0]["data"]
    return data


def test_the_three_formats_hold_one_model(tmp_path: Path) -> None:
    for name in ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt"):
        done = export(name, tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert json.loads((tmp_path / name / "report.json").read_text())["figures"]["largest_difference"] <= 1e-4
    answers = [answer(tmp_path / name) for name in ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt")]
    assert answers[0] == answers[1] == answers[2]
    assert np.std(answers[0]) > 0.1
    onnx, graph = tmp_path / "resnet50-onnx/files", tmp_path / "resnet50-tensorrt/files"
    graphs = [onnx / "resnet50-onnx/1/model.onnx", graph / "resnet50-tensorrt/1/model.onnx"]
    assert graphs[0].read_bytes() == graphs[1].read_bytes()
    assert (onnx / "labels.txt").read_text().splitlines()[:2] == ["class-0", "class-1"]


def test_pretrained_weights_come_from_a_folder_laid_out_like_the_hub(hub: Path, tmp_path: Path) -> None:
    done = export("resnet50-onnx", tmp_path / "out", hub=hub)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    file = hub / HUB / REVISION / "model.safetensors"
    assert report["inputs"]["model.safetensors"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert set(report["inputs"]) == {"config.json", "model.safetensors"}
    labels = (tmp_path / "out/files/labels.txt").read_text().splitlines()
    assert (labels[0], labels[999], len(labels)) == ("thing 0", "thing 999", 1000)


def test_a_missing_weight_file_is_named(hub: Path, tmp_path: Path) -> None:
    (hub / HUB / REVISION / "model.safetensors").unlink()
    done = export("resnet50-torchscript", tmp_path / "out", hub=hub)
    assert done.returncode == 1
    assert f"{HUB} at {REVISION} has no model.safetensors in {hub}" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out/report.json").exists()


def test_a_damaged_weight_file_is_named(hub: Path, tmp_path: Path) -> None:
    file = hub / HUB / REVISION / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    done = export("resnet50-onnx", tmp_path / "out", hub=hub)
    assert done.returncode == 1
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_weights_that_a_file_lacks_are_named_and_not_left_random(hub: Path, tmp_path: Path) -> None:
    rewrite(hub / HUB / REVISION / "model.safetensors", drop="classifier.1.bias")
    done = export("resnet50-onnx", tmp_path / "out", hub=hub)
    assert done.returncode == 1
    assert "lacks 1 weights of ResNetForImageClassification, which would stay random: classifier.1.bias" in done.stderr


def test_a_model_that_answers_nan_is_refused(hub: Path, tmp_path: Path) -> None:
    rewrite(hub / HUB / REVISION / "model.safetensors", spoil="classifier.1.bias")
    done = export("resnet50-torchscript", tmp_path / "out", hub=hub)
    assert done.returncode == 1
    assert "tensor OUTPUT__0, random input, batch 1: the source framework answers NaN" in done.stderr


def test_another_size_than_the_pretrained_one_is_refused(hub: Path, tmp_path: Path) -> None:
    done = export("resnet50-onnx", tmp_path / "out", hub=hub, size=TINY)
    assert done.returncode == 1
    assert "pretrained weights have their own size" in done.stderr
    assert "embedding_size is 8, not 16" in done.stderr


def rewrite(path: Path, *, drop: str | None = None, spoil: str | None = None) -> None:
    """Leave a tensor out of a safetensors file, or make all its values NaN."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    if spoil:
        begin, end = header[spoil]["data_offsets"]
        data[begin:end] = np.full((end - begin) // 4, np.nan, np.float32).tobytes()
    if drop:
        # Safetensors wants no holes: the tensor's bytes become those of one that no model has.
        header["unknown"] = header.pop(drop)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
