"""Where the boxes of a layered graph stand, and past which points its lines go, so that none runs behind a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 24
"""Times that the rows are put in order, downwards and upwards in turns; the best order of them is taken."""


@dataclass(frozen=True)
class Passage:
    """Where a line from ``start`` to ``end`` goes past a row of boxes between them; rows count from 0 at the top."""

    start: str
    end: str
    row: int


Place = str | Passage


@dataclass(frozen=True)
class Layered:
    """Rows from the top, each with its places from the left; and every line with the places that it goes through."""

    rows: tuple[tuple[Place, ...], ...]
    lines: Mapping[tuple[str, str], tuple[Place, ...]]


def layered(rows: Sequence[Sequence[str]], edges: Sequence[tuple[str, str]]) -> Layered:
    """Give each line a passage in the rows that it crosses, and order the rows so that few lines cross.

    Args:
        rows: names from the top.
        edges: each from a name to one of a lower row.
    """
    row_of: dict[Place, int] = {name: number for number, row in enumerate(rows) for name in row}
    lines = {(a, b): _places(a, b, between=range(row_of[a] + 1, row_of[b])) for a, b in sorted(edges)}
    filled: list[list[Place]] = [list(row) for row in rows]
    for places in lines.values():
        for place in places:
            if isinstance(place, Passage):
                filled[place.row].append(place)
    ordered = _ordered(filled, _pairs(len(rows), lines, row_of))
    return Layered(rows=tuple(tuple(row) for row in ordered), lines=lines)


def _places(a: str, b: str, *, between: range) -> tuple[Place, ...]:
    return (a, *(Passage(a, b, row) for row in between), b)


Pairs = Sequence[Sequence[tuple[Place, Place]]]
"""Between each row and the next: which place is tied to which."""


def _pairs(rows: int, lines: Mapping[tuple[str, str], Sequence[Place]], row_of: Mapping[Place, int]) -> Pairs:
    found: list[list[tuple[Place, Place]]] = [[] for _ in range(rows - 1)]
    for (a, _), places in lines.items():
        for number, pair in enumerate(pairwise(places), start=row_of[a]):
            found[number].append(pair)
    return found


def _ordered(rows: list[list[Place]], pairs: Pairs) -> list[list[Place]]:
    """Each place goes to the mean of those that it is tied to (Sugiyama's barycentres), row by row."""
    best, fewest = [list(row) for row in rows], crossings(rows, pairs)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for number in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
            fixed = rows[number - 1 if downwards else number + 1]
            tied = pairs[number - 1] if downwards else [(b, a) for a, b in pairs[number]]
            rows[number] = _by_mean(rows[number], fixed, tied)
        found = crossings(rows, pairs)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def _by_mean(row: Sequence[Place], fixed: Sequence[Place], tied: Sequence[tuple[Place, Place]]) -> list[Place]:
    at = {place: (number + 0.5) / len(fixed) for number, place in enumerate(fixed)}

    def mean(number: int, place: Place) -> float:
        found = [at[above] for above, below in tied if below == place]
        return sum(found) / len(found) if found else (number + 0.5) / len(row)

    means = [mean(number, place) for number, place in enumerate(row)]
    return [row[number] for number in sorted(range(len(row)), key=lambda each: (means[each], each))]


def crossings(rows: Sequence[Sequence[Place]], pairs: Pairs) -> int:
    """How many pairs of lines cross between rows that lie beside each other."""
    return sum(_crossings(upper, lower, tied) for (upper, lower), tied in zip(pairwise(rows), pairs, strict=True))


def _crossings(upper: Sequence[Place], lower: Sequence[Place], tied: Sequence[tuple[Place, Place]]) -> int:
    ends = [(upper.index(a), lower.index(b)) for a, b in tied]
    return sum((a - c) * (b - d) < 0 for number, (a, b) in enumerate(ends) for c, d in ends[:number])


def centres(found: Layered, *, widths: Mapping[Place, float], gap: float) -> list[list[float]]:
    """Of each row, how far to the right the middles of its places are, in pixels; the leftmost edge is at 0.

    Each place stands as near to those that it is tied to as its row's order and gaps allow.
    """
    row_of = {place: number for number, row in enumerate(found.rows) for place in row}
    pairs = _pairs(len(found.rows), found.lines, row_of)
    steps = [[widths[a] / 2 + gap + widths[b] / 2 for a, b in pairwise(row)] for row in found.rows]
    middles = [_spread([0.0] * len(row), steps[number]) for number, row in enumerate(found.rows)]
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        for number in range(1, len(middles)) if downwards else range(len(middles) - 2, -1, -1):
            other = number - 1 if downwards else number + 1
            tied = pairs[other] if downwards else [(b, a) for a, b in pairs[number]]
            at = dict(zip(found.rows[other], middles[other], strict=True))
            wished = [
                _mean([at[above] for above, below in tied if below == place], middles[number][index])
                for index, place in enumerate(found.rows[number])
            ]
            middles[number] = _spread(wished, steps[number])
    left = min(x - widths[row[0]] / 2 for row, (x, *_) in zip(found.rows, middles, strict=True))
    return [[round(x - left, 1) for x in row] for row in middles]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _spread(wished: Sequence[float], steps: Sequence[float]) -> list[float]:
    """The positions nearest to the wished ones (least squares) with these steps at least between neighbours.

    Neighbours that would come too near form a block, which stands at the mean of their wishes ("pool adjacent
    violators").
    """
    offsets = [0.0]
    for step in steps:
        offsets.append(offsets[-1] + step)
    blocks: list[tuple[float, int]] = []
    for wish, offset in zip(wished, offsets, strict=True):
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            before, number = blocks.pop()
            mean, count = (before * number + mean * count) / (number + count), number + count
        blocks.append((mean, count))
    bases = [mean for mean, count in blocks for _ in range(count)]
    return [base + offset for base, offset in zip(bases, offsets, strict=True)]
