"""Evaluation of one request by IAM policies within one account.

Sources: IAM user guide, "IAM JSON policy elements" and "Policy evaluation logic"; KMS developer guide, "Key policies in
AWS KMS". Not there: session policies, organizations' policies, requests of other accounts, policy variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tritonstack.iam_policies import COVERS, EVERYBODY, NEGATED, Test, conditions_of, covers, listed

_PASSES: Mapping[str, Callable[[str, str], bool]] = {
    **COVERS,
    "StringEquals": lambda wanted, given: given == wanted,
    "StringEqualsIgnoreCase": lambda wanted, given: given.lower() == wanted.lower(),
    "Bool": lambda wanted, given: given.lower() == wanted.lower(),
    "NumericLessThanEquals": lambda wanted, given: float(given) <= float(wanted),
    "NumericGreaterThanEquals": lambda wanted, given: float(given) >= float(wanted),
}
"""Operator → whether a request's value passes, as ``evaluate`` tests it."""
Context = Mapping[str, str | tuple[str, ...]]
"""Condition key → value or values of a request."""


def passes(test: Test, context: Context) -> bool:
    """Whether a request with this context passes.

    Raises:
        ValueError: an operator that is not in ``_PASSES``.
    """
    quantifier, _, name = test.operator.rpartition(":")
    optional, name = name.endswith("IfExists"), name.removesuffix("IfExists")
    given = next((listed(value) for key, value in context.items() if key.lower() == test.key), None)
    if name == "Null":
        return (given is None) is (test.values[0].lower() == "true")
    if given is None:
        return optional or quantifier == "ForAllValues" or (not quantifier and name in NEGATED)
    if NEGATED.get(name, name) not in _PASSES or quantifier not in {"", "ForAnyValue", "ForAllValues"}:
        raise ValueError(f"this evaluation does not know the operator {test.operator}")
    value_passes = _PASSES[NEGATED.get(name, name)]
    passed = [any(value_passes(wanted, each) for wanted in test.values) is (name not in NEGATED) for each in given]
    return any(passed) if quantifier == "ForAnyValue" else all(passed)


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
        and all(passes(test, request.context) for test in conditions_of(statement.get("Condition")))
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
