"""The requests of a simulation: when, and of which model; drawn from rates, or read from a CSV file."""

from __future__ import annotations

import csv
import gzip
import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from tritonstack.errors import InputError, Problem
from tritonstack_capacity.csv_file import csv_problem, reading
from tritonstack_capacity.simulation.scenario import LONGEST_MINUTES, MOST_CALLS, ModelGroup, RatePoint

if TYPE_CHECKING:
    from _csv import Reader


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """Properties that the models of a group share. Sizes are bytes, times are seconds."""

    name: str
    memory: int  # GPU memory of a loaded model
    disk: int  # of its files
    download_seconds: float  # of its archive, with unpacking
    load_seconds: float  # into Triton
    # an execution of n requests takes fixed + per_item * n
    fixed: float
    per_item: float
    exponential: bool  # whether that is the mean of exponential times
    # dynamic batching; 1 and 0 without
    max_batch: int
    delay: float
    copies: int  # instances of the model

    @property
    def least_seconds_each(self) -> float:
        """Time on the GPU for one request of a full batch."""
        return self.fixed / self.max_batch + self.per_item


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """Models by number. ``popularity`` is each one's share of the requests (sum 1)."""

    kinds: tuple[ModelKind, ...]
    kind_of: Integers
    popularity: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        """Number of models."""
        return len(self.names)

    def of_each(self, attribute: str) -> Floats:
        """An attribute of the kinds, for each model."""
        values = np.array([float(getattr(kind, attribute)) for kind in self.kinds])
        found: Floats = values[self.kind_of]
        return found

    def called(self, calls: Integers) -> ModelTable:
        """The same models, with ``calls`` requests each."""
        counts = calls.astype(np.float64)
        return replace(self, popularity=counts / counts.sum())


def model_names(groups: tuple[ModelGroup, ...]) -> tuple[str, ...]:
    """The names of all models, in the order of the file."""
    return tuple(
        group.name if group.count == 1 else f"{group.name}-{number}"
        for group in groups
        for number in range(group.count)
    )


def popularity_of(groups: tuple[ModelGroup, ...]) -> Floats:
    """Each model's share of the requests: the group's share, in it by Zipf's law."""
    parts = []
    for group in groups:
        weights = np.arange(1, group.count + 1, dtype=np.float64) ** -group.zipf
        parts.append(weights / weights.sum() * (group.count if group.share is None else group.share))
    together: Floats = np.concatenate(parts)
    shares: Floats = together / together.sum()
    return shares


MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Requests in the order of time."""

    times: Floats  # seconds from the beginning, not falling
    models: Integers  # numbers of models
    seconds: float  # how long requests come: at least until the last one

    def __len__(self) -> int:
        """Number of requests."""
        return len(self.times)

    def only(self, chosen: Integers) -> Trace:
        """The requests of the models whose number is at True in ``chosen``."""
        kept = chosen[self.models].astype(bool)
        return Trace(times=self.times[kept], models=self.models[kept], seconds=self.seconds)


def expected_calls(curve: tuple[RatePoint, ...], *, seconds: float) -> float:
    """The number of requests of a curve, on average."""
    _, sums = _cumulative(curve, seconds=seconds)
    return float(sums[-1])


def trace_of_curve(
    curve: tuple[RatePoint, ...], *, seconds: float, poisson: bool, popularity: Floats, random: np.random.Generator
) -> Trace:
    """Requests at the rates of ``curve``, of models by ``popularity``.

    Poisson: the number is Poisson-distributed, and the moments are independent of each other with the curve as their
    density, which is the same as a Poisson process with that rate (Ross, Introduction to Probability Models, ch. 5).
    """
    edges, sums = _cumulative(curve, seconds=seconds)
    total = sums[-1]
    if poisson:
        marks = np.sort(random.random(int(random.poisson(total)))) * total
    else:
        marks = np.arange(int(total), dtype=np.float64) + 0.5
    times = _invert(marks, edges=edges, sums=sums)
    return Trace(times=times, models=draw_models(len(times), popularity=popularity, random=random), seconds=seconds)


def draw_models(count: int, *, popularity: Floats, random: np.random.Generator) -> Integers:
    """Numbers of models, each independently of the others (the independent reference model)."""
    bounds = np.cumsum(popularity)
    bounds[-1] = 1.0
    return np.searchsorted(bounds, random.random(count), side="right").astype(np.int64)


def _cumulative(curve: tuple[RatePoint, ...], *, seconds: float) -> tuple[Floats, Floats]:
    """Times at which the rate changes, and the requests until each."""
    starts = [point for point in curve if point.minute * MINUTE < seconds]
    edges = np.array([point.minute * MINUTE for point in starts] + [seconds])
    rates = np.array([point.per_minute / MINUTE for point in starts])
    return edges, np.concatenate(([0.0], np.cumsum(np.diff(edges) * rates)))


def _invert(marks: Floats, *, edges: Floats, sums: Floats) -> Floats:
    """Where so many requests have come; in a pause without requests, the mark belongs to the interval that rises."""
    place = np.clip(np.searchsorted(sums, marks, side="right") - 1, 0, len(edges) - 2)
    width = sums[place + 1] - sums[place]
    share = np.where(width > 0, (marks - sums[place]) / np.where(width > 0, width, 1.0), 0.0)
    times: Floats = edges[place] + share * (edges[place + 1] - edges[place])
    return times


GZIP = b"\x1f\x8b"
LATEST = LONGEST_MINUTES * MINUTE
COLUMNS = ["time_seconds", "model"]
MOST_TOLD = 20
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""How a time is written. Python's ``float`` takes more, and reads ``1_0`` as ten."""


def read_trace(file: Path, *, names: Sequence[str]) -> Trace:
    """The requests in ``file``, of the models called ``names``.

    Raises:
        InputError: unreadable, not the two columns, a time that is no number, earlier than the one before or too late,
            an unknown model, no request, too many. Of many such lines the first are listed, and how many more there
            are.
    """
    allowed = "comma-separated values in UTF-8, as they are or packed by gzip"
    with reading(file, allowed=allowed), _opened(file) as stream:
        reader = csv.reader(stream, strict=True)
        header = next(reader, [])
        if header != COLUMNS:
            found = _shown(",".join(header))
            raise InputError([csv_problem(file, "line 1", found, f"{','.join(COLUMNS)}, then a line for each request")])
        return _calls(file, reader, numbers={name: number for number, name in enumerate(names)})


def _opened(file: Path) -> TextIO:
    with file.open("rb") as raw:
        packed = raw.read(len(GZIP)) == GZIP
    if packed:
        return gzip.open(file, "rt", newline="", encoding="utf-8-sig")
    return file.open(newline="", encoding="utf-8-sig")


def _shown(text: str) -> str:
    """Shortened text without control characters for a terminal."""
    short = text[:120] or "nothing"
    return short if short.isprintable() else repr(short)


def _calls(file: Path, rows: Reader, *, numbers: dict[str, int]) -> Trace:
    times, models = array("d"), array("q")
    wrong: list[Problem] = []
    before = 0.0
    is_number = NUMBER.fullmatch
    for row in rows:
        if not row:  # an empty line
            continue
        try:
            moment, model = float(row[0]), numbers[row[1]]
        except (ValueError, IndexError, KeyError):
            wrong += _faults(file, rows.line_num, row, before=before, numbers=numbers)
            continue
        if not before <= moment <= LATEST or len(row) != len(COLUMNS) or not is_number(row[0]):
            wrong += _faults(file, rows.line_num, row, before=before, numbers=numbers)
            continue
        before = moment
        times.append(moment)
        models.append(model)
        if len(times) > MOST_CALLS:
            raise InputError([csv_problem(file, "", f"more than {MOST_CALLS} calls", f"at most {MOST_CALLS}")])
    if wrong:
        more = len(wrong) - MOST_TOLD
        told = [] if more <= 0 else [csv_problem(file, "", f"{more} more such problems", "none", "fix these first")]
        raise InputError(wrong[:MOST_TOLD] + told)
    if not times:
        raise InputError([csv_problem(file, "", "no call", "a line for each request")])
    seconds = math.nextafter(before, math.inf) if before else 1.0
    return Trace(times=np.array(times), models=np.array(models, dtype=np.int64), seconds=seconds)


def _faults(file: Path, line: int, row: list[str], *, before: float, numbers: dict[str, int]) -> list[Problem]:
    """All that is wrong with a line."""
    place = f"line {line}"
    if len(row) != len(COLUMNS):
        return [csv_problem(file, place, f"{len(row)} values", "time_seconds,model")]
    faults = []
    moment = float(row[0]) if NUMBER.fullmatch(row[0]) else math.nan
    if not before <= moment <= LATEST:
        allowed = f"seconds from the beginning, {before:g} or more (the request before)"
        advice = ""
        if moment > LATEST:
            allowed = f"seconds from the beginning, at most {LATEST:,.0f}"
            advice = "Subtract the moment of the first request, where times are since 1970."
        faults.append(csv_problem(file, f"{place}, time_seconds", _shown(row[0]), allowed, advice))
    if row[1] not in numbers:
        names = list(numbers)
        known = ", ".join(names[:3]) + (f", … {names[-1]}" if len(names) > 3 else "")
        faults.append(csv_problem(file, f"{place}, model", _shown(row[1]), f"a model of the scenario: {known}"))
    return faults
