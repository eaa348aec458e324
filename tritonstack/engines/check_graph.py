"""Writes the small graph of ``make gpu-check`` and ONNX Runtime's answer to one input.

    python -P check_graph.py GRAPH.onnx INPUT.npy ANSWER.npy

Runs in the environment of the exporters. The graph is a layer of a network, ``y = relu(x · w + b)``, its weights drawn
from a seed: large enough that a GPU's arithmetic shows, small enough to build in seconds.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH, ANSWERS, SEED = 64, 16, 7
OPSET, IR_VERSION = 17, 8  # what the oldest release's TensorRT (8.5) reads


def main(graph: str, given: str, answer: str) -> int:
    """Write the three files."""
    random = np.random.default_rng(SEED)
    weights = {
        "w": random.normal(0, WIDTH**-0.5, (WIDTH, ANSWERS)).astype(np.float32),
        "b": random.normal(0, 0.1, ANSWERS).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])
        for name, width in (("x", WIDTH), ("y", ANSWERS))
    ]
    initialisers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    made = helper.make_graph(nodes, "layer", tensors[:1], tensors[1:], initialisers)
    opset = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(made, opset_imports=opset, ir_version=IR_VERSION), graph)
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    x = random.normal(0, 1, (4, WIDTH)).astype(np.float32)
    np.save(given, x)
    np.save(answer, session.run(["y"], {"x": x})[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
