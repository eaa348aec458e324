"""A day's load, hour by hour, from a CSV file with the columns ``hour`` and ``invocations_per_min``."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack_capacity.sizing.number import ABOVE_ZERO, is_above_zero, number_of

HOURS = 24
COLUMNS = ("hour", "invocations_per_min")


@dataclass(frozen=True, kw_only=True)
class DailyCurve:
    """``loads[hour]``: invocations a minute in each hour of a day, 24 of them; the greatest is above zero."""

    loads: tuple[Decimal, ...]

    @property
    def peak(self) -> Decimal:
        """The greatest load of the day."""
        return max(self.loads)

    @property
    def least(self) -> Decimal:
        """The smallest load of the day."""
        return min(self.loads)


def read_daily_curve(file: Path) -> DailyCurve:
    """The curve in ``file``.

    Raises:
        InputError: unreadable, not the two columns, not each hour from 0 to 23 once, a load below zero, none above it.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, strict=True)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise InputError([_problem(file, "line 1", ",".join(reader.fieldnames or ()), ",".join(COLUMNS))])
            lines = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise InputError([_problem(file, "", error.strerror or "unreadable", "a CSV file")]) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError([_problem(file, "", f"no CSV: {error}", "comma-separated values in UTF-8")]) from error
    return _curve(file, lines)


def _curve(file: Path, lines: list[tuple[int, dict[str | None, str | list[str] | None]]]) -> DailyCurve:
    problems: list[Problem] = []
    loads: dict[int, Decimal] = {}
    for number, row in lines:
        if None in row or None in row.values():
            found = "more or fewer values than columns"
            problems.append(_problem(file, f"line {number}", found, "one for each column"))
            continue
        hour, load = (number_of(str(row[column])) for column in COLUMNS)
        if hour is None or hour != hour.to_integral_value() or not 0 <= hour < HOURS:
            problems.append(_problem(file, f"line {number}, hour", str(row.get("hour")), "a whole number, 0 to 23"))
        elif int(hour) in loads:
            problems.append(_problem(file, f"line {number}, hour", f"{hour} a second time", "each hour once"))
        elif load is None or (load != 0 and not is_above_zero(load)):
            found = str(row.get("invocations_per_min"))
            problems.append(_problem(file, f"line {number}, invocations_per_min", found, f"zero, or {ABOVE_ZERO}"))
        else:
            loads[int(hour)] = load
    missing = [str(hour) for hour in range(HOURS) if hour not in loads]
    if not problems and missing:
        problems.append(_problem(file, "hour", f"nothing for {', '.join(missing)}", "each hour from 0 to 23"))
    if not problems and not any(loads.values()):
        problems.append(_problem(file, "invocations_per_min", "zero all day", "a load above zero in some hour"))
    if problems:
        raise InputError(problems)
    return DailyCurve(loads=tuple(loads[hour] for hour in range(HOURS)))


def _problem(file: Path, place: str, found: str, allowed: str) -> Problem:
    return Problem(file=str(file), field=place, found=found, allowed=allowed)
