"""The conditions of a statement: which ones hold for fewer requests than others."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from tritonstack.review.intrinsics import readable
from tritonstack.review.patterns import covers
from tritonstack.review.snapshot import Json

TEMPLATE_CONDITION = "(condition of the template)"
"""Stands as an operator where a statement is there only under a condition of the template (``Fn::If``)."""
_NEGATED = ("StringNotEquals", "StringNotEqualsIgnoreCase", "StringNotLike", "ArnNotEquals", "ArnNotLike")
_NEGATED_TOO = ("NumericNotEquals", "DateNotEquals", "NotIpAddress")
_STRINGS = ("StringLike", "StringNotLike")
_ARNS = ("ArnLike", "ArnNotLike", "ArnEquals", "ArnNotEquals")
"""Each part of an ARN is compared by itself."""


@dataclass(frozen=True, kw_only=True, order=True)
class Test:
    """One test that a request must pass.

    Attributes:
        operator: ``StringEquals``, ``ForAnyValue:StringLike``.
        key: ``aws:sourceaccount``; keys have no case.
        values: sorted; any of them is right, or of a negated operator none.
    """

    operator: str
    key: str
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        """As people read it."""
        return f"{self.operator} {self.key} {' | '.join(self.values)}"

    def implies(self, other: Test) -> bool:
        """Whether each request that passes this one passes the other."""
        if self.key != other.key or not _same_operator(self.operator, other.operator):
            return False
        plain = self.operator.rpartition(":")[2].removesuffix("IfExists")
        if plain in (*_NEGATED, *_NEGATED_TOO):
            return all(any(value_covers(plain, mine, theirs) for mine in self.values) for theirs in other.values)
        return all(any(value_covers(plain, theirs, mine) for theirs in other.values) for mine in self.values)


Conditions = frozenset[Test]
"""Every test must pass; none: always."""


def conditions_of(value: Json, text: Mapping[str, str] | None = None) -> Conditions:
    """The tests of a statement's ``Condition``.

    Args:
        value: the element, or None where there is none.
        text: replacements to make in every value (``${AWS::Region}`` → its name).
    """
    if not value:
        return frozenset()
    if not isinstance(value, dict) or not all(isinstance(keys, dict) for keys in value.values()):
        return frozenset({Test(operator=TEMPLATE_CONDITION, key="", values=(readable(value),))})
    return frozenset(
        Test(operator=operator, key=key.lower(), values=_values(wanted, text or {}))
        for operator, keys in value.items()
        for key, wanted in keys.items()
    )


def stricter(narrow: Conditions, wide: Conditions) -> bool:
    """Whether every request that passes the narrow conditions passes the wide ones. Never True without being so."""
    return all(any(mine.implies(theirs) for mine in narrow) for theirs in wide)


def words(conditions: Conditions) -> tuple[str, ...]:
    """Every test as people read it, sorted."""
    return tuple(each.words for each in sorted(conditions))


def _same_operator(mine: str, theirs: str) -> bool:
    """Whether a test by one operator is at least as strict as by the other, the values being the same."""
    if theirs in {mine, f"{mine}IfExists"}:
        return True
    return {"ArnEquals": "ArnLike", "ArnLike": "ArnEquals"}.get(mine) == theirs


def value_covers(operator: str, wide: str, narrow: str) -> bool:
    """Whether a test of this operator with the wide value passes every request that one with the narrow value does."""
    if wide == narrow:
        return True
    if operator in _STRINGS:
        return covers(wide, narrow)
    if operator in _ARNS:
        mine, theirs = wide.split(":", 5), narrow.split(":", 5)
        return len(mine) == len(theirs) and all(map(covers, mine, theirs))
    return operator in {"IpAddress", "NotIpAddress"} and cidr_covers(wide, narrow)


def cidr_covers(wide: str, narrow: str) -> bool:
    """Whether one range of addresses holds another; False where one of them is no range."""
    try:
        outer, inner = ipaddress.ip_network(wide, strict=False), ipaddress.ip_network(narrow, strict=False)
    except ValueError:
        return False
    if isinstance(outer, ipaddress.IPv4Network) and isinstance(inner, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(outer, ipaddress.IPv6Network) and isinstance(inner, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


def _values(wanted: Json, text: Mapping[str, str]) -> tuple[str, ...]:
    texts = set()
    for each in wanted if isinstance(wanted, list) else [wanted]:
        value = str(each).lower() if isinstance(each, bool) else readable(each)
        for old, new in text.items():
            value = value.replace(old, new)
        texts.add(value)
    return tuple(sorted(texts))
