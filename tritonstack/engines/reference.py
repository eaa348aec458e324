"""ONNX Runtime's answer to an engine's proof: what the engine's answer is measured against."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tritonclient.utils import triton_to_np_dtype

from tritonstack.errors import WorkFailedError
from tritonstack.models.lint.onnx_graph import GraphTensor, OnnxGraph
from tritonstack.models.programs import Report, run_script
from tritonstack.models.sample import PROOF_ENVIRONMENT, PROVER, to_tensors

Arrays = Mapping[str, NDArray[Any]]


def answer_of_graph(path: Path, graph: OnnxGraph, inputs: Arrays, *, work: Path, what: str, report: Report) -> Arrays:
    """The outputs of an ONNX graph by name, in the graph's types; ``work`` is a folder for the run's files.

    Raises :class:`WorkFailedError` where ONNX Runtime does not run it, or an output has a value that is no number:
    such a graph proves nothing. :class:`InputError` where the environment of the exporters is not made.
    """
    model = {
        "backend": "onnxruntime",
        "config": {},
        "file": str(path.resolve()),
        "steps": [],
        "inputs": _tensors(graph.inputs),
        "outputs": _tensors(graph.outputs),
    }
    plan_file, result_file = work / "reference-plan.json", work / "reference.json"
    plan_file.write_text(json.dumps({"model": "graph", "models": {"graph": model}, "request": to_tensors(inputs)}))
    run_script(
        environment=PROOF_ENVIRONMENT,
        arguments=["-P", str(PROVER), str(plan_file.resolve()), str(result_file.resolve())],
        folder=work,
        what=what,
        report=report,
    )
    result = json.loads(result_file.read_text())
    if "failure" in result:
        raise WorkFailedError(f"{what}: ONNX Runtime does not run {path.name}: {result['failure']}")
    answer = {tensor["name"]: _array(tensor) for tensor in result["outputs"]}
    for name, array in answer.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise WorkFailedError(f"{what}: {name} of {path.name} is not a number for the proof's inputs")
    return answer


def _tensors(tensors: Sequence[GraphTensor]) -> list[dict[str, Any]]:
    shapes = [[-1 if axis is None else axis for axis in tensor.shape or ()] for tensor in tensors]
    return [
        # A graph has no `reshape`: the caller's shape is the backend's.
        {"name": each.name, "datatype": each.datatype, "shape": shape, "backend_shape": shape, "optional": False}
        for each, shape in zip(tensors, shapes, strict=True)
    ]


def _array(tensor: Mapping[str, Any]) -> NDArray[Any]:
    return np.array(tensor["data"], triton_to_np_dtype(tensor["datatype"])).reshape(tensor["shape"])
