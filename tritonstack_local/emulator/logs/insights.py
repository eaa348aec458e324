"""Queries of CloudWatch Logs Insights: ``fields``, ``display``, ``filter``, ``parse``, ``stats``, ``sort``, ``limit``.

Source: user guide, "CloudWatch Logs Insights language query syntax", and its pages of these commands. Every other
command, function and operator is refused by name. What the guide leaves open, UNVERIFIED: without ``sort`` the newest
lines come first, the fields of ``parse`` are shown behind those of ``fields``, and the count of no lines is a row.
"""

from __future__ import annotations

import contextlib
import json
import operator
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tritonstack_local.emulator.logs.reader import Reader, unescaped

Value = str | float
Row = dict[str, Value]
"""Fields of a line or of a group, by name."""


@dataclass(frozen=True)
class Command:
    """A step from rows to rows."""

    apply: Callable[[list[Row]], list[Row]]
    is_filter: bool = False


class Time(float):
    """Milliseconds since the epoch."""


TIMESTAMP, MESSAGE, POINTER = "@timestamp", "@message", "@ptr"
MOST_ROWS = 10_000
"""Rows of a query without ``limit``."""


class Line(NamedTuple):
    """A line of a log group."""

    pointer: str
    milliseconds: int  # since the epoch
    ingested: int
    message: str
    stream: str
    log: str  # account:group


@dataclass
class Query:
    """A query that was read."""

    commands: list[Command] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    is_displayed: bool = False  # ``display`` overrides what ``fields`` and ``parse`` show
    is_aggregated: bool = False
    limit: int | None = None

    def run(self, lines: Iterable[Line], *, limit: int | None = None) -> tuple[list[dict[str, str]], int]:
        """The rows of the result, field → text, and how many lines matched. ``limit``: the request's."""
        rows = sorted(map(_row, lines), key=lambda row: row[TIMESTAMP], reverse=True)
        matched = len(rows)
        for command in self.commands:
            rows = command.apply(rows)
            matched = len(rows) if command.is_filter else matched
        rows = rows[: min(self.limit or MOST_ROWS, limit or MOST_ROWS)]
        shown = self.shown or [TIMESTAMP, MESSAGE]
        names = shown if self.is_aggregated else [*shown, POINTER]
        return [{name: _text(row[name]) for name in names if name in row} for row in rows], matched


def _row(line: Line) -> Row:
    """A line's fields: CloudWatch's own, and those of a JSON message, ``a.b`` and ``list.0``."""
    row: Row = {
        TIMESTAMP: Time(line.milliseconds),
        MESSAGE: line.message,
        "@logStream": line.stream,
        "@log": line.log,
        "@ingestionTime": Time(line.ingested),
        POINTER: line.pointer,
    }
    if line.message.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):  # a message that only begins as JSON has no fields
            row.update(_flat(json.loads(line.message), ""))
    return row


def _flat(node: Any, name: str) -> Iterator[tuple[str, Value]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else None
    if children is not None:
        for key, child in children:
            yield from _flat(child, f"{name}.{key}" if name else str(key))
    elif isinstance(node, bool):
        yield name, "1" if node else "0"
    elif isinstance(node, int | float):
        yield name, float(node)
    elif isinstance(node, str):
        yield name, node


def _text(value: Value) -> str:
    """A value as GetQueryResults has it: times in UTC, numbers without a needless fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, Time):
        return datetime.fromtimestamp(value / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return str(int(value)) if value.is_integer() else repr(value)


# --- Reading ---

_FIELD = r"`([^`]+)`|(@?[A-Za-z_][\w.@]*)"
_TEXT = r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'"
_REGEX = r"/((?:[^/\\]|\\.)+)/"
_NUMBER = r"-?\d+(?:\.\d+)?(?![\w.])"
_COMMENT = re.compile(rf"({_TEXT}|{_REGEX})|#[^\n]*")
_COMMANDS = "fields, display, filter, parse, stats, sort and limit"
_DEEPEST = 50
"""Parentheses within each other: more than a person writes, fewer than Python's stack has room for."""


def parse(query: str) -> Query:
    """Read a query. Raises SyntaxProblemError."""
    reader = Reader(_COMMENT.sub(lambda match: match[1] or "", query), what="query")
    found = Query()
    while True:
        name = reader.need(r"[A-Za-z]\w*", f"a command, of {_COMMANDS},")[0]
        read = _READERS.get(name.lower())
        if read is None:
            raise reader.problem(f"{name} is not evaluated here: of the commands {_COMMANDS} are")
        read(reader, found)
        if reader.is_at_end():
            return found
        reader.need(r"\|", "| or the end")


def _field(reader: Reader) -> str:
    found = reader.need(_FIELD, "a field")
    if reader.sees(r"\("):
        raise reader.problem(f"the function {found[0]} is not evaluated here")
    return found[1] or found[2]


def _list(reader: Reader) -> Iterator[None]:
    """Once for each item of a list with commas."""
    yield
    while reader.take(","):
        yield


def _read_fields(reader: Reader, query: Query) -> None:
    for _ in _list(reader):
        name = _field(reader)
        shown = _alias(reader, name)
        if shown != name:
            query.commands.append(_copy(name, shown))
        if not query.is_displayed and shown not in query.shown:
            query.shown.append(shown)


def _copy(name: str, shown: str) -> Command:
    """``fields name as shown``."""
    return Command(lambda rows: [{**row, shown: row[name]} if name in row else row for row in rows])


def _read_display(reader: Reader, query: Query) -> None:
    query.shown, query.is_displayed = [_field(reader) for _ in _list(reader)], True


def _read_limit(reader: Reader, query: Query) -> None:
    number = int(reader.need(r"\d+\b", "a number")[0])
    query.limit = number if query.limit is None else min(number, query.limit)


# --- filter ---

Test = Callable[[Row], bool]


def _read_filter(reader: Reader, query: Query) -> None:
    test = _any_of(reader, depth=0)
    query.commands.append(Command(lambda rows: [row for row in rows if test(row)], is_filter=True))


def _any_of(reader: Reader, *, depth: int) -> Test:
    choices = [_all_of(reader, depth=depth)]
    while reader.take(r"(?i:or)\b|\|\|"):
        choices.append(_all_of(reader, depth=depth))
    return choices[0] if len(choices) == 1 else lambda row: any(each(row) for each in choices)


def _all_of(reader: Reader, *, depth: int) -> Test:
    parts = [_condition(reader, depth=depth)]
    while reader.take(r"(?i:and)\b|&&"):
        parts.append(_condition(reader, depth=depth))
    return parts[0] if len(parts) == 1 else lambda row: all(each(row) for each in parts)


def _condition(reader: Reader, *, depth: int) -> Test:
    if depth > _DEEPEST:
        raise reader.problem(f"more than {_DEEPEST} parentheses or nots within each other")
    if reader.take(r"(?i:not)\b"):
        negated = _condition(reader, depth=depth + 1)
        return lambda row: not negated(row)
    if reader.take(r"\("):
        inside = _any_of(reader, depth=depth + 1)
        reader.need(r"\)", "and, or or the closing )")
        return inside
    if reader.take(r"(?i:ispresent)\s*\("):
        name = _field(reader)
        reader.need(r"\)", "the closing )")
        return lambda row: name in row
    left = _operand(reader)
    sign = reader.need(r"(?i:not\s+)?(?i:like|in)\b|=~|!=|<=|>=|=|<|>", "a comparison, like, =~ or in")[0].lower()
    test = _comparison(reader, sign.removeprefix("not").strip(), left)
    return (lambda row: not test(row)) if sign.startswith("not") else test


Operand = Callable[[Row], "Value | None"]
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _operand(reader: Reader) -> Operand:
    """A field, a number or a text in quotes."""
    if number := reader.take(_NUMBER):
        value: Value = float(number[0])
        return lambda _row: value
    if quoted := reader.take(_TEXT):
        text = unescaped(quoted[1] if quoted[1] is not None else quoted[2])
        return lambda _row: text
    name = _field(reader)
    return lambda row: row.get(name)


def _comparison(reader: Reader, sign: str, left: Operand) -> Test:
    if sign == "in":
        reader.need(r"\[", "a list in brackets")
        choices = [_operand(reader) for _ in _list(reader)]
        reader.need(r"\]", "a comma or the closing ]")
        return lambda row: any(_compare("=", left(row), each(row)) for each in choices)
    if sign in ("like", "=~"):
        if sign == "like" and (quoted := reader.take(_TEXT)):
            part = unescaped(quoted[1] if quoted[1] is not None else quoted[2])
            return lambda row: part in _plain(left(row))
        expression = _regex(reader)
        return lambda row: expression.search(_plain(left(row))) is not None
    right = _operand(reader)
    return lambda row: _compare(sign, left(row), right(row))


def _plain(value: Value | None) -> str:
    return "" if value is None else _text(value)


def _compare(sign: str, left: Value | None, right: Value | None) -> bool:
    """As numbers where both are; a field that a line lacks is equal to nothing."""
    if left is None or right is None:
        return sign == "!="
    number, limit = _number(left), _number(right)
    if number is None or limit is None:
        return bool(_SIGNS[sign](_plain(left), _plain(right)))
    return bool(_SIGNS[sign](number, limit))


def _number(value: Value) -> float | None:
    if isinstance(value, float):
        return float(value)
    return float(value) if re.fullmatch(_NUMBER, value, re.ASCII) else None


def _regex(reader: Reader) -> re.Pattern[str]:
    text = reader.need(_REGEX, "a regular expression, as /a(b|c)/")[1]
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", text).replace(r"\/", "/"))
    except (re.error, OverflowError) as error:
        raise reader.problem(f"/{text}/ is no regular expression: {error}") from error


# --- parse ---


def _read_parse(reader: Reader, query: Query) -> None:
    """``parse @message "user=*, id=*" as user, id``, or with a regular expression's named groups."""
    name = MESSAGE if reader.sees(rf"{_TEXT}|/") else _field(reader)
    if quoted := reader.take(_TEXT):
        pattern = unescaped(quoted[1] if quoted[1] is not None else quoted[2])
        reader.need(r"(?i:as)\b", "as, with a name for each *")
        names = [_field(reader) for _ in _list(reader)]
        if pattern.count("*") != len(names):
            raise reader.problem(f'"{pattern}" has {pattern.count("*")} * for {len(names)} names')
        # Each is as short as what follows allows; the last one goes to the end of the text.
        parts = [re.escape(part) for part in pattern.split("*")]
        glob = "(.*?)".join(parts[:-1]) + ("(.*)" if not parts[-1] else f"(.*?){parts[-1]}")
        expression = re.compile(glob, re.DOTALL)
        places = dict(zip(names, range(1, len(names) + 1), strict=True))
    else:
        expression = _regex(reader)
        places = dict(expression.groupindex)
        if not places:
            raise reader.problem(f"/{expression.pattern}/ has no named group, as (?<name>…)")

    query.commands.append(
        Command(lambda rows: [_parsed(row, expression.search(_plain(row.get(name))), places) for row in rows])
    )
    if not query.is_displayed:
        query.shown = query.shown or [TIMESTAMP, MESSAGE]
        query.shown += [each for each in places if each not in query.shown]


def _parsed(row: Row, match: re.Match[str] | None, places: Mapping[str, int]) -> Row:
    groups = {} if match is None else {name: match[place] for name, place in places.items()}
    return {**row, **{name: text for name, text in groups.items() if text is not None}}


# --- stats ---

_AGGREGATES: Mapping[str, Callable[[Sequence[Value]], float | None]] = {
    "count": lambda values: float(len(values)),
    "count_distinct": lambda values: float(len(set(values))),
    "sum": lambda values: sum(_numbers(values)),
    "avg": lambda values: statistics.fmean(_numbers(values)) if _numbers(values) else None,
    "min": lambda values: min(_numbers(values), default=None),
    "max": lambda values: max(_numbers(values), default=None),
}
_PERIODS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _numbers(values: Iterable[Value]) -> list[float]:
    return [number for value in values if (number := _number(value)) is not None]


def _read_stats(reader: Reader, query: Query) -> None:
    """``stats count(*) as loads, max(seconds) by model, bin(5m)``."""
    aggregates = [_read_aggregate(reader) for _ in _list(reader)]
    groups: list[tuple[str, Operand]] = []
    if reader.take(r"(?i:by)\b"):
        groups = [_read_group(reader) for _ in _list(reader)]

    def command(rows: list[Row]) -> list[Row]:
        found: dict[tuple[Value | None, ...], list[Row]] = {}
        for row in rows:
            found.setdefault(tuple(value(row) for _, value in groups), []).append(row)
        if not groups:
            found = {(): rows}
        return [
            {
                name: value
                for name, value in (
                    *zip((name for name, _ in groups), keys, strict=True),
                    *((name, aggregate(members)) for name, aggregate in aggregates),
                )
                if value is not None
            }
            for keys, members in found.items()
        ]

    query.commands.append(Command(command))
    query.shown = [name for name, _ in (*groups, *aggregates)]
    query.is_aggregated, query.is_displayed = True, False


def _read_aggregate(reader: Reader) -> tuple[str, Callable[[list[Row]], float | None]]:
    function = reader.need(r"[A-Za-z]\w*", "an aggregate, as count(*)")[0]
    if function.lower() not in _AGGREGATES:
        raise reader.problem(f"{function} is not evaluated here: of the aggregates {', '.join(_AGGREGATES)} are")
    aggregate = _AGGREGATES[function.lower()]
    reader.need(r"\(", "(")
    name = "*" if function.lower() == "count" and reader.take(r"\*") else ""
    if not name and not (function.lower() == "count" and reader.sees(r"\)")):
        name = _field(reader)
    reader.need(r"\)", "the closing )")
    shown = _alias(reader, f"{function}({name})")
    if name in ("", "*"):
        return shown, lambda rows: float(len(rows))
    return shown, lambda rows: aggregate([row[name] for row in rows if name in row])


def _read_group(reader: Reader) -> tuple[str, Operand]:
    if found := reader.take(r"(?i:bin)\s*\(\s*(\d+)\s*([a-z]+)\s*\)"):
        length = int(found[1]) * _PERIODS.get(found[2], 0)
        if length == 0:
            raise reader.problem(f"bin({found[1]}{found[2]}): a period of {', '.join(_PERIODS)}, as 5m, is expected")
        shown = _alias(reader, f"bin({found[1]}{found[2]})")
        return shown, lambda row: Time(float(row[TIMESTAMP]) // length * length) if TIMESTAMP in row else None
    name = _field(reader)
    return name, lambda row: row.get(name)


def _alias(reader: Reader, name: str) -> str:
    return _field(reader) if reader.take(r"(?i:as)\b") else name


# --- sort ---


def _read_sort(reader: Reader, query: Query) -> None:
    keys: list[tuple[str, bool]] = []
    for _ in _list(reader):
        # A column without an alias is called as it was written: count(*), bin(5m).
        call = reader.take(r"\w+\s*\(\s*[\w.@*]*\s*\)")
        name = re.sub(r"\s", "", call[0]) if call else _field(reader)
        order = reader.take(r"(?i:asc|desc)\b")
        keys.append((name, order is not None and order[0].lower() == "desc"))

    def command(rows: list[Row]) -> list[Row]:
        for name, descending in reversed(keys):
            rows = _sorted(rows, name, descending=descending)
        return rows

    query.commands.append(Command(command))


def _sorted(rows: list[Row], name: str, *, descending: bool) -> list[Row]:
    return sorted(rows, key=lambda row: _sort_key(row.get(name)), reverse=descending)


def _sort_key(value: Value | None) -> tuple[int, float, list[tuple[str, int, str]]]:
    """The guide's order: texts before numbers, by chunks of digits, the shorter first, and of other characters."""
    if value is None:
        return 0, 0.0, []
    number = _number(value)
    if number is not None:
        return 2, number, []
    chunks = re.findall(r"[0-9]+|[^0-9]+", str(value))
    return 1, 0.0, [("0", len(each), each) if each[0] in "0123456789" else (each, 0, "") for each in chunks]


_READERS: Mapping[str, Callable[[Reader, Query], None]] = {
    "fields": _read_fields,
    "display": _read_display,
    "filter": _read_filter,
    "parse": _read_parse,
    "stats": _read_stats,
    "sort": _read_sort,
    "limit": _read_limit,
}
