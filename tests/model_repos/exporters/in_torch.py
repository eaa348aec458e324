"""Runs in the environment ``torch``: ``python in_torch.py FOLDER TASK …``, each task in a folder of its own below it.

Prints what the tasks give, as JSON: ``{task: {"given": …}}``, or ``{"refused": sentence}`` for what a user is told.
"""

# mypy: ignore-errors
# PyTorch is not in the environment that checks types.

import os
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import onnx
import torch
from onnx import helper
from safetensors.torch import load_file, save_file
from torch import nn
from torch_environment import main

from _exporters import torch_export, weights
from _exporters.cases import masks, token_ids
from _exporters.script import Graph, Tensor, quiet
from _exporters.torch_export import (
    Adapted,
    export_onnx,
    export_torchscript,
    outputs_of,
)

IDS = Tensor("ids", "INT32", ("batch", "length"))
MASK = Tensor("mask", "INT32", ("batch", "length"))
WIDE = Tensor("wide", "FP32", ("batch", "length", 6))
POOLED = Tensor("pooled", "FP32", ("batch", 6))
GRAPH = Graph(18, (IDS, MASK), (WIDE, POOLED))
DRAWS = {"ids": token_ids(20), "mask": masks}
PIXELS = Graph(18, (Tensor("x", "FP32", ("batch", 4)),), (Tensor("y", "FP32", ("batch", 6)),))


class Answer:
    """As transformers' models answer: an object with attributes."""

    def __init__(self, wide, pooled):
        self.wide, self.pooled = wide, pooled


class Encoder(nn.Module):
    """Two dynamic axes, integers in, two outputs."""

    def __init__(self):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(200, 4), nn.Linear(4, 6)

    def forward(self, input_ids, attention_mask):
        wide = self.linear(self.embedding(input_ids)) * attention_mask[..., None]
        return Answer(wide, wide.mean(1))


class Fixed(nn.Linear):
    """Its trace remembers the batch size of the example."""

    def forward(self, x):
        return super().forward(x).reshape(int(x.shape[0]), 6)


class OnCpu(nn.Linear):
    """Its trace remembers the device of the example."""

    def forward(self, x):
        return super().forward(x) + torch.arange(6, device=x.device)


def encoder():
    torch.manual_seed(3)
    return Adapted(
        Encoder(),
        GRAPH,
        arguments={"ids": "input_ids", "mask": "attention_mask"},
        outputs={"wide": "wide", "pooled": "pooled"},
    )


def once(model, graph, example):
    """What PyTorch makes of a kind of module, whose weights are always the same: seconds each time."""
    if type(model) not in MADE:
        MADE[type(model)] = PROGRAM(model, graph, example)
    return MADE[type(model)]


PROGRAM, MADE = torch_export._program, {}
torch_export._program = once


def linear(kind=nn.Linear):
    torch.manual_seed(3)
    return kind(4, 6).eval()


def example(graph):
    sizes = {"batch": 2, "length": 5}
    return {one.name: np.ones(one.sized(sizes), one.numpy) for one in graph.inputs}


def prove(path, module, graph=GRAPH, **settings):
    tried = {"batches": (1, 4), "tolerance": 1e-4, "draws": DRAWS, **settings}
    return torch_export.prove(path, partial(outputs_of, module, graph), graph, **tried)


def export_encoder(folder):
    export_onnx(encoder(), GRAPH, folder / "model.onnx", example(GRAPH))
    return {"difference": prove(folder / "model.onnx", encoder())}


def export_externally(folder):
    limit, torch_export.EMBED_LIMIT = torch_export.EMBED_LIMIT, 100
    export_onnx(encoder(), GRAPH, folder / "model.onnx", example(GRAPH))
    torch_export.EMBED_LIMIT = limit
    return {"difference": prove(folder / "model.onnx", encoder())}


def export_to_older_operators(folder):
    said = Graph(17, GRAPH.inputs, GRAPH.outputs)
    export_onnx(encoder(), said, folder / "model.onnx", example(GRAPH))
    proto = onnx.load(folder / "model.onnx")
    means = [node for node in proto.graph.node if node.op_type == "ReduceMean"]
    return {
        "difference": prove(folder / "model.onnx", encoder()),
        "opsets": [one.version for one in proto.opset_import],
        "format": proto.ir_version,
        "axes": [helper.get_node_attr_value(node, "axes") for node in means],
    }


def export_to_operators_that_it_needs(folder):
    said = Graph(9, GRAPH.inputs, GRAPH.outputs)
    export_onnx(encoder(), said, folder / "model.onnx", example(GRAPH))


def export_with_other_tensors(folder):
    said = Graph(18, (IDS, MASK), (Tensor("wide", "FP16", ("batch", "length", 6)), Tensor("pooled", "FP32", (1, 6))))
    export_onnx(encoder(), said, folder / "model.onnx", example(GRAPH))


def export_batch_that_is_fixed(folder):
    export_onnx(linear(Fixed), PIXELS, folder / "model.onnx", example(PIXELS))


def trace_encoder(folder):
    export_torchscript(encoder(), GRAPH, folder / "model.pt", example(GRAPH))
    return {"difference": prove(folder / "model.pt", encoder(), tolerance=0.0)}


def trace_batch_that_is_fixed(folder):
    export_torchscript(linear(Fixed), PIXELS, folder / "model.pt", example(PIXELS))
    prove(folder / "model.pt", linear(), PIXELS, draws={})


def trace_device(folder):
    export_torchscript(linear(OnCpu), PIXELS, folder / "model.pt", example(PIXELS))


def hub_folder(folder):
    """A ResNet as small as the scripts take, saved as the hub has it."""
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(5)
    names = {number: f"thing {number}" for number in range(1000)}
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 8, 16], depths=[1, 1, 1, 1], num_labels=1000, id2label=names
    )
    ResNetForImageClassification(config).save_pretrained(folder)


def pretrained(folder, untrained=None, **changed):
    from transformers import ResNetForImageClassification

    source = {"hub": "microsoft/resnet-50", "revision": "0" * 40}
    os.environ["TRITONSTACK_HUB_FOLDER"] = str(folder)
    options = SimpleNamespace(**{"size": {}, "weights": "pretrained", "seed": 0, "source": source, **changed})
    model = weights.load(ResNetForImageClassification, options, defaults={}, untrained=untrained).model
    return {
        "sum": float(model.classifier[1].weight.double().sum()),
        "body": float(model.resnet.embedder.embedder.convolution.weight.double().sum()),
    }


def copied(folder):
    """A copy of what :func:`hub_folder` saved, laid out like the hub. Gives its weights' file."""
    place = folder / "microsoft/resnet-50" / ("0" * 40)
    shutil.copytree(folder.parent / "hub_folder", place)
    return place / "model.safetensors"


def load_pretrained(folder):
    file = copied(folder)
    saved = float(load_file(file)["classifier.1.weight"].double().sum())
    return {**pretrained(folder), "saved": saved}


def load_damaged(folder):
    file = copied(folder)
    file.write_bytes(file.read_bytes()[:-100])
    pretrained(folder)


def load_lacking(folder):
    file = copied(folder)
    kept = {name: tensor for name, tensor in load_file(file).items() if name != "classifier.1.bias"}
    save_file(kept, file, {"format": "pt"})
    pretrained(folder)


def load_without_a_head(folder):
    file = copied(folder)
    save_file({name: one for name, one in load_file(file).items() if "classifier." not in name}, file, {"format": "pt"})
    return [pretrained(folder, untrained="classifier.", seed=seed) for seed in (0, 0, 1)]


def load_another_size(folder):
    copied(folder)
    pretrained(folder, size={"embedding_size": 16})


if __name__ == "__main__":
    quiet()
    main(globals())
