"""Registration of resource types in MiniStack's CloudFormation, and their properties by CloudFormation's schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services import iam
from ministack.services.cloudformation import provisioners, stacks

from tritonstack.cloudformation.resource_schemas import ResourceSchema, resource_schemas
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import call

Properties = dict[str, Any]
Provisioned = tuple[str, dict[str, Any]]
"""A physical id and the attributes that Fn::GetAtt reads."""
Create = Callable[[str, Properties, str], Provisioned]
Update = Callable[[str, Properties, Properties, str], Provisioned]
Delete = Callable[[str, Properties], None]


def register(type_name: str, *, create: Create, delete: Delete, update: Update | None = None) -> None:
    """Add or replace a resource type."""
    handler: dict[str, Any] = {"create": create, "delete": delete}
    if update is not None:
        handler["update"] = update
    provisioners._RESOURCE_HANDLERS[type_name] = handler
    if "Tags" in resource_schemas()[type_name].root["properties"]:
        provisioners._STACK_TAG_PROPERTY[type_name] = ("Tags", "list")


def install_schemas() -> None:
    """Check properties of every type with a schema, and take from it what replaces a resource.

    Such types are provisioned on worker threads, where they may call services and wait.
    """
    for type_name, schema in resource_schemas().items():
        handler = provisioners._RESOURCE_HANDLERS.get(type_name)
        if handler is None:
            continue  # MiniStack lacks it and so do we: a template with it is refused as unrecognised
        handler["create"] = _checked(_named(handler["create"]), schema, position=1)
        if "update" in handler:
            handler["update"] = _checked(_named(handler["update"]), schema, position=2)
        provisioners._REPLACING_PROPERTIES[type_name] = schema.create_only
        provisioners._CONDITIONALLY_REPLACING_PROPERTIES[type_name] = schema.conditionally_create_only
    worker_types = frozenset(resource_schemas())
    runs_on_worker_thread = stacks._runs_on_worker_thread
    stacks._runs_on_worker_thread = lambda type_name: type_name in worker_types or runs_on_worker_thread(type_name)


def physical_name(stack_name: str, logical_id: str, *, longest: int) -> str:
    """A generated name (stack, logical id, suffix), new after a replacement."""
    name: str = provisioners._physical_name(stack_name, logical_id, max_len=longest)
    return name


def _checked(provision: Callable[..., Provisioned], schema: ResourceSchema, *, position: int) -> Any:
    """``provision``, which first checks its argument at ``position``."""

    def checked(*arguments: Any) -> Provisioned:
        problems = schema.problems(arguments[position])
        if problems:
            raise RefusedError(
                "ValidationException",
                f"Properties validation failed for a resource of type {schema.type_name} with message: "
                + "; ".join(problems),
                source=schema.source,
            )
        return provision(*arguments)

    return checked


def _named(provision: Callable[..., Provisioned]) -> Callable[..., Provisioned]:
    """Wrap a provisioner of MiniStack so that its refusals name MiniStack as their source."""
    if not provision.__module__.startswith("ministack."):
        return provision

    def named(*arguments: Any) -> Provisioned:
        try:
            return provision(*arguments)
        except RefusedError:
            raise
        except Exception as error:
            raise RefusedError("ValidationException", str(error), source="MiniStack's provisioner") from error

    return named


# --- Permissions boundaries of roles ---
# A boundary that does not exist is refused, as by CreateRole (IAM API reference: NoSuchEntity); like any policy here it
# is not enforced.

BOUNDARY = "PermissionsBoundary"


def install_role_boundaries() -> None:
    """Have the boundary kept with the role."""
    handler = provisioners._RESOURCE_HANDLERS["AWS::IAM::Role"]
    handler["create"] = _with_boundary_created(handler["create"])
    handler["update"] = _with_boundary_updated(handler["update"])


def _with_boundary_created(create: Callable[..., Provisioned]) -> Callable[..., Provisioned]:
    def created(logical_id: str, properties: Properties, stack_name: str) -> Provisioned:
        _check_boundary(properties)
        made = create(logical_id, properties, stack_name)
        _set_boundary(made[0], properties)
        return made

    return created


def _with_boundary_updated(update: Callable[..., Provisioned]) -> Callable[..., Provisioned]:
    def updated(physical_id: str, old: Properties, new: Properties, *rest: Any) -> Provisioned:
        _check_boundary(new)
        made = update(physical_id, old, new, *rest)
        if BOUNDARY in new:
            _set_boundary(made[0], new)
        elif BOUNDARY in old:
            call("iam", "DeleteRolePermissionsBoundary", {"RoleName": made[0]})
        return made

    return updated


def _check_boundary(properties: Properties) -> None:
    arn = properties.get(BOUNDARY)
    if arn is not None and not iam._policy_exists(arn):
        raise RefusedError(
            "NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.", source="IAM, CreateRole"
        )


def _set_boundary(name: str, properties: Properties) -> None:
    if BOUNDARY in properties:
        call("iam", "PutRolePermissionsBoundary", {"RoleName": name, BOUNDARY: properties[BOUNDARY]})
