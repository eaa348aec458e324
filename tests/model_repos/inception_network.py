"""Runs in the environment ``torch``: prints facts of the exporters' Inception V3 as JSON.

    python inception_network.py facts
    python inception_network.py random
    python inception_network.py checkpoint FILE CLASSES

``facts`` fills the published network by a rule that needs no file and lets it answer one fixed picture; ``random``
digests the tiny network's random weights, drawn with one thread, with two, and from another seed; ``checkpoint`` writes
the tiny network's random weights with so many classes, as a port of TF-Slim's has them.
"""

# mypy: disable-error-code="import-not-found"
# PyTorch is in the environment that this runs in, not in the one that checks types.

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from _exporters import inception
from _exporters.inception_layout import CLASSES


def main(what: str, *rest: str) -> None:
    if what == "facts":
        print(json.dumps(facts()))
    elif what == "random":
        print(json.dumps([random_digest(threads=1), random_digest(threads=2), random_digest(threads=2, seed=1)]))
    else:
        checkpoint(Path(rest[0]), int(rest[1]))


def facts() -> dict[str, Any]:
    """Names and shapes of the weights, how many there are, and five scores of the filled network."""
    network = inception.InceptionV3(classes=1000)
    lines = "\n".join(f"{name} {list(value.shape)}" for name, value in sorted(network.state_dict().items()))
    picture = np.random.default_rng(1).uniform(-1, 1, (1, 3, 299, 299)).astype(np.float32)
    with torch.inference_mode():
        scores = filled(network)(torch.from_numpy(picture))[0]
    return {
        "names": hashlib.sha256(lines.encode()).hexdigest(),
        "parameters": sum(value.numel() for value in network.parameters()),
        "scores": scores[:5].tolist(),
        "best": int(scores.argmax()),
    }


def filled(network: torch.nn.Module) -> torch.nn.Module:
    """The weights drawn one by one in the order of their names, so that any network with these names gets the same."""
    for number, (name, value) in enumerate(sorted(network.state_dict().items())):
        if name.endswith("num_batches_tracked"):
            continue
        drawn = np.random.default_rng(number).standard_normal(value.numel()).astype(np.float32)
        if name.endswith("running_var"):
            drawn = np.abs(drawn) * 0.5 + 0.5
        elif value.ndim == 4:
            drawn *= (2 / (value.shape[1] * value.shape[2] * value.shape[3])) ** 0.5
        elif value.ndim == 2:
            drawn *= value.shape[1] ** -0.5
        elif name.endswith("bn.weight"):
            drawn = 1 + 0.1 * drawn
        else:
            drawn *= 0.1
        value.copy_(torch.from_numpy(drawn.reshape(value.shape)))
    return network.eval()


def random_digest(*, threads: int, seed: int = 0) -> str:
    """The SHA-256 of the tiny network's random weights."""
    torch.set_num_threads(threads)
    state = inception.random_network(seed=seed, channel_divisor=16).state_dict()
    return hashlib.sha256(b"".join(value.numpy().tobytes() for value in state.values())).hexdigest()


def checkpoint(path: Path, classes: int) -> None:
    found = inception.random_network(seed=3, channel_divisor=16).state_dict()
    first = CLASSES - classes
    found["fc.weight"], found["fc.bias"] = found["fc.weight"][first:].clone(), found["fc.bias"][first:].clone()
    save_file({name: value for name, value in found.items() if not name.endswith("num_batches_tracked")}, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
