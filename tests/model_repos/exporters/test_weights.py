"""Pretrained weights: read from a folder laid out like the hub, and refused where they do not make the model."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.environments import needs
from tests.model_repos.exporters.torch_environment import ROOT, Tasks, run

pytestmark = needs("torch")

REVISION = "34c2154c194f829b11125337b98c8f5f9965ff19"
HUB = "microsoft/resnet-50"


def export(folder: Path, hub: Path) -> subprocess.CompletedProcess[str]:
    """Run the ONNX form's export script with pretrained weights."""
    graph = {
        "opset": 17,
        "inputs": [{"name": "input", "dtype": "FP32", "shape": ["batch", 3, 224, 224]}],
        "outputs": [{"name": "output", "dtype": "FP32", "shape": ["batch", 1000]}],
    }
    options = {
        "size": {},
        "weights": "pretrained",
        "seed": 0,
        "source": {"hub": HUB, "revision": REVISION},
        "graph": graph,
        "max_batch_size": 2,
        "tolerance": 1e-4,
    }
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    np.savez(folder / "sample.npz", input=pixels)
    return run(
        ROOT / "model_repos/resnet50-onnx/export.py",
        *("--target", folder / "files", "--options", json.dumps(options)),
        *("--report", folder / "report.json", "--sample", folder / "sample.npz"),
        TRITONSTACK_HUB_FOLDER=str(hub),
    )


@pytest.fixture
def hub(tasks: Tasks, tmp_path: Path) -> Path:
    """A folder laid out like the hub, with the revision that the recipes pin and a small model."""
    shutil.copytree(tasks.folder / "hub_folder", tmp_path / "hub" / HUB / REVISION)
    return tmp_path / "hub"


@pytest.mark.long
def test_pretrained_weights_come_from_a_folder_laid_out_like_the_hub(hub: Path, tmp_path: Path) -> None:
    done = export(tmp_path / "out", hub)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out/report.json").read_text())
    file = hub / HUB / REVISION / "model.safetensors"
    assert report["inputs"]["model.safetensors"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert set(report["inputs"]) == {"config.json", "model.safetensors"}
    labels = (tmp_path / "out/files/labels.txt").read_text().splitlines()
    assert (labels[0], labels[999], len(labels)) == ("thing 0", "thing 999", 1000)


def test_a_model_has_the_weights_of_its_file(tasks: Tasks) -> None:
    given = tasks.given("load_pretrained")
    assert given["sum"] == given["saved"] != 0


def test_a_head_that_the_file_lacks_is_drawn_from_the_seed_where_the_export_allows_it(tasks: Tasks) -> None:
    first, again, other = tasks.given("load_without_a_head")
    assert first == again
    assert first["sum"] != other["sum"]
    assert first["body"] == other["body"] == tasks.given("load_pretrained")["body"]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("load_damaged", "cannot be read: "),
        ("load_lacking", "lacks 1 weights of ResNetForImageClassification, which would stay random: classifier.1.bias"),
        (
            "load_another_size",
            "pretrained weights have their own size (build with --size full): embedding_size is 8, not 16",
        ),
    ],
)
def test_a_file_that_does_not_make_the_model_is_refused(tasks: Tasks, task: str, said: str) -> None:
    assert said in tasks.refused(task)
