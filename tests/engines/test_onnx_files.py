"""The files of a graph are found beside it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.lint.onnx_files import number, part, write_graph
from tritonstack.engines.export_step import graph_of, parts_of_graph, read_onnx
from tritonstack.errors import WorkFailedError


def _with_weights_in(name: str) -> bytes:
    entry = part(13, part(1, b"location") + part(2, name.encode()))
    return number(1, 8) + part(7, part(5, part(8, b"w") + entry))


def test_external_weights_are_parts_of_the_graph(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(b"weights")
    (tmp_path / "model.onnx").write_bytes(_with_weights_in("data/w.bin"))
    assert parts_of_graph(tmp_path / "model.onnx") == {
        "model.onnx": tmp_path / "model.onnx",
        "data/w.bin": tmp_path / "data/w.bin",
    }


@pytest.mark.parametrize("name", ["", "../w.bin", "/w.bin", "a/../../w.bin", "gone.bin"])
def test_weights_elsewhere_or_missing_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "w.bin").write_bytes(b"weights")
    (tmp_path / "version").mkdir()
    (tmp_path / "version/model.onnx").write_bytes(_with_weights_in(name))
    with pytest.raises(WorkFailedError, match="which is no file beside the graph"):
        parts_of_graph(tmp_path / "version/model.onnx")


def test_the_graph_is_model_onnx_or_the_only_one(tmp_path: Path) -> None:
    assert graph_of(tmp_path) is None
    (tmp_path / "net.onnx").write_bytes(b"")
    assert graph_of(tmp_path) == tmp_path / "net.onnx"
    (tmp_path / "other.onnx").write_bytes(b"")
    assert graph_of(tmp_path) is None
    (tmp_path / "model.onnx").write_bytes(b"")
    assert graph_of(tmp_path) == tmp_path / "model.onnx"


def test_what_is_no_graph_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff")
    for read in (read_onnx, parts_of_graph):
        with pytest.raises(WorkFailedError, match=r"model\.onnx: no ONNX graph"):
            read(tmp_path / "model.onnx")
    write_graph(tmp_path / "model.onnx", {"inputs": [{"name": "x", "dtype": "FP32", "shape": [1]}], "outputs": []})
    assert [tensor.name for tensor in read_onnx(tmp_path / "model.onnx").inputs] == ["x"]
