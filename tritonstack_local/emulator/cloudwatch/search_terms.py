"""SEARCH: which metrics a search expression means.

Source: CloudWatch user guide, "CloudWatch search expression syntax". The schema in braces is a namespace and the exact
set of dimension names. A quoted term matches a whole name or value, an unquoted one any of its tokens, or a run of
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError

_LONGEST = 1024
_SCHEMA = re.compile(r"\s*\{([^}]*)\}\s*,?")
_PART = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^",]+))\s*(?:,|$)')
_WORD = re.compile(
    r'\s*(?P<word>\(|\)|(?:(?P<property>[^\s()"=]+)=)?(?:"(?P<exact>(?:[^"\\]|\\.)*)"|(?P<loose>[^\s()"=]+)))'
)
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What a search looks at."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]


Matches = Callable[[Metric], bool]


def search(text: str) -> Matches:
    """The test of a metric that the first argument of SEARCH spells; raises ``ExpressionError``."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"A search has at most {_LONGEST} characters")
    schema = _SCHEMA.match(text)
    terms = text[schema.end() :] if schema else text
    tests = [_schema(schema[1])] if schema else []
    if terms.strip():
        tests.append(_Terms(terms).whole())
    if not tests:
        raise ExpressionError("A search has a schema in braces, terms, or both")
    return lambda metric: all(test(metric) for test in tests)


def _schema(text: str) -> Matches:
    parts = [exact or loose.strip() for exact, loose in _PART.findall(text)]
    if not parts:
        raise ExpressionError("The braces of a search hold a namespace and names of dimensions")
    namespace, names = parts[0], set(parts[1:])
    if not names:
        return lambda metric: metric.namespace == namespace
    return lambda metric: metric.namespace == namespace and set(metric.dimensions) == names


class _Terms:
    """Terms, AND (written or not), OR, NOT and parentheses."""

    def __init__(self, text: str) -> None:
        self._words: list[re.Match[str]] = []
        at, length = 0, len(text.rstrip())
        while at < length:
            found = _WORD.match(text, at)
            if found is None:
                raise ExpressionError(f"The search is not understood from '{text[at:].strip()}' on")
            self._words.append(found)
            at = found.end()
        self._at = 0

    def whole(self) -> Matches:
        test = self._or()
        if self._next():
            raise ExpressionError(f"Unexpected '{self._next()}' in a search")
        return test

    def _next(self) -> str:
        return self._words[self._at]["word"] if self._at < len(self._words) else ""

    def _or(self) -> Matches:
        tests = [self._and()]
        while self._next() == "OR":
            self._at += 1
            tests.append(self._and())
        return lambda metric: any(test(metric) for test in tests)

    def _and(self) -> Matches:
        tests = [self._not()]
        while self._next() not in ("", "OR", ")"):
            self._at += self._next() == "AND"
            tests.append(self._not())
        return lambda metric: all(test(metric) for test in tests)

    def _not(self) -> Matches:
        if self._next() == "NOT":
            self._at += 1
            test = self._not()
            return lambda metric: not test(metric)
        if self._next() == "(":
            self._at += 1
            test = self._or()
            if self._next() != ")":
                raise ExpressionError("A parenthesis in a search is not closed")
            self._at += 1
            return test
        if self._next() in ("", ")", "AND", "OR"):
            raise ExpressionError("A search lacks a term")
        self._at += 1
        return _term(self._words[self._at - 1])


def _term(word: re.Match[str]) -> Matches:
    of = _values(word["property"])
    if word["exact"] is not None:
        exact = re.sub(r"\\(.)", r"\1", word["exact"])
        return lambda metric: exact in of(metric)
    loose = word["loose"]
    run = _TOKEN.findall(loose)
    if len(run) == 1:
        return lambda metric: any(run[0].lower() in _tokens(text) for text in of(metric))
    return lambda metric: any(_has_run(_TOKEN.findall(text), run) for text in of(metric))


def _values(name: str | None) -> Callable[[Metric], list[str]]:
    """The texts of a metric that a term is held against."""
    if name is None:
        return lambda m: [m.namespace, m.name, *m.dimensions, *m.dimensions.values()]
    if name == "MetricName":
        return lambda m: [m.name]
    if name == "Namespace":
        return lambda m: [m.namespace]
    return lambda m: [m.dimensions[name]] if name in m.dimensions else []


def _tokens(text: str) -> set[str]:
    """The tokens of a name, in lowercase, with the whole of it."""
    found = [token.lower() for token in _TOKEN.findall(text)]
    return {*found, "".join(found)}


def _has_run(tokens: list[str], wanted: list[str]) -> bool:
    return any(tokens[at : at + len(wanted)] == wanted for at in range(len(tokens) - len(wanted) + 1))
