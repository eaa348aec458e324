"""Turns an ONNX graph's weights and arithmetic into FP16; its inputs and outputs keep their types.

    python -P half_graph.py GRAPH.onnx TARGET.onnx

Runs in the environment of the exporters. A strongly typed network (the only kind from TensorRT 11 on) computes in the
types of its graph, so that its precision is made here. The conversion is ONNX Runtime's own
(``onnxruntime.transformers.float16``): weights beyond FP16's range are cut to it, and operators without an FP16 form
stay in FP32 between casts.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import onnx
from onnxruntime.transformers.float16 import convert_float_to_float16

LARGEST_MESSAGE = 2**31 - 1
"""Bytes of the largest protobuf message: a larger graph has its weights in a second file."""


def main(source: str, target: str) -> int:
    """Convert one file; 1 with a sentence where nothing of the graph could be turned into FP16."""
    logging.basicConfig(level=logging.ERROR)
    warnings.filterwarnings("ignore", category=UserWarning)  # a line for each weight that is cut: counted below instead
    graph = onnx.load(source)
    before = floats_of(graph)
    half: Any = convert_float_to_float16(graph, keep_io_types=True)
    changed = before - floats_of(half)
    if changed <= 0:
        sys.stdout.write(f"{source}: none of its {before} FP32 weights could be turned into FP16\n")
        return 1
    sys.stdout.write(f"{changed} of {before} FP32 weights are FP16 now\n")
    large = half.ByteSize() > LARGEST_MESSAGE
    onnx.save(half, target, save_as_external_data=large, location=Path(target).name + ".data" if large else None)
    return 0


def floats_of(graph: Any) -> int:
    """Number of FP32 initialisers and constants of a graph."""
    kinds = [tensor.data_type for tensor in graph.graph.initializer]
    kinds += [
        attribute.t.data_type
        for node in graph.graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    ]
    return sum(kind == onnx.TensorProto.FLOAT for kind in kinds)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
