"""Latencies counted in buckets that grow by 2 %, so that millions of them cost a few kilobytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

GROWTH = 1.02
_PER_NEPER = 1.0 / math.log(GROWTH)


class Histogram:
    """Counts of positive values. A value read back is at most 1 % off."""

    __slots__ = ("count", "counts")

    def __init__(self) -> None:
        """Empty."""
        self.counts: Counter[int] = Counter()
        self.count = 0

    def add(self, value: float) -> None:
        """Count one value; what is below 1 counts as 1."""
        self.counts[int(math.log(value) * _PER_NEPER) if value > 1.0 else 0] += 1
        self.count += 1

    def values(self) -> list[tuple[float, int]]:
        """Each bucket's middle and its count, smallest first."""
        return [(_middle(bucket), count) for bucket, count in sorted(self.counts.items())]

    @classmethod
    def sum(cls, parts: Iterable[Histogram]) -> Histogram:
        """All values of several histograms."""
        total = cls()
        for part in parts:
            total.counts.update(part.counts)
            total.count += part.count
        return total

    def percentile(self, share: float) -> float | None:
        """The value below which ``share`` (0..1) of the values lie, or None without values."""
        wanted, seen = share * self.count, 0
        for bucket, count in sorted(self.counts.items()):
            seen += count
            if seen >= wanted and count:
                return _middle(bucket)
        return None


def _middle(bucket: int) -> float:
    return 1.0 if bucket == 0 else GROWTH ** (bucket + 0.5)
