"""A snapshot: the templates of every environment, as people read them in a diff."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# Templates stand here in a normal form (``tritonstack.review.assembly``): what is noise is out, ``Fn::Join``
# without a separator is ``Fn::Sub``, ``Tags`` are a map, text that is JSON stands as ``{"$json": …}``, and the hash of
# an asset is ``{asset:<construct path>}``.
Json = Any
"""A JSON value: None, bool, int, float, str, list, or a dict with names."""

TOP_LEVEL = "_app"
"""The environment of stacks that stand in no stage."""


class AssetKind(StrEnum):
    """What an asset is to a reader."""

    CODE = "code"
    """A function's or a layer's code, or any files that are deployed."""
    SOURCE = "source"
    """What CodeBuild starts from. It changes with nearly every commit, so nothing is kept of its content."""
    IMAGE = "image"
    """A folder that a container image is built from."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a template.

    Attributes:
        logical_id: its name in the template.
        type: ``AWS::SageMaker::Endpoint``, ``Custom::…``.
        path: the construct's path in its stack, without a last ``Resource``: ``Activation/Handler/Function``; the
            logical id where the assembly tells none. The name to show.
        properties: in the normal form.
        attributes: ``DependsOn`` (sorted), ``DeletionPolicy``, ``UpdateReplacePolicy``, ``Condition``, …
    """

    logical_id: str
    type: str
    path: str
    properties: Mapping[str, Json]
    attributes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def kept_on_removal(self) -> bool:
        """Whether the physical resource outlives its removal from the template."""
        return self.attributes.get("DeletionPolicy") in {"Retain", "RetainExceptOnCreate"}

    @property
    def kept_on_replacement(self) -> bool:
        """Whether the old physical resource outlives a replacement."""
        return self.attributes.get("UpdateReplacePolicy") == "Retain"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """Files that a stack deploys beside its template.

    Attributes:
        path: the asset's construct path in its stack: ``Activation/Handler/Code``.
        kind: what it is.
        files: file's name → 16 hexadecimal digits of its SHA-256; empty for a source.
    """

    path: str
    kind: AssetKind
    files: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class StackSnapshot:
    """One stack.

    Attributes:
        name: its id in the stage, and the name of its file: ``serving-digits``.
        stack_name: what CloudFormation calls it: ``dev-serving-digits``.
        account: of the deployment; None where the stack leaves it open.
        region: likewise.
        tags: the stack's own.
        template: the sections of the template besides resources: ``Parameters``, ``Outputs``, ``Conditions``,
            ``Mappings``, ``Description``, …; a section that is empty is absent.
        resources: logical id → resource, sorted.
        documents: construct path of a small JSON asset (release set, build set) → its content.
        assets: construct path → any other asset.
    """

    name: str
    stack_name: str
    account: str | None
    region: str | None
    tags: Mapping[str, str]
    template: Mapping[str, Json]
    resources: Mapping[str, Resource]
    documents: Mapping[str, Json]
    assets: Mapping[str, Asset]

    def of_type(self, *types: str) -> tuple[Resource, ...]:
        """The resources of these types, in the order of their logical ids."""
        return tuple(each for each in self.resources.values() if each.type in types)


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    """A policy finding on one construct.

    Attributes:
        stack: the stack's name in its environment; empty where the construct lies in none.
        path: the construct's path in its stack.
        rule: ``AwsSolutions-IAM5[Resource::*]``.
        accepted: the reason why it is right as it stands; None for a finding that stands open.
        severity: of an open finding, as the validator says it.
        description: likewise.
    """

    stack: str
    path: str
    rule: str
    accepted: str | None = None
    severity: str = ""
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The policy findings of an environment.

    Attributes:
        open: what validation found; synthesis fails where there is any.
        accepted: what the app accepts, with its reasons.
    """

    open: tuple[Finding, ...]
    accepted: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class EnvironmentSnapshot:
    """One environment.

    Attributes:
        name: the stage's id: ``dev``.
        stacks: the stack's name → stack, sorted.
        findings: its policy findings; None where synthesis ran without validation, which knows of none.
    """

    name: str
    stacks: Mapping[str, StackSnapshot]
    findings: Findings | None


@dataclass(frozen=True, kw_only=True)
class Snapshots:
    """Every environment.

    Attributes:
        environments: name → environment, sorted.
    """

    environments: Mapping[str, EnvironmentSnapshot]


_WIDTH = 110
_FLAT_MEMBERS = 4
_TOLD = ("Reason", "Severity", "Description")


def stack_text(stack: StackSnapshot) -> str:
    """A stack's file. Its assets stand in the environment's file of assets."""
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
    """An environment's file of assets: stack → construct path → kind and files."""
    return text_of(
        {
            stack.name: {path: {"Kind": each.kind.value, **_files(each)} for path, each in sorted(stack.assets.items())}
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
    """An environment's file of policy findings: a rule and what is said of it once, with every construct it lies on."""
    return text_of({"Accepted": _grouped(findings.accepted), "Open": _grouped(findings.open)})


def findings_of(document: Mapping[str, Any]) -> Findings:
    """The reverse of ``findings_text``."""
    return Findings(
        accepted=tuple(sorted(each for group in document["Accepted"] for each in _findings(group))),
        open=tuple(sorted(each for group in document["Open"] for each in _findings(group))),
    )


def text_of(value: Json) -> str:
    """JSON in which what is short and flat stands on one line; ends with a newline."""
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
    """A value on one line, or None where it has more parts than read well there: a member a line shows in a diff."""
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
    """An item of a list on one line, such as ``{"Name": …, "Value": …}``; None where it is no small flat map."""
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


def _files(asset: Asset) -> dict[str, Json]:
    return {"Files": dict(sorted(asset.files.items()))} if asset.files else {}


def _grouped(findings: Iterable[Finding]) -> list[Json]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for each in findings:
        key = (each.rule, each.accepted or "", each.severity, each.description)
        groups.setdefault(key, []).append(f"{each.stack}/{each.path}")
    return [
        {"Rule": key[0], **{name: told for name, told in zip(_TOLD, key[1:], strict=True) if told}, "On": sorted(on)}
        for key, on in sorted(groups.items())
    ]


def _findings(group: Mapping[str, Any]) -> Iterator[Finding]:
    accepted, severity, description = (group.get(name, "") for name in _TOLD)
    for place in group["On"]:
        stack, _, path = place.partition("/")
        yield Finding(
            stack=stack,
            path=path,
            rule=group["Rule"],
            accepted=accepted or None,
            severity=severity,
            description=description,
        )


_VARIABLE = re.compile(r"\$\{(?!!)([^}]+)\}")
_ASSET = re.compile(r"\{asset:([^}]+)\}")
JSON_TEXT = "$json"
"""The name under which text that is JSON stands parsed in a snapshot."""


def uses(value: Json) -> Iterator[tuple[str, str | None]]:
    """Every name that a value refers to, and the attribute that it reads; None where it is the thing's ``Ref``.

    Pseudo parameters (``AWS::Region``) are among them; a name may come twice.
    """
    match value:
        case {"Ref": str(name), **rest} if not rest:
            yield name, None
        case {"Fn::GetAtt": [str(name), *attribute], **rest} if not rest:
            yield name, ".".join(map(str, attribute))
        case {"Fn::GetAtt": str(text), **rest} if not rest:
            yield _named(text)
        case {"Fn::Sub": [str(text), dict(variables)], **rest} if not rest:
            yield from (_named(name) for name in _VARIABLE.findall(text) if name not in variables)
            yield from uses(variables)
        case {"Fn::Sub": str(text), **rest} if not rest:
            yield from (_named(name) for name in _VARIABLE.findall(text))
        case dict():
            for each in value.values():
                yield from uses(each)
        case list():
            for each in value:
                yield from uses(each)


def references(value: Json) -> Iterator[str]:
    """Every name that a value refers to: logical ids, parameters and pseudo parameters."""
    return (name for name, _ in uses(value))


def is_function(value: Json) -> bool:
    """Whether a value is one intrinsic function."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def assets_in(value: Json) -> Iterator[str]:
    """The construct path of every asset that a value names."""
    match value:
        case str():
            yield from _ASSET.findall(value)
        case dict():
            for each in value.values():
                yield from assets_in(each)
        case list():
            for each in value:
                yield from assets_in(each)


def readable(value: Json) -> str:
    """A value on one line: references as ``${LogicalId.Attribute}``, anything else as JSON."""
    if isinstance(value, str):
        return value
    text = _function_text(value)
    if text is None:
        text = json.dumps(_inside(value), ensure_ascii=False, sort_keys=True)
    return text


def _function_text(value: Json) -> str | None:
    """An intrinsic function as people read it; None where the value is none that reads better than its JSON."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            text = f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
            text = f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(name), **rest} if not rest:
            text = f"${{{name}}}"
        case {"Fn::Sub": str(name), **rest} if not rest:
            text = name.replace("${!", "${")
        case {"Fn::Join": [str(separator), [*parts]], **rest} if not rest:
            text = separator.join(readable(part) for part in parts)
        case {"Fn::If": [str(condition), then, otherwise], **rest} if not rest:
            text = f"{readable(then)} if {condition}, else {readable(otherwise)}"
        case {"Fn::Select": [index, of], **rest} if not rest:
            text = f"{readable(of)}[{index}]"
        case {"Fn::Split": [str(separator), of], **rest} if not rest:
            text = f"{readable(of)} split at {separator!r}"
        case _:
            return None
    return text


def _named(text: str) -> tuple[str, str | None]:
    """``LogicalId.Attribute``, or a name alone."""
    name, dot, attribute = text.partition(".")
    return name, attribute if dot else None


def _inside(value: Json) -> Json:
    """A value whose intrinsic functions are readable text."""
    text = _function_text(value)
    if text is not None:
        return text
    if isinstance(value, dict):
        return {key: _inside(each) for key, each in value.items()}
    return [_inside(each) for each in value] if isinstance(value, list) else value
