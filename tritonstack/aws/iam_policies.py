"""IAM policies: patterns and conditions compared with each other.

Source: IAM user guide, "IAM JSON policy elements".
"""

from __future__ import annotations

import fnmatch
import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

EVERYBODY = "*"
"""The principal that is anybody."""


def listed(value: Any) -> list[Any]:
    """IAM's "one or many" as a list; none for None."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


# Patterns: ``*`` is any text, ``?`` any one character. A reference of a template (``${Bucket.Arn}``) counts as one
# character that only ``*`` and the same reference match: its text is known at deployment.
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_WILDCARDS = re.compile(r"[*?]*\*[*?]*")
_FIRST, _LAST = "\U000f0000", "\U000fffff"
"""Characters of Unicode's private use, which stand for references."""


@lru_cache(maxsize=65536)
def covers(wide: str, narrow: str) -> bool:
    """Whether every text that ``narrow`` matches is matched by ``wide``; also for a ``narrow`` that is plain text.

    No false positives; False for some patterns with ``?`` and ``*`` that are covered.
    """
    if wide in (narrow, "*"):
        return True
    if not is_wild(wide):
        return False
    signs: dict[str, str] = {}

    def written(text: str) -> str:
        """A reference as one character; of wildcards in a row the ``?`` first and one ``*``, which matches the same."""
        text = _REFERENCE.sub(lambda found: signs.setdefault(found[0], chr(ord(_FIRST) + len(signs))), text)
        return _WILDCARDS.sub(lambda found: "?" * found[0].count("?") + "*", text)

    # As fnmatch has it, where ``?`` must not match a ``*`` of the narrow pattern, nor a reference.
    pattern = written(wide).replace("[", "[[]").replace("?", f"[!*{_FIRST}-{_LAST}]")
    return re.match(fnmatch.translate(pattern), written(narrow)) is not None


def is_wild(text: str) -> bool:
    """Whether a text holds a wildcard outside its references."""
    return any(sign in _REFERENCE.sub("", text) for sign in "*?")


def arn_covers(wide: str, narrow: str) -> bool:
    """Whether ``ArnLike`` and ``ArnEquals`` match: each of the six parts by itself, so that ``*`` crosses no colon."""
    mine, theirs = wide.split(":", 5), narrow.split(":", 5)
    return len(mine) == len(theirs) and all(map(covers, mine, theirs))


def cidr_covers(wide: str, narrow: str) -> bool:
    """Whether one range of addresses holds another; False where one of them is no range."""
    try:
        outer, inner = ipaddress.ip_network(wide, strict=False), ipaddress.ip_network(narrow, strict=False)
    except ValueError:
        return False
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]  # the same version


TEMPLATE_CONDITION = "(condition of the template)"
"""Stands as an operator where a statement is there only under a condition of the template (``Fn::If``)."""
NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnLike",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
}
COVERS: Mapping[str, Callable[[str, str], bool]] = {
    "StringLike": covers,
    "ArnLike": arn_covers,
    "ArnEquals": arn_covers,
    "IpAddress": cidr_covers,
}
"""Operator → whether its test with the first value passes whatever its test with the second one passes."""


@dataclass(frozen=True, kw_only=True, order=True)
class Test:
    """One test of a statement's ``Condition``."""

    __test__ = False  # for pytest

    operator: str  # ``StringEquals``, ``ForAnyValue:StringLike``
    key: str  # in lower case, as keys have no case: ``aws:sourceaccount``
    values: tuple[str, ...]  # sorted; one of them must match, or with a negated operator none

    @property
    def words(self) -> str:
        """``StringEquals aws:sourceaccount 111111111111``."""
        return f"{self.operator} {self.key} {' | '.join(self.values)}"

    def implies(self, other: Test) -> bool:
        """Whether each request that passes this test passes the other. No false positives."""
        same = other.operator in {self.operator, f"{self.operator}IfExists"}
        same = same or {self.operator, other.operator} == {"ArnEquals", "ArnLike"}
        if self.key != other.key or not same:
            return False
        name = self.operator.rpartition(":")[2].removesuffix("IfExists")
        covered = COVERS.get(NEGATED.get(name, name), str.__eq__)
        if name in NEGATED:
            return all(any(mine == theirs or covered(mine, theirs) for mine in self.values) for theirs in other.values)
        return all(any(mine == theirs or covered(theirs, mine) for theirs in other.values) for mine in self.values)


Conditions = frozenset[Test]
"""Every test must pass; none: always."""


def conditions_of(value: Any, text: Callable[[Any], str] = str) -> Conditions:
    """The tests of a statement's ``Condition``.

    Args:
        value: the element, or None where there is none.
        text: how a value that is no boolean is written, such as an intrinsic function of a template.
    """
    if not value:
        return frozenset()
    if not isinstance(value, dict) or not all(isinstance(keys, dict) for keys in value.values()):
        return frozenset({Test(operator=TEMPLATE_CONDITION, key="", values=(json.dumps(value, sort_keys=True),))})

    def written(wanted: Any) -> tuple[str, ...]:
        return tuple(sorted({str(e).lower() if isinstance(e, bool) else text(e) for e in listed(wanted)}))

    return frozenset(
        Test(operator=operator, key=key.lower(), values=written(wanted))
        for operator, keys in value.items()
        for key, wanted in keys.items()
    )


def stricter(narrow: Conditions, wide: Conditions) -> bool:
    """Whether every request that passes the narrow conditions passes the wide ones. No false positives."""
    return all(any(mine.implies(theirs) for mine in narrow) for theirs in wide)
