"""Export a model of transformers to ONNX and prove it: what both export scripts of this example share.

    python export.py --target FOLDER --options JSON --report FILE

Runs in the environment ``torch``. The proof: ONNX Runtime's outputs are PyTorch's, alone and in a batch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import transformers
from torch import nn


def export(
    path: str,
    architecture: Any,
    wrapped: Callable[[Any], nn.Module],
    sample: Callable[[Any], Mapping[str, np.ndarray]],
) -> None:
    """Write the graph to ``path`` below the target, the sample's request and answer, and the report.

    Args:
        path: of the ONNX file in the archive.
        architecture: class of transformers.
        wrapped: the model → a module with the graph's inputs and outputs, in their order.
        sample: the model's configuration → the sample's inputs, batch size 1.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--options", type=json.loads, required=True)
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()
    options, graph, target = arguments.options, arguments.options["graph"], arguments.target
    torch.manual_seed(options["seed"])
    model = _model(architecture, options).eval()
    module = wrapped(model).eval()
    file = target / path
    file.parent.mkdir(parents=True, exist_ok=True)
    one = sample(model.config)
    two = {name: np.repeat(array, 2, axis=0) for name, array in one.items()}
    inputs, outputs = ([tensor["name"] for tensor in graph[kind]] for kind in ("inputs", "outputs"))
    axes = [
        {place: torch.export.Dim(axis, min=1) for place, axis in enumerate(tensor["shape"]) if isinstance(axis, str)}
        for tensor in graph["inputs"]
    ]
    torch.onnx.export(
        module,
        tuple(torch.from_numpy(two[name]) for name in inputs),
        file,
        input_names=inputs,
        output_names=outputs,
        opset_version=graph["opset"],
        dynamo=True,
        dynamic_shapes=tuple(axes),
        external_data=False,
    )

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    difference = 0.0
    answer: dict[str, np.ndarray] = {}
    for case in (two, one):
        with torch.inference_mode():
            expected = module(*(torch.from_numpy(case[name]) for name in inputs)).numpy()
        [found] = session.run(None, case)
        difference = max(difference, float(np.abs(found - expected).max()))
        answer = {outputs[0]: expected}
    if difference > options["tolerance"]:
        raise SystemExit(f"ONNX Runtime differs by {difference:.3g} from PyTorch, allowed {options['tolerance']:.3g}")
    _write(target / "sample/request.json", "inputs", one)
    _write(target / "sample/answer.json", "outputs", answer)
    tools = {module.__name__: module.__version__ for module in (np, onnxruntime, torch, transformers)}
    arguments.report.write_text(json.dumps({"figures": {"largest_difference": difference}, "tools": tools}))


def _model(architecture: Any, options: Mapping[str, Any]) -> Any:
    """Random weights in the chosen size, or the pinned revision's of the hub."""
    if options["weights"] == "random":
        config = {**options["options"].get("config", {}), **options["size"]}
        return architecture(architecture.config_class(**config, attn_implementation="eager"))
    source = options["source"]
    return architecture.from_pretrained(
        source["hub"], revision=source["revision"], use_safetensors=True, attn_implementation="eager"
    )


def _write(file: Path, key: str, arrays: Mapping[str, np.ndarray]) -> None:
    names = {np.dtype(np.int64): "INT64", np.dtype(np.float32): "FP32"}
    tensors = [
        {"name": name, "datatype": names[each.dtype], "shape": list(each.shape), "data": each.ravel().tolist()}
        for name, each in arrays.items()
    ]
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({key: tensors}))
