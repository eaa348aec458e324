"""Evaluation of a request by IAM policies within one account.

Sources: IAM user guide, "How AWS enforcement code logic evaluates requests to allow or deny access", "AWS JSON policy
elements: Principal", "IAM JSON policy elements: Condition operators", "Conditions with multiple context keys or
values", "Single-valued vs. multivalued context keys", "IAM policy elements: Variables and tags"; KMS developer guide,
"Key policies in AWS KMS". Not there: organizations' policies, ACLs, requests of other accounts, federated users, and
policy versions before 2012-10-17.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import lru_cache, partial
from operator import eq, ge, gt, le, lt
from typing import Any

from tritonstack.aws.iam_policies import EVERYBODY, NEGATED, Test, cidr_covers, conditions_of, listed

Statement = Mapping[str, Any]
Policy = Sequence[Statement]  # statements of one or several documents
_Context = Mapping[str, tuple[str, ...]]  # condition key in lower case → its values in a request


class PolicyKind(StrEnum):
    """Kinds of policies, in the words of AWS's access denied messages."""

    IDENTITY = "identity-based policy"
    RESOURCE = "resource-based policy"
    BOUNDARY = "permissions boundary"
    SESSION = "session policy"
    ENDPOINT = "VPC endpoint policy"


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to AWS."""

    principal: str  # ARN of the role, user or account root, or a service's name: ``lambda.amazonaws.com``
    action: str  # ``s3:GetObject``
    resource: str  # the ARN that it is checked against; ``*`` where the action has none
    context: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)  # a key that is not there is absent
    session: str | None = None  # ARN of the assumed role's session


@dataclass(frozen=True, kw_only=True)
class Policies:
    """The policies that apply to a request; None for none, where an empty policy would allow nothing."""

    identity: Policy = ()
    boundary: Policy | None = None
    session: Policy | None = None
    resource: Policy | None = None  # may lack ``Resource``, as a role's trust policy does
    endpoint: Policy | None = None  # of the VPC endpoint that the request comes through
    resource_must_allow: bool = False  # of a KMS key or a role: no identity policy is enough by itself


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The result of an evaluation."""

    allowed: bool
    explicit_deny: bool
    kind: PolicyKind  # that allowed, denied, or lacks an Allow
    statements: tuple[Statement, ...]  # that allowed or denied; none for the root user, and where none allows


def evaluate(request: Request, policies: Policies) -> Decision:
    """Evaluate a request: an explicit deny of any policy wins, else identity or resource policies must allow.

    Raises:
        ValueError: a policy that IAM refuses, or whose evaluation the guide does not describe.
    """
    context = _values(request)
    applied = {kind: getattr(policies, kind.name.lower()) for kind in PolicyKind}
    found = {
        kind: tuple(each for each in statements if _applies(each, kind, request, context))
        for kind, statements in applied.items()
        if statements is not None
    }
    for kind, applying in found.items():
        if denying := tuple(each for each in applying if each["Effect"] == "Deny"):
            return Decision(allowed=False, explicit_deny=True, kind=kind, statements=denying)
    kind, allowing = _allowing(request, found, resource_must_allow=policies.resource_must_allow)
    return Decision(allowed=allowing is not None, explicit_deny=False, kind=kind, statements=allowing or ())


def matching_patterns(statement: Statement, request: Request) -> tuple[list[str], list[str]]:
    """The patterns of ``Action``, and those of ``Resource``, that match in a statement that applies to a request.

    Where one alone does, the statement would not apply without it.
    """
    context = _values(request)
    actions = [each for each in listed(statement.get("Action", ())) if _is_action(each, request.action)]
    resources = listed(statement.get("Resource", ()))
    return actions, [each for each in resources if _like(_filled(each, context), request.resource)]


def _values(request: Request) -> _Context:
    return {key.lower(): (each,) if isinstance(each, str) else each for key, each in request.context.items()}


def _allowing(
    request: Request, found: Mapping[PolicyKind, tuple[Statement, ...]], *, resource_must_allow: bool
) -> tuple[PolicyKind, tuple[Statement, ...] | None]:
    """The kind of policy that allows, with its statements of those found; or the kind that lacks an Allow, and None."""
    if not found.get(PolicyKind.ENDPOINT, True):
        return PolicyKind.ENDPOINT, None
    named = [(_named(each, request), each) for each in found.get(PolicyKind.RESOURCE, ())]
    direct = tuple(each for how, each in named if how is _Named.ITSELF)
    of_role = tuple(each for how, each in named if how is _Named.ROLE)
    identity = found.get(PolicyKind.IDENTITY, ())
    by_identity = not _is_service(request) and (bool(identity) or request.principal.endswith(":root"))
    delegated = bool(named) or not resource_must_allow
    limit = next((kind for kind in (PolicyKind.BOUNDARY, PolicyKind.SESSION) if not found.get(kind, True)), None)
    if by_identity and delegated and limit is None:
        return PolicyKind.IDENTITY, identity
    if direct or (of_role and limit is None):
        return PolicyKind.RESOURCE, direct or of_role
    if _is_service(request) or not delegated:
        return PolicyKind.RESOURCE, None
    return (limit if limit is not None and (by_identity or of_role) else PolicyKind.IDENTITY), None


def refusal(request: Request, decision: Decision) -> str:
    """AWS's sentence of a request that is not allowed.

    Source: IAM user guide, "Troubleshoot access denied error messages"; its "in a sessions policy" is "in a session
    policy" in the messages that services send.
    """
    kind, article = str(decision.kind), "an" if decision.kind is PolicyKind.IDENTITY else "a"
    if decision.kind is PolicyKind.RESOURCE and request.action.lower().startswith("sts:assumerole"):
        kind, article = "role trust policy", "the"
    reason = f"because no {kind} allows the {request.action} action"
    if decision.explicit_deny:
        reason = f"with an explicit deny in {article} {kind}"
    caller = request.session or request.principal
    return f"User: {caller} is not authorized to perform: {request.action} on resource: {request.resource} {reason}"


def _is_service(request: Request) -> bool:
    """Whether a service makes the request on its own behalf, without identity policies."""
    return not request.principal.startswith("arn:")


class _Named(Enum):
    """How a resource's policy names the caller; what is allowed so is limited by implicit denies of the policies."""

    ITSELF = "none"  # the user, the session; everybody, also where aws:PrincipalArn limits the role
    ROLE = "permissions boundary and session policy"
    ACCOUNT = "identity-based policy, permissions boundary and session policy"


def _named(statement: Statement, request: Request) -> _Named | None:
    """How a statement names the caller, or None; the case that is limited least where it does so more than once."""
    if "Principal" not in statement:
        raise ValueError(f"a statement of a resource's policy needs Principal, and no NotPrincipal: {statement}")
    principal = statement["Principal"]
    if principal == EVERYBODY:
        return _Named.ITSELF
    if _is_service(request):
        return _Named.ITSELF if request.principal in listed(principal.get("Service")) else None
    names = listed(principal.get("AWS"))
    if EVERYBODY in names or request.session in names:
        return _Named.ITSELF
    if request.principal in names and not request.principal.endswith(":root"):
        return _Named.ROLE if request.session or ":role/" in request.principal else _Named.ITSELF
    account = request.principal.split(":")[4]
    of_account = any(each == account or re.fullmatch(rf"arn:[a-z-]+:iam::{account}:root", each) for each in names)
    return _Named.ACCOUNT if of_account else None


def _applies(statement: Statement, kind: PolicyKind, request: Request, context: _Context) -> bool:
    """Whether principal, action, resource and conditions of a statement match, whatever its effect."""
    if not _is_about(statement, "Action", lambda each: _is_action(each, request.action)):
        return False
    if kind in (PolicyKind.RESOURCE, PolicyKind.ENDPOINT) and _named(statement, request) is None:
        return False
    own = kind is PolicyKind.RESOURCE and not {"Resource", "NotResource"} & statement.keys()
    if not own and not _is_about(statement, "Resource", lambda each: _like(_filled(each, context), request.resource)):
        return False
    return all(_passes(test, context) for test in conditions_of(statement.get("Condition")))


def _is_about(statement: Statement, name: str, matches: Callable[[str], bool]) -> bool:
    """Whether ``Action`` or ``NotAction``, ``Resource`` or ``NotResource`` of a statement matches."""
    negated = f"Not{name}" in statement
    if negated is (name in statement):
        raise ValueError(f"a statement needs one of {name} and Not{name}: {statement}")
    return any(map(matches, listed(statement[f"Not{name}" if negated else name]))) is not negated


# Texts. ``*`` crosses colons in a resource, as the guide states for one that ends a segment; others are undocumented.
_VARIABLE = re.compile(r"\$\{(?:[*?$]|(?P<key>[^},]+)(?:, *'(?P<default>[^']*)')?)\}")
_TOKENS = re.compile(r"(\$\{[*?$]\}|[*?])")


def _filled(text: str, context: _Context) -> str | None:
    """A text of a policy with its variables replaced; None where one has no value, which is equal and like nothing."""

    def value(found: re.Match[str]) -> str:
        if found["key"] is None:
            return found[0]
        values = context.get(found["key"].strip().lower(), ())
        # A key with several values is no variable. A wildcard in a value is taken as written (UNVERIFIED).
        text = values[0] if len(values) == 1 else found["default"]
        if text is None:
            raise LookupError(found["key"])
        return re.sub(r"[*?$]", r"${\g<0>}", text)

    try:
        return _VARIABLE.sub(value, text) if "${" in text else text
    except LookupError:
        return None


def _plain(filled: str) -> str:
    """A text without wildcards: ``${*}`` is ``*``."""
    return re.sub(r"\$\{([*?$])\}", r"\1", filled) if "$" in filled else filled


@lru_cache(maxsize=8192)
def _compiled(filled: str) -> re.Pattern[str]:
    """A pattern, where ``*`` is any text and ``?`` any one character."""
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(each) or re.escape(_plain(each)) for each in _TOKENS.split(filled)), re.DOTALL)


def _like(filled: str | None, text: str) -> bool:
    return filled is not None and (filled in (EVERYBODY, text) or _compiled(filled).fullmatch(text) is not None)


@lru_cache(maxsize=65536)
def _is_action(pattern: str, action: str) -> bool:
    return _like(pattern.lower(), action.lower())


def _arn_like(filled: str, given: str) -> bool:
    """Match as ``_like``, each of the six parts by itself; a ``*`` at the end of fewer parts matches the rest."""
    mine = filled.split(":", 5)
    theirs = given.split(":", len(mine) - 1)
    return len(mine) == len(theirs) and all(map(_like, mine, theirs))


def _instant(text: str) -> float:
    """Seconds since the epoch of W3C's ISO 8601 formats, or of such seconds; four digits are a year."""
    if text.isdigit() and len(text) != 4:
        return float(text)
    when = datetime.fromisoformat(f"{text}-01-01" if len(text) == 4 else f"{text}-01" if len(text) == 7 else text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _compared(compare: Callable[[float, float], bool], read: Callable[[str], float], wanted: str, given: str) -> bool:
    """Whether a comparison of two numbers or dates holds; other text compares with nothing (UNVERIFIED)."""
    try:
        return compare(read(given), read(wanted))
    except ValueError:
        return False


_ORDERS = {"Equals": eq, "LessThan": lt, "LessThanEquals": le, "GreaterThan": gt, "GreaterThanEquals": ge}
_PASSES: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda wanted, given: _plain(wanted) == given,
    "StringEqualsIgnoreCase": lambda wanted, given: _plain(wanted).lower() == given.lower(),
    "StringLike": _like,
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": lambda wanted, given: _plain(wanted).lower() == given.lower(),
    "BinaryEquals": eq,
    "IpAddress": cidr_covers,
    **{f"Numeric{name}": partial(_compared, compare, float) for name, compare in _ORDERS.items()},
    **{f"Date{name}": partial(_compared, compare, _instant) for name, compare in _ORDERS.items()},
}
"""Operator → whether a value of a policy, with its variables replaced, lets one of a request pass."""


def _passes(test: Test, context: _Context) -> bool:
    """Whether a request with this context passes one test of a statement's ``Condition``."""
    values = context.get(test.key, ())
    if test.operator == "Null":
        return ("false" if values else "true") in map(str.lower, test.values)
    quantifier, _, operator = test.operator.rpartition(":")
    name = operator.removesuffix("IfExists")
    base, negated = NEGATED.get(name, name), name in NEGATED
    if base not in _PASSES or quantifier not in ("", "ForAnyValue", "ForAllValues"):
        raise ValueError(f"IAM has no condition operator {test.operator}")
    if quantifier and not any(values):  # an empty text is a null data set
        # Also with ``IfExists``: AWS re:Post, "ForAnyValue:StringEqualsIfExists behaving unexpectedly".
        return quantifier == "ForAllValues"
    if not values:
        return negated or name != operator
    if not quantifier and len(values) > 1:
        raise ValueError(f"{test.key} has several values: {test.operator} needs ForAnyValue or ForAllValues before it")
    variables = base.startswith(("String", "Arn", "Bool"))
    wanted = [
        each for each in (_filled(each, context) if variables else each for each in test.values) if each is not None
    ]
    passed = (any(_PASSES[base](each, value) for each in wanted) is not negated for value in values)
    return any(passed) if quantifier == "ForAnyValue" else all(passed)
