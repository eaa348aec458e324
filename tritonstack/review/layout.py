"""Snapshots as text: JSON, a property a line, so that a diff shows what changed and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tritonstack.review.snapshot import (
    Asset,
    AssetKind,
    EnvironmentSnapshot,
    Finding,
    Findings,
    Json,
    Resource,
    StackSnapshot,
)

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
