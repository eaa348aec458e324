"""ResNet-50 in ONNX Runtime with its CUDA provider: exported into memory, with the post's session options."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from benchmarks.gpu_check.networks import inputs, network
from benchmarks.gpu_check.schedule import Prepared, Subject

OPTIONS: Mapping[str, tuple[Mapping[str, str], bool]] = {
    "default": ({}, False),
    "heuristic": ({"cudnn_conv_algo_search": "HEURISTIC"}, False),
    "post": ({"cudnn_conv_algo_search": "HEURISTIC"}, True),
}
"""Options of the CUDA provider, and whether the session has extended graph optimisations and parallel execution."""
PROVIDERS = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}
_exported: dict[tuple[str, bool], bytes] = {}


def missing(device: str) -> str:
    """Why ONNX Runtime cannot be measured here; empty where it can."""
    if importlib.util.find_spec("onnxruntime") is None:
        return "onnxruntime is not installed"
    import onnxruntime  # noqa: PLC0415 - optional

    if PROVIDERS[device] not in onnxruntime.get_available_providers():
        return f"onnxruntime {onnxruntime.__version__} has no {PROVIDERS[device]} (the package onnxruntime-gpu has it)"
    return ""


def prepared(subject: Subject, *, device: str, tiny: bool) -> Prepared:
    """A session of the model. Raises what the export or ONNX Runtime raises."""
    import onnxruntime  # noqa: PLC0415 - optional

    model = exported(subject.model, tiny=tiny)
    provider_options, post = OPTIONS[subject.options]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if post:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    provider = PROVIDERS[device]
    providers: list[Any] = [(provider, dict(provider_options)) if device == "cuda" else provider]
    began = time.perf_counter()
    session = onnxruntime.InferenceSession(model, options, providers=providers)
    took = time.perf_counter() - began
    if session.get_providers()[0] != provider:
        # It goes on without the provider where one of its libraries is missing, and only logs that.
        raise RuntimeError(f"ONNX Runtime fell back to {session.get_providers()[0]}: a library of CUDA is missing")
    name = session.get_inputs()[0].name

    def calls(batch: int) -> Sequence[Callable[[], object]]:
        [image] = inputs(subject.model, batch=batch, tiny=tiny)
        array = image.numpy()
        return [lambda: session.run(None, {name: array})]

    return Prepared(run=calls, add_instance=None, peak_mib=lambda: None, load_seconds=took)


def exported(model: str, *, tiny: bool) -> bytes:
    """The network as an ONNX model, with any batch."""
    if (model, tiny) not in _exported:
        example = inputs(model, batch=2, tiny=tiny)
        stream = io.BytesIO()
        names: dict[str, Any] = {"input_names": ["input"], "output_names": ["output"], "opset_version": 17}
        axes = {"input": {0: "batch"}, "output": {0: "batch"}}
        with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
            warnings.simplefilter("ignore")
            export = torch.onnx.export
            try:  # the exporter that needs no other package
                export(network(model, tiny=tiny), example, stream, dynamic_axes=axes, dynamo=False, **names)
            except TypeError:  # releases that have no other
                export(network(model, tiny=tiny), example, stream, dynamic_axes=axes, **names)
        _exported[model, tiny] = stream.getvalue()
    return _exported[model, tiny]


def version() -> str | None:
    """ONNX Runtime's version; None where it is not installed."""
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime  # noqa: PLC0415 - optional

    return str(onnxruntime.__version__)
