"""Inception V3 in PyTorch, without its auxiliary classifier: 299 by 299 pixels → a score for each class.

The layers are those of ``inception_layout``, as TF-Slim and, with padding counted by the average pools, timm and
torchvision have them. Modules are called as in timm, so that its ``inception_v3`` checkpoints load as they are.
"""

# mypy: disable-error-code="import-not-found"
# PyTorch is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tritonstack.exporters.inception_layout import BLOCKS, EPSILON, STEM, Block


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
