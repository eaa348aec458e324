"""Train a digit classifier, quantise it to INT8 with the ranges of the training images, and write it as ONNX.

    python export.py --target FOLDER --options JSON --report FILE

Runs in the environment ``exporters``. Data: the 1,797 images that ship with scikit-learn (UCI, Optical Recognition of
Handwritten Digits, test set). The loss is convex and the split is seeded, so every run gives the same graph.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import sklearn
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

WHITE_TO_INK = 16
"""Grey values of a pixel; the classifier is trained on 0 to 1, and its weights are scaled back."""
STEPS = 127
"""Of INT8 on either side of zero: TensorRT quantises symmetrically, so zero points are 0."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--options", type=json.loads, required=True)
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()
    recipe, target = arguments.options, arguments.target

    digits = load_digits()
    split = {"test_size": recipe["options"]["held_out"], "random_state": recipe["seed"], "stratify": digits.target}
    seen, held_out, seen_labels, labels = train_test_split(digits.data.astype(np.float32), digits.target, **split)
    classifier = LogisticRegression(max_iter=2000).fit(seen / WHITE_TO_INK, seen_labels)
    model = quantised(
        weights=(classifier.coef_.T / WHITE_TO_INK).astype(np.float32),
        bias=classifier.intercept_.astype(np.float32),
        largest_pixel=float(seen.max()),
        opset=recipe["graph"]["opset"],
    )
    path = target / "digits-int8/1/model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [given] = session.run(None, {"pixels": held_out})
    expected = classifier.predict_proba(held_out / WHITE_TO_INK)
    figures = {
        "accuracy": float((given.argmax(axis=1) == labels).mean()),
        "accuracy_fp32": float((expected.argmax(axis=1) == labels).mean()),
        "quantisation_difference": float(np.abs(given - expected).max()),
    }
    print(figures, flush=True)  # noqa: T201  `tritonstack build` shows it

    (target / "sample").mkdir(exist_ok=True)
    for file, key, name, array in (
        ("request.json", "inputs", "pixels", held_out[:1]),
        ("answer.json", "outputs", "probabilities", expected[:1]),
    ):
        tensor = {"name": name, "datatype": "FP32", "shape": list(array.shape), "data": array.ravel().tolist()}
        (target / "sample" / file).write_text(json.dumps({key: [tensor]}))
    tools = {module.__name__: module.__version__ for module in (np, onnx, onnxruntime, sklearn)}
    arguments.report.write_text(json.dumps({"figures": figures, "tools": tools}))


def quantised(*, weights: np.ndarray, bias: np.ndarray, largest_pixel: float, opset: int) -> onnx.ModelProto:
    """``pixels`` FP32 [batch, 64] → ``probabilities`` FP32 [batch, 10], its product in INT8.

    Pixels have one step, weights one for each digit. Weights are FP32 before their nodes: the builder folds them.
    """
    constants = {
        "weights": weights,
        "bias": bias,
        "pixels_step": np.float32(largest_pixel / STEPS),
        "pixels_zero": np.int8(0),
        "weights_step": np.abs(weights).max(axis=0) / STEPS,
        "weights_zero": np.zeros(weights.shape[1], np.int8),
    }
    nodes = []
    for name, axis in {"pixels": {}, "weights": {"axis": 1}}.items():
        step, zero = f"{name}_step", f"{name}_zero"
        nodes += [
            helper.make_node("QuantizeLinear", [name, step, zero], [f"{name}_int8"], **axis),
            helper.make_node("DequantizeLinear", [f"{name}_int8", step, zero], [f"{name}_read"], **axis),
        ]
    nodes += [
        helper.make_node("MatMul", ["pixels_read", "weights_read"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
    ]
    ends = {"pixels": weights.shape[0], "probabilities": weights.shape[1]}
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", length]) for name, length in ends.items()
    )
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "digits", [given], [made], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    main()
