"""Statements of policies, split to what each one says: who, which action, on what, under which conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from tritonstack.review.conditions import TEMPLATE_CONDITION, Conditions, Test, conditions_of, stricter
from tritonstack.review.intrinsics import readable
from tritonstack.review.patterns import covers, may_meet
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import Json

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
