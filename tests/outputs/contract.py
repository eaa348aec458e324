"""The contract as a flat list of fields with their types, as it is committed and as the code has it.

``python -m tests.outputs.contract`` adds to the committed description what is new in a minor version. It refuses what
readers of this contract would break on: that needs a new one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tritonstack.naming import outputs_parameter, release_parameter
from tritonstack.outputs.contract import CONTRACT, KINDS, MINOR, OutputsDocument

FILE = Path(__file__).parent / f"contract-{CONTRACT}.json"
STACK_OUTPUTS = {
    "artifacts": ("BucketName", "KeyArn"),
    "builds": ("LogGroupName", "ProjectName"),
    "network": (),
    "observability": ("AlarmTopicArn", "DashboardName"),
    "serving": (
        "ArchivePrefix", "ArtifactBucket", "EndpointArn", "EndpointName", "ExecutionRoleArn", "ModelDataUrl",
        "VariantName",
    ),
}  # fmt: skip
"""Kind of stack → names of its CloudFormation outputs, where it has what they tell: ``cdk deploy --outputs-file``."""


def described() -> dict[str, Any]:
    """The contract as the code has it."""
    return {
        "contract": CONTRACT,
        "minor": MINOR,
        "document": dict(_types(OutputsDocument.model_json_schema())),
        "parameters": {
            kind: {
                "name": outputs_parameter(environment="<environment>", stack=_stack(kind)),
                "fields": dict(_types(TypeAdapter(entries).json_schema())),
            }
            for kind, entries in sorted(KINDS.items())
        },
        "release_record": release_parameter(environment="<environment>", endpoint="<endpoint>", model="<model>"),
        "stack_outputs": {kind: dict.fromkeys(names, "string") for kind, names in STACK_OUTPUTS.items()},
    }


def _stack(kind: str) -> str:
    return "serving-<endpoint>" if kind == "serving" else kind


def _types(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path of every field → its type; ``*`` is any name, ``[]`` any element, ``?`` a field that may be left out."""
    yield from _fields(schema, schema.get("$defs", {}), at="")


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        yield from _field(field, definitions, at=f"{at}/{name}", optional=name not in required)


def _field(
    field: Mapping[str, Any], definitions: Mapping[str, Any], *, at: str, optional: bool = False
) -> Iterator[tuple[str, str]]:
    kinds = [_resolved(each, definitions) for each in field.get("anyOf", [field])]
    words = sorted(_word(each) for each in kinds)
    yield at, " | ".join(words) + ("?" if optional else "")
    for each in kinds:
        if "properties" in each:
            yield from _fields(each, definitions, at)
        elif isinstance(each.get("additionalProperties"), Mapping):
            yield from _field(each["additionalProperties"], definitions, at=f"{at}/*")
        elif "items" in each:
            yield from _field(each["items"], definitions, at=f"{at}[]")


def _resolved(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = field.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else field


def _word(field: Mapping[str, Any]) -> str:
    if "const" in field:
        return json.dumps(field["const"])
    if "enum" in field:
        return " | ".join(sorted(json.dumps(each) for each in field["enum"]))
    return str(field["type"])


def changes(committed: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What breaks readers of the committed contract, and what is only added."""
    before, after = dict(_flat(committed)), dict(_flat(now))
    breaking = [f"removed: {name}" for name in before if name not in after]
    breaking += [
        f"{name}: was {was}, is {after[name]}" for name, was in before.items() if name in after and after[name] != was
    ]
    return breaking, [f"added: {name}" for name in after if name not in before]


def _flat(contract: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    for name, value in contract.items():
        place = f"{at} {name}".strip()
        if isinstance(value, Mapping):
            yield from _flat(value, place)
        elif place not in ("contract", "minor"):
            yield place, str(value)


def main() -> int:
    """Write the description: anew for a new contract, with additions for a new minor version of this one."""
    now = described()
    if FILE.is_file():
        committed = json.loads(FILE.read_text())
        breaking, added = changes(committed, now)
        if breaking:
            print("needs a new contract:", *breaking, sep="\n  ", file=sys.stderr)
            return 1
        if added and committed["minor"] == now["minor"]:
            print("needs a new minor version:", *added, sep="\n  ", file=sys.stderr)
            return 1
    FILE.write_text(json.dumps(now, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
