"""Write the compact copies of CloudFormation's resource schemas that the local AWS and reviews read.

    .envs/main/bin/python -m scripts.update_cloudformation_schemas [TYPE …]

cfn-lint ships CloudFormation's own resource schemas. This keeps of each what replaces a resource, and of the types that
the local AWS has also property names, what is required, enumerations, and whether CloudFormation tags them. Rewrites
``tritonstack/cloudformation/data/resource_schemas.json``, without descriptions; TYPEs are added to those that it has.

Also rewrites ``tritonstack_local/emulator/cloudformation/handler_permissions.json``: the actions that the handlers of
the same types call, and of the types that it has besides.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tritonstack.paths import repository_path, write_text

REGION = "us-east-1"
TARGET = repository_path("tritonstack/cloudformation/data/resource_schemas.json")
PERMISSIONS = repository_path("tritonstack_local/emulator/cloudformation/handler_permissions.json")
HANDLERS = ("create", "read", "update", "delete")


def names(pointers: list[str] | None) -> list[str]:
    """Properties, and parts of them with slashes, among JSON pointers: ``EncryptionConfiguration/KmsKey``."""
    return sorted(pointer.removeprefix("/properties/") for pointer in pointers or [])


def rules(schema: Any) -> dict[str, list[str]]:
    """What replaces a resource of the type."""
    return {
        "create_only": names(schema.get("createOnlyProperties")),
        "conditionally_create_only": names(schema.get("conditionalCreateOnlyProperties")),
    }


def gets_system_tags(schema: Any) -> bool:
    """Whether CloudFormation tags resources of the type with ``aws:cloudformation:stack-id`` and the like.

    A schema without tagging means none. Source: CloudFormation CLI user guide, "Resource type schema":
    ``tagging.cloudFormationSystemTags``, which is true where a taggable type leaves it out.
    """
    tagging = schema.get("tagging") or {"taggable": False}
    return bool(tagging.get("taggable", True) and tagging.get("cloudFormationSystemTags", True))


def compact(schema: Any) -> dict[str, Any]:
    """What is kept of one (sub-)schema: ``properties``, ``required``, ``items``, ``enum``, ``ref``, ``closed``."""
    if not isinstance(schema, dict):
        return {}
    kept: dict[str, Any] = {}
    if "$ref" in schema:
        kept["ref"] = schema["$ref"].removeprefix("#/definitions/")
    if "properties" in schema:
        kept["properties"] = {name: compact(member) for name, member in sorted(schema["properties"].items())}
        if schema.get("additionalProperties") is False and "patternProperties" not in schema:
            kept["closed"] = True
    if schema.get("required"):
        kept["required"] = sorted(schema["required"])
    if "items" in schema:
        items = compact(schema["items"])
        if items:
            kept["items"] = items
    if "enum" in schema:
        kept["enum"] = schema["enum"]
    return kept


def extract(kept_types: list[str]) -> dict[str, Any]:
    """The whole data file."""
    types = {}
    for name in kept_types:
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema
        types[name] = {
            **rules(schema),
            "system_tags": gets_system_tags(schema),
            "read_only": [each for each in names(schema.get("readOnlyProperties")) if "/" not in each],
            "root": compact(schema),
            "definitions": {key: compact(value) for key, value in sorted(schema.get("definitions", {}).items())},
        }
    others = {}
    for name in sorted(set(PROVIDER_SCHEMA_MANAGER.get_resource_types(REGION)) - set(kept_types)):
        kept = rules(PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema)
        others[name] = {key: value for key, value in kept.items() if value}
    return {"source": source(), "types": types, "others": others}


def extract_permissions(kept_types: list[str]) -> dict[str, Any]:
    """The data file of handlers; a type whose schema names none is not in it (AWS::CodeBuild::Project)."""
    types = {}
    for name in kept_types:
        handlers = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, name).schema.get("handlers", {})
        calls = {each: handlers[each].get("permissions", []) for each in HANDLERS if each in handlers}
        if calls:
            types[name] = calls
    return {"source": source(), "types": types}


def source() -> str:
    """Where the data comes from."""
    return f"CloudFormation resource schemas in cfn-lint {version('cfn-lint')}, {REGION}"


def render(data: dict[str, Any]) -> str:
    """One line a resource type, so that a change reads well in a diff."""
    sections = [f'"source": {json.dumps(data["source"])}']
    for section in [each for each in data if each != "source"]:
        lines = [f"{json.dumps(key)}: {json.dumps(each, separators=(',', ':'))}" for key, each in data[section].items()]
        sections.append(f'"{section}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(sections) + "}\n"


def main() -> None:
    """Extract, and write the files."""
    types = sorted({*json.loads(TARGET.read_text(encoding="utf-8"))["types"], *sys.argv[1:]})
    with_handlers = sorted({*types, *json.loads(PERMISSIONS.read_text(encoding="utf-8"))["types"]})
    write_text(TARGET, render(extract(types)))
    write_text(PERMISSIONS, render(extract_permissions(with_handlers)))
    for file, kept in ((TARGET, types), (PERMISSIONS, with_handlers)):
        print(f"{file}: {file.stat().st_size} bytes, {len(kept)} types")


if __name__ == "__main__":
    main()
