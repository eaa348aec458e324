"""The files of models on an instance's disk: the least recently used that no model in memory needs go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from tritonstack_capacity.simulation.model_table import ModelKind


class Disk:
    """Which models' files are there. Files are in use from ``claim`` or ``take`` until ``release``."""

    def __init__(self, size: int, kinds: Sequence[ModelKind]) -> None:
        """Empty; ``size`` in bytes, ``kinds`` by the models' numbers."""
        self._free = size
        self._kinds = kinds
        self._unused: OrderedDict[int, None] = OrderedDict()  # the least recently used first
        self._unused_bytes = 0

    def claim(self, model: int) -> bool:
        """Use the model's files. False: they are not there."""
        if model not in self._unused:
            return False
        del self._unused[model]
        self._unused_bytes -= self._kinds[model].disk
        return True

    def take(self, model: int) -> bool:
        """Make room for the model's files and use it. False: files in use leave too little, and nothing is deleted."""
        needed = self._kinds[model].disk
        if self._free + self._unused_bytes < needed:
            return False
        while self._free < needed:
            size = self._kinds[self._unused.popitem(last=False)[0]].disk
            self._unused_bytes -= size
            self._free += size
        self._free -= needed
        return True

    def release(self, model: int, *, keep: bool) -> None:
        """The files are no longer in use; without ``keep`` they are deleted."""
        size = self._kinds[model].disk
        if keep:
            self._unused[model] = None
            self._unused_bytes += size
        else:
            self._free += size
