"""A trace from a CSV file with the columns ``time_seconds`` and ``model``."""

from __future__ import annotations

import csv
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tritonstack.errors import InputError, Problem
from tritonstack.sizing.fleet.scenario import MOST_CALLS
from tritonstack.sizing.fleet.trace import Trace

COLUMNS = ["time_seconds", "model"]
MOST_TOLD = 20


def read_trace(file: Path, *, names: Sequence[str] | None) -> Trace:
    """The calls in ``file``, of the models called ``names``; None: not known yet, any name is taken as model 0.

    Raises:
        InputError: unreadable, not the two columns, a time that is no number or earlier than the one before, a model
            that nobody knows, no call, too many. Of many such lines the first are told, and how many more there are.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            if header != COLUMNS:
                found = ",".join(header)[:120] or "nothing"
                raise InputError([_problem(file, "line 1", found, ",".join(COLUMNS))])
            known = defaultdict(int) if names is None else {name: number for number, name in enumerate(names)}
            return _calls(file, reader, numbers=known)
    except OSError as error:
        raise InputError([_problem(file, "", error.strerror or "unreadable", "a CSV file")]) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError([_problem(file, "", f"no CSV: {error}", "comma-separated values in UTF-8")]) from error


def _calls(file: Path, rows: Iterable[list[str]], *, numbers: dict[str, int]) -> Trace:
    times, models = array("d"), array("q")
    wrong: list[Problem] = []
    before = 0.0
    for line, row in enumerate(rows, start=2):
        try:
            moment, model = float(row[0]), numbers[row[1]]
        except (ValueError, IndexError, KeyError):
            wrong += _faults(file, line, row, before=before, numbers=numbers)
            continue
        if not before <= moment < math.inf or len(row) != len(COLUMNS):
            wrong += _faults(file, line, row, before=before, numbers=numbers)
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
    try:
        moment = float(row[0])
    except ValueError:
        moment = math.nan
    if not before <= moment < math.inf:
        allowed = f"seconds from the beginning, {before:g} or more (the call before)"
        faults.append(_problem(file, f"{place}, time_seconds", row[0][:80] or "nothing", allowed))
    if not isinstance(numbers, defaultdict) and row[1] not in numbers:
        names = list(numbers)
        known = ", ".join(names[:3]) + (f", … {names[-1]}" if len(names) > 3 else "")
        faults.append(_problem(file, f"{place}, model", row[1][:80] or "nothing", f"a model of the scenario: {known}"))
    return faults


def _problem(file: Path, place: str, found: str, allowed: str, advice: str = "") -> Problem:
    return Problem(file=str(file), field=place, found=found, allowed=allowed, advice=advice)
