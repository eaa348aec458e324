"""Random expressions: what they are read as, and what they give, held against a small reference in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_local.emulator.cloudwatch.scope import FixedScope, points
from tritonstack_local.emulator.cloudwatch.expression_evaluation import evaluate
from tritonstack_local.emulator.cloudwatch.expression_functions import Series
from tritonstack_local.emulator.cloudwatch.expression_syntax import (
    Array,
    Call,
    ExpressionError,
    Name,
    Negation,
    Number,
    Operation,
    Tree,
    parse,
)

LENGTH = 4
IDS = ("m1", "m2", "m3")
RANKS = {"OR": 1, "AND": 2, "==": 3, "!=": 3, "<=": 3, ">=": 3, "<": 3, ">": 3, "+": 4, "-": 4, "*": 5, "/": 5, "^": 7}
SPELLINGS = {"OR": ("OR", "||"), "AND": ("AND", "&&")}
NEGATION_RANK, PRIMARY_RANK = 6, 8
Line = list[float | None]
"""A series of the reference."""

numbers = st.integers(0, 9).map(float)
gappy = st.lists(st.one_of(st.none(), st.integers(-5, 5).map(float)), min_size=LENGTH, max_size=LENGTH)
leaves: st.SearchStrategy[Tree] = st.one_of(st.sampled_from(IDS).map(Name), numbers.map(Number))


def nested(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    """Trees of a level more."""
    return st.one_of(
        st.builds(Operation, st.sampled_from([sign for sign in RANKS if sign != "^"]), inner, inner),
        st.builds(Negation, inner),
        st.builds(lambda tree, power: Operation("^", tree, Number(power)), inner, st.integers(0, 2).map(float)),
        st.builds(lambda tree: Call("ABS", (tree,)), inner),
        st.builds(lambda tree, number: Call("FILL", (tree, Number(number))), inner, numbers),
        st.builds(lambda *parts: Call("IF", parts), inner, inner, inner),
        st.builds(lambda one, other: Call("SUM", (Array((one, other)),)), inner, inner),
        st.builds(lambda one, other: Call("MAX", (Array((one, other)),)), inner, inner),
        st.builds(lambda tree: Call("MIN", (tree,)), inner),
    )


trees = st.recursive(leaves, nested, max_leaves=12)
Draw = Callable[[st.SearchStrategy[Any]], Any]


def spelled(tree: Tree, draw: Draw, *, least: int = 0) -> str:
    """The tree as text: parentheses where its rank is below ``least``, and some that nobody needs."""
    space = draw(st.sampled_from(["", " ", "  "]))
    text, rank = _spelled(tree, draw, space)
    needed = rank < least
    return f"({space}{text}{space})" if needed or draw(st.integers(0, 9)) == 0 else text


def _spelled(tree: Tree, draw: Draw, space: str) -> tuple[str, int]:
    if isinstance(tree, Name):
        return tree.value, PRIMARY_RANK
    if isinstance(tree, Number):
        return draw(st.sampled_from([f"{tree.value:g}", f"{tree.value}"])), PRIMARY_RANK
    if isinstance(tree, Array):
        return "[" + f"{space},".join(spelled(item, draw) for item in tree.items) + "]", PRIMARY_RANK
    if isinstance(tree, Call):
        inner = f",{space}".join(spelled(argument, draw) for argument in tree.arguments)
        return f"{tree.function}({space}{inner})", PRIMARY_RANK
    if isinstance(tree, Negation):
        return "-" + space + spelled(tree.operand, draw, least=NEGATION_RANK), NEGATION_RANK
    assert isinstance(tree, Operation)
    rank = RANKS[tree.operator]
    # '^' groups to the right and takes a minus there; all others group to the left.
    left, right = (PRIMARY_RANK, NEGATION_RANK) if tree.operator == "^" else (rank, rank + 1)
    sign = draw(st.sampled_from(SPELLINGS.get(tree.operator, (tree.operator,))))
    gap = " " if sign.isalpha() else space
    return spelled(tree.left, draw, least=left) + gap + sign + gap + spelled(tree.right, draw, least=right), rank


class NoValueError(Exception):
    """The reference has no value where CloudWatch gives an error."""


def reference(tree: Tree, given: dict[str, Line]) -> float | Line:
    """The value, by the words of the user guide and nothing of the evaluator's code."""
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return given[tree.value]
    if isinstance(tree, Negation):
        value = reference(tree.operand, given)
        return [None if one is None else -one for one in value] if isinstance(value, list) else -value
    if isinstance(tree, Operation):
        return _operation(tree.operator, reference(tree.left, given), reference(tree.right, given))
    assert isinstance(tree, Call)
    arguments = tree.arguments[0].items if isinstance(tree.arguments[0], Array) else tree.arguments
    return _function(tree.function, [reference(argument, given) for argument in arguments], array=len(arguments) > 1)


def _operation(sign: str, left: float | Line, right: float | Line) -> float | Line:
    if not isinstance(left, list) and not isinstance(right, list):
        single = _arithmetic(sign, left, right)
        if single is None:
            raise NoValueError
        return single
    result: Line = []
    for at in range(LENGTH):
        here = [side[at] for side in (left, right) if isinstance(side, list)]
        a, b = (side[at] or 0.0 if isinstance(side, list) else side for side in (left, right))
        result.append(None if all(one is None for one in here) else _arithmetic(sign, a, b))
    return result


def _arithmetic(sign: str, a: float, b: float) -> float | None:
    code = {"AND": "and", "OR": "or", "^": "**"}.get(sign, sign)
    try:
        value = eval(f"float(a {code} b)" if code not in ("and", "or") else f"float(bool(a) {code} bool(b))")  # noqa: S307  the reference: Python's own operators
    except (ZeroDivisionError, OverflowError, TypeError):
        return None
    return value if math.isfinite(value) else None


def _function(name: str, values: list[float | Line], *, array: bool) -> float | Line:
    first = values[0]
    if name == "IF":
        return _if(*values)
    if name == "FILL":
        if not isinstance(first, list):
            raise NoValueError
        return [values[1] if one is None else one for one in first]  # type: ignore[misc]  # a number by construction
    if not all(isinstance(value, list) for value in values):
        raise NoValueError
    if name == "ABS":
        return [None if one is None else abs(one) for one in first]  # type: ignore[union-attr]  # seen above
    if not array:
        return _reduced(name, first) or 0.0  # type: ignore[arg-type]  # seen above
    return [_reduced(name, [value[at] for value in values]) for at in range(LENGTH)]  # type: ignore[index]  # as above


def _reduced(name: str, values: Line) -> float | None:
    there = [one for one in values if one is not None]
    if not there:
        return None
    return sum(there) if name == "SUM" else max(there) if name == "MAX" else min(there)


def _if(condition: float | Line, yes: float | Line, no: float | Line) -> float | Line:
    if not isinstance(condition, list):
        return yes if condition else no
    result: Line = []
    for at, truth in enumerate(condition):
        if truth is None:
            result.append(None)
        elif truth:
            result.append(yes[at] or 0.0 if isinstance(yes, list) else yes)
        else:
            result.append(no[at] if isinstance(no, list) else no)
    return result


@given(trees, st.data())
def test_an_expression_is_read_as_it_was_written(tree: Tree, data: st.DataObject) -> None:
    assert parse(spelled(tree, data.draw)) == tree


@given(trees, st.data(), gappy, gappy, gappy)
def test_an_expression_gives_what_the_reference_gives(
    tree: Tree, data: st.DataObject, m1: Line, m2: Line, m3: Line
) -> None:
    lines = {"m1": m1, "m2": m2, "m3": m3}
    text = spelled(tree, data.draw)
    try:
        expected = reference(tree, lines)
    except NoValueError:
        try:
            evaluate(parse(text), FixedScope(**lines))
        except ExpressionError:
            return
        raise AssertionError(f"{text} has no value, and got one") from None
    value = evaluate(parse(text), FixedScope(**lines))
    if isinstance(expected, list):
        assert isinstance(value, Series)
        for found, wanted in zip(points(value), expected, strict=True):
            assert found == wanted if wanted is None or found is None else math.isclose(found, wanted, abs_tol=1e-9)
    else:
        assert isinstance(value, float)
        assert math.isclose(value, expected, abs_tol=1e-9)


@given(st.text(alphabet="m12+-*/^()[],<>=!&|.' SUMIF", max_size=30))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        parse(text)
    except ExpressionError as error:
        assert str(error)
