"""Whether CodeBuild may assume a project's service role, as far as its existence and its trust policy tell."""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import get_account_id
from ministack.services import iam

from tritonstack_local.emulator.refusal import RefusedError

PRINCIPAL = "codebuild.amazonaws.com"


def check_service_role(arn: str) -> None:
    """Raise RefusedError where the role is not of this account, does not exist or does not trust CodeBuild."""
    parts = arn.split(":")
    role = iam._roles.get(arn.rpartition("/")[2]) if len(parts) > 4 and parts[4] == get_account_id() else None
    if role is None or not _trusts(json.loads(role["AssumeRolePolicyDocument"] or "{}")):
        raise RefusedError(
            "InvalidInputException",
            f"CodeBuild is not authorized to perform: sts:AssumeRole on {arn}: the role does not exist, or its trust"
            f" policy does not name {PRINCIPAL}",
            source="CodeBuild user guide, troubleshooting",
        )


def _trusts(policy: dict[str, Any]) -> bool:
    for statement in _listed(policy.get("Statement")):
        principal = statement.get("Principal", {})
        services = _listed(principal.get("Service")) if isinstance(principal, dict) else _listed(principal)
        actions = _listed(statement.get("Action"))
        if statement.get("Effect") == "Allow" and {PRINCIPAL, "*"} & set(services) and "sts:AssumeRole" in actions:
            return True
    return False


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
