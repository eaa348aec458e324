"""Makes the model that is bound by memory traffic: products with square matrices, whose weights no cache holds.

Run by the exporters' interpreter, which has ``onnx``: ``memory_bound.py TARGET``. Each run reads every weight once,
however many rows it has: eight matrices of 2048 by 2048 in FP32 are 134 MB.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, LAYERS, OPSET, SEED = 2048, 8, 17, 0


def main(target: str) -> None:
    """Write the graph."""
    dice = np.random.default_rng(SEED)
    weights, nodes, name = [], [], "x"
    for layer in range(LAYERS):
        matrix = (dice.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(matrix, f"w{layer}"))
        following = "y" if layer == LAYERS - 1 else f"h{layer}"
        nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [following]))
        name = following
    ends = [helper.make_tensor_value_info(each, TensorProto.FLOAT, ["batch", WIDTH]) for each in ("x", "y")]
    graph = helper.make_graph(nodes, "memory_bound", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9), target)


if __name__ == "__main__":
    main(sys.argv[1])
