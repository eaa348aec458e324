"""Arithmetic, comparisons and logic of metric math.

Source: CloudWatch user guide, "Basic arithmetic functions" and "Comparison and logical operators": between two series a
missing value counts as 0; a point that would be divided by zero is dropped. A power that has no real value is dropped
too (UNVERIFIED).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError
from tritonstack_local.emulator.cloudwatch.series import Series, Value, describe, times_of


def _power(base: float, exponent: float) -> float | None:
    try:
        result = base**exponent
    except (OverflowError, ZeroDivisionError):
        return None
    return result if isinstance(result, int | float) else None


def _truth(relation: Callable[[float, float], bool]) -> Callable[[float, float], float | None]:
    return lambda left, right: float(relation(left, right))


_NUMBERS: dict[str, Callable[[float, float], float | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else None,
    "^": _power,
    "==": _truth(operator.eq),
    "!=": _truth(operator.ne),
    "<=": _truth(operator.le),
    ">=": _truth(operator.ge),
    "<": _truth(operator.lt),
    ">": _truth(operator.gt),
    "AND": _truth(lambda left, right: left != 0 and right != 0),
    "OR": _truth(lambda left, right: left != 0 or right != 0),
}


def apply(sign: str, left: Value, right: Value) -> Value:
    """Two values and an operator; raises ``ExpressionError`` where they do not go together."""
    number = _NUMBERS[sign]
    if isinstance(left, list) and isinstance(right, list):
        raise ExpressionError(f"'{sign}' does not take two arrays of time series")
    if isinstance(left, list):
        return [_of_series(number, one, _single(right)) for one in left]
    if isinstance(right, list):
        return [_of_series(number, _single(left), one) for one in right]
    if isinstance(left, Series) or isinstance(right, Series):
        return _of_series(number, left, right)
    result = number(left, right)
    if result is None or not math.isfinite(result):
        raise ExpressionError(f"{left:g} {sign} {right:g} has no value")
    return result


def negate(value: Value) -> Value:
    """Unary minus."""
    if isinstance(value, list):
        return [_negated(series) for series in value]
    return _negated(value) if isinstance(value, Series) else -value


def _negated(series: Series) -> Series:
    return series.computed({time: -value for time, value in series.points.items()})


def _single(value: Value) -> float | Series:
    if isinstance(value, list):
        raise ExpressionError(f"not expected here: {describe(value)}")
    return value


def _of_series(number: Callable[[float, float], float | None], left: float | Series, right: float | Series) -> Series:
    """At least one is a series: where both are, a missing value is 0."""
    many = [one for one in (left, right) if isinstance(one, Series)]
    points = {}
    for time in times_of(many):
        result = number(_at(left, time), _at(right, time))
        if result is not None and math.isfinite(result):
            points[time] = result
    return many[0].computed(points)


def _at(value: float | Series, time: int) -> float:
    return value.points.get(time, 0.0) if isinstance(value, Series) else value
