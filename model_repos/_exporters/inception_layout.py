"""The layers of Inception V3 as data, for each framework's network. Names are timm's.

Structure: C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision (arXiv:1512.00567).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SIDE = 299
CLASSES = 1001
"""ImageNet's 1,000 and, before them, the background, as TF-Slim trained this network."""

DECODED = Path("decoded.npz")
"""The sample as DALI decodes it, from the decoding step's export for the network's."""

EPSILON = 0.001
"""Added to a batch normalisation's variance."""


@dataclass(frozen=True)
class Step:
    """One convolution of a branch: its name, channels and kernel; ``halves`` makes it step by two without padding."""

    name: str
    channels: int
    kernel: int | tuple[int, int] = 1
    halves: bool = False


Branch = Sequence[Step | tuple[Step, Step]]
"""Convolutions one after the other. A pair, at the end only, is two side by side whose results are joined."""


@dataclass(frozen=True)
class Block:
    """Branches side by side, their results joined by channel; the last one begins with a pool.

    ``pooled``: channels of the convolution after the average pool; None: a maximum pool that halves, no convolution.
    """

    name: str
    branches: Sequence[Branch]
    pooled: int | None


@dataclass(frozen=True)
class Stem:
    """A convolution before the blocks. Without ``padding`` the picture gets smaller by the kernel."""

    name: str
    channels: int
    kernel: int
    stride: int = 1
    padding: bool = False


STEM = (
    (
        Stem("Conv2d_1a_3x3", 32, 3, stride=2),
        Stem("Conv2d_2a_3x3", 32, 3),
        Stem("Conv2d_2b_3x3", 64, 3, padding=True),
    ),
    (Stem("Conv2d_3b_1x1", 80, 1, padding=True), Stem("Conv2d_4a_3x3", 192, 3)),
)
"""Two rows of convolutions; a maximum pool that halves the picture follows each row."""


def _block_5() -> list[Branch]:
    return [
        [Step("branch1x1", 64)],
        [Step("branch5x5_1", 48), Step("branch5x5_2", 64, 5)],
        [Step("branch3x3dbl_1", 64), Step("branch3x3dbl_2", 96, 3), Step("branch3x3dbl_3", 96, 3)],
    ]


def _block_6a() -> list[Branch]:
    return [
        [Step("branch3x3", 384, 3, halves=True)],
        [Step("branch3x3dbl_1", 64), Step("branch3x3dbl_2", 96, 3), Step("branch3x3dbl_3", 96, 3, halves=True)],
    ]


def _block_6(channels: int) -> list[Branch]:
    wide, high = (1, 7), (7, 1)
    return [
        [Step("branch1x1", 192)],
        [Step("branch7x7_1", channels), Step("branch7x7_2", channels, wide), Step("branch7x7_3", 192, high)],
        [
            Step("branch7x7dbl_1", channels),
            Step("branch7x7dbl_2", channels, high),
            Step("branch7x7dbl_3", channels, wide),
            Step("branch7x7dbl_4", channels, high),
            Step("branch7x7dbl_5", 192, wide),
        ],
    ]


def _block_7a() -> list[Branch]:
    return [
        [Step("branch3x3_1", 192), Step("branch3x3_2", 320, 3, halves=True)],
        [
            Step("branch7x7x3_1", 192),
            Step("branch7x7x3_2", 192, (1, 7)),
            Step("branch7x7x3_3", 192, (7, 1)),
            Step("branch7x7x3_4", 192, 3, halves=True),
        ],
    ]


def _block_7() -> list[Branch]:
    wide, high = (1, 3), (3, 1)
    return [
        [Step("branch1x1", 320)],
        [Step("branch3x3_1", 384), (Step("branch3x3_2a", 384, wide), Step("branch3x3_2b", 384, high))],
        [
            Step("branch3x3dbl_1", 448),
            Step("branch3x3dbl_2", 384, 3),
            (Step("branch3x3dbl_3a", 384, wide), Step("branch3x3dbl_3b", 384, high)),
        ],
    ]


BLOCKS = (
    Block("Mixed_5b", _block_5(), 32),
    Block("Mixed_5c", _block_5(), 64),
    Block("Mixed_5d", _block_5(), 64),
    Block("Mixed_6a", _block_6a(), None),
    Block("Mixed_6b", _block_6(128), 192),
    Block("Mixed_6c", _block_6(160), 192),
    Block("Mixed_6d", _block_6(160), 192),
    Block("Mixed_6e", _block_6(192), 192),
    Block("Mixed_7a", _block_7a(), None),
    Block("Mixed_7b", _block_7(), 192),
    Block("Mixed_7c", _block_7(), 192),
)
"""After the stem; a mean over the picture and a linear layer ``fc`` follow them."""
