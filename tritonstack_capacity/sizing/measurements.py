"""Measurements from CSV, whose columns are those of the published load test, and the price of an instance hour."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal, InvalidOperation
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.prices import hosting_price
from tritonstack.errors import InputError, Problem
from tritonstack_capacity.measurement_columns import (
    CONFIGURATION,
    COST,
    COUNT,
    GPUS,
    INSTANCE_TYPE,
    LATENCY,
    PRICE,
    RATE,
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
    """Without an exponent and without zeros that say nothing."""
    return f"{value.normalize():f}"


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What a load test found.

    Attributes:
        configuration: the name of the model's configuration (``trt-db``: TensorRT with dynamic batching).
        instance_type: where it ran (``ml.g4dn.2xlarge``).
        invocations_per_minute: what one instance answered in a minute.
        latency_ms: the model's latency at that rate, milliseconds, as the test states it (its percentile with it).
        usd_per_hour: of one instance, where the file says it; None where it does not.
        gpus: of one instance, where the file says it; None where it does not.
        line: of the file, counted from 1; the header is line 1.
    """

    configuration: str
    instance_type: str
    invocations_per_minute: Decimal
    latency_ms: Decimal
    usd_per_hour: Decimal | None = None
    gpus: int | None = None
    line: int = 0

    @property
    def name(self) -> str:
        """How messages call the row."""
        return f"{self.configuration} on {self.instance_type}"


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """A file of measurements, in its own order; at least one row."""

    file: Path
    rows: tuple[Measurement, ...]


# A cost of 45.66 USD for 62 instances was rounded to a cent, so that the price is anything from 0.73637 to 0.73653.
# Rows of one type contradict each other only where no price fits all of them.
SHOWN_DIGITS = 6
MOST_DIGITS = 15
ROUNDING_OF_FLOATS = Decimal("1e-9")
"""Of a cost: programs write 28.199999999999996 for 30 x 0.94."""


@dataclass(frozen=True, kw_only=True)
class PriceRange:
    """What a row says that an instance costs an hour, USD: anything from ``least`` to ``most``.

    Attributes:
        least, most: equal where the row states the price.
        column: which of the file's columns says it.
        line: of the file.
    """

    least: Decimal
    most: Decimal
    column: str
    line: int

    def __str__(self) -> str:
        ends = (rounded(end, digits=SHOWN_DIGITS, rounding=ROUND_HALF_EVEN) for end in (self.least, self.most))
        return " to ".join(dict.fromkeys(map(plain, ends)))


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Two rows of one instance type that no price fits."""

    instance_type: str
    one: PriceRange
    earlier: PriceRange


def stated_price(price: Decimal, *, line: int) -> PriceRange:
    """The price that a row has a column for."""
    return PriceRange(least=price, most=price, column=PRICE, line=line)


def price_by_cost(cost: Decimal, *, count: Decimal, line: int) -> PriceRange:
    """What ``count`` instances for ``cost`` USD an hour allow."""
    rest = rounding_of(cost)
    return PriceRange(least=(cost - rest) / count, most=(cost + rest) / count, column=COST, line=line)


def rounding_of(cost: Decimal) -> Decimal:
    """What the writer of ``cost`` may have rounded away: half a unit of its last digit, at most half a dollar."""
    exponent = cost.as_tuple().exponent
    last = min(exponent, 0) if isinstance(exponent, int) else 0
    return max(Decimal(5).scaleb(last - 1), cost * ROUNDING_OF_FLOATS)


def prices_of_types(
    ranges: Iterable[tuple[str, PriceRange]],
) -> tuple[Mapping[str, Decimal], tuple[Contradiction, ...]]:
    """For each instance type the shortest number that all of its rows allow; and the rows that no price fits."""
    highest: dict[str, PriceRange] = {}
    lowest: dict[str, PriceRange] = {}
    wrong: list[Contradiction] = []
    for type_, each in ranges:
        low, high = highest.setdefault(type_, each), lowest.setdefault(type_, each)
        earlier = high if each.least > high.most else low if each.most < low.least else None
        if earlier is not None:
            wrong.append(Contradiction(instance_type=type_, one=each, earlier=earlier))
            continue
        highest[type_] = max(low, each, key=lambda one: one.least)
        lowest[type_] = min(high, each, key=lambda one: one.most)
    found = {type_: _shortest(low.least, lowest[type_].most) for type_, low in highest.items()}
    return found, tuple(wrong)


def _shortest(least: Decimal, most: Decimal) -> Decimal:
    """The number of the fewest digits in the range: prices are such numbers. Nearest to the middle, if several are."""
    if least == most:
        return least
    middle = (least + most) / 2
    for digits in range(1, MOST_DIGITS):
        number = rounded(middle, digits=digits, rounding=ROUND_HALF_EVEN)
        if least <= number <= most:
            return number
    return middle


# The columns of the published table (AWS Machine Learning Blog, the load test of BERT large): ``configuration_name``,
# ``instance_type``, ``invocations_per_min_per_instance`` and ``model_latency_as_printed`` (milliseconds) are needed;
# ``implied_hourly_price_usd``, or ``cost_per_hour_usd`` with ``initial_instance_count``, gives the price of an
# instance type; ``gpus`` is compared with the catalogue; every other column is for its readers.
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


@dataclass(frozen=True, kw_only=True)
class InstancePrice:
    """A price with its source, in words.

    Attributes:
        usd_per_hour: of one instance.
        source: who says so, with the date where one is known.
    """

    usd_per_hour: Decimal
    source: str


PriceOf = Callable[[Measurement], InstancePrice | None]
"""The price of a measurement's instance type; None where nobody gives it: then it is unknown, never zero."""


def prices(*, region: str, overrides: Mapping[str, float], project: Path | None = None) -> PriceOf:
    """Prices in ``region``: by ``overrides`` (instance type → USD an hour), else measured, else listed.

    Listed prices are those of ``project``'s own ``prices.json``, else the catalogue's.

    Raises:
        InputError: an override that is no price (1e300).
    """
    given = {name: Decimal(str(price)) for name, price in overrides.items()}
    wrong = {name: price for name, price in given.items() if not is_above_zero(price)}
    if wrong:
        problems = [
            Problem(field=f"prices: {name}", found=str(price), allowed=ABOVE_ZERO) for name, price in wrong.items()
        ]
        raise InputError(problems)

    def price_of(row: Measurement) -> InstancePrice | None:
        if row.instance_type in given:
            return InstancePrice(usd_per_hour=given[row.instance_type], source="the environment file")
        if row.usd_per_hour is not None:
            return InstancePrice(usd_per_hour=row.usd_per_hour, source="the measurements")
        listed = hosting_price(instance_type=row.instance_type, region=region, project=project)
        if listed is None:
            return None
        date = f", {listed.date}" if listed.date else ""
        source = f"{listed.source} ({region}, component {listed.component}{date})"
        return InstancePrice(usd_per_hour=Decimal(str(listed.usd_per_hour)), source=source)

    return price_of
