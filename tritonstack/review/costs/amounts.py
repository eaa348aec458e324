"""Amounts of money an hour, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

HOURS_A_MONTH = 730
"""365 days in twelve parts, as AWS's own estimates have it."""
_DIGITS = Decimal("0.0001")
_CENTS = 2
UNIT = " USD/hour"


@dataclass(frozen=True, kw_only=True)
class Amount:
    """USD an hour."""

    known: Decimal = Decimal(0)  # the sum of the parts with a known price
    # name of an unknown price → how many times it is in the sum, never 0
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The whole sum; None where a part is unknown."""
        return None if self.unknown else self.known

    @property
    def text(self) -> str:
        """``1.472 USD/hour``, or ``at least 0.736 USD/hour, plus 2 unknown``."""
        if not self.unknown:
            return f"{number(self.known)}{UNIT}"
        count = len(self.unknown)
        return f"at least {number(self.known)} USD/hour, plus {count} unknown" if self.known else "unknown"

    def __add__(self, other: Amount) -> Amount:
        names = sorted(self.unknown.keys() | other.unknown.keys())
        unknown = {name: self.unknown.get(name, 0) + other.unknown.get(name, 0) for name in names}
        return Amount(known=self.known + other.known, unknown=unknown)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum; zero of none."""
    return sum(amounts, Amount())


def number(usd: Decimal) -> str:
    """An amount to a hundredth of a cent, with cents always: ``0.7364``, ``1.50``."""
    whole, _, digits = str(usd.quantize(_DIGITS, rounding=ROUND_HALF_UP)).partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(_CENTS, '0')}"


def moved_text(before: Amount, after: Amount) -> str:
    """An amount before and after, with the change in per cent where it is known."""
    if before == after:
        return f"{after.text} (no change)"
    old, new = before.usd_per_hour, after.usd_per_hour
    part = "" if not old or new is None else f" ({percent_text((new - old) / old)})"
    text = before.text.removesuffix(UNIT) if after.text.endswith(UNIT) else before.text
    return f"{text} → {after.text}{part}"


def percent_text(part: Decimal) -> str:
    """A part that is not 0 as a signed percentage, to a tenth: 0.1 is ``+10 %``."""
    percent = (part * 100).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)
    return f"{percent:+} %".replace(".0 %", " %") if percent else f"{'-' if part < 0 else '+'}0.1 % or less"
