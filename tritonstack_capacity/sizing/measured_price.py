"""The one price of an instance type that a file of measurements allows: stated, or from costs as they were rounded.

A cost of 45.66 USD for 62 instances was rounded to a cent, so that the price is anything from 0.73637 to 0.73653. Rows
of one type contradict each other only where no price fits all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from tritonstack.measurement_columns import COST, PRICE
from tritonstack_capacity.sizing.number import plain, rounded

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
