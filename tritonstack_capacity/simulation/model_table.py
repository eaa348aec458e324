"""All models of a scenario, one a row, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tritonstack_capacity.simulation.scenario import ModelGroup

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """What the models of a group have in common. Sizes are bytes, times are seconds.

    Attributes:
        memory: GPU memory of a loaded model.
        disk: of its files.
        download_seconds: of its archive, with unpacking.
        load_seconds: into Triton.
        fixed, per_item: an execution of n requests takes fixed + per_item * n.
        exponential: whether that is the mean of exponential times.
        max_batch, delay: dynamic batching; 1 and 0 without.
        copies: instances of the model.
    """

    name: str
    memory: int
    disk: int
    download_seconds: float
    load_seconds: float
    fixed: float
    per_item: float
    exponential: bool
    max_batch: int
    delay: float
    copies: int

    @property
    def alone_seconds(self) -> float:
        """Latency of a request that meets nothing else, at least; the mean where times are exponential."""
        waits = self.delay if self.max_batch > 1 else 0.0
        return waits + self.fixed + self.per_item

    @property
    def least_seconds_each(self) -> float:
        """Time on the GPU for one request of a full batch."""
        return self.fixed / self.max_batch + self.per_item


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """Models by number. ``popularity`` is each one's share of the calls (sum 1)."""

    kinds: tuple[ModelKind, ...]
    kind_of: Integers
    popularity: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        """How many models."""
        return len(self.names)

    def of_each(self, attribute: str) -> Floats:
        """An attribute of the kinds, for each model."""
        values = np.array([float(getattr(kind, attribute)) for kind in self.kinds])
        found: Floats = values[self.kind_of]
        return found

    def called(self, calls: Integers) -> ModelTable:
        """The same models, called so many times each."""
        counts = calls.astype(np.float64)
        return replace(self, popularity=counts / counts.sum())

    def kind(self, model: int) -> ModelKind:
        """The kind of a model."""
        return self.kinds[int(self.kind_of[model])]


def model_names(groups: tuple[ModelGroup, ...]) -> tuple[str, ...]:
    """The names of all models, in the order of the file."""
    return tuple(
        group.name if group.count == 1 else f"{group.name}-{number}"
        for group in groups
        for number in range(group.count)
    )


def popularity_of(groups: tuple[ModelGroup, ...]) -> Floats:
    """Each model's share of the calls: the group's share, in it by Zipf's law."""
    parts = []
    for group in groups:
        weights = np.arange(1, group.count + 1, dtype=np.float64) ** -group.zipf
        parts.append(weights / weights.sum() * (group.count if group.share is None else group.share))
    together: Floats = np.concatenate(parts)
    shares: Floats = together / together.sum()
    return shares
