"""What an expression of metric math gives: operators, functions, and those that read more than values.

Source: CloudWatch user guide, "Metric math syntax and functions" and "Using IF expressions". The sentences of the
errors are the local AWS's own: AWS documents that an expression is refused (ValidationError), not in which words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from tritonstack_local.emulator.cloudwatch.expression_functions import (
    ELSEWHERE,
    FUNCTIONS,
    Series,
    Span,
    Value,
    aggregate,
    apply,
    describe,
    each,
    negate,
)
from tritonstack_local.emulator.cloudwatch.expression_syntax import (
    Array,
    Call,
    ExpressionError,
    Name,
    Negation,
    Number,
    Operation,
    Text,
    Tree,
    calls,
)

SPECIAL = ("FILL", "IF", "METRICS", "SEARCH", "SORT", "TIME_SERIES")
_SORTED_BY = ("AVG", "MAX", "MIN", "SUM")


class Scope(Protocol):
    """What an expression can refer to."""

    @property
    def span(self) -> Span:
        """The time that is asked for."""

    def value(self, identifier: str) -> Value:
        """What the query with this Id gives; raises ``ExpressionError`` where there is none."""

    def metrics(self) -> list[tuple[str, Series]]:
        """Every metric of the request and its Id, in order; no expressions."""

    def search(self, text: str, statistic: str, period: int) -> list[Series]:
        """What SEARCH finds."""


def check_functions(tree: Tree) -> None:
    """Raise ``ExpressionError`` that names the first function which is not to be had."""
    for call in calls(tree):
        name = call.function
        if name in ELSEWHERE:
            raise ExpressionError(f"Function {name} is not in the local AWS")
        if name not in FUNCTIONS and name not in SPECIAL:
            known = name.upper() in FUNCTIONS or name.upper() in SPECIAL
            hint = f"; functions are written in uppercase: {name.upper()}" if known else ""
            raise ExpressionError(f"Unknown function {name}{hint}")


def evaluate(tree: Tree, scope: Scope) -> Value:
    """The value of a tree; raises ``ExpressionError``."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return scope.value(tree.value)
    if isinstance(tree, Negation):
        return negate(evaluate(tree.operand, scope))
    if isinstance(tree, Operation):
        return apply(tree.operator, evaluate(tree.left, scope), evaluate(tree.right, scope))
    if isinstance(tree, Array):
        return _array(tree, scope)
    if isinstance(tree, Text):
        raise ExpressionError(f"A text is not expected here: '{tree.value}'")
    return _call(tree, scope)


def _call(call: Call, scope: Scope) -> Value:
    special = {"FILL": _fill, "IF": _if, "METRICS": _metrics, "SEARCH": _search, "SORT": _sort, "TIME_SERIES": _flat}
    if call.function in special:
        return special[call.function](call.arguments, scope)
    check_functions(call)
    return FUNCTIONS[call.function]([evaluate(argument, scope) for argument in call.arguments])


def _array(tree: Array, scope: Scope) -> list[Series]:
    found: list[Series] = []
    for item in tree.items:
        value = evaluate(item, scope)
        if not isinstance(value, Series | list):
            raise ExpressionError("An array takes time series, not a number")
        found += [value] if isinstance(value, Series) else value
    return found


def _metrics(arguments: Sequence[Tree], scope: Scope) -> Value:
    if not arguments:
        return [series for _, series in scope.metrics()]
    if len(arguments) == 1 and isinstance(arguments[0], Text):
        wanted = arguments[0].value
        return [series for identifier, series in scope.metrics() if wanted in identifier]
    raise ExpressionError("METRICS takes nothing or one text")


def _search(arguments: Sequence[Tree], scope: Scope) -> Value:
    if len(arguments) in (2, 3) and isinstance(arguments[0], Text) and isinstance(arguments[1], Text):
        period = arguments[2] if len(arguments) == 3 else Number(scope.span.period)
        if isinstance(period, Number):
            return scope.search(arguments[0].value, arguments[1].value, int(period.value))
    raise ExpressionError("SEARCH takes a text to search, the text of a statistic, and a period in seconds")


def _flat(arguments: Sequence[Tree], scope: Scope) -> Value:
    value = evaluate(arguments[0], scope) if len(arguments) == 1 else None
    if not isinstance(value, float):
        raise ExpressionError("TIME_SERIES takes one number")
    return Series(label="TIME_SERIES", span=scope.span, points=dict.fromkeys(scope.span.times(), value))


def _fill(arguments: Sequence[Tree], scope: Scope) -> Value:
    if len(arguments) != 2:
        raise ExpressionError(f"FILL takes two arguments, not {len(arguments)}")
    value, filler = evaluate(arguments[0], scope), arguments[1]
    if isinstance(filler, Name) and filler.value in ("REPEAT", "LINEAR"):
        fill = _repeated if filler.value == "REPEAT" else _interpolated
        return each(value, lambda series: series.computed(fill(series)), function="FILL")
    other = evaluate(filler, scope)
    if isinstance(other, list):
        raise ExpressionError("FILL does not fill with an array of time series")

    def filled(series: Series) -> Series:
        times = series.span.times()
        fillers = other.points if isinstance(other, Series) else dict.fromkeys(times, other)
        return series.computed({**{time: fillers[time] for time in times if time in fillers}, **series.points})

    return each(value, filled, function="FILL")


def _repeated(series: Series) -> dict[int, float]:
    """Gaps take the value before them; before the first value there is none."""
    points: dict[int, float] = {}
    for time in series.span.times():
        before = points.get(time - series.span.period)
        here = series.points.get(time, before)
        if here is not None:
            points[time] = here
    return points


def _interpolated(series: Series) -> dict[int, float]:
    """Gaps between two values lie on the line between them."""
    known = sorted(series.points)
    points = dict(series.points)
    for first, last in pairwise(known):
        rise = (series.points[last] - series.points[first]) / (last - first)
        for time in range(first + series.span.period, last, series.span.period):
            points[time] = series.points[first] + rise * (time - first)
    return points


def _sort(arguments: Sequence[Tree], scope: Scope) -> Value:
    words = [argument.value if isinstance(argument, Name) else "" for argument in arguments[1:3]]
    limit = arguments[3] if len(arguments) == 4 else None
    if len(words) != 2 or words[0] not in _SORTED_BY or words[1] not in ("ASC", "DESC"):
        raise ExpressionError("SORT takes an array of time series, AVG, MAX, MIN or SUM, and ASC or DESC")
    if len(arguments) > 4 or not (limit is None or isinstance(limit, Number)):
        raise ExpressionError("SORT takes a number as its limit")
    many = evaluate(arguments[0], scope)
    if not isinstance(many, list):
        raise ExpressionError(f"SORT takes an array of time series, not {describe(many)}")
    ranked = sorted(many, key=lambda series: _number(aggregate(words[0], series)), reverse=words[1] == "DESC")
    return ranked[: int(limit.value)] if limit else ranked


def _number(value: Value) -> float:
    if not isinstance(value, float | int):
        raise ExpressionError(f"A number is expected, not {describe(value)}")
    return value


def _if(arguments: Sequence[Tree], scope: Scope) -> Value:
    """The guide's table: a true condition without a value gives 0, a false one without a value drops the point."""
    if len(arguments) not in (2, 3):
        raise ExpressionError(f"IF takes two or three arguments, not {len(arguments)}")
    condition, *results = [evaluate(argument, scope) for argument in arguments]
    if isinstance(condition, list) or any(isinstance(result, list) for result in results):
        raise ExpressionError("IF does not take an array of time series")
    yes, no = results[0], results[1] if len(results) == 2 else None
    if not isinstance(condition, Series):
        chosen = yes if condition else no
        return _empty(scope) if chosen is None else chosen
    points = {}
    for time, truth in sorted(condition.points.items()):
        value = _taken(yes, time, missing=0.0) if truth else _taken(no, time, missing=None)
        if value is not None:
            points[time] = value
    return condition.computed(points)


def _taken(value: Value | None, time: int, *, missing: float | None) -> float | None:
    if isinstance(value, Series):
        return value.points.get(time, missing)
    return value if isinstance(value, float | int) else None


def _empty(scope: Scope) -> Series:
    return Series(label="IF", span=scope.span)
