"""A scope for expressions without CloudWatch: series by Id over periods of a minute."""

from __future__ import annotations

from collections.abc import Sequence

from tritonstack_local.emulator.cloudwatch.expression_evaluation import evaluate
from tritonstack_local.emulator.cloudwatch.expression_functions import Series, Span, Value
from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError, parse

START, PERIOD = 1_700_000_040, 60
Points = Sequence[float | None]


class FixedScope:
    """Series given as values, the oldest first, None where one is missing; other names are numbers or arrays."""

    def __init__(self, **given: Points | float) -> None:
        """All series are of one length, six where there is none."""
        length = max((len(value) for value in given.values() if isinstance(value, Sequence)), default=6)
        self.span = Span(start=START, end=START + length * PERIOD, period=PERIOD)
        self._values = {name: self._made(name, value) for name, value in given.items()}

    def _made(self, name: str, value: Points | float) -> Value:
        if not isinstance(value, Sequence):
            return value
        points = {START + at * PERIOD: float(one) for at, one in enumerate(value) if one is not None}
        return Series(label=name, span=self.span, points=points, is_metric=True)

    def value(self, identifier: str) -> Value:
        """See ``Scope``."""
        if identifier not in self._values:
            raise ExpressionError(f"Undefined variable {identifier}")
        return self._values[identifier]

    def metrics(self) -> list[tuple[str, Series]]:
        """See ``Scope``."""
        return [(name, value) for name, value in self._values.items() if isinstance(value, Series)]

    def search(self, text: str, statistic: str, period: int) -> list[Series]:
        """Every series whose Id the text holds."""
        assert (statistic, period) == ("Sum", PERIOD)
        return [series for name, series in self.metrics() if name in text]


def points(series: Series) -> list[float | None]:
    """A series as it is given to ``FixedScope``."""
    return [series.points.get(time) for time in series.span.times()]


def computed(expression: str, **given: Points | float) -> Value:
    """The value of an expression."""
    return evaluate(parse(expression), FixedScope(**given))


def line(expression: str, **given: Points | float) -> list[float | None]:
    """The points of an expression that is one series."""
    value = computed(expression, **given)
    assert isinstance(value, Series)
    return points(value)


def lines(expression: str, **given: Points | float) -> list[list[float | None]]:
    """The points of an expression that is an array."""
    value = computed(expression, **given)
    assert isinstance(value, list)
    return [points(series) for series in value]
