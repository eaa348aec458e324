"""A trace from a CSV file with the columns ``time_seconds`` and ``model``."""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from array import array
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from tritonstack.errors import InputError, Problem
from tritonstack_capacity.simulation.scenario import LONGEST_MINUTES, MOST_CALLS
from tritonstack_capacity.simulation.trace import MINUTE, Trace

if TYPE_CHECKING:
    from _csv import Reader

GZIP = b"\x1f\x8b"
LATEST = LONGEST_MINUTES * MINUTE
COLUMNS = ["time_seconds", "model"]
MOST_TOLD = 20
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""How a time is written. Python's ``float`` takes more, and reads ``1_0`` as ten."""


def read_trace(file: Path, *, names: Sequence[str] | None) -> Trace:
    """The calls in ``file``, of the models called ``names``; None: not known yet, any name is taken as model 0.

    Raises:
        InputError: unreadable, not the two columns, a time that is no number, earlier than the one before or too late,
            a model that nobody knows, no call, too many. Of many such lines the first are told, and how many more there
            are.
    """
    try:
        with _opened(file) as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            if header != COLUMNS:
                found = _shown(",".join(header))
                raise InputError([_problem(file, "line 1", found, f"{','.join(COLUMNS)}, then a line for each call")])
            known = defaultdict(int) if names is None else {name: number for number, name in enumerate(names)}
            return _calls(file, reader, numbers=known)
    except (csv.Error, UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        allowed = "comma-separated values in UTF-8, as they are or packed by gzip"
        raise InputError([_problem(file, "", f"no CSV: {error}", allowed)]) from error
    except OSError as error:
        raise InputError([_problem(file, "", error.strerror or "unreadable", "a CSV file")]) from error


def _opened(file: Path) -> TextIO:
    with file.open("rb") as raw:
        packed = raw.read(len(GZIP)) == GZIP
    if packed:
        return gzip.open(file, "rt", newline="", encoding="utf-8-sig")
    return file.open(newline="", encoding="utf-8-sig")


def _shown(text: str) -> str:
    """Short, and without what a terminal would take for a command."""
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
            raise InputError([_problem(file, "", f"more than {MOST_CALLS} calls", f"at most {MOST_CALLS}")])
    if wrong:
        more = len(wrong) - MOST_TOLD
        told = [] if more <= 0 else [_problem(file, "", f"{more} more such problems", "none", "mend these first")]
        raise InputError(wrong[:MOST_TOLD] + told)
    if not times:
        raise InputError([_problem(file, "", "no call", "a line for each call")])
    seconds = math.nextafter(before, math.inf) if before else 1.0
    return Trace(times=np.array(times), models=np.array(models, dtype=np.int64), seconds=seconds)


def _faults(file: Path, line: int, row: list[str], *, before: float, numbers: dict[str, int]) -> list[Problem]:
    """All that is wrong with a line."""
    place = f"line {line}"
    if len(row) != len(COLUMNS):
        return [_problem(file, place, f"{len(row)} values", "time_seconds,model")]
    faults = []
    moment = float(row[0]) if NUMBER.fullmatch(row[0]) else math.nan
    if not before <= moment <= LATEST:
        allowed = f"seconds from the beginning, {before:g} or more (the call before)"
        advice = ""
        if moment > LATEST:
            allowed = f"seconds from the beginning, at most {LATEST:,.0f}"
            advice = "Subtract the moment of the first call, where times are since 1970."
        faults.append(_problem(file, f"{place}, time_seconds", _shown(row[0]), allowed, advice))
    if not isinstance(numbers, defaultdict) and row[1] not in numbers:
        names = list(numbers)
        known = ", ".join(names[:3]) + (f", … {names[-1]}" if len(names) > 3 else "")
        faults.append(_problem(file, f"{place}, model", _shown(row[1]), f"a model of the scenario: {known}"))
    return faults


def _problem(file: Path, place: str, found: str, allowed: str, advice: str = "") -> Problem:
    return Problem(file=str(file), field=place, found=found, allowed=allowed, advice=advice)
