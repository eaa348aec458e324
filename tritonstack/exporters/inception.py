"""Inception V3 of timm, the source of two archives: its ONNX graph, or its weights for TensorFlow's GraphDef.

Runs in the environment ``torch``, after ``inception_dali``, whose decoded sample it reads.

The 1,001 classes: TF-Slim trained this network with ImageNet's 1,000 classes behind a class 0 for the background, and
the models' ``labels.txt`` names them in that order. A checkpoint of 1,000 classes (timm's ports have dropped the
background) gets that class back with the probability 0.
"""

# mypy: disable-error-code="import-not-found"
# PyTorch is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import answers, handoff, inception_weights, onnx_graph, proof, report
from tritonstack.exporters.arguments import Arguments
from tritonstack.exporters.cases import answered, batches, cases
from tritonstack.exporters.graph import Graph
from tritonstack.exporters.inception_layout import DECODED
from tritonstack.exporters.modules import answer_of
from tritonstack.exporters.progress import say

ANSWER = Path("sample/answer.json")
OUTPUT = "OUTPUT"
"""The ensembles' output."""
PATCH = 13  # 299 is 23 of them
TOOLS_OF_TORCH = ("numpy", "torch")
TOOLS_OF_ONNX = ("numpy", "onnx", "onnxruntime", "onnxscript", "torch")


class Classifier(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """Images as DALI gives them, FP32 [n, 299, 299, 3] → probabilities FP32 [n, 1001]."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.eval()

    def forward(self, *tensors: Any) -> Any:
        """Takes the one input of the graph."""
        (images,) = tensors
        return torch.softmax(self.network(images.permute(0, 3, 1, 2)), dim=1)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The model, what it was read from, the sample's pixels, and how far two decoders differ on them."""

    model: Classifier
    inputs: Mapping[str, str]
    images: np.ndarray[Any, Any]
    decoder_difference: float


def to_onnx(arguments: Arguments, path: str) -> None:
    """An export script's work: the ONNX graph at ``path`` below the target, its proof, and the sample's answer.

    Raises :class:`WorkFailedError` where the weights cannot be had or the proof fails.
    """
    options, graph = arguments.options, arguments.options.the_graph
    source = load(arguments)
    name = graph.inputs[0].name
    onnx_graph.export(source.model, graph, arguments.target / path, {name: np.repeat(source.images, 2, axis=0)})
    difference = proof.prove_onnx(
        arguments.target / path,
        partial(answer_of, source.model, graph),
        graph,
        batches=batches(options),
        tolerance=options.tolerance,
        sample={name: source.images},
        draws={name: patches},
        seed=options.seed,
    )
    write_answer(arguments, source, graph)
    figures = {"largest_difference": difference, "decoder_difference": source.decoder_difference}
    report.write(arguments, figures, report.versions(TOOLS_OF_ONNX), inputs=source.inputs)


def to_weights(arguments: Arguments, *, graph: Graph) -> None:
    """An export script's work: the sample's answer, and weights and proof cases for an export in another framework.

    ``graph`` names the input and the output of the other framework's model. Raises as :func:`to_onnx`.
    """
    options = arguments.options
    source = load(arguments)
    state = source.model.network.state_dict()
    weights = {name: value.numpy() for name, value in state.items() if not name.endswith("num_batches_tracked")}
    handoff.write_weights(arguments.target, weights)
    say(f"{len(weights)} weights, {sum(value.nbytes for value in weights.values()) / 2**20:.1f} MiB")
    name = graph.inputs[0].name
    tried = cases(
        graph,
        batches=batches(options),
        sample={name: source.images},
        draws={name: patches},
        axes={},
        seed=options.seed,
    )
    handoff.write_cases(arguments.target, answered(tried, partial(answer_of, source.model, graph)))
    write_answer(arguments, source, graph)
    figures = {"decoder_difference": source.decoder_difference}
    report.write(arguments, figures, report.versions(TOOLS_OF_TORCH), inputs=source.inputs)


def load(arguments: Arguments) -> Source:
    """The source framework's model and the sample. Raises :class:`WorkFailedError` where one of them is wrong."""
    images = decoded_sample(arguments)
    allowed = float(arguments.options.options["decoder_difference"])
    difference = compare_decoders(images, arguments, allowed=allowed)
    network, inputs = inception_weights.load(arguments.options)
    return Source(model=Classifier(network), inputs=inputs, images=images, decoder_difference=difference)


def write_answer(arguments: Arguments, source: Source, graph: Graph) -> None:
    """What PyTorch answers for the sample."""
    (probabilities,) = answer_of(source.model, graph, {graph.inputs[0].name: source.images}).values()
    answers.write(arguments.target / ANSWER, {OUTPUT: probabilities})


def patches(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Random pictures of 23 by 23 patches, values -1 to 1: noise from pixel to pixel is unlike any picture."""
    count, height, width, colours = shape
    cells = generator.uniform(-1, 1, (count, height // PATCH, width // PATCH, colours))
    return cells.repeat(PATCH, axis=1).repeat(PATCH, axis=2)


def decoded_sample(arguments: Arguments) -> np.ndarray[Any, Any]:
    """The sample as DALI decodes it, FP32 [1, 299, 299, 3]. Raises :class:`WorkFailedError` where it is not there."""
    path = arguments.target / DECODED
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images: np.ndarray[Any, Any] = arrays["images"]
    except (OSError, ValueError, KeyError) as error:
        raise WorkFailedError(f"{path} is needed, which export_dali.py writes before this: {error}") from error
    return images


def compare_decoders(images: np.ndarray[Any, Any], arguments: Arguments, *, allowed: float) -> float:
    """DALI's pixels against Pillow's, decoded and resized with the same kind of filter: an independent check.

    Colours in another order, another normalisation or a picture upside down differ by far more than two decoders do.
    Returns the mean difference in levels of 0 … 255. Raises :class:`WorkFailedError` where it is above ``allowed``.
    """
    file = io.BytesIO(arguments.the_sample["INPUT"][0].tobytes())
    with Image.open(file) as picture:
        side = (images.shape[2], images.shape[1])
        other = np.asarray(picture.convert("RGB").resize(side, Image.Resampling.BILINEAR), np.float32)
    difference = float(np.abs((images[0] + 1) * 127.5 - other).mean())
    if not difference <= allowed:
        raise WorkFailedError(
            f"tensor DALI_OUTPUT_0: the sample's pixels differ from Pillow's by {difference:.2f} of 255 levels on "
            f"average, allowed {allowed}"
        )
    say(f"DALI's pixels differ from Pillow's by {difference:.2f} of 255 levels on average")
    return difference
