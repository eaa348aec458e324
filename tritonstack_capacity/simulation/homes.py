"""Which instance a model belongs to with sticky routing: rendezvous hashing, of all models at once.

Each instance has a mark for each model, and the greatest takes it (Thaler and Ravishankar, "Using name-based mappings
to increase hit rates", IEEE/ACM Transactions on Networking 6(1), 1998): an instance that comes or goes moves its own
models alone. Marks are as good as drawn, so that instances get unequal numbers of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tritonstack_capacity.simulation.model_table import Integers

Marks = NDArray[np.uint64]
STEP = 0x9E3779B97F4A7C15
WORD = 2**64


def name_marks(names: Sequence[str]) -> Marks:
    """A number of 64 bits for each name, the same on every machine."""
    marks = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(marks, dtype="<u8").astype(np.uint64)


def homes(marks: Marks, numbers: Sequence[int]) -> Integers:
    """For each model the place in ``numbers`` of its instance; ``numbers`` are those of the instances."""
    greatest = np.zeros(len(marks), dtype=np.uint64)
    found = np.zeros(len(marks), dtype=np.int64)
    for place, number in enumerate(numbers):
        mark = _mixed(marks ^ _mixed(np.array([(number + 1) * STEP % WORD], dtype=np.uint64)))
        greater = mark > greatest
        greatest[greater], found[greater] = mark[greater], place
    return found


def _mixed(values: Marks) -> Marks:
    """The output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    OOPSLA 2014): each bit depends on all bits of the value.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
