"""Inception V3 of timm in PyTorch: as an ONNX graph, or as weights and proof cases for TensorFlow's GraphDef.

Runs in the environment ``torch``, after ``inception_dali``, whose decoded sample it reads.

The 1,001 classes: TF-Slim trained this network with ImageNet's 1,000 classes after a class 0 for the background, and
the models' ``labels.txt`` names them in that order. A checkpoint of 1,000 classes (timm's ports have dropped the
background) gets that class back with the probability 0.
"""

# mypy: disable-error-code="import-not-found"
# PyTorch and safetensors are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from _exporters import hub
from _exporters.cases import batches, cases, write_cases, write_weights
from _exporters.inception_layout import BLOCKS, CLASSES, DECODED, EPSILON, SIDE, STEM, Block
from _exporters.script import Arguments, ExportError, Graph, Options, say, versions, write_answer, write_report
from _exporters.torch_export import export_proved, outputs_of

ANSWER = Path("sample/answer.json")
OUTPUT = "OUTPUT"
"""The ensembles' output."""
PATCH = 13  # 299 is 23 of them
TOOLS_OF_TORCH = ("numpy", "torch")
TOOLS_OF_ONNX = ("numpy", "onnx", "onnxruntime", "onnxscript", "torch")
CHECKPOINT = "model.safetensors"
CONFIG = "config.json"
NEVER = -1e4
"""A score whose probability is 0 after any softmax, in half precision too (where -infinity makes NaN)."""


# The network.

# The layers are those of ``inception_layout``, as TF-Slim and, with padding counted by the average pools, timm and
# torchvision have them. Modules are named as in timm, so that its ``inception_v3`` checkpoints load.


class Convolution(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """A convolution, batch normalisation and ReLU. Keeps the picture's size but for ``stride`` and ``padding``."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int | tuple[int, int], stride: int = 1, padding: bool = True
    ) -> None:
        super().__init__()
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        edge = (size[0] // 2, size[1] // 2) if padding else 0
        self.conv = nn.Conv2d(inputs, outputs, size, stride=stride, padding=edge, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=EPSILON)

    def forward(self, images: Any) -> Any:
        """FP32 [n, inputs, height, width] → [n, outputs, …]."""
        return functional.relu(self.bn(self.conv(images)))


class Mixed(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """A block of the layout, every width divided by ``divisor``."""

    def __init__(self, inputs: int, block: Block, *, divisor: int) -> None:
        super().__init__()
        self.names: list[list[tuple[str, ...]]] = []
        self.halves = block.pooled is None
        self.channels = inputs if block.pooled is None else block.pooled // divisor
        for branch in block.branches:
            self.names.append([])
            width = inputs
            for part in branch:
                steps = part if isinstance(part, tuple) else (part,)
                for step in steps:
                    outputs = step.channels // divisor
                    stride = 2 if step.halves else 1
                    layer = Convolution(width, outputs, kernel=step.kernel, stride=stride, padding=not step.halves)
                    self.add_module(step.name, layer)
                self.names[-1].append(tuple(step.name for step in steps))
                width = sum(step.channels // divisor for step in steps)
            self.channels += width
        if block.pooled is not None:
            self.branch_pool = Convolution(inputs, block.pooled // divisor, kernel=1)

    def forward(self, images: Any) -> Any:
        """FP32 [n, inputs, height, width] → [n, channels, …]."""
        results = []
        for branch in self.names:
            found = images
            for names in branch:
                found = torch.cat([self.get_submodule(name)(found) for name in names], dim=1)
            results.append(found)
        if self.halves:
            results.append(functional.max_pool2d(images, kernel_size=3, stride=2))
        else:
            results.append(self.branch_pool(functional.avg_pool2d(images, kernel_size=3, stride=1, padding=1)))
        return torch.cat(results, dim=1)


class InceptionV3(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """Images FP32 [n, 3, 299, 299], values -1 to 1 → scores FP32 [n, classes].

    ``channel_divisor`` makes every layer that many times narrower; 1 is the published network, 16 the least that works.
    """

    def __init__(self, *, classes: int, channel_divisor: int = 1) -> None:
        super().__init__()
        if 16 % channel_divisor:
            raise ValueError(f"channel_divisor {channel_divisor}: 1, 2, 4, 8 or 16 is allowed")
        width = 3
        for stem in (one for row in STEM for one in row):
            outputs = stem.channels // channel_divisor
            layer = Convolution(width, outputs, kernel=stem.kernel, stride=stem.stride, padding=stem.padding)
            self.add_module(stem.name, layer)
            width = outputs
        for block in BLOCKS:
            mixed = Mixed(width, block, divisor=channel_divisor)
            self.add_module(block.name, mixed)
            width = mixed.channels
        self.fc = nn.Linear(width, classes)

    def features(self, images: Any) -> Any:
        """Images → FP32 [n, 2048 / channel_divisor]."""
        found = images
        for row in STEM:
            for stem in row:
                found = self.get_submodule(stem.name)(found)
            found = functional.max_pool2d(found, kernel_size=3, stride=2)
        for block in BLOCKS:
            found = self.get_submodule(block.name)(found)
        return functional.adaptive_avg_pool2d(found, 1).flatten(1)

    def forward(self, images: Any) -> Any:
        """See the class."""
        return self.fc(self.features(images))


# Its weights.


def load_network(options: Options) -> tuple[InceptionV3, dict[str, str]]:
    """The network with the weights that the options name, and the digests of the files read for it."""
    divisor = int(options.size.get("channel_divisor", 1))
    if options.weights == "random":
        say(f"random weights of seed {options.seed}")
        return random_network(seed=options.seed, channel_divisor=divisor), {}
    files = (CONFIG, CHECKPOINT)
    folder = hub.fetch(options.source, files)
    _check_config(folder / CONFIG)
    return pretrained_network(folder / CHECKPOINT, channel_divisor=divisor), hub.digests(folder, files)


def pretrained_network(checkpoint: Path, *, channel_divisor: int = 1) -> InceptionV3:
    """The published network. Raises :class:`ExportError` with what does not fit."""
    try:
        found = load_file(checkpoint)
    except (OSError, SafetensorError) as error:
        raise ExportError(f"{checkpoint} is not readable as safetensors: {error}") from error
    network = InceptionV3(classes=CLASSES, channel_divisor=channel_divisor)
    weights = with_background(found)
    expected = network.state_dict()
    # A checkpoint may lack the counters of batches, which only training reads.
    missing = sorted(name for name in expected.keys() - weights.keys() if not name.endswith("num_batches_tracked"))
    unknown = sorted(weights.keys() - expected.keys())
    shaped = sorted(
        f"{name} {list(weights[name].shape)} instead of {list(expected[name].shape)}"
        for name in expected.keys() & weights.keys()
        if weights[name].shape != expected[name].shape
    )
    problems = [
        f"{what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
        for what, names in (("missing", missing), ("unknown", unknown), ("of another shape", shaped))
        if names
    ]
    if problems:
        raise ExportError(f"{checkpoint} does not hold Inception V3: {'; '.join(problems)}")
    network.load_state_dict(weights, strict=False)
    network.eval()
    return network


def with_background(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights with a row for the background: ports of TF-Slim's checkpoint drop that class and keep 1,000.

    The added row has the probability 0, so the others keep theirs. Weights with 1,001 rows stay as they are.
    """
    full = dict(weights)
    if "fc.weight" in full and "fc.bias" in full and len(full["fc.bias"]) == CLASSES - 1:
        full["fc.weight"] = functional.pad(full["fc.weight"], (0, 0, 1, 0))
        full["fc.bias"] = functional.pad(full["fc.bias"], (1, 0), value=NEVER)
    return full


def random_network(*, seed: int, channel_divisor: int) -> InceptionV3:
    """A network with random weights whose outputs differ from picture to picture like a trained one's.

    With random weights alone the signal fades over 48 layers, and every picture would get the same output: a proof
    would not find a wrong export. So, as in training, the normalisations take the statistics of a few pictures (noise
    from coarse to fine, black, white), and the scores are scaled to a standard deviation of about 1 over them.

    Sums of floating-point numbers depend on the processor and its threads in their last digits. What is computed here
    is therefore computed in double precision and rounded to 8 bits: the same seed gives the same bytes everywhere.
    """
    torch.manual_seed(seed)
    network = InceptionV3(classes=CLASSES, channel_divisor=channel_divisor)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the statistics of the pictures alone
    flat = [torch.full((1, 3, SIDE, SIDE), value).double() for value in (-1.0, 1.0)]
    pictures = torch.cat([*flat, *(_noise(cells) for cells in (2, 5, 12, 30, 100, SIDE))])
    directions = torch.randn_like(network.fc.weight).double()
    network.double()
    with torch.inference_mode():
        network.train().features(pictures)
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.copy_(_coarse(module.running_mean))
                module.running_var.copy_(_coarse(module.running_var))
        features = network.eval().features(pictures)
        middle = features.mean(dim=0)
        spread = _coarse((features - middle).norm(dim=1).mean())
        network.fc.weight.copy_(directions / spread)
        network.fc.bias.copy_(_coarse(-network.fc.weight @ middle))
    network.float()
    return network


def _coarse(values: Any) -> Any:
    """Rounded to 8 significant bits."""
    return values.to(torch.bfloat16).to(values.dtype)


def _noise(cells: int) -> Any:
    """One picture, FP64 [1, 3, 299, 299] from -1 to 1, of about so many patches a side."""
    values = torch.rand(1, 3, cells, cells).double() * 2 - 1
    return functional.interpolate(values, size=(SIDE, SIDE), mode="bilinear")


def _check_config(path: Path) -> None:
    """Refuse weights of another architecture, or trained on another range of pixels than DALI returns."""
    try:
        content = json.loads(path.read_text())
        architecture, trained_on = content["architecture"], content["pretrained_cfg"]
        mean, deviation = trained_on["mean"], trained_on["std"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{path} is not a configuration of timm: {error!r}") from error
    if architecture != "inception_v3":
        raise ExportError(f"{path}: architecture {architecture}, but this export is for inception_v3")
    if [*mean, *deviation] != [0.5] * 6:
        raise ExportError(
            f"{path}: trained with mean {mean} and std {deviation}, but the pipeline normalises with 0.5 and 0.5"
        )


# The export.


class Classifier(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """Images from DALI, FP32 [n, 299, 299, 3] → probabilities FP32 [n, 1001]."""

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
    """The model, digests of its files, the sample's pixels, and the difference of two decoders on them."""

    model: Classifier
    inputs: Mapping[str, str]
    images: np.ndarray[Any, Any]
    decoder_difference: float


def to_onnx(arguments: Arguments, path: str) -> None:
    """Export to ONNX: the graph at ``path`` below the target, its proof, and the sample's answer.

    Raises :class:`ExportError` where the weights are not available or the proof fails.
    """
    graph, source = arguments.options.the_graph, load(arguments)
    name = graph.inputs[0].name
    figures = export_proved(
        arguments,
        path,
        source.model,
        partial(outputs_of, source.model, graph),
        graph,
        example={name: np.repeat(source.images, 2, axis=0)},
        sample={name: source.images},
        draws={name: patches},
    )
    write_sample_answer(arguments, source, graph)
    figures["decoder_difference"] = source.decoder_difference
    write_report(arguments, figures, versions(TOOLS_OF_ONNX), inputs=source.inputs)


def to_weights(arguments: Arguments, *, graph: Graph) -> None:
    """Export for another framework: weights, proof cases, and the sample's response.

    ``graph`` names the input and the output of the other framework's model. Raises as :func:`to_onnx`.
    """
    options = arguments.options
    source = load(arguments)
    state = source.model.network.state_dict()
    weights = {name: value.numpy() for name, value in state.items() if not name.endswith("num_batches_tracked")}
    write_weights(arguments.target, weights)
    say(f"{len(weights)} weights, {sum(value.nbytes for value in weights.values()) / 2**20:.1f} MiB")
    name = graph.inputs[0].name
    tested = cases(
        graph,
        partial(outputs_of, source.model, graph),
        batches=batches(options),
        sample={name: source.images},
        draws={name: patches},
        seed=options.seed,
    )
    write_cases(arguments.target, tested)
    write_sample_answer(arguments, source, graph)
    figures = {"decoder_difference": source.decoder_difference}
    write_report(arguments, figures, versions(TOOLS_OF_TORCH), inputs=source.inputs)


def load(arguments: Arguments) -> Source:
    """The source framework's model and the sample. Raises :class:`ExportError` where one is not available."""
    images = decoded_sample(arguments)
    allowed = float(arguments.options.options["decoder_difference"])
    difference = compare_decoders(images, arguments, allowed=allowed)
    network, inputs = load_network(arguments.options)
    return Source(model=Classifier(network), inputs=inputs, images=images, decoder_difference=difference)


def write_sample_answer(arguments: Arguments, source: Source, graph: Graph) -> None:
    """Write PyTorch's outputs for the sample."""
    (probabilities,) = outputs_of(source.model, graph, {graph.inputs[0].name: source.images}).values()
    write_answer(arguments.target / ANSWER, {OUTPUT: probabilities})


def patches(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Random pictures of 23 by 23 patches, values -1 to 1: noise from pixel to pixel is unlike any picture."""
    count, height, width, colours = shape
    cells = generator.uniform(-1, 1, (count, height // PATCH, width // PATCH, colours))
    return cells.repeat(PATCH, axis=1).repeat(PATCH, axis=2)


def decoded_sample(arguments: Arguments) -> np.ndarray[Any, Any]:
    """The sample as DALI decodes it, FP32 [1, 299, 299, 3]. Raises :class:`ExportError` where it is missing."""
    path = arguments.target / DECODED
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images: np.ndarray[Any, Any] = arrays["images"]
    except (OSError, ValueError, KeyError) as error:
        raise ExportError(f"{path} is needed, which export_dali.py writes before this: {error}") from error
    return images


def compare_decoders(images: np.ndarray[Any, Any], arguments: Arguments, *, allowed: float) -> float:
    """Compare DALI's pixels with Pillow's, decoded and resized with the same kind of filter.

    Another order of colours, another normalisation or a flipped picture differ by far more than two decoders do.
    Returns the mean difference in levels of 0 … 255. Raises :class:`ExportError` where it is above ``allowed``.
    """
    file = io.BytesIO(arguments.the_sample["INPUT"][0].tobytes())
    with Image.open(file) as picture:
        side = (images.shape[2], images.shape[1])
        other = np.asarray(picture.convert("RGB").resize(side, Image.Resampling.BILINEAR), np.float32)
    difference = float(np.abs((images[0] + 1) * 127.5 - other).mean())
    if not difference <= allowed:
        raise ExportError(
            f"tensor DALI_OUTPUT_0: the sample's pixels differ from Pillow's by {difference:.2f} of 255 levels on "
            f"average, allowed {allowed}"
        )
    say(f"DALI's pixels differ from Pillow's by {difference:.2f} of 255 levels on average")
    return difference
