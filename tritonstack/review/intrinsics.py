"""Values of a template: intrinsic functions, their references, and how they are shown and compared."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.instances import dns_suffix, partition
from tritonstack.cloudformation.resource_schemas import replacement_rules
from tritonstack.review.change import ABSENT, Absent
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot
from tritonstack.untrusted.foreign_text import parse_json

JSON_TEXT = "$json"
"""The name under which text that is JSON stands parsed in a snapshot."""
_VARIABLE = re.compile(r"\$\{(?!!)([^}]+)\}")
_ASSET = re.compile(r"\{asset:([^}]+)\}")


def references(value: Json) -> Iterator[str]:
    """Every name that a value refers to: logical ids, parameters, pseudo parameters. A name may come twice."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            yield name
        case {"Fn::GetAtt": [str(name), *_], **rest} if not rest:
            yield name
        case {"Fn::GetAtt": str(text), **rest} if not rest:
            yield text.partition(".")[0]
        case {"Fn::Sub": [str(text), dict(variables)], **rest} if not rest:
            yield from (name.partition(".")[0] for name in _VARIABLE.findall(text) if name not in variables)
            yield from references(variables)
        case {"Fn::Sub": str(text), **rest} if not rest:
            yield from (name.partition(".")[0] for name in _VARIABLE.findall(text))
        case dict():
            for each in value.values():
                yield from references(each)
        case list():
            for each in value:
                yield from references(each)


def assets_in(value: Json) -> list[str]:
    """The construct path of every asset that a value names."""
    return _ASSET.findall(json.dumps(value, ensure_ascii=False))


def is_function(value: Json) -> bool:
    """Whether a value is one intrinsic function."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def readable(value: Json) -> str:
    """A value on one line: references as ``${LogicalId.Attribute}``, anything else as JSON."""
    if isinstance(value, str):
        return value
    text = _function_text(value)
    return json.dumps(_inside(value), ensure_ascii=False, sort_keys=True) if text is None else text


def _function_text(value: Json) -> str | None:  # noqa: PLR0911 - a table
    """An intrinsic function in words; None for a value that reads better as JSON."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
            return f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(name), **rest} if not rest:
            return f"${{{name}}}"
        case {"Fn::Sub": str(text), **rest} if not rest:
            return text.replace("${!", "${")
        case {"Fn::Join": [str(separator), [*parts]], **rest} if not rest:
            return separator.join(readable(part) for part in parts)
        case {"Fn::If": [str(condition), then, otherwise], **rest} if not rest:
            return f"{readable(then)} if {condition}, else {readable(otherwise)}"
    return None


def _inside(value: Json) -> Json:
    """A value with its intrinsic functions as text."""
    text = _function_text(value)
    if text is not None:
        return text
    if isinstance(value, dict):
        return {key: _inside(each) for key, each in value.items()}
    return [_inside(each) for each in value] if isinstance(value, list) else value


ONE_LINE = 100
"""Characters: a list or map that is longer is shown a member a line."""


def texts_of(before: Json | Absent, after: Json | Absent) -> tuple[str | None, str | None]:
    """Both values as text; None for an absent one. Values of two types never read the same."""
    old, new = _text(before), _text(after)
    if old == new and before != after:
        return json.dumps(before, sort_keys=True), json.dumps(after, sort_keys=True)
    return old, new


def _text(value: Json | Absent) -> str | None:
    if value is ABSENT:
        return None
    if value == "":
        return '""'
    text = readable(value)
    if len(text) > ONE_LINE and text.startswith(("{", "[")):
        # A list, a map, or JSON that has references in it, such as a dashboard's body.
        with contextlib.suppress(ValueError):
            return json.dumps(parse_json(text), indent=2, ensure_ascii=False)
    return text


_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_WHOLE = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")
_ARNS: Mapping[str, str] = read_data("resource_types.json")["arns"]
"""``AWS::S3::Bucket.Arn``: type and attribute → the ARN that it returns."""


@dataclass(frozen=True)
class StackValues:
    """Values of one stack, with known references filled in."""

    stack: StackSnapshot

    @property
    def partition(self) -> str:
        """``aws``, or that of the region."""
        return partition(self.stack.region or "")

    @cached_property
    def known(self) -> dict[str, str]:
        """Reference → its value: pseudo parameters, and parameters by their defaults."""
        known = {"${AWS::Partition}": self.partition, "${AWS::StackName}": self.stack.stack_name}
        if self.stack.account is not None:
            known["${AWS::AccountId}"] = self.stack.account
        if self.stack.region is not None:
            known["${AWS::Region}"] = self.stack.region
            known["${AWS::URLSuffix}"] = dns_suffix(self.stack.region)
        for name, parameter in self.stack.template.get("Parameters", {}).items():
            if "Default" in parameter:
                default = str(parameter["Default"])
                stored = str(parameter.get("Type", "")).startswith("AWS::SSM::Parameter::Value")
                known[f"${{{name}}}"] = f"${{ssm:{default}}}" if stored else default
        return known

    def shown(self, value: Json) -> str:
        """A value to show: ``${Bucket.Arn}/x``, with known references filled in."""
        text = readable(value)
        return _REFERENCE.sub(lambda found: self.known.get(found[0], found[0]), text) if "${" in text else text

    def canonical(self, value: Json) -> str:
        """A value to compare: also with the ARNs of the stack's resources as far as they are known."""
        text = self.shown(value)
        return _REFERENCE.sub(self._arn, text) if "${" in text else text

    def logical_id(self, value: Json) -> str | None:
        """The resource that a value names by ``Ref`` or an attribute; None where it is no reference to one here."""
        found = _WHOLE.fullmatch(readable(value))
        return found[1] if found and found[1] in self.stack.resources else None

    def _arn(self, found: re.Match[str]) -> str:
        name, dot, attribute = found[1].partition(".")
        resource = self.stack.resources.get(name)
        form = None if resource is None else _ARNS.get(f"{resource.type}{dot}{attribute}")
        if form is None:
            return found[0]
        region, account = self.stack.region or "${AWS::Region}", self.stack.account or "${AWS::AccountId}"
        return form.format(partition=self.partition, region=region, account=account, name=name)


def physical_name(resource: Resource) -> str | None:
    """The name that the template gives a resource, where that is plain text."""
    rules = replacement_rules(resource.type)
    value = None if rules is None or rules.name is None else resource.properties.get(rules.name)
    return value if isinstance(value, str) else None


@dataclass(frozen=True)
class Names:
    """Readable names of an environment's resources, in place of their logical ids.

    ``known``: stack → logical id → the name that the template gives the resource, else its construct's path; of a
    parameter that is read from SSM, ``ssm:`` and the SSM parameter's name.
    """

    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, *sides: EnvironmentSnapshot) -> Names:
        """The names of an environment before and after a change; where the two differ, the later name counts."""
        known: dict[str, dict[str, str]] = {}
        for each in sides:
            for name, stack in each.stacks.items():
                given = StackValues(stack).known.items()
                known.setdefault(name, {}).update(
                    {key[2:-1]: value[2:-1] for key, value in given if value.startswith("${ssm:")}
                    | {one.logical_id: physical_name(one) or one.path for one in stack.resources.values()}
                )
        return cls(known)

    def of_resource(self, stack: str, logical_id: str) -> str:
        """The name of a resource; other arguments are returned unchanged."""
        return self.known.get(stack, {}).get(logical_id, logical_id)

    def in_text(self, stack: str, text: str) -> str:
        """A text of the stack with ``${Endpoint8024A810.Arn}`` as ``${prod-digits.Arn}``."""

        def named(found: re.Match[str]) -> str:
            logical_id, dot, attribute = found[1].partition(".")
            return f"${{{self.of_resource(stack, logical_id)}{dot}{attribute}}}"

        return _REFERENCE.sub(named, text) if "${" in text else text
