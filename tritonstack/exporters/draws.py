"""Random inputs for proofs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tritonstack.errors import WorkFailedError
from tritonstack.exporters.graph import Tensor

Array = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Generator and shape → values; they are converted to the input's type."""


def normal(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Around 0 with a standard deviation of 1: what a normalised image looks like."""
    return generator.standard_normal(shape)


def token_ids(vocabulary: int, *, first: int = 0) -> Draw:
    """Any token of a vocabulary of that size; ``first`` leaves out the special ones below it."""
    return lambda generator, shape: generator.integers(first, vocabulary, shape)


def masks(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Rows of 1 that turn into 0 somewhere after the first: what a tokenizer's padding gives. Shape [batch, length]."""
    lengths = generator.integers(1, shape[1] + 1, (shape[0], 1))
    return np.arange(shape[1])[None, :] < lengths


def drawn(
    tensor: Tensor, draws: Mapping[str, Draw], *, generator: np.random.Generator, sizes: Mapping[str, int]
) -> Array:
    """Values for an input. Raises :class:`WorkFailedError` for integers that no draw is given for."""
    draw = draws.get(tensor.name)
    if draw is None and tensor.numpy.kind != "f":
        raise WorkFailedError(f"input {tensor.name}: {tensor.dtype} needs a range to draw from, and none is given")
    return (draw or normal)(generator, tensor.sized(sizes)).astype(tensor.numpy)
