"""Answers one request with a built model repository, outside Triton.

    python -P prover.py PLAN.json RESULT.json

Runs in the environment of the exporters: standard library, NumPy and ONNX Runtime only. It stands in for Triton
while an archive of ONNX graphs is built: they run in ONNX Runtime on the CPU, ensembles step by step. It does not
batch, queue or schedule. What has a Python model is answered by the local Triton.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Arrays = dict[str, "np.ndarray[Any, Any]"]

NUMPY_TYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": np.object_,
} | {f"{sign}INT{bits}": np.dtype(f"{sign}int{bits}".lower()).type for sign in ("", "U") for bits in (8, 16, 32, 64)}


class ProofError(Exception):
    """The repository does not answer as configured; the message names model and tensor."""


def main(task_file: str, result_file: str) -> int:
    """Read the task, write the outputs or the reason of the failure."""
    task = json.loads(Path(task_file).read_text())
    request = {tensor["name"]: decode(tensor) for tensor in task["request"]}
    try:
        outputs = run(task["models"], task["model"], inputs=request)
        result: dict[str, Any] = {"outputs": [encode(name, array) for name, array in outputs.items()]}
    except ProofError as error:
        result = {"failure": str(error)}
    result["tools"] = {"numpy": np.__version__, "onnxruntime": onnxruntime.__version__}
    Path(result_file).write_text(json.dumps(result))
    return 0


def run(models: Mapping[str, Any], name: str, *, inputs: Arrays) -> Arrays:
    """The outputs of one model; raises :class:`ProofError`."""
    model = models[name]
    runners = {"ensemble": run_ensemble, "onnxruntime": run_onnx}
    for tensor in model["inputs"]:
        if tensor["name"] in inputs:
            fits(f"{name}: input", tensor=tensor, array=inputs[tensor["name"]])
        elif not tensor["optional"]:
            raise ProofError(f"{name}: the input {tensor['name']} is missing")
    try:
        outputs = runners[model["backend"]](models, name, inputs=to_backend(model, inputs))
    except ProofError:
        raise
    except Exception as error:  # whatever ONNX Runtime raises is the graph's failure
        raise ProofError(f"{model['file']}: {type(error).__name__}: {error}") from error
    for tensor in model["outputs"]:
        if tensor["name"] not in outputs:
            raise ProofError(f"{name}: the output {tensor['name']} is missing")
        fits(f"{name}: output", tensor=tensor, array=outputs[tensor["name"]], shape=tensor["backend_shape"])
    return to_caller(model, outputs)


def to_backend(model: Mapping[str, Any], inputs: Arrays) -> Arrays:
    """The inputs in the shapes that ``reshape`` gives them: core src/infer_request.cc (Normalize)."""
    tensors = {tensor["name"]: tensor for tensor in model["inputs"]}
    return {
        name: reshaped(array, source=tensors[name]["shape"], target=tensors[name]["backend_shape"])
        if name in tensors
        else array
        for name, array in inputs.items()
    }


def to_caller(model: Mapping[str, Any], outputs: Arrays) -> Arrays:
    """The configured outputs in the shapes of their ``dims``: core src/infer_response.cc (Output::Reshape)."""
    return {
        tensor["name"]: reshaped(outputs[tensor["name"]], source=tensor["backend_shape"], target=tensor["shape"])
        for tensor in model["outputs"]
    }


def reshaped(array: np.ndarray[Any, Any], *, source: list[int], target: list[int]) -> np.ndarray[Any, Any]:
    """An array of one shape in another; the lengths that are free in both keep their values, in their order."""
    free = [length for length, given in zip(array.shape, source, strict=True) if given == -1]
    return array.reshape([free.pop(0) if length == -1 else length for length in target])


def fits(what: str, *, tensor: Mapping[str, Any], array: np.ndarray[Any, Any], shape: list[int] | None = None) -> None:
    """Raise unless an array has the type and shape that the configuration gives; ``shape``: instead of the caller's."""
    wanted, shape = NUMPY_TYPES[tensor["datatype"]], tensor["shape"] if shape is None else shape
    same = len(shape) == array.ndim and all(a in (-1, b) for a, b in zip(shape, array.shape, strict=False))
    if array.dtype != np.dtype(wanted) or not same:
        found = f"{array.dtype} {list(array.shape)}"
        raise ProofError(f"{what} {tensor['name']}: {found}, config.pbtxt says {tensor['datatype']} {shape}")


def run_ensemble(models: Mapping[str, Any], name: str, *, inputs: Arrays) -> Arrays:
    """Each step as soon as its inputs are there, as Triton's ensemble scheduler does."""
    tensors, waiting = dict(inputs), list(models[name]["steps"])
    while waiting:
        ready = [step for step in waiting if set(step["inputs"].values()) <= tensors.keys()]
        if not ready:
            raise ProofError(f"{name}: the steps {[step['model'] for step in waiting]} never get all their inputs")
        for step in ready:
            fed = {key: tensors[value] for key, value in step["inputs"].items()}
            outputs = run(models, step["model"], inputs=fed)
            tensors |= {value: outputs[key] for key, value in step["outputs"].items()}
            waiting.remove(step)
    return tensors


def run_onnx(models: Mapping[str, Any], name: str, *, inputs: Arrays) -> Arrays:
    """ONNX Runtime on the CPU; the linter has compared the graph with the configuration.

    A scalar of the graph is [1] in the configuration (onnxruntime_backend src/onnxruntime_utils.cc).
    """
    model = models[name]
    session = onnxruntime.InferenceSession(model["file"], providers=["CPUExecutionProvider"])
    scalars = {item.name for item in (*session.get_inputs(), *session.get_outputs()) if item.shape == []}
    names = [tensor["name"] for tensor in model["outputs"]]
    fed = {key: array.reshape(()) if key in scalars and array.shape == (1,) else array for key, array in inputs.items()}
    fed = {key: as_texts(array) if array.dtype == np.object_ else array for key, array in fed.items()}
    answers = dict(zip(names, session.run(names, fed), strict=True))
    return {name: array.reshape(1) if name in scalars and array.ndim == 0 else array for name, array in answers.items()}


def as_texts(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Elements as ``str``: of ``bytes`` ONNX Runtime would take Python's own notation, ``b'…'``."""
    texts = np.empty(array.size, np.object_)
    texts[:] = [item.decode() if isinstance(item, bytes) else item for item in array.reshape(-1)]
    return texts.reshape(array.shape)


def decode(tensor: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """A tensor of the task as an array; BYTES elements are base64."""
    if tensor["datatype"] == "BYTES":
        elements = np.empty(len(tensor["data"]), np.object_)
        elements[:] = [base64.b64decode(text) for text in tensor["data"]]
        return elements.reshape(tensor["shape"])
    return np.array(tensor["data"], NUMPY_TYPES[tensor["datatype"]]).reshape(tensor["shape"])


def encode(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An array as a tensor of the result; BYTES elements are base64."""
    datatype = next(key for key, kind in NUMPY_TYPES.items() if array.dtype == np.dtype(kind))
    flat = array.reshape(-1).tolist()
    if datatype == "BYTES":
        raw = [item.encode() if isinstance(item, str) else bytes(item) for item in flat]
        flat = [base64.b64encode(item).decode() for item in raw]
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "data": flat}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
