"""Quotas of the length of policies, which MiniStack does not check: synthesis's, and those of users and groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tritonstack.cloudformation.limits import allowed
from tritonstack_local.emulator.cloudformation.provisioning import Properties, complete
from tritonstack_local.emulator.ministack_adapter import iam
from tritonstack_local.emulator.request_validation import RefusedError

_SOURCE = 'IAM user guide, "IAM and AWS STS quotas": character limits'
_TRUST, _MANAGED = allowed("characters of a trust policy"), allowed("characters of a managed policy")
# All inline policies of one identity together.
_INLINE = {"role": allowed("characters of a role's inline policies"), "user": 2048, "group": 5120}
_STORED: dict[str, Callable[[str], Mapping[str, Any] | None]] = {
    "role": lambda name: (iam.roles().get(name) or {}).get("InlinePolicies"),
    "user": iam.user_inline_policies().get,
    "group": iam.group_inline_policies().get,
}


def install() -> None:
    """Have operations that write policies, and the types of roles and managed policies, refuse long ones."""
    for kind in _INLINE:
        _limit(f"Put{kind.title()}Policy", _inline_check(kind))
    for operation in ("CreatePolicy", "CreatePolicyVersion"):
        _limit(operation, lambda asked: _check_managed(asked("PolicyDocument")))
    _limit("CreateRole", lambda asked: _check_trust(asked("AssumeRolePolicyDocument")))
    _limit("UpdateAssumeRolePolicy", lambda asked: _check_trust(asked("PolicyDocument")))
    complete("AWS::IAM::Role", check=_check_role, apply=_nothing_more)
    complete(
        "AWS::IAM::ManagedPolicy", check=lambda given: _check_managed(given["PolicyDocument"]), apply=_nothing_more
    )


def _limit(operation: str, check: Callable[[Callable[[str], str]], None]) -> None:
    """Put a check before an operation, for the API and for MiniStack's provisioners, which call its function."""
    theirs = iam.operations()[operation]

    def limited(parameters: Mapping[str, Any]) -> Any:
        try:
            check(lambda name: iam.parameter(parameters, name) or "")
        except RefusedError as refused:
            return iam.error_response(refused.status, refused.code, str(refused), ns="iam")
        return theirs(parameters)

    iam.replace_operation(operation, limited)


def _inline_check(kind: str) -> Callable[[Callable[[str], str]], None]:
    def check(asked: Callable[[str], str]) -> None:
        name, policy = asked(f"{kind.title()}Name"), asked("PolicyName")
        others = {each: document for each, document in (_STORED[kind](name) or {}).items() if each != policy}
        _check_inline(kind, name, [*others.values(), asked("PolicyDocument")])

    return check


def _check_inline(kind: str, name: str, documents: list[Any]) -> None:
    if sum(map(_characters, documents)) > _INLINE[kind]:
        raise _exceeded(f"Maximum policy size of {_INLINE[kind]} bytes exceeded for {kind} {name}")


def _check_managed(document: Any) -> None:
    if _characters(document) > _MANAGED:
        raise _exceeded(f"Cannot exceed quota for PolicySize: {_MANAGED}")


def _check_trust(document: Any) -> None:
    if _characters(document) > _TRUST:
        raise _exceeded(f"Cannot exceed quota for ACLSizePerRole: {_TRUST}")


def _check_role(properties: Properties) -> None:
    _check_trust(properties["AssumeRolePolicyDocument"])
    _check_inline(
        "role", properties.get("RoleName", ""), [each["PolicyDocument"] for each in properties.get("Policies", ())]
    )


def _nothing_more(*_: Any) -> None:
    """Do nothing: MiniStack itself stores the policies that are checked here."""


def _exceeded(message: str) -> RefusedError:
    return RefusedError("LimitExceeded", message, source=_SOURCE, status=409)


def _characters(document: Any) -> int:
    """Without whitespace, as IAM counts them."""
    return len("".join((document if isinstance(document, str) else json.dumps(document)).split()))
