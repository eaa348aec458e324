"""Authorisation: whether a principal's request is allowed, by every policy that AWS evaluates.

``authorize`` is the one gate: for requests over HTTP (``gateway``), for what services do with a role or as themselves
(``service_calls``), and for CloudFormation's handlers (``cloudformation.permissions``). Source: IAM user guide, "Policy
evaluation logic"; the evaluation itself is ``tritonstack.aws.iam_evaluation``.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tritonstack.aws.iam_evaluation import Decision, Policies, Policy, Request, evaluate, refusal
from tritonstack_local import ACCOUNT
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.principals import (
    ADMINISTRATOR,
    Principal,
    boundary_of,
    named_policies,
    region,
    role_principal,
    service_principal,
    tags_of,
)
from tritonstack_local.emulator.iam.records import records
from tritonstack_local.emulator.iam.resource_policies import (
    MUST_ALLOW,
    endpoint_policies,
    resource_policy,
    resource_tags,
    trust_policy,
)
from tritonstack_local.emulator.request_validation import RefusedError

__all__ = [
    "AccessDeniedError",
    "Principal",
    "acting_as",
    "authorize",
    "current_principal",
    "enforced",
    "role_principal",
    "service_principal",
]
_TYPES = {"administrator": "Account", "role": "AssumedRole", "user": "User"}
_current: contextvars.ContextVar[Principal] = contextvars.ContextVar("tritonstack_principal", default=ADMINISTRATOR)


class _Switch:
    """Whether permissions are enforced; set once, when the emulator is built."""

    on = True


switch = _Switch()


class AccessDeniedError(RefusedError):
    """A request that no policy allows, or that one denies; the text is AWS's sentence."""

    def __init__(self, sentence: str) -> None:
        """``sentence``: principal, action, resource and reason."""
        super().__init__("AccessDenied", sentence, source="IAM", status=403)
        self.sentence = sentence

    def __str__(self) -> str:
        return self.sentence


def enforced() -> bool:
    """Whether permissions are enforced at all (``tritonstack local up --no-iam``)."""
    return switch.on


def current_principal() -> Principal:
    """The principal of the request in progress; the administrator where none is."""
    return _current.get()


def set_current(principal: Principal) -> None:
    """Make ``principal`` the current one for the rest of this context: of a request."""
    _current.set(principal)


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Make ``principal`` the current one, for the block and the contexts that are copied within it."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def authorize(principal: Principal, needs: Iterable[Need], *, by: str) -> None:
    """Raise AccessDeniedError for the first need that is not allowed; record the used statements and the denials.

    ``by``: what is done, for the list of denials (``codebuild: build dev-engines:1``).
    """
    if not switch.on:
        return
    for need in needs:
        request, decision = decide(principal, need)
        if decision.allowed:
            records.used(principal, request, decision)
            continue
        sentence = refusal(request, decision)
        records.denied(principal, need, decision, sentence=sentence, by=by)
        raise AccessDeniedError(sentence)


def decide(principal: Principal, need: Need) -> tuple[Request, Decision]:
    """The request as policies see it, and their decision."""
    service = need.action.partition(":")[0]
    own = resource_policy(need.action, need.resource)
    identity = tuple(each for _, policy in named_policies(principal) for each in policy)
    boundary = boundary_of(principal)
    mentioned = (*identity, *(boundary or ()), *(own or ()))
    request = Request(
        principal=principal.arn,
        session=principal.session,
        action=need.action,
        resource=need.resource,
        context=_context(principal, need, mentioned),
    )
    policies = Policies(
        identity=identity,
        boundary=boundary,
        session=principal.policies,
        resource=own,
        resource_must_allow=own is not None and (service in MUST_ALLOW or need.action.startswith("sts:")),
    )
    decision = evaluate(request, policies)
    # A request that one service sends to another on the caller's behalf does not come from the caller's network.
    if decision.allowed and principal.vpc is not None and need.context.get("aws:ViaAWSService") != "true":
        for policy in endpoint_policies(principal.vpc, need.action):
            through = evaluate(request, Policies(**{**vars(policies), "endpoint": policy}))
            if not through.allowed:
                return request, through
    return request, decision


def _context(principal: Principal, need: Need, statements: Policy) -> dict[str, str | tuple[str, ...]]:
    """The request's context: those keys of the need, and global ones (IAM user guide, "Global condition keys")."""
    now = clock.now()
    parts = need.resource.split(":", 5)
    context: dict[str, str | tuple[str, ...]] = {
        "aws:CurrentTime": datetime.fromtimestamp(now, tz=UTC).isoformat(timespec="seconds"),
        "aws:EpochTime": str(int(now)),
        "aws:RequestedRegion": region(),
        # Clients use plain HTTP for a local AWS on loopback; at AWS they use TLS.
        "aws:SecureTransport": "true",
        "aws:ResourceAccount": parts[4] if len(parts) > 5 and parts[4] else ACCOUNT,
    }
    if principal.kind == "service":
        context |= {"aws:PrincipalServiceName": principal.arn, "aws:PrincipalIsAWSService": "true"}
    else:
        context |= {
            "aws:PrincipalArn": principal.arn,
            "aws:PrincipalAccount": principal.arn.split(":")[4],
            "aws:PrincipalType": _TYPES[principal.kind],
            "aws:PrincipalIsAWSService": "false",
            "aws:SourceIp": "127.0.0.1",
        }
        context |= {f"aws:PrincipalTag/{key}": value for key, value in tags_of(principal).items()}
    if principal.kind == "user":
        context["aws:username"] = principal.name
    if principal.vpc is not None:
        context["aws:SourceVpc"] = principal.vpc
    if any("aws:resourcetag/" in str(each.get("Condition", "")).lower() for each in statements):
        context |= {f"aws:ResourceTag/{key}": value for key, value in resource_tags(need.resource).items()}
    return {**context, **need.context}


def check_trust(role_arn: str, *, service: str, context: Mapping[str, str] | None = None) -> None:
    """Raise AccessDeniedError where a role is not there, or its trust policy does not let a service assume it."""
    need = Need(
        action="sts:AssumeRole", resource=role_arn, context={"aws:SourceAccount": ACCOUNT, **(dict(context or {}))}
    )
    if trust_policy(role_arn) is None:
        raise AccessDeniedError(f"{service} is not authorized to perform: sts:AssumeRole on resource: {role_arn}")
    authorize(service_principal(service), [need], by=f"{service} assumes {role_arn.rpartition('/')[2]}")


def usage() -> dict[str, Any]:
    """The records that ``tritonstack local iam report`` and ``local status`` read."""
    return {"enforced": switch.on, **records.document()}
