"""Export Inception V3 to ONNX, prove it against PyTorch, and let PyTorch answer the sample.

    python export.py --target FOLDER --options JSON --report FILE --sample FILE.npz

Runs in the environment ``torch``, after ``export_dali.py``, whose decoded sample it reads.

The 1,001 classes: TF-Slim trained this network with ImageNet's 1,000 classes behind a class 0 for the background, and
``inception-v3/labels.txt`` names them in that order. A checkpoint of 1,000 classes (timm's ports have dropped the
background) gets that class back with the probability 0.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import weights
from PIL import Image
from torch import nn

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import answers, hub, onnx_graph, proof, report
from tritonstack.exporters.arguments import Arguments
from tritonstack.exporters.modules import answer_of
from tritonstack.exporters.progress import say
from tritonstack.exporters.script import run

MODEL = Path("inception-v3/1/model.onnx")
DECODED = Path("decoded.npz")  # what export_dali.py leaves
ANSWER = Path("sample/answer.json")
PATCH = 13  # 299 is 23 of them
CHECKPOINT = "model.safetensors"
CONFIG = "config.json"
TOOLS = ("numpy", "onnx", "onnxruntime", "onnxscript", "torch")


class Classifier(nn.Module):
    """Images as DALI gives them, FP32 [n, 299, 299, 3] → probabilities FP32 [n, 1001]."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.eval()

    def forward(self, *tensors: Any) -> Any:
        """Takes the one input of the graph."""
        (images,) = tensors
        return torch.softmax(self.network(images.permute(0, 3, 1, 2)), dim=1)


def export(arguments: Arguments) -> None:
    """Write the graph and the expected answer; prove the graph."""
    options = arguments.options
    graph = options.the_graph
    images = decoded_sample(arguments)
    decoder_difference = compare_decoders(images, arguments, allowed=float(options.options["decoder_difference"]))

    network, inputs = load(arguments)
    model = Classifier(network)
    name = graph.inputs[0].name
    onnx_graph.export(model, graph, arguments.target / MODEL, {name: np.repeat(images, 2, axis=0)})
    difference = proof.prove_onnx(
        arguments.target / MODEL,
        lambda arrays: answer_of(model, graph, arrays),
        graph,
        batches=proof.batches(options.max_batch_size),
        tolerance=options.tolerance,
        sample={name: images},
        draws={name: patches},
        seed=options.seed,
    )
    (probabilities,) = answer_of(model, graph, {name: images}).values()
    answers.write(arguments.target / ANSWER, {"OUTPUT": probabilities})
    figures = {"largest_difference": difference, "decoder_difference": decoder_difference}
    report.write(arguments, figures, report.versions(TOOLS), inputs=inputs)


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


def load(arguments: Arguments) -> tuple[nn.Module, dict[str, str]]:
    """The network that the build's choice says, and the digests of the files that were read for it."""
    options = arguments.options
    divisor = int(options.size.get("channel_divisor", 1))
    if options.weights == "random":
        say(f"random weights of seed {options.seed}")
        return weights.random(seed=options.seed, channel_divisor=divisor), {}
    files = (CONFIG, CHECKPOINT)
    folder = hub.fetch(options.source, files)
    check_config(folder / CONFIG)
    return weights.pretrained(folder / CHECKPOINT, channel_divisor=divisor), hub.digests(folder, files)


def check_config(path: Path) -> None:
    """Refuse weights of another architecture, or that were trained on pixels of another range than DALI gives."""
    try:
        content = json.loads(path.read_text())
        architecture, trained_on = content["architecture"], content["pretrained_cfg"]
        mean, deviation = trained_on["mean"], trained_on["std"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkFailedError(f"{path} is not a configuration of timm: {error!r}") from error
    if architecture != "inception_v3":
        raise WorkFailedError(f"{path}: architecture {architecture}, but this export is for inception_v3")
    if [*mean, *deviation] != [0.5] * 6:
        raise WorkFailedError(
            f"{path}: trained with mean {mean} and std {deviation}, but the pipeline normalises with 0.5 and 0.5"
        )


if __name__ == "__main__":
    sys.exit(run(export))
