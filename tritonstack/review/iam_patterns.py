"""IAM's patterns and conditions: whether all that one matches is matched by another."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tritonstack.review.snapshot import Json, readable

# ``*`` is any text, ``?`` any one sign. A reference (``${Bucket.Arn}``) is one sign of its own that only ``*`` and
# itself match: what it will be is known when it is deployed.
_SIGNS = re.compile(r"\$\{[^}]*\}|.", re.DOTALL)


@lru_cache(maxsize=65536)
def covers(wide: str, narrow: str) -> bool:
    """Whether every text that ``narrow`` matches is matched by ``wide``. Never True without being so."""
    if wide in (narrow, "*"):
        return True
    if "*" not in wide and "?" not in wide:
        return False
    return _covers(_signs(wide), _signs(narrow))


@lru_cache(maxsize=65536)
def may_meet(one: str, other: str) -> bool:
    """Whether some text is, or may be, matched by both. A reference may be any text."""
    first = ["*" if each.startswith("${") else each for each in _signs(one)]
    second = ["*" if each.startswith("${") else each for each in _signs(other)]
    reached = {(0, 0)}
    open_places = [(0, 0)]
    while open_places:
        mine, theirs = open_places.pop()
        for place in _steps(first, second, mine, theirs):
            if place not in reached:
                reached.add(place)
                open_places.append(place)
    return (len(first), len(second)) in reached


def is_wild(text: str) -> bool:
    """Whether a text holds a wildcard outside its references."""
    return any(each in {"*", "?"} for each in _signs(text))


def _steps(first: list[str], second: list[str], mine: int, theirs: int) -> list[tuple[int, int]]:
    """Where two patterns may stand after one step on a text that both match."""
    steps = []
    mine_star = mine < len(first) and first[mine] == "*"
    theirs_star = theirs < len(second) and second[theirs] == "*"
    if mine_star:
        steps.append((mine + 1, theirs))
    if theirs_star:
        steps.append((mine, theirs + 1))
    if mine < len(first) and theirs < len(second):
        if mine_star:
            steps.append((mine, theirs + 1))
        if theirs_star:
            steps.append((mine + 1, theirs))
        if "?" in (first[mine], second[theirs]) or first[mine] == second[theirs]:
            steps.append((mine + 1, theirs + 1))
    return steps


def _signs(text: str) -> list[str]:
    """The signs of a pattern; of wildcards in a row the ``?`` first and one ``*``, which is the same."""
    parts = _SIGNS.findall(text)
    signs: list[str] = []
    for part in parts:
        if part == "*" and signs and signs[-1] == "*":
            continue
        if part == "?" and signs and signs[-1] == "*":
            signs[-1:] = ["?", "*"]
        else:
            signs.append(part)
    return signs


def _covers(wide: list[str], narrow: list[str]) -> bool:
    """The usual greedy match of a glob, with the narrow pattern's signs as the text."""
    place = taken = 0
    star, from_star = -1, 0
    while taken < len(narrow):
        sign = narrow[taken]
        if place < len(wide) and wide[place] == "*":
            star, from_star = place, taken
            place += 1
        elif place < len(wide) and _one(wide[place], sign):
            place, taken = place + 1, taken + 1
        elif star >= 0:
            from_star += 1
            place, taken = star + 1, from_star
        else:
            return False
    return all(each == "*" for each in wide[place:])


def _one(wide: str, sign: str) -> bool:
    """Whether one sign is matched by one that is no ``*``."""
    return wide == sign or (wide == "?" and sign != "*" and not sign.startswith("${"))


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
