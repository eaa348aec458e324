"""The values of metric math: numbers, time series, arrays of time series.

Source: CloudWatch user guide, "Data type abbreviations" (S, TS, TS[]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError


@dataclass(frozen=True, kw_only=True)
class Span:
    """The time that a query looks at: from ``start`` until before ``end``, in steps of ``period`` seconds."""

    start: int
    end: int
    period: int

    def times(self) -> range:
        """Where a series without gaps has its points: the beginning of each period."""
        return range(self.start, self.end, self.period)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values by the beginning of their period (seconds since the epoch).

    Attributes:
        label: for people.
        span: where points could be.
        is_metric: whether it was read, not computed: PERIOD takes no other.
    """

    label: str
    span: Span
    points: dict[int, float] = field(default_factory=dict)
    is_metric: bool = False

    def computed(self, points: dict[int, float]) -> Series:
        """The same series with other points."""
        return replace(self, points=points, is_metric=False)


Value = float | Series | list[Series]


def times_of(many: Iterable[Series]) -> list[int]:
    """Every time at which one of the series has a point."""
    return sorted({time for series in many for time in series.points})


def each(value: Value, change: Callable[[Series], Series], *, function: str) -> Value:
    """``change`` of one series or of each in an array; raises ``ExpressionError`` for a number."""
    if isinstance(value, Series):
        return change(value)
    if isinstance(value, list):
        return [change(series) for series in value]
    raise ExpressionError(f"{function} takes a time series or an array of time series, not a number")


def describe(value: Value) -> str:
    """What kind of value it is."""
    if isinstance(value, Series):
        return "a time series"
    return "an array of time series" if isinstance(value, list) else "a number"
