"""Files that are not what their name or place claims: what is found of each kind, and that whole ones pass."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.lint.onnx_files import graph_file, number, part
from tests.models.folders import write
from tritonstack.lint import Finding, lint_folder
from tritonstack.model_files.marked_plan import MARK

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 12345\n"
PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"
TENSORS = """\
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
PYTHON = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"


def zipped(*names: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, name * 50)
    return content.getvalue()


def tar_gz(size: int = 20_000) -> bytes:
    """A packed environment, its content such as no compression makes smaller."""
    content, noise = io.BytesIO(), random.Random(7).randbytes(size)
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name in ("bin/activate", "lib/python3.12/site-packages/noise"):
            member = tarfile.TarInfo(name)
            member.size = len(noise)
            archive.addfile(member, io.BytesIO(noise))
    return content.getvalue()


def safetensors(size: int = 64) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)


TORCHSCRIPT = zipped("net/data.pkl", "net/code/__torch__.py", "net/constants.pkl")
SAVED_MODEL = number(1, 1) + part(2, b"\x0a\x00")
GRAPHDEF = part(1, b"\x0a\x01x") + part(4, number(1, 27))
DALI = part(5, part(1, b"Copy"))
NETWORK = (
    b'<?xml version="1.0"?>\n<net name="net" version="11"><layers><layer id="1" type="Const">'
    b'<data element_type="f32" shape="4" offset="16" size="48"/></layer></layers></net>\n'
)
LIGHTGBM = b"tree\nversion=v4\nnum_class=1\n\nend of trees\n"
GRAPH = graph_file(
    {
        "inputs": [{"name": "x", "dtype": "FP32", "shape": ["N", 4]}],
        "outputs": [{"name": "y", "dtype": "FP32", "shape": ["N", 4]}],
    }
)
BODY = GRAPH[GRAPH.index(b"\x3a") :]
"""The field of the graph itself: its key, its length of one byte, inputs and outputs."""


def fil(kind: str) -> str:
    """The fields of a forest that backend FIL loads; empty for its default type."""
    given = {"model_type": kind, "output_class": "false"}
    entries = (f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n' for name, value in given.items())
    return f'backend: "fil"\n{"".join(entries)}'


# Backend or platform, files of the version, what is found of the first; empty for nothing.
LOADED: Mapping[str, tuple[str, dict[str, bytes], str]] = {
    "a TorchScript file": ('backend: "pytorch"', {"model.pt": TORCHSCRIPT}, ""),
    "a pointer for TorchScript": ('backend: "pytorch"', {"model.pt": POINTER}, "is a Git LFS pointer"),
    "half of TorchScript": ('backend: "pytorch"', {"model.pt": TORCHSCRIPT[: len(TORCHSCRIPT) // 2]}, "is cut off"),
    "weights alone": ('backend: "pytorch"', {"model.pt": zipped("net/data.pkl", "net/data/0")}, "is weights alone"),
    "a pickle": ('platform: "pytorch_libtorch"', {"model.pt": b"\x80\x02\x8a"}, "is a pickled Python object"),
    "weights for a runtime in Python": (
        'backend: "pytorch"\nruntime: "model.py"',
        {"model.pt": zipped("net/data.pkl"), "model.py": b""},
        "",
    ),
    "a plan": ('backend: "tensorrt"', {"model.plan": b"ftrt\0\0\0\0"}, ""),
    "a stand-in's plan": ('backend: "tensorrt"', {"model.plan": MARK}, ""),
    "a pointer for a plan": ('platform: "tensorrt_plan"', {"model.plan": POINTER}, "is a Git LFS pointer"),
    "a graph called a plan": ('backend: "tensorrt"', {"model.plan": GRAPH}, "is a file that begins 08 08"),
    "an engine behind metadata": (
        'backend: "tensorrt"',
        {"model.plan": struct.pack("<I", 20) + b'{"task": "detect"}  ftrt'},
        "is an engine behind 20 bytes of Ultralytics' metadata",
    ),
    "a page for a plan": ('backend: "tensorrt"', {"model.plan": PAGE}, "is an HTML page"),
    "nothing for a plan": ('backend: "tensorrt"', {"model.plan": b""}, "is an empty file"),
    "zeros for a plan": ('backend: "tensorrt"', {"model.plan": bytes(5000)}, "is zeros"),
    "a plan of a compute capability": (
        'backend: "tensorrt"\ncc_model_filenames { key: "7.5" value: "t4.plan" }',
        {"t4.plan": POINTER, "model.plan": b"ftrt"},
        "t4.plan is a Git LFS pointer",
    ),
    "a SavedModel": ('platform: "tensorflow_savedmodel"', {"model.savedmodel/saved_model.pb": SAVED_MODEL}, ""),
    "a pointer in a SavedModel": (
        'platform: "tensorflow_savedmodel"',
        {"model.savedmodel/saved_model.pb": POINTER},
        "is a folder whose saved_model.pb is a Git LFS pointer",
    ),
    "a pointer among its variables": (
        'platform: "tensorflow_savedmodel"',
        {"model.savedmodel/saved_model.pb": SAVED_MODEL, "model.savedmodel/variables/variables.index": POINTER},
        "is a folder whose variables/variables.index is a Git LFS pointer",
    ),
    "half of a SavedModel": (
        'platform: "tensorflow_savedmodel"',
        {"model.savedmodel/saved_model.pb": SAVED_MODEL[:-1]},
        "is cut off",
    ),
    "a SavedModel without its graph": (
        'platform: "tensorflow_savedmodel"',
        {"model.savedmodel/variables/variables.index": b"x"},
        "is a folder without saved_model.pb",
    ),
    "a GraphDef": ('platform: "tensorflow_graphdef"', {"model.graphdef": GRAPHDEF}, ""),
    "half of a GraphDef": ('platform: "tensorflow_graphdef"', {"model.graphdef": GRAPHDEF[:-1]}, "is cut off"),
    "Keras called a GraphDef": (
        'platform: "tensorflow_graphdef"',
        {"model.graphdef": b"\x89HDF\r\n\x1a\n"},
        "is an HDF5",
    ),
    "a pipeline": ('backend: "dali"', {"model.dali": DALI}, ""),
    "a program called a pipeline": ('backend: "dali"', {"model.dali": b"import dali\n"}, "is text that begins 'import"),
    "a network": ('backend: "openvino"', {"model.xml": NETWORK, "model.bin": bytes(64)}, ""),
    "half of a network": ('backend: "openvino"', {"model.xml": NETWORK[:90], "model.bin": bytes(64)}, "is cut off"),
    "half of its weights": (
        'backend: "openvino"',
        {"model.xml": NETWORK, "model.bin": bytes(63)},
        "model.bin is cut off: 63 of 64 bytes",
    ),
    "no weights of a network": ('backend: "openvino"', {"model.xml": NETWORK}, "no model.bin beside it"),
    "a pointer for its weights": (
        'backend: "openvino"',
        {"model.xml": NETWORK, "model.bin": POINTER},
        "a Git LFS pointer",
    ),
    "half of XGBoost's JSON": (
        fil("xgboost_json"),
        {"xgboost.json": b'{"learner": {"a": 1'},
        "is JSON that is cut off",
    ),
    "XGBoost's JSON": (fil("xgboost_json"), {"xgboost.json": b' {"learner": {"a": "1"}}\n'}, ""),
    "trees of dump_model": (fil("xgboost_json"), {"xgboost.json": b'[{"nodeid": 0}]'}, "it has no learner"),
    "half of XGBoost's UBJSON": (
        fil("xgboost_ubj"),
        {"xgboost.ubj": b"{L\0\0\0\1"},
        "is Universal Binary JSON that is cut",
    ),
    "JSON by a name of its own": (
        f'{fil("xgboost_ubj")}default_model_filename: "model.json"',
        {"model.json": b'{"learner": {}}'},
        "is JSON",
    ),
    "UBJSON called .model": (
        fil("xgboost"),
        {"xgboost.model": b"{L" + bytes(7) + b"\7learner{}}"},
        "is Universal Binary JSON",
    ),
    "the old binary format": (fil(""), {"xgboost.model": b"\0\0\0\x3f\6\0\0\0"}, ""),
    "LightGBM's text": (fil("lightgbm"), {"model.txt": LIGHTGBM}, ""),
    "a pickle called LightGBM's text": (fil("lightgbm"), {"model.txt": b"\x80\x04\x95"}, "is a pickled Python object"),
    "a pointer for a checkpoint": (fil("treelite_checkpoint"), {"checkpoint.tl": POINTER}, "is a Git LFS pointer"),
    "a pickle for a checkpoint": (
        fil("treelite_checkpoint"),
        {"checkpoint.tl": b"\x80\x04\x95"},
        "is a pickled Python object",
    ),
    "a checkpoint": (fil("treelite_checkpoint"), {"checkpoint.tl": b"\2\0\0\0\4\0\0\0"}, ""),
    "a pointer for a graph": ('backend: "onnxruntime"', {"model.onnx": POINTER}, "is a Git LFS pointer"),
    "a page for a graph": ('backend: "onnxruntime"', {"model.onnx": PAGE}, "is an HTML page"),
    "half of a graph": ('backend: "onnxruntime"', {"model.onnx": GRAPH[:-9]}, "the file is cut off"),
}
OF_CONTENT = (
    *("model-file-content", "other-file-content", "execution-environment"),
    *("onnx-unreadable", "onnx-external-data"),
)


def _folder(root: Path, head: str, files: Mapping[str, bytes]) -> Path:
    write(root, {"net/config.pbtxt": f"{head}\n{TENSORS}"})
    for name, content in files.items():
        (root / "net" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "net" / name).write_bytes(content)
    return root


def _found(root: Path) -> list[Finding]:
    return [each for each in lint_folder(root) if each.rule in OF_CONTENT]


@pytest.mark.parametrize(("head", "files", "found"), LOADED.values(), ids=LOADED)
def test_a_model_file_is_what_its_backend_reads_and_whole(
    tmp_path: Path, head: str, files: dict[str, bytes], found: str
) -> None:
    findings = _found(_folder(tmp_path, head, {f"1/{name}": content for name, content in files.items()}))
    assert [found in each.found for each in findings] == ([True] if found else []), findings
    assert all(each.allowed for each in findings)


def test_every_version_that_is_served_is_read(tmp_path: Path) -> None:
    head = 'backend: "onnxruntime"\nversion_policy { all { } }'
    findings = _found(_folder(tmp_path, head, {"1/model.onnx": GRAPH, "2/model.onnx": POINTER, "3/model.onnx": PAGE}))
    assert [each.file.parent.name for each in findings] == ["2", "3"]


def named(value: object) -> str:
    """A case's name, without what is compressed: that has the time in it."""
    return value if isinstance(value, str) else type(value).__name__


@pytest.mark.parametrize(
    ("companions", "found", "advice"),
    [
        ({"w.data": bytes(64)}, None, ""),
        ({}, "weights in 'w.data', which is not there", "copy w.data there"),
        ({"model.onnx_data": bytes(64)}, "which is not there; model.onnx_data is", "rename model.onnx_data to w.data"),
        ({"w.data": POINTER}, "which is a Git LFS pointer", "git lfs pull"),
        ({"w.data": bytes(63)}, "weights in 'w.data', of 63 bytes", "again"),
    ],
    ids=named,
)
def test_the_weights_of_a_graph_are_there_and_whole(
    tmp_path: Path, companions: dict[str, bytes], found: str | None, advice: str
) -> None:
    graph = _with_weights()
    files = {"1/model.onnx": graph} | {f"1/{name}": content for name, content in companions.items()}
    findings = _found(_folder(tmp_path, 'backend: "onnxruntime"', files))
    assert [(found or "") in each.found and advice in each.advice for each in findings] == ([True] if found else [])


def _with_weights() -> bytes:
    """The graph with an initialiser of 48 bytes at byte 16 of ``w.data``."""
    entries = {"location": "w.data", "offset": "16", "length": "48"}
    places = b"".join(part(13, part(1, key.encode()) + part(2, value.encode())) for key, value in entries.items())
    weights = part(5, number(1, 12) + number(2, 1) + part(8, b"w") + places + number(14, 1))
    return GRAPH[: GRAPH.index(BODY)] + part(7, weights + BODY[2:])


ENVIRONMENT = """\
backend: "python"
parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }
"""


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (tar_gz(), ""),
        (POINTER, "which is a Git LFS pointer"),
        (PAGE, "which is an HTML page"),
        (tar_gz()[:-1000], "which is cut off"),
        (tar_gz()[:300], "which is cut off"),
        (gzip.compress(b"no tar archive" * 99), "which is a gzip file of something else"),
        (zipped("bin/activate"), ""),
        (zipped("bin/activate")[:60], "which is cut off"),
        (b"", "which is no archive"),
    ],
    ids=named,
)
def test_an_execution_environment_is_an_archive_and_whole(tmp_path: Path, content: bytes, found: str) -> None:
    files = {"1/model.py": PYTHON.encode(), "env.tar.gz": content}
    findings = _found(_folder(tmp_path, ENVIRONMENT, files))
    assert [found in each.found for each in findings] == ([True] if found else []), findings


def test_of_a_large_environment_the_end_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.model_files.file_formats.LARGEST_READ_WHOLE", 1000)
    files = {"1/model.py": PYTHON.encode(), "env.tar.gz": tar_gz()}
    assert _found(_folder(tmp_path / "whole", ENVIRONMENT, files)) == []
    (finding,) = _found(_folder(tmp_path / "half", ENVIRONMENT, files | {"env.tar.gz": tar_gz()[:-1000]}))
    assert "does not end as a gzip file" in finding.found


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("1/w.safetensors", safetensors(), ""),
        ("1/w.safetensors", POINTER, "is a Git LFS pointer"),
        ("1/w.safetensors", safetensors()[:-1], "is cut off: "),
        ("1/w.safetensors", safetensors()[:20], "is cut off: "),
        ("1/tokenizer.json", POINTER, "is a Git LFS pointer"),
        ("1/page.html", PAGE, ""),
        ("1/w.bin", PAGE, "is an HTML page"),
        ("1/w.bin", b"/annex/objects/SHA256E-s12--4d7a\n", "is a git-annex pointer"),
        ("1/w.bin", b"Entry not found", "is an error that a model hub answered with"),
        ("1/w.bin", b"", ""),
        ("1/w.npz", zipped("w.npy")[:-20], "is cut off"),
        ("1/w.npy", b"PK\x03\x04", "is a zip file"),
        ("1/w.gguf", PAGE, "is an HTML page"),
        ("1/w.h5", b"\x89HDF\r\n\x1a\n", ""),
        ("1/w.tar.gz", tar_gz()[:-9], "is cut off"),
        ("1/w.txt.gz", gzip.compress(b"words"), ""),
    ],
    ids=named,
)
def test_a_file_in_the_model_folder_is_what_its_name_claims(
    tmp_path: Path, name: str, content: bytes, found: str
) -> None:
    root = _folder(tmp_path, 'backend: "python"', {"1/model.py": PYTHON.encode(), name: content})
    findings = [each for each in lint_folder(root) if each.file.name != "config.pbtxt"]
    assert [(each.rule, found in each.found) for each in findings] == ([("other-file-content", True)] if found else [])
