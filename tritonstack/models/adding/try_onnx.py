"""Tries an ONNX file with two rows: shapes, whether its first axis is a batch, the values that its encoders know.

    python -P try_onnx.py PLAN.json RESULT.json

Runs in the environment ``exporters``: standard library, NumPy, ONNX and ONNX Runtime only. PLAN: ``file``; ``request``,
KServe's tensors; ``rows``, how many the first axis has if it is the batch, else 0; ``repaired``, where to write the
graph if outputs declare no shape, or a fixed first axis although it is the batch, as those of onnxmltools do. RESULT:
``shapes`` of one row by output, ``batches``, ``repaired`` (names of outputs), ``values`` by input; or ``failure``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

Arrays = dict[str, "np.ndarray[Any, Any]"]
TYPES = {"BOOL": "bool", "FP16": "float16", "FP32": "float32", "FP64": "float64", "BYTES": "object"}
"""Types whose name in NumPy is not their own in lower case."""

CATEGORIES = ("cats_strings", "cats_int64s", "keys_strings", "keys_int64s")
"""Attributes of OneHotEncoder and LabelEncoder: the values that they know, and may refuse others than."""

PASSING = frozenset({
    "ArrayFeatureExtractor", "Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze",
    "StringNormalizer", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that pass values on as they are."""


def main(plan_file: str, result_file: str) -> int:
    """Read the plan, write what was found, or why the graph does not run."""
    plan = json.loads(Path(plan_file).read_text())
    try:
        result = tried(plan)
    except Exception as error:  # noqa: BLE001  (whatever the graph raises)
        result = {"failure": f"{type(error).__name__}: {error}"}
    Path(result_file).write_text(json.dumps(result))
    return 0


def tried(plan: dict[str, Any]) -> dict[str, Any]:
    """Run the graph for each row, and for all of them."""
    onnxruntime.set_default_logger_severity(4)  # it warns of each wrong shape
    model = onnx.load(plan["file"], load_external_data=False)
    values = known_values(model)
    request = {each["name"]: array_of(each, values.get(each["name"])) for each in plan["request"]}
    session = onnxruntime.InferenceSession(plan["file"], providers=["CPUExecutionProvider"])
    names, rows = [output.name for output in session.get_outputs()], plan["rows"]
    split = [{key: array[row : row + 1] for key, array in request.items()} for row in range(rows)] or [request]
    alone = [session.run(names, each) for each in split]
    found: dict[str, Any] = {"shapes": dict(zip(names, (list(array.shape) for array in alone[0]), strict=True))}
    found |= {"values": values, "batches": rows > 0 and answers_by_row(session, request, alone), "repaired": []}
    found["repaired"] = declare_shapes(model, found["shapes"], batches=found["batches"])
    if found["repaired"]:
        onnx.save(model, plan["repaired"])
    return found


def answers_by_row(session: Any, request: Arrays, alone: list[list[Any]]) -> bool:
    """Whether an answer to several rows is the answers to each row by itself."""
    try:
        together = session.run(None, request)
    except Exception:  # noqa: BLE001  (whatever the graph raises: it takes one row alone)
        return False
    return all(map(same_rows, together, zip(*alone, strict=True)))


def same_rows(together: np.ndarray[Any, Any], alone: tuple[np.ndarray[Any, Any], ...]) -> bool:
    """The same for one output."""
    if any(array.ndim == 0 or len(array) != 1 or array.shape != alone[0].shape for array in alone):
        return False
    expected = np.concatenate(alone)
    if together.shape != expected.shape:
        return False
    if np.issubdtype(together.dtype, np.floating):
        return bool(np.allclose(together, expected, rtol=1e-2, atol=1e-3, equal_nan=True))
    return bool((together == expected).all())


def declare_shapes(model: Any, shapes: dict[str, list[int]], *, batches: bool) -> list[str]:
    """Give outputs the axes that they have: all where none are declared, a free first one where that is the batch.

    Returns the names of those that were declared otherwise.
    """
    symbol = model.graph.input[0].type.tensor_type.shape.dim[0].dim_param if batches else ""
    wrong = []
    for output in model.graph.output:
        declared = output.type.tensor_type
        if not declared.HasField("shape"):
            declared.shape.SetInParent()
            for _ in shapes[output.name]:
                declared.shape.dim.add()
        elif not (batches and declared.shape.dim and declared.shape.dim[0].HasField("dim_value")):
            continue
        if batches and declared.shape.dim:
            declared.shape.dim[0].dim_param = symbol or "batch"
        wrong.append(output.name)
    return wrong


def known_values(model: Any) -> dict[str, list[Any]]:
    """Input → the values that the encoders behind it know, where they can be followed from it."""
    origins = {each.name: {each.name} for each in model.graph.input}
    found: dict[str, list[Any]] = {}
    for node in model.graph.node:  # in order: each after what it takes
        sources = set().union(*(origins.get(name, set()) for name in node.input))
        listed = [attribute for attribute in node.attribute if attribute.name in CATEGORIES]
        for attribute in listed:
            values = [each.decode() for each in attribute.strings] or list(attribute.ints)
            for name in sources:
                found.setdefault(name, []).extend(values)
        if node.op_type in PASSING:
            origins |= dict.fromkeys(node.output, sources)
    return found


def array_of(tensor: dict[str, Any], values: list[Any] | None) -> np.ndarray[Any, Any]:
    """A tensor of the plan; of an input whose values are known, those in turn."""
    kind = np.dtype(TYPES.get(tensor["datatype"], tensor["datatype"].lower()))
    if values:
        return np.resize(np.array(values, kind), tensor["shape"])
    return np.array(tensor["data"], kind).reshape(tensor["shape"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
