"""A snapshot: the templates of every environment in normal form, and the text of its files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tritonstack.config.pipeline import PIPELINE_FILE

# The normal form, which ``tritonstack.review.assembly`` makes: no CDK metadata, ``Fn::Join`` without a separator as
# ``Fn::Sub``, ``Tags`` as a map, JSON text as ``{"$json": …}``, an asset's hash as ``{asset:<construct path>}``.
Json = Any
"""A JSON value: None, bool, int, float, str, list, or a dict with names."""

TOP_LEVEL = "_app"
"""The environment of stacks outside stages."""
PIPELINE = "pipeline"
"""The environment's name in a report that has the pipeline's own stack."""


class AssetKind(StrEnum):
    """Kind of an asset."""

    CODE = "code"
    """Code of a function or a layer, or any files that are deployed."""
    SOURCE = "source"
    """Input of a CodeBuild project. It changes with nearly every commit: no content is kept."""
    IMAGE = "image"
    """A folder that a container image is built from."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a template."""

    logical_id: str  # its name in the template
    type: str  # ``AWS::SageMaker::Endpoint``, ``Custom::…``
    # the construct's path in its stack, without a last ``Resource``: ``Activation/Handler/Function``; the logical id
    # where the assembly has no path
    path: str
    properties: Mapping[str, Json]  # in the normal form
    # ``DependsOn`` (sorted), ``DeletionPolicy``, ``UpdateReplacePolicy``, ``Condition``, …
    attributes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def kept_on_removal(self) -> bool:
        """Whether the physical resource is kept when the template has it no more."""
        return self.attributes.get("DeletionPolicy") in {"Retain", "RetainExceptOnCreate"}

    @property
    def kept_on_replacement(self) -> bool:
        """Whether the old physical resource is kept after a replacement."""
        return self.attributes.get("UpdateReplacePolicy") == "Retain"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """Files that a stack deploys next to its template."""

    path: str  # construct path in the stack: ``Activation/Handler/Code``
    kind: AssetKind  # of the asset
    files: Mapping[str, str]  # name → first 16 hexadecimal digits of the SHA-256; empty for a source


@dataclass(frozen=True, kw_only=True)
class StackSnapshot:
    """One stack."""

    name: str  # its id in the stage, and the name of its file: ``serving-digits``
    stack_name: str  # its name in CloudFormation: ``dev-serving-digits``
    account: str | None  # of the deployment; None for an environment-agnostic stack
    region: str | None  # likewise
    tags: Mapping[str, str]  # the stack's own
    template: Mapping[str, Json]  # the sections besides resources (``Parameters``, ``Outputs``, …) that are not empty
    resources: Mapping[str, Resource]  # logical id → resource, sorted
    documents: Mapping[str, Json]  # construct path of a small JSON asset (release set, build set) → its content
    assets: Mapping[str, Asset]  # construct path → any other asset

    def of_type(self, *types: str) -> tuple[Resource, ...]:
        """The resources of these types, in the order of their logical ids."""
        return tuple(each for each in self.resources.values() if each.type in types)


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """A policy finding (cdk-nag) on one construct."""

    stack: str  # the stack's name in its environment; empty for a construct outside stacks
    path: str  # the construct's path in its stack
    rule: str  # ``AwsSolutions-IAM5[Resource::*]``
    accepted: str = ""  # the reason of its acknowledgement; empty for an open finding, with which synthesis fails
    severity: str = ""  # of an open finding
    description: str = ""  # likewise


Findings = tuple[Finding, ...]
"""Policy findings of an environment, open and accepted ones, sorted."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentSnapshot:
    """One environment."""

    name: str  # the stage's id: ``dev``
    stacks: Mapping[str, StackSnapshot]  # the stack's name → stack, sorted
    findings: Findings | None  # None where synthesis ran without validation

    def with_stacks(self, names: Collection[str]) -> EnvironmentSnapshot:
        """The environment with some of its stacks and their findings alone."""
        findings = self.findings and tuple(each for each in self.findings if each.stack in names)
        stacks = {name: each for name, each in self.stacks.items() if name in names}
        return replace(self, stacks=stacks, findings=findings)


@dataclass(frozen=True, kw_only=True)
class Snapshots:
    """Every environment, by name, sorted."""

    environments: Mapping[str, EnvironmentSnapshot]


NO_ENVIRONMENT = EnvironmentSnapshot(name="", stacks={}, findings=None)
"""Stands for the environment on a side of a change that does not have it."""

# A pipeline adds its own stack, and one to each environment that it deploys. It is synthesised separately and has a
# folder of snapshots of its own, for the other stacks are the same with a pipeline as without; a report joins them.
PIPELINE_FOLDER = "snapshots-pipeline"
PIPELINE_CONTEXT = {"pipeline": "true"}
"""The context that makes the app add it."""
PIPELINE_STACKS = ("pipeline", "pipeline-access")
ENVIRONMENTS = "environments"
"""The folder of environment files."""
NOTHING = Snapshots(environments={})


def settings_file(environment: str) -> str:
    """The file of an environment's settings, from the project's folder."""
    return PIPELINE_FILE if environment == PIPELINE else f"{ENVIRONMENTS}/{environment}.yaml"


def added_by_pipeline(snapshots: Snapshots) -> Snapshots:
    """The stacks that a synthesised pipeline adds, with their findings alone."""
    parts = {name: each.with_stacks(PIPELINE_STACKS) for name, each in snapshots.environments.items()}
    return Snapshots(environments={name: each for name, each in parts.items() if each.stacks})


def without(snapshots: Snapshots, part: Snapshots) -> Snapshots:
    """The snapshots without the stacks of a part of them; environments without a stack are left out."""
    parts = {}
    for name, each in snapshots.environments.items():
        out = part.environments[name].stacks if name in part.environments else {}
        parts[name] = each.with_stacks(each.stacks.keys() - out.keys())
    return Snapshots(environments={name: each for name, each in parts.items() if each.stacks})


def joined(environments: Snapshots, added: Snapshots) -> Snapshots:
    """The environments with a pipeline's additions; its own stack becomes the environment ``pipeline``."""
    found = dict(environments.environments)
    for name, each in added.environments.items():
        known = PIPELINE if name == TOP_LEVEL else name
        found[known] = _both(found[known], each) if known in found else replace(each, name=known)
    return Snapshots(environments=dict(sorted(found.items())))


def _both(one: EnvironmentSnapshot, other: EnvironmentSnapshot) -> EnvironmentSnapshot:
    findings = one.findings
    if one.findings is not None and other.findings is not None:
        findings = tuple(sorted({*one.findings, *other.findings}))
    return replace(one, stacks=dict(sorted({**one.stacks, **other.stacks}.items())), findings=findings)


# Files: ``<environment>/<stack>.json`` a stack, ``<environment>/assets.json`` the assets of all its stacks,
# ``<environment>/findings.json`` the policy findings, where validation was on.
_WIDTH = 110
_FLAT_MEMBERS = 4
_FINDING_MEMBERS = ("Reason", "Severity", "Description")


def stack_text(stack: StackSnapshot) -> str:
    """The text of a stack's file."""
    head: dict[str, Json] = {"StackName": stack.stack_name}
    if stack.account is not None:
        head["Account"] = stack.account
    if stack.region is not None:
        head["Region"] = stack.region
    if stack.tags:
        head["StackTags"] = dict(stack.tags)
    if stack.documents:
        head["Documents"] = dict(stack.documents)
    resources = {each.logical_id: _resource(each) for each in stack.resources.values()}
    return text_of({**head, **stack.template, "Resources": resources})


def stack_of(name: str, document: Mapping[str, Any], assets: Mapping[str, Asset]) -> StackSnapshot:
    """The stack of a file's document; the reverse of ``stack_text``."""
    known = {"StackName", "Account", "Region", "StackTags", "Documents", "Resources"}
    return StackSnapshot(
        name=name,
        stack_name=document["StackName"],
        account=document.get("Account"),
        region=document.get("Region"),
        tags=document.get("StackTags", {}),
        template={key: each for key, each in document.items() if key not in known},
        resources={key: _resource_of(key, each) for key, each in document["Resources"].items()},
        documents=document.get("Documents", {}),
        assets=assets,
    )


def assets_text(environment: EnvironmentSnapshot) -> str:
    """The text of an environment's file of assets: stack → construct path → kind and files."""

    def members(asset: Asset) -> dict[str, Json]:
        files = {"Files": dict(sorted(asset.files.items()))} if asset.files else {}
        return {"Kind": asset.kind.value, **files}

    return text_of(
        {
            stack.name: {path: members(each) for path, each in sorted(stack.assets.items())}
            for stack in environment.stacks.values()
            if stack.assets
        }
    )


def assets_of(document: Mapping[str, Any]) -> dict[str, dict[str, Asset]]:
    """Stack → construct path → asset; the reverse of ``assets_text``."""
    return {
        stack: {
            path: Asset(path=path, kind=AssetKind(each["Kind"]), files=each.get("Files", {}))
            for path, each in of.items()
        }
        for stack, of in document.items()
    }


def findings_text(findings: Findings) -> str:
    """The text of an environment's file of policy findings: each rule once, with every construct it is found on."""
    accepted = [each for each in findings if each.accepted]
    return text_of({"Accepted": _grouped(accepted), "Open": _grouped(each for each in findings if not each.accepted)})


def findings_of(document: Mapping[str, Any]) -> Findings:
    """The reverse of ``findings_text``."""
    groups = (*document["Accepted"], *document["Open"])
    return tuple(sorted(each for group in groups for each in _findings(group)))


def text_of(value: Json) -> str:
    """JSON with short flat values on one line; ends with a newline."""
    return "".join(_lines(value, "", "")) + "\n"


def _lines(value: Json, indent: str, name: str) -> Iterator[str]:
    short = _one_line(value)
    if short is not None and len(indent) + len(name) + len(short) <= _WIDTH:
        yield f"{name}{short}"
        return
    inner = f"{indent}  "
    if isinstance(value, Mapping):
        items = [(json.dumps(key, ensure_ascii=False) + ": ", each) for key, each in value.items()]
    elif isinstance(value, list):
        items = [("", each) for each in value]
    else:
        yield name + json.dumps(value, ensure_ascii=False)
        return
    yield name + ("{" if isinstance(value, Mapping) else "[")
    for number, (key, each) in enumerate(items):
        yield ("," if number else "") + "\n" + inner
        flat = None if key else _flat(each)
        if flat is not None and len(inner) + len(flat) <= _WIDTH:
            yield flat
        else:
            yield from _lines(each, inner, key)
    yield f"\n{indent}" + ("}" if isinstance(value, Mapping) else "]")


def _one_line(value: Json) -> str | None:
    """A value on one line, or None for one with several members, which a diff shows a line each."""
    if isinstance(value, Mapping):
        if len(value) > 1:
            return None
        parts = []
        for key, each in value.items():
            inside = _one_line(each)
            if inside is None:
                return None
            parts.append(f"{json.dumps(key, ensure_ascii=False)}: {inside}")
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        if len(value) > 1 and all(isinstance(each, dict | list) for each in value):
            return None
        inner = [_flat(each) or _one_line(each) for each in value]
        return None if None in inner else "[" + ", ".join(each or "" for each in inner) + "]"
    return json.dumps(value, ensure_ascii=False)


def _flat(value: Json) -> str | None:
    """An item of a list on one line, such as ``{"Name": …, "Value": …}``; None for one that is no small flat map."""
    small = isinstance(value, Mapping) and len(value) <= _FLAT_MEMBERS
    if not small or any(isinstance(each, dict | list) for each in value.values()):
        return None
    return json.dumps(value, ensure_ascii=False)


def _resource(resource: Resource) -> dict[str, Json]:
    document: dict[str, Json] = {"Type": resource.type}
    if resource.path != resource.logical_id:
        document["Path"] = resource.path
    document |= resource.attributes
    if resource.properties:
        document["Properties"] = dict(resource.properties)
    return document


def _resource_of(logical_id: str, document: Mapping[str, Any]) -> Resource:
    return Resource(
        logical_id=logical_id,
        type=document["Type"],
        path=document.get("Path", logical_id),
        properties=document.get("Properties", {}),
        attributes={key: each for key, each in document.items() if key not in {"Type", "Path", "Properties"}},
    )


def _grouped(findings: Iterable[Finding]) -> list[Json]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for each in findings:
        key = (each.rule, each.accepted, each.severity, each.description)
        groups.setdefault(key, []).append(f"{each.stack}/{each.path}")
    return [
        {
            "Rule": key[0],
            **{name: value for name, value in zip(_FINDING_MEMBERS, key[1:], strict=True) if value},
            "On": sorted(on),
        }
        for key, on in sorted(groups.items())
    ]


def _findings(group: Mapping[str, Any]) -> Iterator[Finding]:
    accepted, severity, description = (group.get(name, "") for name in _FINDING_MEMBERS)
    for place in group["On"]:
        stack, _, path = place.partition("/")
        yield Finding(
            stack=stack,
            path=path,
            rule=group["Rule"],
            accepted=accepted,
            severity=severity,
            description=description,
        )
