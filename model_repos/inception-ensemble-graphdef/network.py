"""Inception V3 with TensorFlow's operators, pictures in NHWC, from the weights of the PyTorch network.

Every width follows from the weights; the layers are those of ``inception_layout``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from _exporters.graphdef import tf
from _exporters.inception_layout import BLOCKS, EPSILON, STEM, Block, Step
from _exporters.script import ExportError

Weights = Mapping[str, np.ndarray]


def probabilities(images: Any, weights: Weights) -> Any:
    """Images FP32 [n, 299, 299, 3], values -1 to 1 → probabilities FP32 [n, 1001].

    Raises :class:`ExportError` naming a weight that is missing or that no layer takes.
    """
    taken = Taken(weights)
    found = images
    for row in STEM:
        for stem in row:
            found = convolution(found, taken, stem.name, stride=stem.stride, padding=stem.padding)
        found = tf.nn.max_pool2d(found, ksize=3, strides=2, padding="VALID")
    for block in BLOCKS:
        found = mixed(found, taken, block)
    features = tf.reduce_mean(found, axis=[1, 2])
    scores = tf.linalg.matmul(features, taken("fc.weight").T) + taken("fc.bias")
    taken.check_all()
    return tf.nn.softmax(scores)


def convolution(images: Any, weights: "Taken", name: str, *, stride: int = 1, padding: bool = True) -> Any:
    """A convolution, batch normalisation and ReLU. PyTorch's kernels are [out, in, height, width]."""
    kernel = weights(f"{name}.conv.weight").transpose(2, 3, 1, 0)
    found = tf.nn.conv2d(images, kernel, strides=stride, padding="SAME" if padding else "VALID")
    normalised, *_ = tf.compat.v1.nn.fused_batch_norm(
        found,
        scale=weights(f"{name}.bn.weight"),
        offset=weights(f"{name}.bn.bias"),
        mean=weights(f"{name}.bn.running_mean"),
        variance=weights(f"{name}.bn.running_var"),
        epsilon=EPSILON,
        is_training=False,
    )
    return tf.nn.relu(normalised)


def mixed(images: Any, weights: "Taken", block: Block) -> Any:
    """A block of the layout: its branches and its pool, joined by channel."""
    results = []
    for branch in block.branches:
        found = images
        for part in branch:
            steps = part if isinstance(part, tuple) else (part,)
            found = tf.concat([_step(found, weights, block, step) for step in steps], axis=3)
        results.append(found)
    if block.pooled is None:
        results.append(tf.nn.max_pool2d(images, ksize=3, strides=2, padding="VALID"))
    else:
        # TensorFlow's own padding is not counted into an average; PyTorch's is: zeros like any pixel.
        framed = tf.pad(images, [[0, 0], [1, 1], [1, 1], [0, 0]])
        pooled = tf.nn.avg_pool2d(framed, ksize=3, strides=1, padding="VALID")
        results.append(convolution(pooled, weights, f"{block.name}.branch_pool"))
    return tf.concat(results, axis=3)


def _step(images: Any, weights: "Taken", block: Block, step: Step) -> Any:
    halves = step.halves
    return convolution(images, weights, f"{block.name}.{step.name}", stride=2 if halves else 1, padding=not halves)


class Taken:
    """The weights, and which of them a layer took."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._names: set[str] = set()

    def __call__(self, name: str) -> np.ndarray:
        """One weight. Raises :class:`ExportError` where it is missing."""
        if name not in self._weights:
            raise ExportError(f"weight {name} is missing")
        self._names.add(name)
        return self._weights[name]

    def check_all(self) -> None:
        """Raise :class:`ExportError` where a weight was not taken."""
        left = sorted(self._weights.keys() - self._names)
        if left:
            raise ExportError(f"no layer takes the weight {', '.join(left[:5])}{' …' if len(left) > 5 else ''}")
