"""Inception V3 in PyTorch, without its auxiliary classifier: 299 by 299 pixels → a score for each class.

Structure: C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision (arXiv:1512.00567), as TF-Slim
and, with padding counted by the average pools, timm and torchvision have it. Modules are called as in timm, so that its
``inception_v3`` checkpoints load as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

SIDE = 299


@dataclass(frozen=True)
class Step:
    """One convolution of a branch: its name, channels and kernel; ``halves`` makes it step by two without padding."""

    name: str
    channels: int
    kernel: int | tuple[int, int] = 1
    halves: bool = False


Branch = Sequence[Step | tuple[Step, Step]]
"""Convolutions one after the other. A pair, at the end only, is two side by side whose results are joined."""


class Convolution(nn.Module):
    """A convolution, batch normalisation and ReLU. Keeps the picture's size but for ``stride`` and ``padding``."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int | tuple[int, int], stride: int = 1, padding: bool = True
    ) -> None:
        super().__init__()
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        edge = (size[0] // 2, size[1] // 2) if padding else 0
        self.conv = nn.Conv2d(inputs, outputs, size, stride=stride, padding=edge, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.bn(self.conv(images)))


class Mixed(nn.Module):
    """Branches side by side, their results joined by channel; the last one begins with a pool.

    ``pooled``: channels of the convolution after the average pool; None: a maximum pool that halves, no convolution.
    """

    def __init__(self, inputs: int, branches: Sequence[Branch], *, pooled: int | None, divisor: int) -> None:
        super().__init__()
        self.names: list[list[tuple[str, ...]]] = []
        self.halves = pooled is None
        self.channels = inputs if pooled is None else pooled // divisor
        for branch in branches:
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
        if pooled is not None:
            self.branch_pool = Convolution(inputs, pooled // divisor, kernel=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
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


class InceptionV3(nn.Module):
    """Images FP32 [n, 3, 299, 299], values -1 to 1 → scores FP32 [n, classes].

    ``channel_divisor`` makes every layer that many times narrower; 1 is the published network, 16 the least that works.
    """

    def __init__(self, *, classes: int, channel_divisor: int = 1) -> None:
        super().__init__()
        if 16 % channel_divisor:
            raise ValueError(f"channel_divisor {channel_divisor}: 1, 2, 4, 8 or 16 is allowed")
        divisor = channel_divisor
        self.Conv2d_1a_3x3 = Convolution(3, 32 // divisor, kernel=3, stride=2, padding=False)
        self.Conv2d_2a_3x3 = Convolution(32 // divisor, 32 // divisor, kernel=3, padding=False)
        self.Conv2d_2b_3x3 = Convolution(32 // divisor, 64 // divisor, kernel=3)
        self.Conv2d_3b_1x1 = Convolution(64 // divisor, 80 // divisor, kernel=1)
        self.Conv2d_4a_3x3 = Convolution(80 // divisor, 192 // divisor, kernel=3, padding=False)
        width = 192 // divisor
        self.blocks: list[str] = []
        for name, branches, pooled in (
            ("Mixed_5b", _block_5(), 32),
            ("Mixed_5c", _block_5(), 64),
            ("Mixed_5d", _block_5(), 64),
            ("Mixed_6a", _block_6a(), None),
            ("Mixed_6b", _block_6(128), 192),
            ("Mixed_6c", _block_6(160), 192),
            ("Mixed_6d", _block_6(160), 192),
            ("Mixed_6e", _block_6(192), 192),
            ("Mixed_7a", _block_7a(), None),
            ("Mixed_7b", _block_7(), 192),
            ("Mixed_7c", _block_7(), 192),
        ):
            block = Mixed(width, branches, pooled=pooled, divisor=divisor)
            self.add_module(name, block)
            self.blocks.append(name)
            width = block.channels
        self.fc = nn.Linear(width, classes)

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Images → FP32 [n, 2048 / channel_divisor]."""
        found = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(images)))
        found = functional.max_pool2d(found, kernel_size=3, stride=2)
        found = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(found))
        found = functional.max_pool2d(found, kernel_size=3, stride=2)
        for name in self.blocks:
            found = self.get_submodule(name)(found)
        return functional.adaptive_avg_pool2d(found, 1).flatten(1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(self.features(images))
