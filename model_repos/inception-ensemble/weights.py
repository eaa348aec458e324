"""The weights of the network: pretrained ones of the hub, or random ones by seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from inception_v3 import SIDE, InceptionV3
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from tritonstack.errors import WorkFailedError

CLASSES = 1001
"""ImageNet's 1,000 and, before them, the background, as TF-Slim trained this network."""
NEVER = -1e4
"""A score whose probability is 0 after any softmax, in half precision too (where -infinity makes NaN)."""


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
    return network.eval()


def with_background(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
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
    return network.float()


def _coarse(values: torch.Tensor) -> torch.Tensor:
    """Rounded to 8 significant bits."""
    return values.to(torch.bfloat16).to(values.dtype)


def _noise(cells: int) -> torch.Tensor:
    """One picture, FP64 [1, 3, 299, 299] from -1 to 1, of about so many patches a side."""
    values = torch.rand(1, 3, cells, cells).double() * 2 - 1
    return functional.interpolate(values, size=(SIDE, SIDE), mode="bilinear")
