"""Whether several grants together say what one says, though none of them says it alone.

What the others say is taken from the one, grant by grant, until nothing is left: all actions without those of one grant
are ``all but`` these, a condition on two values without the first is one on the second. Where what is left cannot be
written as a grant, more than that is taken for it, or nothing is taken: the answer is never True without being so. It
is False for ``s3:Get*`` against every action of today by its name: tomorrow's are others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from tritonstack.review.conditions import TEMPLATE_CONDITION, Conditions, Test, value_covers
from tritonstack.review.grants import Element, Grant, principal_covers
from tritonstack.review.patterns import covers, may_meet

MOST_STEPS = 1000
"""Grants that are looked at for one; of policies that would take more, the answer is False."""
_NEGATED = {
    "StringEquals": "StringNotEquals",
    "StringEqualsIgnoreCase": "StringNotEqualsIgnoreCase",
    "StringLike": "StringNotLike",
    "ArnEquals": "ArnNotEquals",
    "ArnLike": "ArnNotLike",
    "NumericEquals": "NumericNotEquals",
    "DateEquals": "DateNotEquals",
    "IpAddress": "NotIpAddress",
}
"""Of a key with one value: one of both holds, also where the request has no such key (IAM user guide, "IAM JSON policy
elements: Condition operators")."""
_OPPOSITE = {**_NEGATED, **{negated: operator for operator, negated in _NEGATED.items()}}
_TRUE_OR_FALSE = ("Null", TEMPLATE_CONDITION)
_FLIPPED: Mapping[tuple[str, ...], tuple[str, ...]] = {("true",): ("false",), ("false",): ("true",)}


def held_together(grant: Grant, by: Iterable[Grant]) -> bool:
    """Whether every request that the grant is about is one that some of the others are about, with the same effect."""
    near = tuple(
        each for each in by if each.allows == grant.allows and principal_covers(each.principal, grant.principal)
    )
    return _held(grant, near, iter(range(MOST_STEPS)))


def _held(grant: Grant, by: tuple[Grant, ...], steps: Iterator[int]) -> bool:
    if next(steps, None) is None:
        return False
    if any(each.covers(grant) for each in by):
        return True
    for number, each in enumerate(by):
        parts = _without(grant, each)
        if parts is not None:
            rest = (*by[:number], *by[number + 1 :])
            return all(_held(part, rest, steps) for part in parts)
    return False


def _without(grant: Grant, other: Grant) -> list[Grant] | None:
    """What the grant says and the other does not; None where nothing can be taken."""
    actions = _element_without(grant.action, other.action)
    resources = _element_without(grant.resource, other.resource)
    conditions = _conditions_without(grant.conditions, other.conditions)
    if actions is None or resources is None or conditions is None:
        return None
    return [
        *(replace(grant, action=each) for each in actions),
        *(replace(grant, resource=each) for each in resources),
        *(replace(grant, conditions=each) for each in conditions),
    ]


def _element_without(one: Element, other: Element) -> list[Element] | None:
    if other.covers(one):
        return []
    if other.negated:
        return _of_what_is_left_out(one, other.texts)
    if not one.negated and one.texts != ("*",):
        return None
    texts = tuple(sorted({*(one.texts if one.negated else ()), *other.texts}))
    return [Element(texts=texts, negated=True, shown=texts)]


def _of_what_is_left_out(one: Element, texts: tuple[str, ...]) -> list[Element] | None:
    """What an element has of what another one leaves out; None where that is all of it."""
    left = []
    for text in texts:
        if one.negated:
            has = not any(covers(each, text) for each in one.texts)
        elif covers(text, one.texts[0]):
            return None
        else:
            has = may_meet(one.texts[0], text)
        if has:
            left.append(Element(texts=(text,), shown=(text,)))
    return left


def _conditions_without(one: Conditions, other: Conditions) -> list[Conditions] | None:
    left = []
    for test in sorted(other):
        if any(mine.implies(test) for mine in one):
            continue
        opposite = _opposite(test)
        if opposite is None:
            return None
        narrowed = _narrowed(one, opposite)
        if narrowed is not None:
            left.append(narrowed)
    return left


def _opposite(test: Test) -> Test | None:
    """The test that a request passes that does not pass this one; None where no one test is that."""
    if test.operator in _TRUE_OR_FALSE:
        values = _FLIPPED.get(test.values)
        return None if values is None else replace(test, values=values)
    operator = _OPPOSITE.get(test.operator)
    return None if operator is None else replace(test, operator=operator)


def _narrowed(conditions: Conditions, test: Test) -> Conditions | None:
    """The conditions with one test more; None where no request passes them all."""
    tests = {*conditions, test}
    narrowed = set()
    for each in tests:
        values = tuple(value for value in each.values if not _is_out(value, each, tests))
        if each.values and not values:
            return None
        narrowed.add(replace(each, values=values))
    return frozenset(narrowed)


def _is_out(value: str, test: Test, tests: Collection[Test]) -> bool:
    """Whether no request that passes the other tests has this value."""
    same_key = [each for each in tests if each.key == test.key]
    against = [each for other in same_key if other.operator == _NEGATED.get(test.operator) for each in other.values]
    if any(value_covers(test.operator, each, value) for each in against):
        return True
    if test.operator in _NEGATED and replace(test, operator="Null", values=("true",)) in tests:
        return True  # it holds for no request without the key
    if test.operator != "StringEquals":
        return False
    beside = [other.values for other in same_key if other.operator == test.operator]
    # Of a variable it is not known what it will be.
    return any(value not in values and not any("${" in each for each in (value, *values)) for values in beside)
