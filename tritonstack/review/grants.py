"""Policy statements split into grants (principal, action, resource, conditions), and unions of grants compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from tritonstack.review.iam_patterns import (
    TEMPLATE_CONDITION,
    Conditions,
    Test,
    conditions_of,
    covers,
    may_meet,
    stricter,
    value_covers,
)
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import Json, readable

EVERYBODY = "*"
"""The principal that is anybody."""


@dataclass(frozen=True, kw_only=True, order=True)
class Element:
    """One part of a grant.

    Attributes:
        texts: one pattern; or, if ``negated``, all that it is not.
        negated: whether it came of ``NotAction``, ``NotResource``, ``NotPrincipal``.
        shown: ``texts`` as the template writes them.
    """

    texts: tuple[str, ...]
    negated: bool = False
    shown: tuple[str, ...] = field(default=(), compare=False)

    def covers(self, other: Element) -> bool:
        """Whether it holds all that the other holds. Never True without being so."""
        if self.negated and other.negated:
            return all(any(covers(theirs, mine) for theirs in other.texts) for mine in self.texts)
        if self.negated:
            return not any(may_meet(mine, other.texts[0]) for mine in self.texts)
        if other.negated:
            return self.texts[0] == "*"
        return covers(self.texts[0], other.texts[0])

    @property
    def words(self) -> str:
        """``s3:GetObject``, or ``all but s3:GetObject``."""
        return f"all but {', '.join(self.shown)}" if self.negated else self.shown[0]


ANYTHING = Element(texts=("*",), shown=("*",))


@dataclass(frozen=True, kw_only=True, order=True)
class Source:
    """Where a grant stands.

    Attributes:
        logical_id: of the resource.
        path: of its construct.
        property: ``PolicyDocument.Statement[ReadArchives]``.
    """

    logical_id: str
    path: str
    property: str


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The least part of a statement.

    Attributes:
        allows: False for a Deny.
        principal: ``AWS:arn:…``, ``Service:logs.amazonaws.com``, ``*``; None in a policy of an identity.
        action: without case.
        resource: what on.
        conditions: when.
        source: where it stands; no part of what it says.
    """

    allows: bool
    principal: Element | None
    action: Element
    resource: Element
    conditions: Conditions
    source: Source = field(compare=False)

    @property
    def same_but_conditions(self) -> tuple[object, ...]:
        """All that it says but when."""
        return (self.allows, self.principal, self.action, self.resource)

    @property
    def order(self) -> tuple[object, ...]:
        """A place among others that depends on nothing but what they say."""
        principal = self.principal or Element(texts=())
        return (not self.allows, principal, self.action, self.resource, sorted(self.conditions))

    def covers(self, other: Grant) -> bool:
        """Whether it says all that the other says. Never True without being so."""
        return (
            self.allows == other.allows
            and self._reaches(other)
            and stricter(narrow=other.conditions, wide=self.conditions)
        )

    def denies(self, other: Grant) -> bool:
        """Whether it is a Deny that leaves nothing of what the other allows."""
        return (
            not self.allows
            and other.allows
            and self._reaches(other)
            and stricter(narrow=other.conditions, wide=self.conditions)
        )

    def _reaches(self, other: Grant) -> bool:
        return (
            self.action.covers(other.action)
            and self.resource.covers(other.resource)
            and principal_covers(self.principal, other.principal)
        )


def least(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """The grants that no other one covers, sorted: what a policy says, however its statements are cut."""
    kept: list[Grant] = []
    for grant in sorted(grants, key=lambda each: (each.order, each.source)):
        if not any(each.covers(grant) for each in kept):
            kept = [each for each in kept if not grant.covers(each)]
            kept.append(grant)
    return tuple(kept)


def grants_of(
    document: Json, *, reading: Reading, source: Source, has_principal: bool, has_resource: bool = True
) -> Iterator[Grant]:
    """Every grant of a policy document.

    Args:
        document: as a snapshot has it; text that is JSON may stand as ``{"$json": …}``.
        reading: of the stack that it stands in.
        source: the resource, with the property that holds the document.
        has_principal: whether statements say who; False for the policy of an identity.
        has_resource: whether the statements' resource says something: in a trust policy there is none, and in the
            policy of a key ``*`` is the key.
    """
    if isinstance(document, dict) and document.keys() == {"$json"}:
        document = document["$json"]
    is_document = isinstance(document, dict) and "Statement" in document
    statements = document["Statement"] if is_document else [] if document is None else document
    listed = statements if isinstance(statements, list) else [statements]
    for number, statement in enumerate(listed):
        for each, when in _branches(statement, frozenset()):
            name = each.get("Sid", number)
            place = f"{source.property}.Statement[{name}]"
            made = Source(logical_id=source.logical_id, path=source.path, property=place)
            yield from _of_statement(
                each, when, reading=reading, source=made, has_principal=has_principal, has_resource=has_resource
            )


def _branches(statement: Json, when: Conditions) -> Iterator[tuple[Mapping[str, Json], Conditions]]:
    """A statement, or each that a condition of the template may bring."""
    match statement:
        case {"Fn::If": [str(name), then, otherwise]}:
            for branch, value in ((then, "true"), (otherwise, "false")):
                test = Test(operator=TEMPLATE_CONDITION, key=name, values=(value,))
                yield from _branches(branch, when | {test})
        case {"Effect": str()}:
            yield statement, when
        case {"Ref": "AWS::NoValue"}:
            pass
        case _:
            yield _not_readable(statement), when


def _not_readable(statement: Json) -> Mapping[str, Json]:
    """What stands for a statement that only the deployment knows, so that it is told when it is another one."""
    text = f"what is known only when deployed: {readable(statement)}"
    return {"Effect": "Allow", "Principal": {"AWS": "whoever is named there"}, "Action": text, "Resource": "*"}


def _of_statement(
    statement: Mapping[str, Json],
    when: Conditions,
    *,
    reading: Reading,
    source: Source,
    has_principal: bool,
    has_resource: bool,
) -> Iterator[Grant]:
    conditions = when | conditions_of(statement.get("Condition"), reading.replaced)
    actions = _elements(statement, "Action", reading, fold=True)
    resources = _elements(statement, "Resource", reading) if has_resource else [ANYTHING]
    principals: list[Element] | list[None] = _principals(statement, reading) if has_principal else [None]
    for principal, action, resource in product(principals, actions, resources or [ANYTHING]):
        yield Grant(
            allows=statement["Effect"] != "Deny",
            principal=principal,
            action=action,
            resource=resource,
            conditions=conditions,
            source=source,
        )


def _elements(statement: Mapping[str, Json], name: str, reading: Reading, *, fold: bool = False) -> list[Element]:
    negated = f"Not{name}" in statement
    given = statement.get(f"Not{name}" if negated else name, [])
    texts: dict[str, str] = {}
    for value in given if isinstance(given, list) else [given]:
        shown = reading.shown(value)
        canonical = reading.canonical(value)
        key = canonical.lower() if fold else canonical
        texts[key] = min(shown, texts.get(key, shown))
    if negated:
        return [Element(texts=tuple(sorted(texts)), negated=True, shown=tuple(texts[each] for each in sorted(texts)))]
    return [Element(texts=(text,), shown=(shown,)) for text, shown in sorted(texts.items())]


def _principals(statement: Mapping[str, Json], reading: Reading) -> list[Element]:
    negated = "NotPrincipal" in statement
    given = statement.get("NotPrincipal" if negated else "Principal", EVERYBODY)
    texts: dict[str, str] = {}
    if isinstance(given, dict) and not any(each.startswith(("Fn::", "Ref")) for each in given):
        for kind in sorted(given):
            values = given[kind] if isinstance(given[kind], list) else [given[kind]]
            texts |= dict(principal(kind, value, reading) for value in values)
    else:
        texts = dict([principal("AWS", given, reading)])
    if negated:
        return [Element(texts=tuple(sorted(texts)), negated=True, shown=tuple(texts[each] for each in sorted(texts)))]
    return [Element(texts=(text,), shown=(shown,)) for text, shown in sorted(texts.items())]


def principal(kind: str, value: Json, reading: Reading) -> tuple[str, str]:
    """A principal as it is compared, and as it is shown. An account's number is its root; ``AWS: *`` is anybody."""
    text, shown = reading.canonical(value), reading.shown(value)
    if text == EVERYBODY and kind == "AWS":
        return EVERYBODY, "anybody"
    if kind == "AWS" and text.isdigit():
        text = shown = f"arn:{reading.partition}:iam::{text}:root"
    return f"{kind}:{text}", shown


def principal_covers(wide: Element | None, narrow: Element | None) -> bool:
    """Whether whoever the one names is among those of the other; no wildcards but ``*``, which is no service."""
    if wide is None or narrow is None or wide == narrow:
        return wide is narrow or wide == narrow
    if wide.negated and narrow.negated:
        return set(wide.texts) <= set(narrow.texts)
    if wide.texts == (EVERYBODY,) and not wide.negated:
        return not narrow.texts[0].startswith("Service:") or narrow.negated
    return False


# What the others say is taken from the one, grant by grant, until nothing is left: all actions without those of one
# grant are ``all but`` these, a condition on two values without the first is one on the second. Where what is left
# cannot be written as a grant, more than that is taken for it, or nothing is taken: the answer is never True without
# being so. It is False for ``s3:Get*`` against every action of today by its name: tomorrow's are others.
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
