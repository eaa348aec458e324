"""Reads measurements from CSV: the published load test's column names are the format, for own tests too.

The columns of the published table (AWS Machine Learning Blog, the load test of BERT large): ``configuration_name``,
``instance_type``, ``invocations_per_min_per_instance`` and ``model_latency_as_printed`` (milliseconds) are needed;
``implied_hourly_price_usd``, or ``cost_per_hour_usd`` with ``initial_instance_count``, gives the price of an instance
type; ``gpus`` is compared with the catalogue; every other column is for its readers.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.errors import InputError, Problem
from tritonstack.measurement_columns import CONFIGURATION, COST, COUNT, GPUS, INSTANCE_TYPE, LATENCY, PRICE, RATE
from tritonstack_capacity.sizing.measured_price import (
    Contradiction,
    PriceRange,
    price_by_cost,
    prices_of_types,
    rounding_of,
    stated_price,
)
from tritonstack_capacity.sizing.measurement import Measurement, Measurements
from tritonstack_capacity.sizing.number import ABOVE_ZERO, is_above_zero, number_of, plain

NEEDED = (CONFIGURATION, INSTANCE_TYPE, RATE, LATENCY)
NUMBERS = (RATE, LATENCY, PRICE, COST, COUNT, GPUS)
ABSENT = ("", "NA")
CENT_OF_A_CENT = Decimal("0.0001")
MOST_ROWS = 10_000


def read_measurements(file: Path) -> Measurements:
    """The rows of ``file``.

    Raises:
        InputError: no such file, a column that is missing, a value that is none, or rows that contradict each other or
            the catalogue; all at once.
    """
    rows = tuple(_rows(file))
    reader = _Reader(file)
    found = [reader.row(line, row) for line, row in rows]
    measurements = reader.compared(tuple(each for each in found if each is not None))
    if reader.problems:
        raise InputError(reader.problems)
    if not measurements:
        raise InputError([_problem(file, "", "no row", "a line for each configuration and instance type")])
    return Measurements(file=file, rows=measurements)


def _rows(file: Path) -> Iterator[tuple[int, Mapping[str, str] | None]]:
    """Each line's number and values; None for values that are not as many as the header has names."""
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, strict=True)
            names = reader.fieldnames or []
            _check_header(file, names)
            for row in reader:
                if reader.line_num > MOST_ROWS:
                    raise InputError([_problem(file, "", f"more than {MOST_ROWS} lines", "a table of measurements")])
                yield reader.line_num, _whole(row)
    except OSError as error:
        raise InputError([_problem(file, "", error.strerror or "unreadable", "a CSV file")]) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError([_problem(file, "", f"no CSV: {error}", "comma-separated values in UTF-8")]) from error


def _check_header(file: Path, names: Sequence[str]) -> None:
    missing = [name for name in NEEDED if name not in names]
    twice = sorted({name for name in names if list(names).count(name) > 1})
    problems = [_problem(file, "line 1", f"no column {name}", f"columns {', '.join(NEEDED)}") for name in missing]
    problems += [_problem(file, "line 1", f"column {name} twice", "each column once") for name in twice]
    if problems:
        raise InputError(problems)


def _whole(row: dict[str | None, str | list[str] | None]) -> Mapping[str, str] | None:
    if None in row or None in row.values():
        return None
    return {str(name): str(value).strip() for name, value in row.items()}


class _Reader:
    """Turns lines into measurements and keeps what is wrong with them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.ranges: list[tuple[str, PriceRange]] = []

    def row(self, line: int, row: Mapping[str, str] | None) -> Measurement | None:
        """The measurement of a line, yet without a price; None where it has problems."""
        if row is None:
            self.problems.append(
                _problem(self.file, f"line {line}", "more or fewer values than columns", "one for each column")
            )
            return None
        before = len(self.problems)
        for name in (CONFIGURATION, INSTANCE_TYPE):
            if row[name] in ABSENT:
                self._add(line, name, row[name] or "nothing", "a name")
        numbers = {name: self._number(line, name, row) for name in NUMBERS}
        gpus = self._gpus(line, row, numbers[GPUS])
        price = self._price(line, numbers)
        if price is not None and row[INSTANCE_TYPE] not in ABSENT:
            self.ranges.append((row[INSTANCE_TYPE], price))
        if len(self.problems) > before:
            return None
        rate, latency = numbers[RATE], numbers[LATENCY]
        assert rate is not None  # noqa: S101 - without it there was a problem
        assert latency is not None  # noqa: S101
        return Measurement(
            configuration=row[CONFIGURATION],
            instance_type=row[INSTANCE_TYPE],
            invocations_per_minute=rate,
            latency_ms=latency,
            gpus=gpus,
            line=line,
        )

    def compared(self, rows: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        """``rows`` with the price of their instance type, where the file tells one.

        What cannot be true at once is a problem: one configuration measured twice, one type at two prices.
        """
        first: dict[tuple[str, str], Measurement] = {}
        for row in rows:
            earlier = first.setdefault((row.configuration, row.instance_type), row)
            if earlier is not row:
                found = f"{row.name} stands on line {earlier.line} already"
                self._add(row.line, CONFIGURATION, found, "each configuration once on each instance type", _ONCE)
        prices, wrong = prices_of_types(self.ranges)
        for each in wrong:
            self._contradiction(each)
        return tuple(replace(row, usd_per_hour=prices.get(row.instance_type)) for row in rows)

    def _contradiction(self, each: Contradiction) -> None:
        found = f"{each.one} USD an hour for {each.instance_type}, {each.earlier} on line {each.earlier.line}"
        self._add(each.one.line, each.one.column, found, "one price for an instance type", _OVERRIDE)

    def _number(self, line: int, name: str, row: Mapping[str, str]) -> Decimal | None:
        text = row.get(name, "")
        if text in ABSENT:
            if name in NEEDED:
                self._add(line, name, text or "nothing", ABOVE_ZERO)
            return None
        number = number_of(text)
        if number is None or not is_above_zero(number):
            self._add(line, name, text, ABOVE_ZERO)
            return None
        return number

    def _gpus(self, line: int, row: Mapping[str, str], number: Decimal | None) -> int | None:
        if number is None:
            return None
        known = load_catalogue().instance(row[INSTANCE_TYPE])
        if number != number.to_integral_value():
            self._add(line, GPUS, str(number), "a whole number")
        elif known is not None and known.gpu_count != number:
            self._add(line, GPUS, f"{number} on {known.name}", f"{known.gpu_count}, as the catalogue has it")
        return int(number)

    def _price(self, line: int, numbers: Mapping[str, Decimal | None]) -> PriceRange | None:
        """What an instance costs an hour: stated, or cost by count; where both stand they must agree."""
        stated, cost, count = numbers[PRICE], numbers[COST], numbers[COUNT]
        if stated is not None and cost is not None and count is not None:
            self._agrees(line, stated=stated, cost=cost, count=count)
        if stated is not None:
            return stated_price(stated, line=line)
        if cost is None or count is None:
            return None
        return price_by_cost(cost, count=count, line=line)

    def _agrees(self, line: int, *, stated: Decimal, cost: Decimal, count: Decimal) -> None:
        """Within what the writer of the cost may have rounded away."""
        if abs(stated * count - cost) <= max(rounding_of(cost), CENT_OF_A_CENT):
            return
        found = f"{plain(stated)} an instance, and {plain(cost)} for {plain(count)} instances"
        found += f" ({plain(stated * count)} by the price)"
        self._add(line, PRICE, found, f"{COST} = {COUNT} x {PRICE}", "correct one of the three")

    def _add(self, line: int, column: str, found: str, allowed: str, advice: str = "") -> None:
        self.problems.append(_problem(self.file, f"line {line}, {column}", found, allowed, advice))


_ONCE = "leave one of them out, or give them two names"
_OVERRIDE = (
    "take prices of one day and region, or leave the columns of prices and costs out: listed prices are taken then"
)


def _problem(file: Path, place: str, found: str, allowed: str, advice: str = "") -> Problem:
    return Problem(file=str(file), field=place, found=found, allowed=allowed, advice=advice)
