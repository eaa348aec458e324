"""ResNet-50 of transformers as ONNX or TorchScript: one seed or revision gives the same model in each format."""

# mypy: disable-error-code="import-not-found"
# PyTorch and transformers are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import ResNetForImageClassification

from _exporters import weights
from _exporters.script import Arguments, Arrays, ExportError, Graph, Tensor, write_answer, write_report, write_text
from _exporters.torch_export import Adapted, export_proved, outputs_of

SIDE = 224
CLASSES = 1000
DEFAULTS = {
    "embedding_size": 64,
    "hidden_sizes": [256, 512, 1024, 2048],
    "depths": [3, 4, 6, 3],
    "layer_type": "bottleneck",
    "hidden_act": "relu",
    "num_labels": CLASSES,
}
"""ResNet-50: https://arxiv.org/abs/1512.03385, table 1."""

RESIDUAL_SCALE = 0.25
"""Scale of each block's branch with random weights: ResNet-50 adds up 16, and values stay near 1."""


def to_onnx(arguments: Arguments, path: str) -> None:
    """Export to ONNX: the graph at ``path`` below the target, its proof, the sample's answer, the labels.

    Raises :class:`ExportError` where the weights are not available or the proof fails.
    """
    _export(arguments, path, arguments.options.the_graph)


def to_torchscript(arguments: Arguments, path: str, *, graph: Graph) -> None:
    """Export to TorchScript, which has no names: ``graph`` has those of config.pbtxt."""
    _export(arguments, path, graph)


def _export(arguments: Arguments, path: str, graph: Graph) -> None:
    loaded, sample, target = load(arguments), arguments.the_sample, arguments.target
    module = adapted(loaded.model, graph)
    source = partial(outputs_of, module, graph)
    figures = export_proved(arguments, path, module, source, graph, example=example(graph), sample=sample)
    write_answer(target / "sample/answer.json", source(sample))
    write_labels(loaded.model, target / "labels.txt")
    write_report(arguments, figures, inputs=loaded.inputs)


def load(arguments: Arguments) -> weights.Loaded:
    """The source framework's model. Raises :class:`ExportError` where it is not available or has other classes."""
    loaded = weights.load(ResNetForImageClassification, arguments.options, defaults=DEFAULTS)
    if loaded.model.config.num_labels != CLASSES:
        raise ExportError(f"the model has {loaded.model.config.num_labels} classes, ImageNet has {CLASSES}")
    if arguments.options.weights == "random":
        _vary_normalisation(loaded.model)
    return loaded


def graph_of(input_name: str, output_name: str, *, opset: int = 17) -> Graph:
    """Its tensors under the names of a config.pbtxt."""
    return Graph(
        opset=opset,
        inputs=(Tensor(input_name, "FP32", ("batch", 3, SIDE, SIDE)),),
        outputs=(Tensor(output_name, "FP32", ("batch", CLASSES)),),
    )


def adapted(model: Any, graph: Graph) -> Adapted:
    """The model from pixels to logits, with the graph's names."""
    return Adapted(
        model,
        graph,
        arguments={graph.inputs[0].name: "pixel_values"},
        outputs={graph.outputs[0].name: "logits"},
    )


def example(graph: Graph) -> Arrays:
    """Inputs to export with: a batch of 2."""
    tensor = graph.inputs[0]
    return {tensor.name: np.zeros(tensor.sized({"batch": 2}), tensor.numpy)}


def write_labels(model: Any, path: Path) -> None:
    """The classes' names, one a line in the order of the logits: ImageNet's, or for random weights ``class-0`` …"""
    names = {int(number): name for number, name in model.config.id2label.items()}
    generic = all(name == f"LABEL_{number}" for number, name in names.items())
    lines = [f"class-{number}" if generic else " ".join(names[number].split()) for number in range(CLASSES)]
    write_text(path, "\n".join(lines) + "\n")


def _vary_normalisation(model: Any) -> None:
    """Draw the statistics of the batch normalisations, which are all 0 and 1 in a new model.

    So the proof finds an export that drops or misplaces one, and values neither vanish nor overflow.
    """
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0.0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.bias.normal_(0.0, 0.1)
        for stage in model.resnet.encoder.stages:
            for block in stage.layers:
                block.layer[-1].normalization.weight.fill_(RESIDUAL_SCALE)
