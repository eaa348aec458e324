"""Train the digit classifier, prove its accuracy on held-out images, export it to ONNX and prove the export.

    python export.py --target FOLDER --options JSON --report FILE [--sample FILE.npz]

Runs in the environment ``exporters``. The loss is convex and the split is seeded, so every run gives the same model.
Data: the 1,797 images that ship with scikit-learn (UCI, Optical Recognition of Handwritten Digits, test set).
"""

# ruff: noqa: T201 - `tritonstack build` shows these lines

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import skl2onnx
import sklearn
from onnx import TensorProto, helper
from skl2onnx.common.data_types import FloatTensorType
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler

MODEL = Path("digits-onnx/1/model.onnx")
OPSET = 17


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--options", type=json.loads, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--sample", type=Path, help="not needed: the images that are held out are the samples")
    arguments = parser.parse_args()
    recipe = arguments.options
    options = recipe["options"]

    digits = load_digits()
    images = digits.data.astype(np.float32)
    seen, held_out, seen_labels, held_out_labels = train_test_split(
        images, digits.target, test_size=options["held_out"], random_state=recipe["seed"], stratify=digits.target
    )
    print(f"training on {len(seen)} images, {len(held_out)} held out", flush=True)
    classifier = train(seen, seen_labels, regularisation=options["regularisation"])
    accuracy = float(classifier.score(held_out, held_out_labels))
    print(f"accuracy on held-out images: {accuracy:.4f}", flush=True)

    path = arguments.target / MODEL
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_onnx(classifier).SerializeToString(deterministic=True))
    difference = prove(path, classifier, held_out, tolerance=recipe["tolerance"])
    print(f"largest difference to scikit-learn: {difference:.2e}", flush=True)

    figures = {"accuracy": accuracy, "held_out_images": len(held_out), "largest_difference": difference}
    modules = (np, onnx, onnxruntime, skl2onnx, sklearn)
    tools = {module.__name__: module.__version__ for module in modules}
    arguments.report.write_text(json.dumps({"figures": figures, "tools": tools}))
    return 0


def train(images: np.ndarray, labels: np.ndarray, *, regularisation: float) -> Pipeline:
    """A linear classifier on pixels scaled to 0 … 1. ``images``: FP32 [n, 64], values 0 … 16."""
    classifier = make_pipeline(MaxAbsScaler(), LogisticRegression(C=regularisation, max_iter=1000))
    return classifier.fit(images, labels)


def to_onnx(classifier: Pipeline) -> onnx.ModelProto:
    """``pixels`` FP32 [-1, 64] → ``label`` INT64 [-1, 1], ``probabilities`` FP32 [-1, 10].

    skl2onnx gives labels of shape [-1]; Triton's batching wants a dimension after the batch's.
    """
    model = skl2onnx.convert_sklearn(
        classifier,
        name="digits",
        initial_types=[("pixels", FloatTensorType([None, 64]))],
        options={"zipmap": False},
        target_opset=OPSET,
    )
    graph = model.graph
    for node in graph.node:
        node.output[:] = ["flat_label" if name == "label" else name for name in node.output]
    graph.initializer.append(helper.make_tensor("column", TensorProto.INT64, [2], [-1, 1]))
    graph.node.append(helper.make_node("Reshape", ["flat_label", "column"], ["label"], name="label_as_column"))
    outputs = {output.name: output for output in graph.output}
    outputs["label"].CopyFrom(helper.make_tensor_value_info("label", TensorProto.INT64, ["batch", 1]))
    onnx.checker.check_model(model, full_check=True)
    return model


def prove(path: Path, classifier: Pipeline, images: np.ndarray, *, tolerance: float) -> float:
    """Compare ONNX Runtime with scikit-learn, one image alone and all at once.

    Returns the largest difference of a probability; ends the export where it is above ``tolerance`` or a label differs.
    """
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    largest = 0.0
    for batch in (images[:1], images):
        labels, probabilities = session.run(["label", "probabilities"], {"pixels": batch})
        difference = float(np.abs(probabilities - classifier.predict_proba(batch)).max())
        if not difference <= tolerance:
            sys.exit(f"tensor probabilities, batch {len(batch)}: differs by {difference:.2e}, allowed {tolerance:.2e}")
        if not np.array_equal(labels[:, 0], classifier.predict(batch)):
            sys.exit(f"tensor label, batch {len(batch)}: differs from scikit-learn's")
        largest = max(largest, difference)
    return largest


if __name__ == "__main__":
    sys.exit(main())
