"""Writes the ONNX graphs that the tests serve: ``python onnx_models.py FOLDER``, with the exporters' interpreter."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import onnx
from onnx import TensorProto as T
from onnx import helper as h


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto],
    *,
    external: bool = False,
) -> None:
    """Check a graph and write it."""
    graph = h.make_graph(nodes, "graph", inputs, outputs, constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path, save_as_external_data=external, location="weights.bin", size_threshold=0)


def double(path: Path) -> None:
    """x [n, 3] → y = 2x, and for each row the number of rows of the run that computed it."""
    save(
        path,
        [
            h.make_node("Add", ["x", "x"], ["y"]),
            h.make_node("Shape", ["x"], ["shape"]),
            h.make_node("Gather", ["shape", "zero"], ["n"]),
            h.make_node("Concat", ["n", "one"], ["target"], axis=0),
            h.make_node("Expand", ["n", "target"], ["rows"]),
        ],
        [h.make_tensor_value_info("x", T.FLOAT, ["n", 3])],
        [h.make_tensor_value_info("y", T.FLOAT, ["n", 3]), h.make_tensor_value_info("rows", T.INT64, ["n", 1])],
        [h.make_tensor("zero", T.INT64, [1], [0]), h.make_tensor("one", T.INT64, [1], [1])],
    )


def types(path: Path) -> None:
    """Every input comes back: FP16, BYTES, INT64, BOOL."""
    kinds = {"half": T.FLOAT16, "text": T.STRING, "whole": T.INT64, "flag": T.BOOL}
    save(
        path,
        [h.make_node("Identity", [name], [f"{name}_out"]) for name in kinds],
        [h.make_tensor_value_info(name, kind, [f"n_{name}"]) for name, kind in kinds.items()],
        [h.make_tensor_value_info(f"{name}_out", kind, [f"n_{name}"]) for name, kind in kinds.items()],
        [],
    )


def table(path: Path) -> None:
    """index [n] → a row of a table, which is a file in the graph's folder; an index outside the table is an error."""
    save(
        path,
        [h.make_node("Gather", ["table", "index"], ["row"])],
        [h.make_tensor_value_info("index", T.INT64, ["n", 1])],
        [h.make_tensor_value_info("row", T.FLOAT, ["n", 1, 2])],
        [h.make_tensor("table", T.FLOAT, [3, 2], struct.pack("<6f", 0, 1, 10, 11, 20, 21), raw=True)],
        external=True,
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    double(folder / "double" / "model.onnx")
    types(folder / "types" / "model.onnx")
    table(folder / "table" / "model.onnx")
