"""Members of the API requests behind an endpoint: by which setting or argument each is set, or why it is declined."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from scripts.documentation.setting_targets import setting_targets
from tritonstack.cloudformation.resource_schemas import schema_data
from tritonstack.config.yaml_loader import read_yaml

DATA = Path(__file__).with_name("api_members.yaml")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An API operation whose request the page lists.

    Attributes:
        name: the operation.
        service: botocore's name of the service.
        resource: the type whose properties CloudFormation sends with it; empty where a client sends it.
    """

    name: str
    service: str
    resource: str = ""

    @property
    def section(self) -> str:
        """Its section in the data file: operations of one resource share it."""
        return self.resource or self.name

    @property
    def input_shape(self) -> Any:
        """Shape of its request in botocore's service model."""
        model = botocore.session.get_session().get_service_model(self.service)
        return model.operation_model(self.name).input_shape


OPERATIONS = (
    Operation(name="CreateModel", service="sagemaker", resource="AWS::SageMaker::Model"),
    Operation(name="CreateEndpointConfig", service="sagemaker", resource="AWS::SageMaker::EndpointConfig"),
    Operation(name="CreateEndpoint", service="sagemaker", resource="AWS::SageMaker::Endpoint"),
    Operation(name="UpdateEndpoint", service="sagemaker", resource="AWS::SageMaker::Endpoint"),
    Operation(name="InvokeEndpoint", service="sagemaker-runtime"),
    Operation(name="InvokeEndpointWithResponseStream", service="sagemaker-runtime"),
)


class Entry(BaseModel):
    """What the data file has for a member.

    Attributes:
        setting: settings that decide it, where ``setting_targets.yaml`` does not have it as their property.
        argument: arguments of a client that become it: ``ModelClient.invoke(variant=)``, ``invoke --variant``.
        made: how the stack sets it; beside ``setting``, how its value follows from the setting.
        declined: why it and all below it are not offered.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    setting: tuple[str, ...] = ()
    argument: tuple[str, ...] = ()
    made: str = ""
    declined: str = ""

    @model_validator(mode="after")
    def _one_kind(self) -> Entry:
        if sum(map(bool, (self.setting or self.made, self.argument, self.declined))) != 1:
            raise ValueError("a member has settings (and how), arguments, how it is made, or a reason: one of these")
        return self


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a request, with those below it.

    Attributes:
        path: as in ``ProductionVariants[].RoutingConfig.RoutingStrategy``.
        is_map: whether its keys are the user's.
        below: members of its structure; empty of a value, and where a structure has itself below it.
    """

    path: str
    is_map: bool = False
    below: tuple[Member, ...] = ()

    @property
    def values(self) -> tuple[Member, ...]:
        """The members below it that have none below them; itself where it is one."""
        return tuple(value for each in self.below for value in each.values) or (self,)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of the table: a member without others below it, or a declined one with all that are.

    Attributes:
        member: the member.
        settings: (section, field) of the settings that decide it.
        entry: what the data file has for it or, where it is declined, for a member above it; None: nothing.
    """

    member: Member
    settings: tuple[tuple[str, str], ...] = ()
    entry: Entry | None = None

    @property
    def is_declined(self) -> bool:
        """Whether it is not offered."""
        return self.entry is not None and bool(self.entry.declined)


def members(shape: Any, *, above: str = "", within: frozenset[str] = frozenset()) -> tuple[Member, ...]:
    """Members of a structure, in the order of the service model. ``within``: shapes that it is in."""
    found = []
    for name, value in shape.members.items():
        path, inner = f"{above}.{name}" if above else name, value
        while inner.type_name == "list":
            inner = inner.member
            if inner.type_name in {"list", "structure"}:
                path += "[]"
        nested = inner.type_name == "structure" and inner.name not in within
        below = members(inner, above=path, within=within | {inner.name}) if nested else ()
        found.append(Member(path=path, is_map=inner.type_name == "map", below=below))
    return tuple(found)


@functools.cache
def entries() -> Mapping[str, Mapping[str, Entry]]:
    """Section → path of a member → its entry; the path of a whole request is empty."""
    return TypeAdapter(dict[str, dict[str, Entry]]).validate_python(read_yaml(DATA).value)


def rows(operation: Operation, shape: Any | None = None) -> tuple[Row, ...]:
    """The table of an operation. ``shape``: of its request. Default: botocore's."""
    whole = Member(path="", below=members(shape or operation.input_shape))
    return tuple(_rows(whole, operation=operation, above=None))


def _rows(member: Member, *, operation: Operation, above: Entry | None) -> Iterator[Row]:
    """Rows of a member. ``above``: the nearest entry above it that declines it."""
    entry = entries().get(operation.section, {}).get(member.path)
    declined = entry if entry is not None and entry.declined else above
    if not member.below:
        settings = _settings(member, operation=operation, entry=entry)
        here = entry if entry is not None and not entry.declined else None
        yield Row(member=member, settings=settings, entry=here if settings else here or declined)
        return
    found = [row for each in member.below for row in _rows(each, operation=operation, above=declined)]
    if declined is not None and all(row.entry is declined for row in found):
        yield Row(member=member, entry=declined)
    else:
        yield from found


def _settings(member: Member, *, operation: Operation, entry: Entry | None) -> tuple[tuple[str, str], ...]:
    """Settings that decide a member: those whose property it is, and those that its entry names."""
    keys = f"{member.path}."
    of_property = [
        place
        for place, targets in setting_targets().items()
        if any(
            each.of == operation.resource
            and (each.path == member.path or (member.is_map and each.path.startswith(keys)))
            for each in targets
            if each.is_property
        )
    ]
    named = () if entry is None else entry.setting
    return (*of_property, *((section, field) for section, _, field in (each.rpartition(".") for each in named)))


def missing(operation: Operation, shape: Any | None = None) -> list[str]:
    """Members that neither a setting nor the data file has. ``shape``: of the request. Default: botocore's."""
    return [row.member.path for row in rows(operation, shape) if not row.settings and row.entry is None]


def is_property(resource: str, path: str) -> bool:
    """Whether CloudFormation's schema of a type has the property that a member's path names."""
    schema = schema_data()["types"][resource]
    node = schema["root"]
    for step in path.replace("[]", "").split("."):
        if step not in node.get("properties", {}):
            return False
        node = node["properties"][step]
        node = node.get("items", node)
        node = schema["definitions"][node["ref"]] if "ref" in node else node
    return True
