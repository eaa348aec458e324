"""The weights of Inception V3: pretrained ones of the hub, or random ones by seed."""

# mypy: disable-error-code="import-not-found"
# PyTorch and safetensors are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import hub
from tritonstack.exporters.arguments import Options
from tritonstack.exporters.inception_layout import CLASSES, SIDE
from tritonstack.exporters.inception_network import InceptionV3
from tritonstack.exporters.progress import say

CHECKPOINT = "model.safetensors"
CONFIG = "config.json"
NEVER = -1e4
"""A score whose probability is 0 after any softmax, in half precision too (where -infinity makes NaN)."""


def load(options: Options) -> tuple[InceptionV3, dict[str, str]]:
    """The network that the build's choice says, and the digests of the files that were read for it."""
    divisor = int(options.size.get("channel_divisor", 1))
    if options.weights == "random":
        say(f"random weights of seed {options.seed}")
        return random(seed=options.seed, channel_divisor=divisor), {}
    files = (CONFIG, CHECKPOINT)
    folder = hub.fetch(options.source, files)
    _check_config(folder / CONFIG)
    return pretrained(folder / CHECKPOINT, channel_divisor=divisor), hub.digests(folder, files)


def pretrained(checkpoint: Path, *, channel_divisor: int = 1) -> InceptionV3:
    """The published network. Raises :class:`WorkFailedError` where the checkpoint does not fit: says what differs."""
    try:
        found = load_file(checkpoint)
    except (OSError, SafetensorError) as error:
        raise WorkFailedError(f"{checkpoint} is not readable as safetensors: {error}") from error
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
        raise WorkFailedError(f"{checkpoint} does not hold Inception V3: {'; '.join(problems)}")
    network.load_state_dict(weights, strict=False)
    network.eval()
    return network


def with_background(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights with a row for the background: ports of TF-Slim's checkpoint drop that class and keep 1,000.

    The row put back has the probability 0, so the others keep theirs. Weights that have 1,001 rows stay as they are.
    """
    full = dict(weights)
    if "fc.weight" in full and "fc.bias" in full and len(full["fc.bias"]) == CLASSES - 1:
        full["fc.weight"] = functional.pad(full["fc.weight"], (0, 0, 1, 0))
        full["fc.bias"] = functional.pad(full["fc.bias"], (1, 0), value=NEVER)
    return full


def random(*, seed: int, channel_divisor: int) -> InceptionV3:
    """A network whose answers differ from picture to picture as a trained one's do.

    Weights drawn at random alone let the signal fade over 48 layers, and every picture would get the same answer: a
    proof could not tell a wrong export from a right one. So, as training does, the normalisations take the statistics
    of a few pictures (noise from coarse to fine, black, white), and the scores are scaled to a standard deviation of
    about 1 over them.

    Sums of floating-point numbers depend on the processor and its threads in their last digits. What is computed here
    is therefore computed in double precision and rounded to 8 bits: the same seed gives the same bytes everywhere.
    """
    torch.manual_seed(seed)
    network = InceptionV3(classes=CLASSES, channel_divisor=channel_divisor)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the statistics of the pictures alone, not mixed with what they are at first
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
