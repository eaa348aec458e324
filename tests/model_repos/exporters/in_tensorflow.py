"""Runs in the environment ``tensorflow``: ``python in_tensorflow.py FOLDER TASK …``, each task in a folder of its own.

Prints what the tasks give, as JSON, as ``in_torch.py`` does.
"""

# mypy: ignore-errors
# TensorFlow is not in the environment that checks types.

import numpy as np
from torch_environment import main

from _exporters import graphdef
from _exporters.cases import Case
from _exporters.graphdef import tf
from _exporters.script import Graph, Tensor

X = Tensor("x", "FP32", ("batch", 4))
Y = Tensor("Model/y", "FP32", ("batch", 2))
GRAPH = Graph(0, (X,), (Y,))
WEIGHT = np.arange(8, dtype=np.float32).reshape(4, 2)


def linear(inputs):
    return {"Model/y": tf.matmul(inputs["x"], tf.constant(WEIGHT))}


def cases():
    for size in (1, 3):
        x = np.ones((size, 4), np.float32)
        yield Case(f"batch {size}", {"x": x}, {"Model/y": x @ WEIGHT})


def exported(folder):
    graphdef.export(linear, GRAPH, folder / "model.graphdef")
    return folder / "model.graphdef"


def export(folder):
    path = exported(folder)
    definition = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    nodes = {node.name: node for node in definition.node}
    return {
        "difference": graphdef.prove(path, GRAPH, cases(), tolerance=0.0),
        "placeholders": [node.name for node in definition.node if node.op == "Placeholder"],
        "attributes": sorted(nodes["MatMul"].attr),
        "output": nodes["Model/y"].op,
        "devices": sorted({node.device for node in definition.node}),
    }


def export_variable(folder):
    def build(inputs):
        weight = tf.compat.v1.get_variable("weight", initializer=WEIGHT)
        return {"Model/y": tf.matmul(inputs["x"], weight)}

    graphdef.export(build, GRAPH, folder / "model.graphdef")


def export_of_another_shape(folder):
    wide = Graph(0, (X,), (Tensor("Model/y", "FP32", ("batch", 3)),))
    graphdef.export(linear, wide, folder / "model.graphdef")


if __name__ == "__main__":
    main(globals())
