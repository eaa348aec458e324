"""Writes the small graph of ``make gpu-check``: a layer of a network, ``y = relu(x · w + b)``.

    python -P check_graph.py GRAPH.onnx

Runs in the environment of the exporters. The weights are drawn from a seed: enough of them that a GPU's arithmetic
shows, few enough to build in seconds.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, CLASSES, SEED = 64, 16, 7
OPSET, IR_VERSION = 17, 8  # what the oldest release's TensorRT (8.5) reads

if __name__ == "__main__":
    random = np.random.default_rng(SEED)
    weights = {
        "w": random.normal(0, WIDTH**-0.5, (WIDTH, CLASSES)).astype(np.float32),
        "b": random.normal(0, 0.1, CLASSES).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width])
        for name, width in (("x", WIDTH), ("y", CLASSES))
    ]
    initialisers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "layer", tensors[:1], tensors[1:], initialisers)
    opset = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION), sys.argv[1])
