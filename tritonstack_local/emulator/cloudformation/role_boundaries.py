"""The permissions boundary of a role in a template, which MiniStack's CloudFormation leaves out.

A boundary that does not exist is refused, as CreateRole does (IAM API reference: NoSuchEntity); what it allows is
enforced here no more than any policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import iam
from ministack.services.cloudformation import provisioners

from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned
from tritonstack_local.emulator.ministack_call import call
from tritonstack_local.emulator.refusal import RefusedError

BOUNDARY = "PermissionsBoundary"


def install() -> None:
    """Have the boundary kept with the role."""
    handler = provisioners._RESOURCE_HANDLERS["AWS::IAM::Role"]
    handler["create"] = _created(handler["create"])
    handler["update"] = _updated(handler["update"])


def _created(create: Callable[..., Provisioned]) -> Callable[..., Provisioned]:
    def created(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        _check(properties)
        made = create(logical_id, properties, stack_name)
        _set(made[0], properties)
        return made

    return created


def _updated(update: Callable[..., Provisioned]) -> Callable[..., Provisioned]:
    def updated(physical_id: str, old: Properties, new: Properties, *rest: Any) -> Provisioned:
        _check(new)
        made = update(physical_id, old, new, *rest)
        if BOUNDARY in new:
            _set(made[0], new)
        elif BOUNDARY in old:
            call("iam", "DeleteRolePermissionsBoundary", {"RoleName": made[0]})
        return made

    return updated


def _check(properties: Properties) -> None:
    arn = properties.get(BOUNDARY)
    if arn is not None and not iam._policy_exists(arn):
        raise RefusedError(
            "NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.", source="IAM, CreateRole"
        )


def _set(name: str, properties: Properties) -> None:
    if BOUNDARY in properties:
        call("iam", "PutRolePermissionsBoundary", {"RoleName": name, BOUNDARY: properties[BOUNDARY]})
