"""IAM's evaluation of a request within one account, for the policies that are made here.

Follows the IAM user guide, "Policy evaluation logic" and "IAM JSON policy elements": an explicit deny in any policy
wins; then a resource's policy or the identity's must allow, and a permissions boundary must allow what the identity's
do. A key's policy must let the account or the principal in, or no identity policy counts (KMS developer guide, "Key
policies in AWS KMS"). Not there: session policies, organisations, other accounts' requests, policy variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Statement = Mapping[str, Any]
Policy = Sequence[Statement]
Context = Mapping[str, str | tuple[str, ...]]


class Verdict(Enum):
    """What comes of a request."""

    ALLOWED = "allowed"
    DENIED = "denied by a statement"
    NOT_ALLOWED = "allowed by no statement"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One call.

    Attributes:
        principal: the ARN of who calls, or a service's name.
        action: ``s3:GetObject``.
        resource: the ARN that it is checked against; ``*`` where the action has none.
        context: condition key → value or values. A key that is not there is not in the request.
    """

    principal: str
    action: str
    resource: str
    context: Context = field(default_factory=dict)

    @property
    def is_service(self) -> bool:
        """Whether a service calls on its own behalf."""
        return not self.principal.startswith("arn:")


def evaluate(
    request: Request,
    *,
    identity: Policy = (),
    boundary: Policy | None = None,
    resource: Policy | None = None,
    resource_must_allow: bool = False,
) -> Verdict:
    """The verdict.

    Args:
        request: the call.
        identity: every statement of the caller's own policies.
        boundary: the statements of its permissions boundary; None where it has none.
        resource: the statements of the resource's policy; None where it has none.
        resource_must_allow: whether nothing is allowed that the resource's policy does not let in, as of a KMS key.
    """
    mine = [each for each in resource or () if _names(each, request)]
    for statements in (identity, boundary or (), mine):
        if any(each["Effect"] == "Deny" and applies(each, request) for each in statements):
            return Verdict.DENIED
    inside = boundary is None or _allows(boundary, request)
    by_identity = not request.is_service and _allows(identity, request) and inside
    direct = _allows([each for each in mine if not _names_account(each, request)], request)
    if direct and (request.is_service or inside):
        return Verdict.ALLOWED
    if resource_must_allow:
        delegated = _allows([each for each in mine if _names_account(each, request)], request)
        return Verdict.ALLOWED if delegated and by_identity else Verdict.NOT_ALLOWED
    return Verdict.ALLOWED if by_identity else Verdict.NOT_ALLOWED


def applies(statement: Statement, request: Request) -> bool:
    """Whether action, resource and conditions of a statement match, whatever its effect."""
    return (
        _element(statement, "Action", request.action, fold=True)
        and _element(statement, "Resource", request.resource, fold=False)
        and conditions_hold(statement.get("Condition", {}), request.context)
    )


def _allows(statements: Iterable[Statement], request: Request) -> bool:
    return any(each["Effect"] == "Allow" and applies(each, request) for each in statements)


def _element(statement: Statement, name: str, value: str, *, fold: bool) -> bool:
    """``Action`` or ``NotAction``, ``Resource`` or ``NotResource``: exactly one stands in a statement."""
    negated = f"Not{name}"
    if (name in statement) == (negated in statement):
        raise ValueError(f"a statement with one of {name} and {negated} is needed: {statement}")
    found = any(glob(pattern, value, fold=fold) for pattern in listed(statement.get(name, statement.get(negated))))
    return found is (name in statement)


def _names(statement: Statement, request: Request) -> bool:
    """Whether a statement of a resource's policy is about the caller."""
    principal = statement["Principal"]
    if principal == "*":
        return True
    if request.is_service:
        return request.principal in listed(principal.get("Service", []))
    return any(
        each in ("*", request.principal) or _is_account(each, request) for each in listed(principal.get("AWS", []))
    )


def _names_account(statement: Statement, request: Request) -> bool:
    """Whether a statement names the account as a whole, and so leaves the choice to identity policies."""
    principal = statement["Principal"]
    if request.is_service or principal == "*":
        return False
    named = listed(principal.get("AWS", []))
    return request.principal not in named and any(_is_account(each, request) for each in named)


def _is_account(named: str, request: Request) -> bool:
    account = request.principal.split(":")[4]
    return named == account or bool(re.fullmatch(rf"arn:[a-z-]+:iam::{account}:root", named))


def conditions_hold(conditions: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    """Whether every operator holds for every one of its keys (any of a key's wanted values)."""
    return all(
        _holds(operator, [str(value) for value in listed(wanted)], _given(context, key))
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _given(context: Context, key: str) -> tuple[str, ...] | None:
    """The values of a key, whose name has no case; None where it is not in the request."""
    for name, value in context.items():
        if name.lower() == key.lower():
            return (value,) if isinstance(value, str) else tuple(value)
    return None


def _holds(operator: str, wanted: Sequence[str], given: tuple[str, ...] | None) -> bool:
    quantifier, _, name = operator.rpartition(":")
    optional = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    if name == "Null":
        return (given is None) is (wanted[0].lower() == "true")
    if given is None:
        return optional or quantifier == "ForAllValues" or (not quantifier and name in NEGATED)
    one = _one_holds(name)
    if quantifier == "ForAnyValue":
        return any(one(value, wanted) for value in given)
    if quantifier in ("", "ForAllValues"):
        return all(one(value, wanted) for value in given)
    raise ValueError(f"no such quantifier: {operator}")


def _one_holds(name: str) -> Callable[[str, Sequence[str]], bool]:
    """The test of one given value against the wanted ones: any of them, or of a negated operator none."""
    if name in NEGATED:
        positive = OPERATORS[NEGATED[name]]
        return lambda given, wanted: not any(positive(given, each) for each in wanted)
    if name not in OPERATORS:
        raise ValueError(f"an operator that this evaluator does not know: {name}")
    test = OPERATORS[name]
    return lambda given, wanted: any(test(given, each) for each in wanted)


def arn_like(given: str, wanted: str) -> bool:
    """As ``ArnLike`` and ``ArnEquals`` compare: each of the six parts by itself, so that ``*`` crosses no colon."""
    mine, theirs = given.split(":", 5), wanted.split(":", 5)
    return len(mine) == len(theirs) == 6 and all(glob(b, a) for a, b in zip(mine, theirs, strict=True))


def glob(pattern: str, value: str, *, fold: bool = False) -> bool:
    """``*`` and ``?`` as IAM reads them, and no other sign."""
    expression = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return re.fullmatch(expression, value, re.DOTALL | (re.IGNORECASE if fold else 0)) is not None


def listed(value: Any) -> list[Any]:
    """IAM's "one or many" as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda given, wanted: given == wanted,
    "StringEqualsIgnoreCase": lambda given, wanted: given.lower() == wanted.lower(),
    "StringLike": lambda given, wanted: glob(wanted, given),
    "ArnEquals": arn_like,
    "ArnLike": arn_like,
    "Bool": lambda given, wanted: given.lower() == wanted.lower(),
    "NumericLessThanEquals": lambda given, wanted: float(given) <= float(wanted),
    "NumericGreaterThanEquals": lambda given, wanted: float(given) >= float(wanted),
}
NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
}
