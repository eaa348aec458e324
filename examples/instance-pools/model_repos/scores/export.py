"""Write the ONNX graph scores = softmax(features·W), with seeded weights, and NumPy's response to the sample request.

    python export.py --target FOLDER --options JSON --report FILE --sample FILE.npz

Runs in the environment ``exporters``.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--options", type=json.loads, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--sample", type=Path, required=True)
    given = parser.parse_args()
    weights = np.random.default_rng(given.options["seed"]).standard_normal((8, 5)).astype(np.float32)

    model = given.target / "scores/1/model.onnx"
    model.parent.mkdir(parents=True, exist_ok=True)
    model.write_bytes(graph(weights, given.options["graph"]).SerializeToString(deterministic=True))

    with np.load(given.sample) as sample:
        powers = np.exp(sample["features"] @ weights)
    scores = powers / powers.sum(axis=1, keepdims=True)
    output = {"name": "scores", "datatype": "FP32", "shape": list(scores.shape), "data": scores.tolist()}
    (given.target / "sample").mkdir(exist_ok=True)
    (given.target / "sample/answer.json").write_text(json.dumps({"outputs": [output]}))
    tools = {"numpy": np.__version__, "onnx": onnx.__version__}
    given.report.write_text(json.dumps({"figures": {}, "tools": tools}))
    return 0


def graph(weights: np.ndarray, options: dict) -> onnx.ModelProto:
    [features], [scores] = options["inputs"], options["outputs"]
    nodes = [
        helper.make_node("MatMul", [features["name"], "weights"], ["products"]),
        helper.make_node("Softmax", ["products"], [scores["name"]], axis=1),
    ]
    tensors = [
        helper.make_tensor_value_info(each["name"], TensorProto.FLOAT, each["shape"]) for each in (features, scores)
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "scores", tensors[:1], tensors[1:], [numpy_helper.from_array(weights, "weights")]),
        opset_imports=[helper.make_opsetid("", options["opset"])],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    sys.exit(main())
