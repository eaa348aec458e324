"""Measurements from CSV, whose columns are those of the published load test, and the price of an instance hour."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal, InvalidOperation
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.price_file import project_prices
from tritonstack.catalogue.prices import hosting_price
from tritonstack.errors import InputError, Problem, refuse
from tritonstack_capacity.csv_file import (
    CONFIGURATION,
    GPUS,
    INSTANCE_TYPE,
    LATENCY,
    PRICE,
    RATE,
    THIS_MACHINE,
    csv_problem,
    reading,
)

LEAST = Decimal("0.000001")
MOST = Decimal(10) ** 12
ABOVE_ZERO = "a number above zero (0.000001 to 1e12), without unit or separator"
WRITTEN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""Narrower than what ``Decimal`` takes: it reads ``3_0000`` and the digits of every script."""


def number_of(text: str | None) -> Decimal | None:
    """The finite number that ``text`` is; None where it is none (``30k``, ``500ms``, ``3_0000``, ``NaN``, nothing)."""
    stripped = (text or "").strip()
    if not WRITTEN.fullmatch(stripped):
        return None
    try:
        number = Decimal(stripped)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def is_above_zero(number: Decimal) -> bool:
    """Whether ``number`` is one that a rate, a latency or a price can be: above zero, and neither 1e-400 nor 1e400."""
    return number.is_finite() and LEAST <= number <= MOST


def rounded(number: Decimal, *, digits: int, rounding: str = ROUND_DOWN) -> Decimal:
    """``number``, which is not zero, by its first ``digits`` digits (22.8166…, 4 → 22.81) at most."""
    last = Decimal(1).scaleb(number.adjusted() - digits + 1)
    exponent = number.as_tuple().exponent
    return number.quantize(last, rounding) if isinstance(exponent, int) and exponent < last.adjusted() else number


def plain(value: Decimal) -> str:
    """Without exponent and trailing zeros."""
    return f"{value.normalize():f}"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Results of a load test."""

    configuration: str  # the name of the model's configuration (``trt-db``: TensorRT with dynamic batching)
    instance_type: str  # where it ran (``ml.g4dn.2xlarge``)
    invocations_per_minute: Decimal  # what one instance served in a minute
    # the model's latency at that rate, milliseconds, as the test states it (its percentile with it)
    latency_ms: Decimal
    usd_per_hour: Decimal | None = None  # of one instance, as in the file; None where it is missing
    line: int = 0  # of the file, counted from 1; the header is line 1

    @property
    def is_local(self) -> bool:
        """Whether it was measured on the local AWS: on this machine's processor, of no instance type."""
        return self.instance_type == THIS_MACHINE

    @property
    def name(self) -> str:
        """Name of the row in messages."""
        return f"{self.configuration} on {self.instance_type}"


# The columns of the published table (AWS Machine Learning Blog, the load test of BERT large): ``configuration_name``,
# ``instance_type``, ``invocations_per_min_per_instance`` and ``model_latency_as_printed`` (milliseconds) are needed;
# ``implied_hourly_price_usd`` is the price of an instance type; ``gpus`` is compared with the catalogue; other columns
# are for readers.
NEEDED = (CONFIGURATION, INSTANCE_TYPE, RATE, LATENCY)
NUMBERS = (RATE, LATENCY, PRICE, GPUS)
ABSENT = ("", "NA")
MOST_ROWS = 10_000


def read_measurements(file: Path) -> tuple[Measurement, ...]:
    """The rows of ``file`` in its own order; at least one.

    Raises InputError: no such file, a column that is missing, a value that is none, or rows that contradict each other
    or the catalogue; all at once.
    """
    reader = _Reader(file)
    found = [reader.row(line, row) for line, row in list(_rows(file))]
    measurements = reader.compared(tuple(each for each in found if each is not None))
    refuse(reader.problems)
    if not measurements:
        raise InputError([csv_problem(file, "", "no row", "a line for each configuration and instance type")])
    return measurements


def _rows(file: Path) -> Iterator[tuple[int, Mapping[str, str] | None]]:
    """Each line's number and values; None for values that are not as many as the header has names."""
    with reading(file), file.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream, strict=True)
        _check_header(file, reader.fieldnames or [])
        for row in reader:
            if reader.line_num > MOST_ROWS:
                raise InputError([csv_problem(file, "", f"more than {MOST_ROWS} lines", "a table of measurements")])
            whole = None not in row and None not in row.values()
            yield reader.line_num, {name: value.strip() for name, value in row.items()} if whole else None


def _check_header(file: Path, names: Sequence[str]) -> None:
    missing = [name for name in NEEDED if name not in names]
    twice = sorted({name for name in names if list(names).count(name) > 1})
    problems = [csv_problem(file, "line 1", f"no column {name}", f"columns {', '.join(NEEDED)}") for name in missing]
    problems += [csv_problem(file, "line 1", f"column {name} twice", "each column once") for name in twice]
    refuse(problems)


class _Reader:
    """Turns lines into measurements and collects their problems."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def row(self, line: int, row: Mapping[str, str] | None) -> Measurement | None:
        """The measurement of a line; None where it has problems."""
        if row is None:
            self.problems.append(
                csv_problem(self.file, f"line {line}", "more or fewer values than columns", "one for each column")
            )
            return None
        before = len(self.problems)
        for name in (CONFIGURATION, INSTANCE_TYPE):
            if row[name] in ABSENT:
                self._add(line, name, row[name] or "nothing", "a name")
        numbers = {name: self._number(line, name, row) for name in NUMBERS}
        gpus, known = numbers[GPUS], load_catalogue().instance(row[INSTANCE_TYPE])
        if gpus is not None and known is not None and known.gpu_count != gpus:
            self._add(line, GPUS, f"{gpus} on {known.name}", f"{known.gpu_count}, as the catalogue has it")
        rate, latency = numbers[RATE], numbers[LATENCY]
        if len(self.problems) > before or rate is None or latency is None:
            return None
        return Measurement(
            configuration=row[CONFIGURATION],
            instance_type=row[INSTANCE_TYPE],
            invocations_per_minute=rate,
            latency_ms=latency,
            usd_per_hour=numbers[PRICE],
            line=line,
        )

    def compared(self, rows: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        """``rows``, each with the price of its instance type where any of them has one.

        What cannot be true at once is a problem: one configuration measured twice, one type at two prices.
        """
        first: dict[tuple[str, str], Measurement] = {}
        priced: dict[str, Measurement] = {}
        for row in rows:
            earlier = first.setdefault((row.configuration, row.instance_type), row)
            if earlier is not row:
                found = f"{row.name} is on line {earlier.line} already"
                self._add(row.line, CONFIGURATION, found, "each configuration once on each instance type", _ONCE)
            if row.usd_per_hour is None:
                continue
            earlier = priced.setdefault(row.instance_type, row)
            if earlier.usd_per_hour is not None and earlier.usd_per_hour != row.usd_per_hour:
                price, other = plain(row.usd_per_hour), plain(earlier.usd_per_hour)
                found = f"{price} USD an hour for {row.instance_type}, {other} on line {earlier.line}"
                self._add(row.line, PRICE, found, "one price for an instance type", _OVERRIDE)
        types = {name: row.usd_per_hour for name, row in priced.items()}
        return tuple(replace(row, usd_per_hour=types.get(row.instance_type)) for row in rows)

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

    def _add(self, line: int, column: str, found: str, allowed: str, advice: str = "") -> None:
        self.problems.append(csv_problem(self.file, f"line {line}, {column}", found, allowed, advice))


_ONCE = "leave one of them out, or give them two names"
_OVERRIDE = "take prices of one day and region, or leave the column of prices out: listed prices are taken then"


@dataclass(frozen=True, kw_only=True)
class InstancePrice:
    """A price with its source, in words."""

    usd_per_hour: Decimal  # of one instance
    source: str  # of the price, with its date if there is one


def listed_price(instance_type: str, *, region: str, project: Path | None) -> InstancePrice | None:
    """The price of ``project``'s own ``prices.json``, else the catalogue's. Raises InputError: the file is wrong."""
    listed = hosting_price(instance_type=instance_type, region=region, own=project_prices(project))
    if listed is None:
        return None
    date = f", {listed.date}" if listed.date else ""
    source = f"{listed.source} ({region}, component {listed.component}{date})"
    return InstancePrice(usd_per_hour=Decimal(str(listed.usd_per_hour)), source=source)


PriceOf = Callable[[Measurement], InstancePrice | None]
"""The price of a measurement's instance type; None where no source has it: unknown, never zero."""


def prices(*, region: str, overrides: Mapping[str, float], project: Path | None = None) -> PriceOf:
    """Prices in ``region``: by ``overrides`` (instance type → USD an hour), else measured, else listed."""
    given = {name: Decimal(str(price)) for name, price in overrides.items()}

    def price_of(row: Measurement) -> InstancePrice | None:
        if row.instance_type in given:
            return InstancePrice(usd_per_hour=given[row.instance_type], source="the environment file")
        if row.usd_per_hour is not None:
            return InstancePrice(usd_per_hour=row.usd_per_hour, source="the measurements")
        return listed_price(row.instance_type, region=region, project=project)

    return price_of
