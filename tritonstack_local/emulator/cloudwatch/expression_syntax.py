"""The grammar of metric math: text to a tree.

Source: CloudWatch user guide, "Metric math syntax and functions". It names the operators and does not rank them; here
they bind as in most languages, from the loosest: OR, AND, comparisons, ``+ -``, ``* /``, unary minus, ``^`` (which
groups to the right).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<text>'[^']*'|\"[^\"]*\"|\u201c[^\u201d]*\u201d)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/^<>(),\[\]]))"
)
COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_LOGICAL = {"OR": "OR", "||": "OR", "AND": "AND", "&&": "AND"}
_LARGEST_DEPTH = 100


class ExpressionError(ValueError):
    """A sentence about an expression that is no metric math, or that cannot be evaluated."""


@dataclass(frozen=True)
class Number:
    """A scalar literal."""

    value: float


@dataclass(frozen=True)
class Text:
    """A quoted string."""

    value: str


@dataclass(frozen=True)
class Name:
    """The Id of a metric or of another expression, or a keyword of a function (REPEAT, DESC)."""

    value: str


@dataclass(frozen=True)
class Array:
    """``[m1, m2]``."""

    items: tuple[Tree, ...]


@dataclass(frozen=True)
class Negation:
    """Unary minus."""

    operand: Tree


@dataclass(frozen=True)
class Operation:
    """Two operands and ``+ - * / ^``, a comparison, AND or OR."""

    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: tuple[Tree, ...]


Tree = Number | Text | Name | Array | Negation | Operation | Call


def parse(expression: str) -> Tree:
    """The tree of an expression; raises ``ExpressionError`` with the place where it ends being one."""
    return _Parser(expression).whole()


def names(tree: Tree) -> Iterator[str]:
    """Every Id (or keyword) that the tree mentions, in order."""
    if isinstance(tree, Name):
        yield tree.value
    for child in _children(tree):
        yield from names(child)


def calls(tree: Tree) -> Iterator[Call]:
    """Every function call in the tree, the outer before the inner."""
    if isinstance(tree, Call):
        yield tree
    for child in _children(tree):
        yield from calls(child)


def _children(tree: Tree) -> tuple[Tree, ...]:
    if isinstance(tree, Array):
        return tree.items
    if isinstance(tree, Negation):
        return (tree.operand,)
    if isinstance(tree, Operation):
        return (tree.left, tree.right)
    return tree.arguments if isinstance(tree, Call) else ()


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, expression: str) -> None:
        self._tokens = list(_tokens(expression))
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self._or()
        if self._kind() != "end":
            raise self._unexpected()
        return tree

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _word(self) -> str:
        return self._tokens[self._at][1]

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _unexpected(self) -> ExpressionError:
        kind, word, place = self._tokens[self._at]
        return ExpressionError(
            "Unexpected end of the expression" if kind == "end" else f"Unexpected '{word}' at character {place + 1}"
        )

    def _or(self) -> Tree:
        tree = self._and()
        while _LOGICAL.get(self._word()) == "OR":
            self._take()
            tree = Operation("OR", tree, self._and())
        return tree

    def _and(self) -> Tree:
        tree = self._comparison()
        while _LOGICAL.get(self._word()) == "AND":
            self._take()
            tree = Operation("AND", tree, self._comparison())
        return tree

    def _comparison(self) -> Tree:
        tree = self._sum()
        while self._kind() == "sign" and self._word() in COMPARISONS:
            tree = Operation(self._take(), tree, self._sum())
        return tree

    def _sum(self) -> Tree:
        tree = self._product()
        while self._kind() == "sign" and self._word() in ("+", "-"):
            tree = Operation(self._take(), tree, self._product())
        return tree

    def _product(self) -> Tree:
        tree = self._signed()
        while self._kind() == "sign" and self._word() in ("*", "/"):
            tree = Operation(self._take(), tree, self._signed())
        return tree

    def _signed(self) -> Tree:
        minuses = 0
        while self._kind() == "sign" and self._word() == "-":
            self._take()
            minuses += 1
        tree = self._power()
        for _ in range(minuses):
            tree = Negation(tree)
        return tree

    def _power(self) -> Tree:
        base = self._primary()
        if self._kind() == "sign" and self._word() == "^":
            self._take()
            return Operation("^", base, self._deeper(self._signed))
        return base

    def _primary(self) -> Tree:
        kind, word = self._kind(), self._word()
        if kind == "number":
            return Number(float(self._take()))
        if kind == "text":
            return Text(self._take()[1:-1])
        if kind == "name" and word not in _LOGICAL:
            self._take()
            return Call(word, self._list(")")) if self._kind() == "sign" and self._word() == "(" else Name(word)
        if kind == "sign" and word == "[":
            return Array(self._list("]"))
        if kind == "sign" and word == "(":
            self._take()
            tree = self._deeper(self._or)
            self._close(")")
            return tree
        raise self._unexpected()

    def _list(self, closing: str) -> tuple[Tree, ...]:
        """The items from the opening bracket, which is next, to the closing one."""
        self._take()
        items: list[Tree] = []
        if not (closing == ")" and self._kind() == "sign" and self._word() == ")"):
            items.append(self._deeper(self._or))
            while self._kind() == "sign" and self._word() == ",":
                self._take()
                items.append(self._deeper(self._or))
        self._close(closing)
        return tuple(items)

    def _close(self, closing: str) -> None:
        if self._kind() != "sign" or self._word() != closing:
            raise self._unexpected()
        self._take()

    def _deeper(self, rule: Callable[[], Tree]) -> Tree:
        """``rule`` one level down; a depth that no hand writes is refused rather than exhausting the stack."""
        self._depth += 1
        if self._depth > _LARGEST_DEPTH:
            raise ExpressionError(f"The expression nests deeper than {_LARGEST_DEPTH} levels")
        tree = rule()
        self._depth -= 1
        return tree


def _tokens(expression: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and place of every token, and the end."""
    at, length = 0, len(expression.rstrip())
    while at < length:
        found = _TOKEN.match(expression, at)
        if found is None or found.lastgroup is None:
            place = at + len(expression[at:]) - len(expression[at:].lstrip())
            raise ExpressionError(f"Unexpected '{expression[place]}' at character {place + 1}")
        yield found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)
        at = found.end()
    yield "end", "", length
