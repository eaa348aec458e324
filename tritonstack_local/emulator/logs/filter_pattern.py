"""Filter patterns of CloudWatch Logs: which lines they match, and the values that they take from a line.

Source: user guide, "Filter pattern syntax for metric filters, subscription filters, filter log events, and Live Tail",
with its examples as tests. All of that page is here: terms, JSON and space-delimited patterns, regular expressions,
wildcards. What the page leaves open is refused where it can be, and otherwise decided so, UNVERIFIED:

- a condition on a property that a JSON line lacks is not fulfilled, ``!=`` included, as with an array or object;
- a number without quotes equals a text that spells the same number;
- the last field of a space-delimited pattern has the rest of a longer line, as ``[w1=ERROR, w2]`` of the page needs.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonstack_local.emulator.logs.reader import Reader, unescaped

Values = Mapping[str, str]
"""What a pattern took from a line, by the names that metrics use: ``$.latency``, ``$bytes``, ``$4``."""


@dataclass(frozen=True, kw_only=True)
class FilterPattern:
    """A pattern that was read."""

    match: Callable[[str], Values | None]
    """A line's values; None where it does not match."""
    names: tuple[str, ...] = ()
    """The values that it takes from a line."""

    def takes(self, name: str) -> bool:
        """Whether a metric can use this value. Fields without a name are called by their place, ``$4``."""
        return name in self.names or ("$" in self.names and re.fullmatch(r"\$[1-9]\d*", name) is not None)


@functools.lru_cache(maxsize=1024)
def parse(pattern: str) -> FilterPattern:
    """Read a pattern. Raises SyntaxProblemError."""
    reader = _PatternReader(pattern, what="filter pattern")
    if reader.take(r"\{"):
        return _json_pattern(reader)
    if reader.take(r"\["):
        return _fields_pattern(reader)
    if regex := reader.take(_REGEX):
        reader.need_end("the end: a regular expression stands alone")
        expression = _regex(reader, regex[1])
        return FilterPattern(match=lambda line: {} if expression.search(line) else None)
    return _terms_pattern(reader)


class _PatternReader(Reader):
    """A pattern, with what it has so far of that which the guide limits."""

    regexes = 0
    wildcards = 0


# --- Terms ---

_REGEX = r"%([^%]+)%"
_QUOTED = r'"((?:[^"\\]|\\.)*)"'


def _terms_pattern(reader: _PatternReader) -> FilterPattern:
    """Words and phrases: all of them, and none behind a minus; else any of those behind a question mark."""
    needed: list[str] = []
    excluded: list[str] = []
    optional: list[str] = []
    while not reader.is_at_end():
        kind = reader.take(r"[?-]")
        found = reader.need(rf"(\w+)|{_QUOTED}", "a word of letters, digits and _, or a phrase in double quotes")
        term = found[1] if found[1] is not None else unescaped(found[2])
        {None: needed, "-": excluded, "?": optional}[kind and kind[0]].append(term)
    needed = [term for term in needed if term.strip()]  # a phrase of blanks matches everything
    if needed or excluded:
        optional = []  # "If you combine ? with other filter patterns, all question mark terms will be ignored"

    def match(line: str) -> Values | None:
        found = all(term in line for term in needed) and not any(term in line for term in excluded)
        return {} if found and (not optional or any(term in line for term in optional)) else None

    return FilterPattern(match=match)


# --- Conditions on a text: of JSON's values and of fields ---

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REGEXES = 2
"""The most regular expressions in a JSON or space-delimited pattern."""

TextCondition = Callable[[str], bool]


def _comparison(reader: _PatternReader) -> TextCondition:
    """An operator and its value, behind a property or field."""
    sign = reader.need(r"!=|<=|>=|=|<|>", "one of = != < <= > >=")[0]
    if sign not in ("=", "!="):
        word = reader.need(r"[\w.+-]+", "a number")[0]
        if not _NUMBER.fullmatch(word):
            raise reader.problem(f"{word} is no number, which {sign} needs")
        limit, compare = float(word), _SIGNS[sign]
        return lambda text: _is_number(text) and compare(float(text), limit)
    equals = _equals(reader)
    return equals if sign == "=" else lambda text: not equals(text)


def _equals(reader: _PatternReader) -> TextCondition:
    if regex := reader.take(_REGEX):
        expression = _regex(reader, regex[1])
        return lambda text: expression.search(text) is not None
    if quoted := reader.take(_QUOTED):
        return _wildcards(reader, unescaped(quoted[1]))
    word = reader.need(r"[\w.*+-]+", "a word, a number, a text in double quotes or a regular expression in %")[0]
    if _NUMBER.fullmatch(word):
        number = float(word)
        return lambda text: float(text) == number if _is_number(text) else text == word
    if "+" in word or "-" in word:
        raise reader.problem(f"{word}: a text with other characters than letters and digits is in double quotes")
    if word in ("true", "false", "null", "TRUE", "FALSE", "NULL"):
        raise reader.problem(f'{word} is compared with IS {word.upper()}, and the text with "{word}" in double quotes')
    return _wildcards(reader, word)


def _wildcards(reader: _PatternReader, value: str) -> TextCondition:
    """An asterisk at the beginning or the end is any text; the guide has none within a value."""
    inner = value.strip("*")
    if "*" in inner:
        raise reader.problem(f"{value} has an asterisk within: it stands at the beginning or at the end of a value")
    if not inner:
        return _any if value else (lambda text: text == "")
    before, after = value.startswith("*"), value.endswith("*")
    if before and after:
        return lambda text: inner in text
    if before:
        return lambda text: text.endswith(inner)
    return (lambda text: text.startswith(inner)) if after else (lambda text: text == inner)


def _any(_text: str) -> bool:
    return True


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _regex(reader: _PatternReader, text: str) -> re.Pattern[str]:
    """A regular expression of the characters and escapes that the guide lists; without groups."""
    reader.regexes += 1
    if reader.regexes > _REGEXES:
        raise reader.problem(f"more than {_REGEXES} regular expressions in a pattern")
    allowed = r"[A-Za-z0-9:_#=@/;, \-^$?\[\]{}|*+.]|\\(?:[dDsSwW]|x[0-9A-Fa-f]{2}|[:_#=@/;,\-^$?\[\]{}|\\*+.])"
    if (wrong := re.sub(allowed, "", text)) != "":
        raise reader.problem(f"%{text}% has {wrong[0]}, which a regular expression of a pattern may not have")
    # Python would take these for another meaning: a quantifier that gives nothing back, and sets of sets.
    if re.search(r"[*+?}]\+|\[\[", text):
        raise reader.problem(f"%{text}% is not evaluated here: a quantifier before a plus, or [[")
    try:
        return re.compile(text, re.ASCII)
    except (re.error, OverflowError) as error:
        raise reader.problem(f"%{text}% is no regular expression: {error}") from error


# --- JSON ---

_STEP = re.compile(r"\.\['([^']+)'\]|\.(\*|[A-Za-z0-9_-]+)|\[(\*|\d+)\]")
_SELECTOR = r"\$(?:\.\['[^']+'\]|\.\*|\.[A-Za-z0-9_-]+|\[\*\]|\[\d+\])+"
_WILDCARDS = 3
_DEEPEST = 50
"""Parentheses within each other: more than a person writes, fewer than Python's stack has room for."""

Condition = Callable[[Any], bool]


class _Number(str):
    """A number of a line, as it was written."""

    __slots__ = ()


@dataclass(frozen=True)
class _Selector:
    """A property of a JSON line: ``$.users[0].id``."""

    text: str
    steps: tuple[str | int | None, ...]  # of objects, of arrays, and None for any; an array's any is -1

    @classmethod
    def read(cls, reader: _PatternReader) -> _Selector:
        text = reader.need(_SELECTOR, "a property, as $.name, $.list[0].name or $.['a name']")[0]
        steps: list[str | int | None] = []
        for quoted, name, index in _STEP.findall(text):
            if index:
                steps.append(-1 if index == "*" else int(index))
            else:
                steps.append(quoted or (None if name == "*" else name))
        if isinstance(steps[0], int):
            raise reader.problem(f"{text}: an array's element follows a property, as $.list[0]")
        if (wildcards := sum(step in (None, -1) for step in steps)) > 1:
            raise reader.problem(f"{text} has more than one wildcard")
        reader.wildcards += wildcards
        if reader.wildcards > _WILDCARDS:
            raise reader.problem(f"more than {_WILDCARDS} wildcards in a pattern")
        return cls(text, tuple(steps))

    @property
    def is_wildcard(self) -> bool:
        return any(step in (None, -1) for step in self.steps)

    def nodes(self, document: Any) -> Iterable[Any]:
        """The values there: none, one, or with a wildcard several."""
        found: list[Any] = [document]
        for step in self.steps:
            found = [child for node in found for child in _children(node, step)]
        return found

    def texts(self, document: Any) -> Iterator[str]:
        """The values there that are no object, array or null, as they were written."""
        for node in self.nodes(document):
            if isinstance(node, bool):
                yield "true" if node else "false"
            elif isinstance(node, str):
                yield node


def _children(node: Any, step: str | int | None) -> Iterable[Any]:
    if isinstance(step, str):
        return [node[step]] if isinstance(node, dict) and step in node else []
    if step is None:
        return node.values() if isinstance(node, dict) else []
    if not isinstance(node, list):
        return []
    return node if step == -1 else node[step : step + 1]


def _json_pattern(reader: _PatternReader) -> FilterPattern:
    selectors: list[_Selector] = []
    condition = _any_of(reader, selectors, depth=0)
    reader.need(r"\}", "&&, || or the closing }")
    reader.need_end("the end")

    def match(line: str) -> Values | None:
        try:
            document = json.loads(line, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or not condition(document):
            return None
        found = {each.text: next(each.texts(document), None) for each in named}
        return {name: value for name, value in found.items() if value is not None}

    named = [each for each in selectors if not each.is_wildcard]
    return FilterPattern(match=match, names=tuple(each.text for each in named))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _any_of(reader: _PatternReader, selectors: list[_Selector], *, depth: int) -> Condition:
    """Conditions between ``||``, of which each is one or several between ``&&``."""
    choices = [_all_of(reader, selectors, depth=depth)]
    while reader.take(r"\|\|"):
        choices.append(_all_of(reader, selectors, depth=depth))
    return choices[0] if len(choices) == 1 else lambda document: any(each(document) for each in choices)


def _all_of(reader: _PatternReader, selectors: list[_Selector], *, depth: int) -> Condition:
    parts = [_json_condition(reader, selectors, depth=depth)]
    while reader.take("&&"):
        parts.append(_json_condition(reader, selectors, depth=depth))
    return parts[0] if len(parts) == 1 else lambda document: all(each(document) for each in parts)


def _json_condition(reader: _PatternReader, selectors: list[_Selector], *, depth: int) -> Condition:
    if reader.take(r"\("):
        if depth == _DEEPEST:
            raise reader.problem(f"more than {_DEEPEST} parentheses within each other")
        inside = _any_of(reader, selectors, depth=depth + 1)
        reader.need(r"\)", "&&, || or the closing )")
        return inside
    selector = _Selector.read(reader)
    selectors.append(selector)
    if (word := reader.take(r"IS\b|NOT\b")) is None:
        if selector.is_wildcard and reader.sees("!="):
            raise reader.problem(f"!= of {selector.text}: the guide does not say whether of one of them or of all")
        compare = _comparison(reader)
        return lambda document: any(compare(text) for text in selector.texts(document))
    if selector.is_wildcard:
        raise reader.problem(f"{word[0]} of {selector.text}: the guide has it of a property without a wildcard alone")
    if word[0] == "NOT":
        reader.need(r"EXISTS\b", "EXISTS")
        return lambda document: not list(selector.nodes(document))
    wanted = {"NULL": None, "TRUE": True, "FALSE": False}[
        reader.need(r"(?:NULL|TRUE|FALSE)\b", "NULL, TRUE or FALSE")[0]
    ]
    return lambda document: any(node is wanted for node in selector.nodes(document))


# --- Fields of space-delimited lines ---

_FIELD = re.compile(r'\[([^\]]*)\]|"([^"]*)"|(\S+)')
"""A field of a line; brackets and double quotes hold one together."""


@dataclass(frozen=True)
class _Field:
    name: str  # empty where it has none
    condition: TextCondition


def _fields_pattern(reader: _PatternReader) -> FilterPattern:
    before: list[_Field] = []
    after: list[_Field] | None = None  # behind an ellipsis
    while True:
        if reader.take(r"\.\.\.|…"):
            if after is not None:
                raise reader.problem("a second ellipsis: how many fields each stands for is not known")
            after = []
        else:
            (before if after is None else after).append(_read_field(reader))
        if reader.take(r"\]"):
            break
        reader.need(",", "a comma or the closing ]")
    reader.need_end("the end")
    fields = [*before, *(after or [])]
    names = [each.name for each in fields if each.name]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise reader.problem(f"the field {min(repeated)} stands twice")
    names = [f"${name}" for name in names]
    if after is not None or len(names) < len(fields):
        names.append("$")

    def match(line: str) -> Values | None:
        values = _split(line, len(before), None if after is None else len(after))
        if values is None:
            return None
        numbered = list(enumerate(values, start=1))
        named = numbered if after is None else [*numbered[: len(before)], *numbered[len(numbered) - len(after) :]]
        if not all(each.condition(text) for each, (_, text) in zip(fields, named, strict=True)):
            return None
        of_place = {place: each.name for each, (place, _) in zip(fields, named, strict=True) if each.name}
        return {f"${of_place.get(place, place)}": text for place, text in numbered}

    return FilterPattern(match=match, names=tuple(names))


def _split(line: str, first: int, last: int | None) -> Sequence[str] | None:
    """The fields of a line: all where an ellipsis takes those between the ``first`` and the ``last``; None: too few."""
    found = list(_FIELD.finditer(line))
    texts = [next(text for text in each.groups() if text is not None) for each in found]
    if len(texts) < first + (last or 0):
        return None
    if last is None and len(texts) > first:
        return [*texts[: first - 1], line[found[first - 1].start() :].strip()]
    return texts


def _read_field(reader: _PatternReader) -> _Field:
    """A field's name with its conditions, ``status = 404 || status = 410``; the name may be missing."""
    found = reader.take(r"[A-Za-z_]\w*")
    if found is None:
        if not reader.sees(r"[,\]]"):
            raise reader.problem("a field's name is a letter or _, then letters, digits and _")
        return _Field("", _any)
    name = found[0]
    if reader.sees(r"[,\]]"):
        return _Field(name, _any)
    reader.need(r"(?=[=!<>])", "a comma, ], or one of = != < <= > >=")
    choices = [[_comparison(reader)]]
    while joint := reader.take(r"&&|\|\|"):
        again = reader.need(r"[A-Za-z_]\w*", f"the field's name again, {name}")[0]
        if again != name:
            raise reader.problem(f"a condition on {again} among those of the field {name}")
        if joint[0] == "&&":
            choices[-1].append(_comparison(reader))
        else:
            choices.append([_comparison(reader)])
    return _Field(name, lambda text: any(all(each(text) for each in parts) for parts in choices))
