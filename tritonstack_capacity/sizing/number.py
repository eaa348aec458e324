"""Numbers as people type them: finite, and of a size that rates, latencies, prices and factors can have."""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, Decimal, InvalidOperation

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
