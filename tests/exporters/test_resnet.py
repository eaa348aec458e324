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

from tests.exporters.torch_environment import ROOT, Tasks, needs_torch, run
from tritonstack.catalogue import model_formats

pytestmark = needs_torch

REVISION = "34c2154c194f829b11125337b98c8f5f9965ff19"
HUB = "microsoft/resnet-50"
TINY = {"embedding_size": 16, "hidden_sizes": [32, 64, 64, 128], "depths": [1, 1, 1, 1]}


def export(name: str, folder: Path, *, hub: Path | None = None, **changed: Any) -> subprocess.CompletedProcess[str]:
    """Run a folder's export script."""
    tensors = ("INPUT__0", "OUTPUT__0") if name == "resnet50-torchscript" else ("input", "output")
    graph = {
        "opset": 17,
        "inputs": [{"name": tensors[0], "dtype": "FP32", "shape": ["batch", 3, 224, 224]}],
        "outputs": [{"name": tensors[1], "dtype": "FP32", "shape": ["batch", 1000]}],
    }
    options = {
        "size": {} if hub else TINY,
        "weights": "pretrained" if hub else "random",
        "seed": 0,
        "source": {"hub": HUB, "revision": REVISION},
        "graph": graph,
        "max_batch_size": 2,
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


@pytest.fixture
def hub(tasks: Tasks, tmp_path: Path) -> Path:
    """A folder laid out like the hub, with the revision that the recipes pin and a small model."""
    shutil.copytree(tasks.folder / "hub_folder", tmp_path / "hub" / HUB / REVISION)
    return tmp_path / "hub"


def answer(folder: Path) -> list[float]:
    content = json.loads((folder / "files/sample/answer.json").read_text())
    data: list[float] = content["outputs"][0]["data"]
    return data


def _beyond_the_oldest(path: Path) -> tuple[str, ...]:
    assert model_formats.torchscript_version(path) <= model_formats.newest_torchscript()
    return model_formats.beyond_torch(path)


def test_the_three_formats_hold_one_model(tmp_path: Path) -> None:
    for name in ("resnet50-torchscript", "resnet50-onnx", "resnet50-tensorrt"):
        done = export(name, tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        assert json.loads((tmp_path / name / "report.json").read_text())["figures"]["largest_difference"] <= 1e-4
    assert _beyond_the_oldest(tmp_path / "resnet50-torchscript/files/resnet50-torchscript/1/model.pt") == ()
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


def test_a_model_that_answers_nan_is_refused(hub: Path, tmp_path: Path) -> None:
    spoil(hub / HUB / REVISION / "model.safetensors", "classifier.1.bias")
    done = export("resnet50-torchscript", tmp_path / "out", hub=hub)
    assert done.returncode == 1
    assert "tensor OUTPUT__0, random input, batch 1: the source framework returns NaN" in done.stderr


def spoil(path: Path, name: str) -> None:
    """Make all values of a tensor in a safetensors file NaN."""
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    begin, end = json.loads(content[8:start])[name]["data_offsets"]
    content[start + begin : start + end] = np.full((end - begin) // 4, np.nan, np.float32).tobytes()
    path.write_bytes(content)
