"""What an export shows while it works."""

from __future__ import annotations

import logging
import warnings


def say(text: str) -> None:
    """Print one line: a build shows it beside the elapsed time."""
    print(text, flush=True)  # noqa: T201  an export's lines are what the build shows


def quiet() -> None:
    """Keep what PyTorch and transformers say to their own developers out of the lines that a person reads.

    A trace's warnings are among it: whether a trace generalises is what the proof shows.
    """
    warnings.simplefilter("ignore")
    for name in ("torch.fx", "torch.onnx", "transformers"):
        logging.getLogger(name).setLevel(logging.ERROR)
