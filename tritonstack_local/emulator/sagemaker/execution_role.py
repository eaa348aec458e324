"""Whether SageMaker may assume an execution role, as far as its existence and its trust policy tell."""

from __future__ import annotations

import json
from typing import Any

from ministack.core.responses import get_account_id
from ministack.services import iam

from tritonstack_local.emulator.refusal import RefusedError

PRINCIPAL = "sagemaker.amazonaws.com"
_SOURCE = "SageMaker's own sentence for such a role, quoted in github.com/bentoml/BentoML/issues/892"


def check_execution_role(arn: str) -> None:
    """Raise ``RefusedError`` where the role is not of this account, does not exist or does not trust SageMaker."""
    account, name = arn.split(":")[4], arn.rpartition("/")[2]
    role = iam._roles.get(name) if account == get_account_id() else None
    if role is None or not _trusts(json.loads(role["AssumeRolePolicyDocument"] or "{}")):
        raise RefusedError(
            "ValidationException",
            f'The execution role ARN "{arn}" is invalid. Please ensure that the role exists and that its trust'
            f' relationship policy allows the action "sts:AssumeRole" for the service principal "{PRINCIPAL}".',
            source=_SOURCE,
        )


def _trusts(policy: dict[str, Any]) -> bool:
    return any(_allows(statement) for statement in _listed(policy.get("Statement")))


def _allows(statement: dict[str, Any]) -> bool:
    principal = statement.get("Principal", {})
    services = _listed(principal.get("Service")) if isinstance(principal, dict) else _listed(principal)
    actions = _listed(statement.get("Action"))
    return (
        statement.get("Effect") == "Allow"
        and bool({PRINCIPAL, "*"} & set(services))
        and bool({"sts:AssumeRole", "sts:*", "*"} & set(actions))
    )


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
