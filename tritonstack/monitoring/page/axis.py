"""Where an axis has its marks, and what stands beside them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

STEPS = (1.0, 2.0, 5.0, 10.0)
TIME_STEPS = tuple(minutes * 60 for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080))


def value_marks(largest: float, *, most: int = 5, whole: bool = False) -> list[float]:
    """Round values from 0 to at or above ``largest``, at most ``most`` steps of them; ``whole``: no parts of one."""
    if largest <= 0:
        return [0.0, 1.0]
    power = 10 ** math.floor(math.log10(largest / most))
    step = next(power * each for each in STEPS if power * each * most >= largest * (1 - 1e-9))
    step = max(step, 1.0) if whole else step
    steps = min(most, math.ceil(largest / step * (1 - 1e-9)))
    return [step * number for number in range(steps + 1)]


def value_text(value: float) -> str:
    """A value for reading: three digits that matter, thousands by a thin space, no exponent."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}".replace(",", "\u202f")
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}" if size >= 0.01 else f"{value:.2g}"


def time_marks(start: float, end: float, *, most: int = 5) -> list[float]:
    """Round times (UTC) between two times in seconds since 1970, at most ``most`` of them."""
    step = next((each for each in TIME_STEPS if (end - start) / each <= most), TIME_STEPS[-1])
    first = math.ceil(start / step) * step
    return [first + step * number for number in range(int((end - first) // step) + 1)]


def time_text(moment: float, *, days: bool) -> str:
    """``14:05``, or ``21 Nov 14:05`` where a plot covers ``days``."""
    return datetime.fromtimestamp(moment, tz=UTC).strftime("%-d %b %H:%M" if days else "%H:%M")
