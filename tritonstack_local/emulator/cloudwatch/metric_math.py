"""Metric math: series, and the expressions that this project's alarms and dashboards use.

Sources: CloudWatch user guide, "Metric math syntax and functions", "Using IF expressions" and "CloudWatch statistics
definitions". The guide names the operators and does not rank them; here they bind as in Python. An expression is read
by Python's parser after its tokens were checked, and every node is checked against a whitelist: numbers, Ids,
``+ - * /``, comparisons, AND, OR, IF and PERIOD. Anything else is refused by name. AWS documents that an expression is
refused (ValidationError), not in which words.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace


class ExpressionError(ValueError):
    """An expression or a statistic that is refused, or that has no value; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The time of a query: from ``start`` until before ``end``, in steps of ``period``; all in seconds."""

    start: int
    end: int
    period: int

    def times(self) -> range:
        """The beginning of each period."""
        return range(self.start, self.end, self.period)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Values by the beginning of their period (seconds since the epoch)."""

    label: str  # the series' name in a graph
    span: Span  # where points could be
    points: dict[int, float] = field(default_factory=dict)
    is_metric: bool = False  # whether it was read, not computed: PERIOD takes no other

    def computed(self, points: dict[int, float]) -> Series:
        """The same series with other points."""
        return replace(self, points=points, is_metric=False)


Value = float | Series


# --- Periods and statistics ---

_SUB_MINUTE = (1, 5, 10, 20, 30)
STATISTICS = ("SampleCount", "Sum", "Average", "Minimum", "Maximum")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,10})?|100)")


def problem_with_period(period: int, *, sub_minute: Sequence[int] = _SUB_MINUTE) -> str | None:
    """A sentence where it is none: one below a minute that there is, or a multiple of 60 seconds."""
    if period in sub_minute or (period > 0 and period % 60 == 0):
        return None
    return f"Period {period} is not valid: it is {', '.join(map(str, sub_minute))}, or a multiple of 60 seconds"


def check_statistic(name: str) -> None:
    """Raise ``ExpressionError`` for an unknown or unsupported statistic."""
    if name not in STATISTICS and not _PERCENTILE.fullmatch(name):
        has = ", ".join(STATISTICS)
        raise ExpressionError(f"Statistic {name} is not in the local AWS; it has {has} and percentiles as p99")


# --- Expressions ---

_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<name>[A-Za-z]\w*)|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/<>(),])",
    re.ASCII,
)
_LOGICAL = {"OR": "or", "||": "or", "AND": "and", "&&": "and"}
_ID = "id_"
"""Prefixed to names for Python's parser, to which ``in`` and ``is`` are no names."""
_LARGEST_DEPTH = 100
_SUPPORTED = "numbers, Ids, + - * /, comparisons, AND, OR, IF and PERIOD"

_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.And: lambda left, right: left != 0 and right != 0,
    ast.Or: lambda left, right: left != 0 or right != 0,
}
_ARGUMENTS = {"IF": (2, 3), "PERIOD": (1,)}


def parse(expression: str) -> ast.expr:
    """The checked syntax tree of an expression; raises ``ExpressionError`` that names what is unsupported."""
    try:
        tree = ast.parse(" ".join(_python_tokens(expression)), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ExpressionError(f"'{expression}' is not metric math: {_SUPPORTED}") from error
    _check(tree, depth=0)
    return tree


def names(tree: ast.expr) -> set[str]:
    """Every Id that an expression refers to."""
    functions = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {_name(node) for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in functions}


def evaluate(tree: ast.expr, value_of: Callable[[str], Value], span: Span) -> Value:
    """The value of a parsed expression; raises ``ExpressionError``."""

    def value(node: ast.expr) -> Value:
        result: Value
        match node:
            case ast.Constant(value=float() as result):
                pass
            case ast.Name():
                result = value_of(_name(node))
            case ast.UnaryOp(operand=operand):
                result = _combined(operator.sub, 0.0, value(operand))
            case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]):
                result = _combined(_OPERATORS[type(sign)], value(left), value(right))
            case ast.BoolOp(op=sign, values=operands):
                combine = functools.partial(_combined, _OPERATORS[type(sign)])
                result = functools.reduce(combine, map(value, operands))
            case ast.Call(func=ast.Name() as function, args=arguments) if _name(function) == "IF":
                result = _if([value(argument) for argument in arguments], span)
            case ast.Call(args=[argument]):
                result = _period(value(argument))
            case _:
                raise TypeError(node)
        return result

    return value(tree)


def _python_tokens(expression: str) -> Iterable[str]:
    """Python's spelling of each token; spaces between them keep Python's own ``**``, ``//`` and ``<<`` out."""
    at = 0
    while expression[at:].strip():
        at += len(expression[at:]) - len(expression[at:].lstrip())
        token = _TOKEN.match(expression, at)
        if token is None:
            raise ExpressionError(
                f"Unexpected '{expression[at]}' at character {at + 1}: the local AWS has {_SUPPORTED}"
            )
        if token[0] in _LOGICAL:
            yield _LOGICAL[token[0]]
        else:
            yield repr(float(token[0])) if token["number"] else (_ID if token["name"] else "") + token[0]
        at = token.end()


def _name(node: ast.Name) -> str:
    return node.id.removeprefix(_ID)


def _check(node: ast.expr, *, depth: int) -> None:
    if depth > _LARGEST_DEPTH:
        raise ExpressionError(f"The expression nests deeper than {_LARGEST_DEPTH} levels")
    match node:
        case ast.Constant() | ast.Name():
            parts: list[ast.expr] = []
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
        case ast.Compare(left=left, comparators=[right]):
            parts = [left, right]
        case ast.BoolOp(values=parts):
            pass
        case ast.Call(func=ast.Name() as function, args=parts):
            _check_call(_name(function), len(parts))
        case _:
            found = ast.unparse(node).replace(_ID, "")
            raise ExpressionError(f"'{found}' is not in the local AWS's metric math: {_SUPPORTED}")
    for part in parts:
        _check(part, depth=depth + 1)


def _check_call(function: str, count: int) -> None:
    allowed = _ARGUMENTS.get(function)
    if allowed is None:
        hint = f"; functions are written in uppercase: {function.upper()}" if function.upper() in _ARGUMENTS else ""
        raise ExpressionError(f"Function {function} is not in the local AWS; it has {', '.join(_ARGUMENTS)}{hint}")
    if count not in allowed:
        raise ExpressionError(f"{function} takes {' or '.join(map(str, allowed))} arguments, not {count}")


def _combined(number: Callable[[float, float], float], left: Value, right: Value) -> Value:
    """Between two series a missing value counts as 0; a point that would be divided by zero is dropped."""
    many = [value for value in (left, right) if isinstance(value, Series)]
    if not many:
        result = _finite(number, left, right)  # type: ignore[arg-type]  # no series: numbers
        if result is None:
            raise ExpressionError(f"An operation on {left:g} and {right:g} has no value")
        return result
    points = {}
    for time in sorted({time for series in many for time in series.points}):
        result = _finite(number, *(v.points.get(time, 0.0) if isinstance(v, Series) else v for v in (left, right)))
        if result is not None:
            points[time] = result
    return many[0].computed(points)


def _finite(number: Callable[[float, float], float], left: float, right: float) -> float | None:
    try:
        result = float(number(left, right))
    except ZeroDivisionError:
        return None
    return result if math.isfinite(result) else None


def _if(values: Sequence[Value], span: Span) -> Value:
    """The guide's table: a true condition without a value gives 0, a false one without a value drops the point."""
    condition, yes, no = (*values, None)[:3]
    if not isinstance(condition, Series):
        chosen = yes if condition else no
        return Series(label="IF", span=span) if chosen is None else chosen
    points = {}
    for time, truth in sorted(condition.points.items()):
        chosen = yes if truth else no
        value = chosen.points.get(time, 0.0 if truth else None) if isinstance(chosen, Series) else chosen
        if value is not None:
            points[time] = value
    return condition.computed(points)


def _period(value: Value) -> float:
    if not isinstance(value, Series) or not value.is_metric:
        raise ExpressionError("PERIOD takes a metric, not the result of an expression")
    return float(value.span.period)
