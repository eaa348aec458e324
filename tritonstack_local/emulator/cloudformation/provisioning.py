"""Registration of resource types in MiniStack's CloudFormation, and their properties by CloudFormation's schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritonstack_local.emulator.cloudformation.property_schemas import ResourceSchema, resource_schemas
from tritonstack_local.emulator.ministack_adapter import cloudformation, iam
from tritonstack_local.emulator.ministack_adapter.core import is_ministacks
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import call

Properties = dict[str, Any]
Provisioned = tuple[str, dict[str, Any]]
"""A physical id and the attributes that Fn::GetAtt reads."""


def register(type_name: str, resource: object) -> None:
    """Add or replace a resource type, which has ``create``, ``delete`` and, where it can be updated, ``update``."""
    methods = {name: getattr(resource, name, None) for name in ("create", "update", "delete")}
    cloudformation.resource_handlers()[type_name] = {name: method for name, method in methods.items() if method}
    if "Tags" in resource_schemas()[type_name].root["properties"]:
        cloudformation.stack_tag_property()[type_name] = ("Tags", "list")


def complete(
    type_name: str,
    *,
    apply: Callable[[str, Properties, Properties], None],
    check: Callable[[Properties], None] = lambda _properties: None,
) -> None:
    """Have ``check`` called before, and ``apply`` after MiniStack creates or updates a resource of this type.

    ``apply`` gets the physical id, the new properties, and the old ones, which are empty for a new resource.
    """
    handler = cloudformation.resource_handlers()[type_name]
    create, update = handler["create"], handler["update"]

    def created(logical_id: str, properties: Properties, *rest: Any) -> Provisioned:
        check(properties)
        made: Provisioned = create(logical_id, properties, *rest)
        try:
            apply(made[0], properties, {})
        except RefusedError:
            handler["delete"](made[0], properties)  # MiniStack rolls back only what was made without an error
            raise
        return made

    def updated(physical_id: str, old: Properties, new: Properties, *rest: Any) -> Provisioned:
        check(new)
        made: Provisioned = update(physical_id, old, new, *rest)
        apply(made[0], new, old)
        return made

    handler.update(create=created, update=updated)


def install() -> None:
    """Check properties of every type with a schema, and take from it what replaces a resource and which tags it gets.

    Roles have boundaries. Such types are provisioned on worker threads, where they may call services and wait.
    """
    complete("AWS::IAM::Role", check=_check_boundary, apply=_set_boundary)
    for type_name, schema in resource_schemas().items():
        handler = cloudformation.resource_handlers().get(type_name)
        if handler is None:
            continue  # MiniStack lacks it and so do we: a template with it is refused as unrecognised
        handler["create"] = _checked(handler["create"], schema, position=1)
        if "update" in handler:
            handler["update"] = _checked(handler["update"], schema, position=2)
        cloudformation.replacing_properties()[type_name] = schema.create_only
        cloudformation.conditionally_replacing_properties()[type_name] = schema.conditionally_create_only
    _leave_out_system_tags()
    worker_types = frozenset(resource_schemas())
    runs_on_worker_thread = cloudformation.runs_on_worker_thread.current
    cloudformation.runs_on_worker_thread.replace(
        lambda type_name: type_name in worker_types or runs_on_worker_thread(type_name)
    )


def physical_name(stack_name: str, logical_id: str, *, longest: int) -> str:
    """A generated name (stack, logical id, suffix), new after a replacement."""
    name: str = cloudformation.physical_name(stack_name, logical_id, max_len=longest)
    return name


def _checked(provision: Callable[..., Provisioned], schema: ResourceSchema, *, position: int) -> Any:
    """``provision``, which first checks its argument at ``position``; MiniStack's refusals name their source."""
    is_theirs = is_ministacks(provision)

    def checked(*arguments: Any) -> Provisioned:
        problems = schema.problems(arguments[position])
        if problems:
            raise RefusedError(
                "ValidationException",
                f"Properties validation failed for a resource of type {schema.type_name} with message: "
                + "; ".join(problems),
                source=schema.source,
            )
        try:
            return provision(*arguments)
        except Exception as error:
            if not is_theirs or isinstance(error, RefusedError):
                raise
            raise RefusedError("ValidationException", str(error), source="MiniStack's provisioner") from error

    return checked


# --- CloudFormation's own tags ---
# "The propagation of stack-level tags to resources, including tags with the aws: prefix, varies by resource type"
# (template reference, "Resource tag"); which types get those with the prefix is in their schemas.

SYSTEM_TAG = "aws:cloudformation:"


def _leave_out_system_tags() -> None:
    """Have MiniStack, which tags every type, leave ``aws:cloudformation:…`` out where a type's schema does.

    A type without a schema here is MiniStack's own, and stays as it is.
    """
    tagged = cloudformation.with_stack_tags.current

    def with_stack_tags(type_name: str, *rest: Any) -> Properties:
        properties: Properties = tagged(type_name, *rest)
        schema, (name, shape) = resource_schemas().get(type_name), _tag_property(type_name)
        if schema is None or schema.system_tags or name not in properties:
            return properties
        tags = properties[name]
        if shape == "map":
            kept: Any = {key: value for key, value in tags.items() if not key.startswith(SYSTEM_TAG)}
        else:
            kept = [each for each in tags if not each["Key"].startswith(SYSTEM_TAG)]
        return {**properties, name: kept}

    cloudformation.with_stack_tags.replace(with_stack_tags)


def _tag_property(type_name: str) -> tuple[str, str]:
    """The property with a type's tags, and whether it is a ``list`` or a ``map``."""
    found: tuple[str, str] = cloudformation.stack_tag_property().get(type_name, ("Tags", "list"))
    return found


# --- Permissions boundaries of roles ---
# A boundary that does not exist is refused, as by CreateRole (IAM API reference: NoSuchEntity).

BOUNDARY = "PermissionsBoundary"


def _check_boundary(properties: Properties) -> None:
    arn = properties.get(BOUNDARY)
    if arn is not None and not iam.policy_exists(arn):
        raise RefusedError(
            "NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.", source="IAM, CreateRole"
        )


def _set_boundary(name: str, new: Properties, old: Properties) -> None:
    if BOUNDARY in new:
        call("iam", "PutRolePermissionsBoundary", {"RoleName": name, BOUNDARY: new[BOUNDARY]})
    elif BOUNDARY in old:
        call("iam", "DeleteRolePermissionsBoundary", {"RoleName": name})
