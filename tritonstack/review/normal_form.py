"""The normal form of a template: what differs between two syntheses of the same settings is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tritonstack.review.intrinsics import JSON_TEXT
from tritonstack.review.snapshot import (
    Json,
    Resource,
)
from tritonstack.untrusted.foreign_text import parse_json

_DROPPED_TYPES = frozenset({"AWS::CDK::Metadata"})
_DROPPED = {
    "Parameters": frozenset({"BootstrapVersion"}),
    "Rules": frozenset({"CheckBootstrapVersion"}),
    "Conditions": frozenset({"CDKMetadataAvailable"}),
}
_DROPPED_METADATA = ("aws:cdk:", "aws:asset:", "cdk_nag", "cdk-nag", "guard", "cfn_nag")
_HASH = re.compile(r"[0-9a-f]{64}")


def normal_sections(template: Mapping[str, Any], assets: Mapping[str, str]) -> dict[str, Json]:
    """Every section besides resources, sorted, without the CDK's additions to each template.

    ``assets``: an asset's hash → its construct path.
    """
    sections: dict[str, Json] = {}
    for name in sorted(template.keys() - {"Resources", "Metadata"}):
        section = template[name]
        if isinstance(section, dict):
            section = {key: each for key, each in section.items() if key not in _DROPPED.get(name, ())}
        if section:
            sections[name] = normal(section, assets)
    return sections


def normal_resources(
    template: Mapping[str, Any], *, paths: Mapping[str, str], assets: Mapping[str, str]
) -> dict[str, Resource]:
    """Logical id → resource, sorted.

    ``paths``: logical id → the construct's path in its stack. ``assets``: an asset's hash → its construct path.
    """
    resources = {}
    for logical_id, given in sorted(template.get("Resources", {}).items()):
        if given["Type"] in _DROPPED_TYPES:
            continue
        attributes = {key: given[key] for key in sorted(given.keys() - {"Type", "Properties", "Metadata"})}
        metadata = given.get("Metadata", {})
        kept = {key: metadata[key] for key in sorted(metadata) if not key.startswith(_DROPPED_METADATA)}
        if kept:
            attributes["Metadata"] = kept
        if "DependsOn" in attributes:
            on = attributes["DependsOn"]
            attributes["DependsOn"] = sorted([on] if isinstance(on, str) else on)
        resources[logical_id] = Resource(
            logical_id=logical_id,
            type=given["Type"],
            path=paths.get(logical_id, logical_id),
            properties=normal(given.get("Properties", {}), assets),
            attributes=normal(attributes, assets),
        )
    return resources


def normal(value: Json, assets: Mapping[str, str]) -> Json:
    """One value's normal form, with sorted names."""
    match value:
        case str():
            return _text(value, assets)
        case {"Fn::Join": ["", [*parts]], **rest} if not rest:
            return _joined([normal(part, assets) for part in parts])
        case dict():
            return {
                key: _tags(normal(value[key], assets)) if key == "Tags" else normal(value[key], assets)
                for key in sorted(value)
            }
        case list():
            return [normal(each, assets) for each in value]
    return value


def _text(value: str, assets: Mapping[str, str]) -> Json:
    if value.startswith(("{", "[")) and value.endswith(("}", "]")):
        try:
            document = parse_json(value)
        except ValueError:
            pass
        else:
            if document:
                return {JSON_TEXT: normal(document, assets)}
    return _HASH.sub(lambda found: f"{{asset:{assets[found[0]]}}}" if found[0] in assets else found[0], value)


def _joined(parts: list[Json]) -> Json:
    """``Fn::Join`` without a separator as ``Fn::Sub``, or unchanged where a part is more than a reference."""
    text = ""
    for part in parts:
        match part:
            case str():
                text += part.replace("${", "${!")
            case {"Ref": str(name), **rest} if not rest:
                text += f"${{{name}}}"
            case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
                text += f"${{{name}.{attribute}}}"
            case {"Fn::Sub": str(inner), **rest} if not rest:
                text += inner
            case _:
                return {"Fn::Join": ["", parts]}
    return {"Fn::Sub": text}


def _tags(value: Json) -> Json:
    """A list of keys and values as a map."""
    pairs = isinstance(value, list) and all(
        isinstance(each, dict) and each.keys() == {"Key", "Value"} for each in value
    )
    if not value or not pairs or not all(isinstance(each["Key"], str) for each in value):
        return value
    tags = {each["Key"]: each["Value"] for each in value}
    return dict(sorted(tags.items())) if value and len(tags) == len(value) else value
