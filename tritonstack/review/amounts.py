"""Sums of money of which parts may be unknown: an unknown price is said, and never counts as nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

HOURS_A_MONTH = 730
"""Of 365 days in twelve parts, as AWS's own estimates have it."""
_DIGITS = Decimal("0.0001")
_CENTS = 2


@dataclass(frozen=True, kw_only=True)
class Amount:
    """USD an hour.

    Attributes:
        known: the sum of the parts whose price is known.
        unknown: what is not known → how many times it is in the sum, never 0. Equal names are the same price.
    """

    known: Decimal = Decimal(0)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The whole sum; None where a part of it is unknown."""
        return None if self.unknown else self.known

    @property
    def text(self) -> str:
        """The sum in words: ``1.472 USD/hour``, or ``at least 0.736 USD/hour, plus 2 unknown``."""
        if not self.unknown:
            return f"{number(self.known)} USD/hour"
        count = len(self.unknown)
        return f"at least {number(self.known)} USD/hour, plus {count} unknown" if self.known else "unknown"

    def __add__(self, other: Amount) -> Amount:
        names = sorted(self.unknown.keys() | other.unknown.keys())
        unknown = {name: self.unknown.get(name, 0) + other.unknown.get(name, 0) for name in names}
        return Amount(known=self.known + other.known, unknown=unknown)


NOTHING = Amount()


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum; nothing of none."""
    return sum(amounts, NOTHING)


def relative(before: Amount, after: Amount) -> Decimal | None:
    """The change as a part of what it was: 0.1 for a tenth more.

    None where a part is unknown, unless both sides are the same, and where it was nothing and no longer is.
    """
    if before == after:
        return Decimal(0)
    old, new = before.usd_per_hour, after.usd_per_hour
    return None if not old or new is None else (new - old) / old


def grows_by_more(before: Amount, after: Amount, *, percent: Decimal) -> bool | None:
    """Whether the amount grows by more than ``percent`` of what it was.

    Whatever the unknown prices are, all of them above 0: True, False; None where it depends on them. From nothing,
    anything is more.
    """
    factor = 1 + percent / 100
    known = after.known - factor * before.known
    parts = [
        after.unknown.get(name, 0) - factor * before.unknown.get(name, 0)
        for name in before.unknown.keys() | after.unknown.keys()
    ]
    if known <= 0 and all(each <= 0 for each in parts):
        return False
    return True if known >= 0 and all(each >= 0 for each in parts) else None


def number(usd: Decimal) -> str:
    """An amount as people read it: to a hundredth of a cent, and cents always."""
    whole, _, digits = str(usd.quantize(_DIGITS, rounding=ROUND_HALF_UP)).partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(_CENTS, '0')}"
