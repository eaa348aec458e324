"""Numbers as people type them: finite, and of a size that rates, latencies, prices and factors can have."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

LEAST = Decimal("0.000001")
MOST = Decimal(10) ** 12
ABOVE_ZERO = "a number above zero (0.000001 to 1e12), without unit or separator"


def number_of(text: str | None) -> Decimal | None:
    """The finite number that ``text`` is; None where it is none (``30k``, ``500ms``, ``30,000``, ``NaN``, nothing)."""
    try:
        number = Decimal(text or "")
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def is_above_zero(number: Decimal) -> bool:
    """Whether ``number`` is one that a rate, a latency or a price can be: above zero, and neither 1e-400 nor 1e400."""
    return number.is_finite() and LEAST <= number <= MOST


def plain(value: Decimal) -> str:
    """Without an exponent and without zeros that say nothing."""
    return f"{value.normalize():f}"
