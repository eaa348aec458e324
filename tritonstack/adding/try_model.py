"""Tries an ONNX or TorchScript file: shapes of its outputs, whether its first axis is a batch, values that it takes.

    python -P try_model.py PLAN.json RESULT.json

Runs in the environment ``exporters`` (ONNX) or ``torch`` (TorchScript): standard library, NumPy, and their libraries.
PLAN: ``file``; ``is_onnx``; ``tensors``, KServe's in the order of the arguments, whose values every request repeats;
``attempts``, each the tensors' shapes in a request (``one``), in one of several rows (``rows``, absent where the first
axis is no batch) and in one with longer free axes (``longer``), of which the first that the model takes counts;
``repaired``, where to write an ONNX graph if outputs declare no shape, or a fixed first axis although it is the batch,
as those of onnxmltools do. RESULT: ``attempt``, its index; ``answers``, the outputs' names, types and shapes for each
request, null where the model does not take it; ``batches``, ``repaired`` and ``differs`` (names of outputs), ``values``
by input; or ``failure`` of the first attempt, where the model takes none, and ``lacks_memory``.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, "np.ndarray[Any, Any]"]
Model = Callable[[Arrays], Arrays]

TYPES = {"BOOL": "bool", "FP16": "float16", "FP32": "float32", "FP64": "float64", "BYTES": "object"}
"""Types whose name in NumPy is not their own in lower case."""

CATEGORIES = ("cats_strings", "cats_int64s", "keys_strings", "keys_int64s")
"""Attributes of OneHotEncoder and LabelEncoder: the values that they know, and may refuse others than."""

PASSING = frozenset({
    "ArrayFeatureExtractor", "Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze",
    "StringNormalizer", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators that pass values on as they are."""


def main(task_file: str, result_file: str) -> int:
    """Read the task, write what the model gave, or why it failed."""
    task = json.loads(Path(task_file).read_text())
    try:
        result = tried(task)
    except Exception as error:  # noqa: BLE001  (whatever the model raises)
        # Of TorchScript's own traceback the last line has the reason, with the error's type before it.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        name = type(error).__name__
        reason = f"{name}: {lines[-1].removeprefix(f'{name}: ') if lines else 'no reason given'}"
        result = {"failure": reason, "lacks_memory": lacks_memory(error)}
    Path(result_file).write_text(json.dumps(result))
    return 0


def lacks_memory(error: Exception) -> bool:
    """Whether an error is about memory: Python's own, C++'s, ONNX Runtime's or PyTorch's."""
    texts = ("bad_alloc", "failed to allocate memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(text in str(error).lower() for text in texts)


def tried(task: dict[str, Any]) -> dict[str, Any]:
    """The answers to the requests of the first attempt that works; raises what the model raises for the first one."""
    graph = importlib.import_module("onnx").load(task["file"], load_external_data=False) if task["is_onnx"] else None
    run = torchscript_model(task["file"]) if graph is None else onnx_model(task["file"])
    values = {} if graph is None else known_values(graph)
    pools = {each["name"]: pool_of(each, values) for each in task["tensors"]}
    index, first = first_answer(run, pools, task["attempts"])
    attempt = {name: request_of(pools, shapes) for name, shapes in task["attempts"][index].items()}
    again = run(attempt["one"])
    differs = [name for name, array in first.items() if not same_values(array, again[name])]
    others = {name: answer_or_none(run, request) for name, request in attempt.items() if name != "one"}
    batches = "rows" in attempt and answers_by_row(run, attempt["rows"], others["rows"], differs=differs)
    repaired = [] if graph is None else declare_shapes(graph, first, batches=batches)
    if repaired:
        importlib.import_module("onnx").save(graph, task["repaired"])
    answers = [first, *others.values()]
    stated = [None if answer is None else [form(*each) for each in answer.items()] for answer in answers]
    result = {"attempt": index, "answers": stated, "batches": batches}
    return result | {"repaired": repaired, "values": values, "differs": differs}


def first_answer(run: Model, pools: Arrays, attempts: list[dict[str, Any]]) -> tuple[int, Arrays]:
    """The index of the first attempt that the model takes, and its answer. Raises what it raises for the first one."""
    try:
        return 0, run(request_of(pools, attempts[0]["one"]))
    except Exception as error:
        if lacks_memory(error):
            raise
        for index, attempt in enumerate(attempts[1:], 1):
            answer = answer_or_none(run, request_of(pools, attempt["one"]))
            if answer is not None:
                return index, answer
        raise


def onnx_model(file: str) -> Model:
    onnxruntime = importlib.import_module("onnxruntime")
    onnxruntime.set_default_logger_severity(4)  # it warns of each wrong shape
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda request: dict(zip(names, session.run(names, request), strict=True))


def torchscript_model(file: str) -> Model:
    """A TorchScript file; outputs have the names that Triton's backend gives them: their keys, else by position."""
    torch = importlib.import_module("torch")
    module = torch.jit.load(file, map_location="cpu").eval()

    def run(request: Arrays) -> Arrays:
        with torch.inference_mode():
            result = module(*map(torch.from_numpy, request.values()))
        if not isinstance(result, Mapping):
            results = [result] if isinstance(result, torch.Tensor) else list(result)
            result = {f"OUTPUT__{index}": value for index, value in enumerate(results)}
        return {str(name): value.numpy() for name, value in result.items()}

    return run


def answer_or_none(run: Model, request: Arrays) -> Arrays | None:
    """The answer to a request of another shape, which is only tried."""
    try:
        return run(request)
    except Exception:  # noqa: BLE001  (whatever the model raises)
        return None


def answers_by_row(run: Model, request: Arrays, together: Arrays | None, *, differs: list[str]) -> bool:
    """Whether the answer to several rows is the answers to each row by itself.

    ``differs``: outputs with other values in every run, of which the shapes alone are compared.
    """
    rows = min(map(len, request.values()))
    alone = [answer_or_none(run, {key: array[row : row + 1] for key, array in request.items()}) for row in range(rows)]
    if together is None or None in alone:
        return False
    return all(
        same_rows(array, [answer[name] for answer in alone if answer], shapes_only=name in differs)
        for name, array in together.items()
    )


def same_rows(together: np.ndarray[Any, Any], alone: list[np.ndarray[Any, Any]], *, shapes_only: bool) -> bool:
    if any(array.ndim == 0 or len(array) != 1 or array.shape != alone[0].shape for array in alone):
        return False
    expected = np.concatenate(alone)
    return together.shape == expected.shape and (shapes_only or same_values(together, expected))


def same_values(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are the same but for rounding."""
    if one.shape != other.shape:
        return False
    if np.issubdtype(one.dtype, np.floating):
        return bool(np.allclose(one, other, rtol=1e-2, atol=1e-3, equal_nan=True))
    return bool((one == other).all())


def form(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An output's name, type and shape. Raises ValueError for a type that Triton has no name for."""
    names = {kind: name for name, kind in TYPES.items()}
    datatype = names.get(array.dtype.name) or array.dtype.name.upper()
    if not datatype.startswith(("BOOL", "FP", "INT", "UINT", "BYTES")):
        raise ValueError(f"output {name} is {array.dtype}, which Triton has no type for")
    return {"name": name, "datatype": datatype, "shape": list(array.shape)}


def declare_shapes(model: Any, answer: Arrays, *, batches: bool) -> list[str]:
    """Give outputs the axes that they have: all where none are declared, a free first one where that is the batch.

    Returns the names of those that were declared otherwise.
    """
    symbol = model.graph.input[0].type.tensor_type.shape.dim[0].dim_param if batches else ""
    wrong = []
    for output in model.graph.output:
        declared = output.type.tensor_type
        if not declared.HasField("shape"):
            declared.shape.SetInParent()
            for _ in answer[output.name].shape:
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
        for attribute in node.attribute:
            if attribute.name in CATEGORIES:
                values = [each.decode() for each in attribute.strings] or list(attribute.ints)
                for name in sources:
                    found.setdefault(name, []).extend(values)
        if node.op_type in PASSING:
            origins |= dict.fromkeys(node.output, sources)
    return found


def pool_of(tensor: dict[str, Any], known: Mapping[str, list[Any]]) -> np.ndarray[Any, Any]:
    """The values of a tensor of the task; of an input whose values are known, those."""
    kind = np.dtype(TYPES.get(tensor["datatype"], tensor["datatype"].lower()))
    return np.array(known.get(tensor["name"]) or tensor["data"], kind)


def request_of(pools: Arrays, shapes: list[list[int]]) -> Arrays:
    """A request of these shapes, whose values are repeated in turn."""
    return {name: np.resize(pool, shape) for (name, pool), shape in zip(pools.items(), shapes, strict=True)}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
