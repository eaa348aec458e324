"""Write the ONNX graph y = relu(x·W + b) with seeded weights, and NumPy's response to the sample request.

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
    arguments = parser.parse_args()
    options = arguments.options
    random = np.random.default_rng(options["seed"])
    weights = random.standard_normal((4, 3)).astype(np.float32)
    bias = random.standard_normal(3).astype(np.float32)

    path = arguments.target / "tiny-engine/1/model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph(weights, bias, options["graph"]).SerializeToString(deterministic=True))

    with np.load(arguments.sample) as sample:
        expected = np.maximum(sample["x"] @ weights + bias, 0)
    tensor = {"name": "y", "datatype": "FP32", "shape": list(expected.shape), "data": expected.tolist()}
    (arguments.target / "sample").mkdir(exist_ok=True)
    (arguments.target / "sample/answer.json").write_text(json.dumps({"outputs": [tensor]}))
    tools = {"numpy": np.__version__, "onnx": onnx.__version__}
    arguments.report.write_text(json.dumps({"figures": {}, "tools": tools}))
    return 0


def graph(weights: np.ndarray, bias: np.ndarray, options: dict) -> onnx.ModelProto:
    (given,), (made,) = options["inputs"], options["outputs"]
    nodes = [
        helper.make_node("Gemm", [given["name"], "weights", "bias"], ["sums"]),
        helper.make_node("Relu", ["sums"], [made["name"]]),
    ]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "tiny",
            [helper.make_tensor_value_info(given["name"], TensorProto.FLOAT, given["shape"])],
            [helper.make_tensor_value_info(made["name"], TensorProto.FLOAT, made["shape"])],
            [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(bias, "bias")],
        ),
        opset_imports=[helper.make_opsetid("", options["opset"])],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    sys.exit(main())
