"""Samples: JSON and files for adapters, refused where their content differs from their declaration."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.lint.onnx_files import node, write_graph
from tests.models.folders import CONFIG, MODEL, places_in, tensor, write, write_double
from tritonstack.archives.build import build_models
from tritonstack.archives.programs import run_script
from tritonstack.archives.proof import PROOF_ENVIRONMENT, PROVER
from tritonstack.archives.proof import _model_task as model_task
from tritonstack.client.body import encode
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import read_config
from tritonstack.models.recipe import read_recipe
from tritonstack.models.sample import READY_REQUEST, compare_answer, read_sample

PIXELS = "adapters: {image: {input: x, encoding: pixels, crop: 4}}\n"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with the folder ``double``, whose request is another file each time."""
    write_double(tmp_path)
    return places_in(tmp_path)


def request(places: Places, name: str, content: bytes, more: str = "") -> Path:
    """Make a file the sample's request; returns the folder."""
    folder = places.folder("double")
    (folder / "sample" / name).write_bytes(content)
    recipe = (folder / "recipe.yaml").read_text().replace("sample/request.json", f"sample/{name}")
    (folder / "recipe.yaml").write_text(recipe + more)
    return folder


def image_folder(places: Places, content: bytes) -> None:
    """``double`` takes images of 4 by 4 pixels and gives twice their normalised values."""
    folder = request(places, "image.jpg", content, PIXELS)
    write(
        folder, {"double/config.pbtxt": CONFIG.replace("dims: [ 1 ]", "dims: [ 3, 4, 4 ]"), "double/1/model.py": MODEL}
    )
    output = {"name": "y", "datatype": "FP32", "shape": [1, 3, 4, 4], "data": [2.0] * 48}
    (folder / "sample/answer.json").write_text(json.dumps({"outputs": [output]}))


def drawn(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), "white").save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_image_is_a_sample_by_the_pixels_that_its_adapter_makes(places: Places, kind: str) -> None:
    image_folder(places, drawn(kind))
    (built,) = build_models(["double"], places=places).built
    assert built.manifest.sample.adapter == "image"
    assert built.manifest.figures["sample_difference"] < 1e-6
    entry = built.manifest.client_files[READY_REQUEST]
    ready = (places.client_files(built.name) / READY_REQUEST).read_bytes()
    assert (entry.bytes, entry.sha256) == (len(ready), hashlib.sha256(ready).hexdigest())
    assert ready == encode({"x": np.ones((1, 3, 4, 4), np.float32)}, payload_format="binary").content


@pytest.mark.parametrize("content", [b"", b"no image", drawn("PNG")[:40]])
def test_an_image_that_is_none_is_refused_and_nothing_is_built(places: Places, content: bytes) -> None:
    image_folder(places, content)
    with pytest.raises(InputError, match=r"image\.jpg"):
        build_models(["double"], places=places)
    assert not places.archives.exists() or list(places.archives.iterdir()) == []


def test_an_output_that_the_sample_does_not_name_is_free_but_must_be_numbers(places: Places) -> None:
    folder = places.folder("double")
    sample = read_sample(folder, read_recipe(folder))
    expected, free = tensor("y", 5.0), tensor("z", 7.0)
    assert compare_answer(sample, [expected, free], model="double") == 0.0
    with pytest.raises(WorkFailedError, match=r"tensor z: .*not numbers \(NaN\)"):
        compare_answer(sample, [expected, tensor("z", float("nan"))], model="double")


LABELS = """
    backend: "onnxruntime" max_batch_size: 8
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 2 ] reshape { shape: [ 4 ] } } ]
    output [ { name: "label" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } } ]
"""
GRAPH: dict[str, Any] = {
    "inputs": [{"name": "x", "dtype": "FP32", "shape": ["n", 4]}],
    "outputs": [{"name": "label", "dtype": "INT64", "shape": ["n"]}],
    "nodes": [node("ArgMax", ["x"], ["label"], axis=1, keepdims=0)],
}
REQUEST = [{"name": "x", "datatype": "FP32", "shape": [2, 2, 2], "data": [0, 9, 0, 0, 0, 0, 0, 9]}]


def _prove(folder: Path, config: str, graph: Any = GRAPH, request: Any = REQUEST) -> dict[str, Any]:
    (folder / "net/1").mkdir(parents=True)
    write_graph(folder / "net/1/model.onnx", graph)
    task = {"model": "net", "models": {"net": model_task(folder / "net", read_config(config))}, "request": request}
    (folder / "task.json").write_text(json.dumps(task))
    arguments = ["-P", str(PROVER), str(folder / "task.json"), str(folder / "result.json")]
    run_script(
        environment=PROOF_ENVIRONMENT, arguments=arguments, folder=folder, what="proof", report=lambda _line: None
    )
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def test_a_classifiers_labels_are_proven_in_the_shapes_that_requests_see(tmp_path: Path) -> None:
    result = _prove(tmp_path, LABELS)
    assert result["outputs"] == [{"name": "label", "datatype": "INT64", "shape": [2, 1], "data": [1, 3]}]


def test_texts_and_scalars_reach_a_graph_as_such(tmp_path: Path) -> None:
    """Triton gives a graph the characters, not Python's notation of bytes, and a scalar for dims [ 1 ]."""
    graph = {
        "inputs": [
            {"name": "text", "dtype": "BYTES", "shape": ["n"]},
            {"name": "scalar", "dtype": "FP32", "shape": []},
        ],
        "outputs": [{"name": "same", "dtype": "BYTES", "shape": ["n"]}, {"name": "less", "dtype": "FP32", "shape": []}],
        "nodes": [node("Identity", ["text"], ["same"]), node("Neg", ["scalar"], ["less"])],
    }
    config = """
        backend: "onnxruntime"
        input [ { name: "text" data_type: TYPE_STRING dims: -1 }, { name: "scalar" data_type: TYPE_FP32 dims: 1 } ]
        output [ { name: "same" data_type: TYPE_STRING dims: -1 }, { name: "less" data_type: TYPE_FP32 dims: 1 } ]
    """
    texts = [base64.b64encode(text.encode()).decode() for text in ("Rome", "Tromsø")]
    request = [
        {"name": "text", "datatype": "BYTES", "shape": [2], "data": texts},
        {"name": "scalar", "datatype": "FP32", "shape": [1], "data": [2.0]},
    ]
    assert _prove(tmp_path, config, graph, request)["outputs"] == [
        {"name": "same", "datatype": "BYTES", "shape": [2], "data": texts},
        {"name": "less", "datatype": "FP32", "shape": [1], "data": [-2.0]},
    ]


def test_the_version_that_triton_serves_is_the_one_that_is_proven(tmp_path: Path) -> None:
    config = 'backend: "onnxruntime" version_policy { specific { versions: [ 2 ] } }'
    for version in ("1", "2", "10"):
        write(tmp_path, {f"net/{version}/model.onnx": "", "net/config.pbtxt": config})
    assert Path(model_task(tmp_path / "net", read_config(config))["file"]).parent.name == "2"
