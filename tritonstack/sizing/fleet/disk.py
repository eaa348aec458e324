"""The files of models on an instance's disk: the least recently used that are not loaded go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container

from tritonstack.sizing.fleet.model_table import ModelTable


class Disk:
    """Which models' files are there."""

    def __init__(self, size: int, models: ModelTable) -> None:
        """Empty; ``size`` in bytes."""
        self.free = size
        self._models = models
        self._files: OrderedDict[int, None] = OrderedDict()

    def has(self, model: int) -> bool:
        """Whether the files are there; they count as used now."""
        if model not in self._files:
            return False
        self._files.move_to_end(model)
        return True

    def take(self, model: int, *, held: Container[int]) -> bool:
        """Make room for the model's files and take it, unless what is ``held`` by the container leaves too little."""
        needed = self._models.kind(model).disk
        if self.free < needed:
            gone = []
            found = self.free
            for other in self._files:
                if found >= needed:
                    break
                if other not in held:
                    gone.append(other)
                    found += self._models.kind(other).disk
            if found < needed:
                return False
            for other in gone:
                self.remove(other)
        self.free -= needed
        self._files[model] = None
        return True

    def remove(self, model: int) -> None:
        """Delete its files."""
        del self._files[model]
        self.free += self._models.kind(model).disk
