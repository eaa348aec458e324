"""IAM policies: patterns and conditions compared with each other, and the evaluation of one request.

Sources: IAM user guide, "IAM JSON policy elements" and "Policy evaluation logic"; KMS developer guide, "Key policies in
AWS KMS".
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
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
# character that only ``*`` and the same reference match: its text is known when it is deployed.
_TOKENS = re.compile(r"\$\{[^}]*\}|.", re.DOTALL)


@lru_cache(maxsize=65536)
def covers(wide: str, narrow: str) -> bool:
    """Whether every text that ``narrow`` matches is matched by ``wide``; also for a ``narrow`` that is plain text.

    Never True without being so; False for some patterns with ``?`` and ``*`` that are covered.
    """
    if wide in (narrow, "*"):
        return True
    if "*" not in wide and "?" not in wide:
        return False
    pattern, tokens = _tokens(wide), _tokens(narrow)
    # Greedy glob matching, with the tokens of the narrow pattern as the text.
    place = taken = from_star = 0
    star = -1
    while taken < len(tokens):
        token = tokens[taken]
        if place < len(pattern) and pattern[place] == "*":
            star, from_star = place, taken
            place += 1
        elif place < len(pattern) and _matches_one(pattern[place], token):
            place, taken = place + 1, taken + 1
        elif star >= 0:
            from_star += 1
            place, taken = star + 1, from_star
        else:
            return False
    return all(each == "*" for each in pattern[place:])


@lru_cache(maxsize=65536)
def may_meet(one: str, other: str) -> bool:
    """Whether some text is, or may be, matched by both patterns. A reference may be any text."""
    first = ["*" if each.startswith("${") else each for each in _tokens(one)]
    second = ["*" if each.startswith("${") else each for each in _tokens(other)]
    reached = {(0, 0)}
    pending = [(0, 0)]
    while pending:
        left, right = pending.pop()
        head, tail = first[left : left + 1], second[right : right + 1]
        steps = []
        if head == ["*"]:
            steps += [(left + 1, right), (left, right + 1)]
        if tail == ["*"]:
            steps += [(left, right + 1), (left + 1, right)]
        if head and tail and (head == tail or "?" in (*head, *tail)):
            steps.append((left + 1, right + 1))
        for step in steps:
            if step[0] <= len(first) and step[1] <= len(second) and step not in reached:
                reached.add(step)
                pending.append(step)
    return (len(first), len(second)) in reached


def is_wild(text: str) -> bool:
    """Whether a text holds a wildcard outside its references."""
    return any(each in {"*", "?"} for each in _tokens(text))


def _tokens(text: str) -> list[str]:
    """The characters of a pattern; of wildcards in a row the ``?`` first and one ``*``, which matches the same."""
    tokens: list[str] = []
    for sign in _TOKENS.findall(text):
        if sign == "*" and tokens[-1:] == ["*"]:
            continue
        if sign == "?" and tokens[-1:] == ["*"]:
            tokens[-1:] = ["?", "*"]
        else:
            tokens.append(sign)
    return tokens


def _matches_one(pattern: str, sign: str) -> bool:
    return pattern == sign or (pattern == "?" and sign != "*" and not sign.startswith("${"))


def arn_covers(wide: str, narrow: str) -> bool:
    """As ``ArnLike`` and ``ArnEquals`` compare: each of the six parts by itself, so that ``*`` crosses no colon."""
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
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnLike",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
}
_COVERS: Mapping[str, Callable[[str, str], bool]] = {
    "StringLike": covers,
    "ArnLike": arn_covers,
    "ArnEquals": arn_covers,
    "IpAddress": cidr_covers,
}
"""Operator → whether its test with the first value passes whatever its test with the second one passes."""
_PASSES: Mapping[str, Callable[[str, str], bool]] = {
    **_COVERS,
    "StringEquals": lambda wanted, given: given == wanted,
    "StringEqualsIgnoreCase": lambda wanted, given: given.lower() == wanted.lower(),
    "Bool": lambda wanted, given: given.lower() == wanted.lower(),
    "NumericLessThanEquals": lambda wanted, given: float(given) <= float(wanted),
    "NumericGreaterThanEquals": lambda wanted, given: float(given) >= float(wanted),
}
"""Operator → whether a request's value passes, as ``evaluate`` tests it."""
Context = Mapping[str, str | tuple[str, ...]]
"""Condition key → value or values of a request."""


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
        """Whether each request that passes this test passes the other. Never True without being so."""
        same = other.operator in {self.operator, f"{self.operator}IfExists"}
        same = same or {self.operator, other.operator} == {"ArnEquals", "ArnLike"}
        if self.key != other.key or not same:
            return False
        name = self.operator.rpartition(":")[2].removesuffix("IfExists")
        covered = _COVERS.get(_NEGATED.get(name, name), str.__eq__)
        if name in _NEGATED:
            return all(any(mine == theirs or covered(mine, theirs) for mine in self.values) for theirs in other.values)
        return all(any(mine == theirs or covered(theirs, mine) for theirs in other.values) for mine in self.values)

    def passes(self, context: Context) -> bool:
        """Whether a request with this context passes.

        Raises:
            ValueError: an operator that is not in ``_PASSES``.
        """
        quantifier, _, name = self.operator.rpartition(":")
        optional, name = name.endswith("IfExists"), name.removesuffix("IfExists")
        given = next((listed(value) for key, value in context.items() if key.lower() == self.key), None)
        if name == "Null":
            return (given is None) is (self.values[0].lower() == "true")
        if given is None:
            return optional or quantifier == "ForAllValues" or (not quantifier and name in _NEGATED)
        if _NEGATED.get(name, name) not in _PASSES or quantifier not in {"", "ForAnyValue", "ForAllValues"}:
            raise ValueError(f"this evaluation does not know the operator {self.operator}")
        test = _PASSES[_NEGATED.get(name, name)]
        passed = [any(test(wanted, each) for wanted in self.values) is (name not in _NEGATED) for each in given]
        return any(passed) if quantifier == "ForAnyValue" else all(passed)


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
    """Whether every request that passes the narrow conditions passes the wide ones. Never True without being so."""
    return all(any(mine.implies(theirs) for mine in narrow) for theirs in wide)


# The evaluation of one request within one account. Not there: session policies, organizations' policies, requests of
# other accounts, policy variables.
Statement = Mapping[str, Any]
Policy = Sequence[Statement]


class Verdict(Enum):
    """Result of an evaluation."""

    ALLOWED = "allowed"
    DENIED = "denied by a statement"
    NOT_ALLOWED = "allowed by no statement"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to AWS."""

    principal: str  # ARN of the caller, or a service's name
    action: str  # ``s3:GetObject``
    resource: str  # the ARN that it is checked against; ``*`` where the action has none
    context: Context = field(default_factory=dict)  # a key that is not there is not in the request

    @property
    def is_service(self) -> bool:
        """Whether a service makes the request on its own behalf."""
        return not self.principal.startswith("arn:")


def evaluate(
    request: Request,
    *,
    identity: Policy = (),
    boundary: Policy | None = None,
    resource: Policy | None = None,
    resource_must_allow: bool = False,
) -> Verdict:
    """Evaluate a request: an explicit deny wins; then the resource's policy or the identity's must allow.

    Args:
        request: the request.
        identity: every statement of the caller's own policies.
        boundary: statements of its permissions boundary, which must allow what ``identity`` does; None for none.
        resource: statements of the resource's policy; None for none.
        resource_must_allow: whether ``resource`` must allow the account or the principal, as of a KMS key.
    """
    mine = [each for each in resource or () if _names_caller(each, request)]
    if any(each["Effect"] == "Deny" and applies(each, request) for each in (*identity, *(boundary or ()), *mine)):
        return Verdict.DENIED
    within_boundary = boundary is None or _allows(boundary, request)
    by_identity = not request.is_service and _allows(identity, request) and within_boundary
    if _allows((each for each in mine if not _names_account(each, request)), request) and (
        request.is_service or within_boundary
    ):
        return Verdict.ALLOWED
    delegated = not resource_must_allow or _allows((each for each in mine if _names_account(each, request)), request)
    return Verdict.ALLOWED if delegated and by_identity else Verdict.NOT_ALLOWED


def applies(statement: Statement, request: Request) -> bool:
    """Whether action, resource and conditions of a statement match, whatever its effect.

    Raises:
        ValueError: the statement has not exactly one of ``Action`` and ``NotAction``, or likewise of ``Resource``.
    """
    return (
        element_matches(statement, "Action", request.action, fold=True)
        and element_matches(statement, "Resource", request.resource)
        and all(test.passes(request.context) for test in conditions_of(statement.get("Condition")))
    )


def element_matches(statement: Statement, name: str, value: str, *, fold: bool = False) -> bool:
    """Whether ``Action`` or ``NotAction``, ``Resource`` or ``NotResource`` of a statement is about a value."""
    if (name in statement) == (f"Not{name}" in statement):
        raise ValueError(f"a statement needs one of {name} and Not{name}: {statement}")
    patterns = listed(statement.get(name, statement.get(f"Not{name}")))
    found = any(covers(each.lower(), value.lower()) if fold else covers(each, value) for each in patterns)
    return found is (name in statement)


def _allows(statements: Iterable[Statement], request: Request) -> bool:
    return any(each["Effect"] == "Allow" and applies(each, request) for each in statements)


def _names_caller(statement: Statement, request: Request) -> bool:
    principal = statement["Principal"]
    if principal == EVERYBODY:
        return True
    if request.is_service:
        return request.principal in listed(principal.get("Service"))
    named = listed(principal.get("AWS"))
    return any(each in (EVERYBODY, request.principal) or _is_account(each, request) for each in named)


def _names_account(statement: Statement, request: Request) -> bool:
    """Whether a statement names the account as a whole, and so leaves the choice to identity policies."""
    principal = statement["Principal"]
    if request.is_service or principal == EVERYBODY:
        return False
    named = listed(principal.get("AWS"))
    return request.principal not in named and any(_is_account(each, request) for each in named)


def _is_account(named: str, request: Request) -> bool:
    account = request.principal.split(":")[4]
    return named == account or bool(re.fullmatch(rf"arn:[a-z-]+:iam::{account}:root", named))
