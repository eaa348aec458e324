"""AWS's size limits of templates, as far as a template alone shows them.

The limits, with their sources, are in ``data/limits.json``. Lengths of values that are known at deployment (references,
ARNs) count as what the template has in their place, so a policy that is only just small enough may still be refused.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_CHILD = re.compile(r"\b(?:ALARM|OK|INSUFFICIENT_DATA)\(")


@dataclass(frozen=True, kw_only=True)
class Exceeded:
    """A limit that a template exceeds."""

    limit: str  # what is limited: ``widgets of a dashboard``
    of: str  # the resource's logical id; empty for the template
    found: int
    allowed: int
    advice: str
    source: str  # AWS's page

    def __str__(self) -> str:
        place = f" ({self.of})" if self.of else ""
        return f"{self.found} {self.limit}{place}, and AWS allows {self.allowed} ({self.source})"


@cache
def _data() -> dict[str, Any]:
    text = files("tritonstack.cloudformation").joinpath("data/limits.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def allowed(limit: str) -> int:
    """AWS's limit; ``limit``: a key of ``limits`` in the data."""
    return int(_data()["limits"][limit]["allowed"])


def children_of(rule: str) -> int:
    """How many alarms the rule of a composite alarm names."""
    return len(_CHILD.findall(rule))


def exceeded(template: Mapping[str, Any], *, size: int, stack: str) -> tuple[Exceeded, ...]:
    """Every limit that a template exceeds. ``size``: its bytes as it is sent. ``stack``: the stack's name."""
    sources, limits = _data()["sources"], _data()["limits"]
    found = []
    for limit, of, number in _measured(template, size=size, stack=stack):
        each = limits[limit]
        if number > each["allowed"]:
            source = sources[each["source"]]
            found.append(
                Exceeded(limit=limit, of=of, found=number, allowed=each["allowed"], advice=each["do"], source=source)
            )
    return tuple(found)


def _measured(template: Mapping[str, Any], *, size: int, stack: str) -> Iterator[tuple[str, str, int]]:
    """Limit, the resource that it is of, and how much of it is used."""
    resources: Mapping[str, Any] = template.get("Resources", {})
    yield "resources", "", len(resources)
    for section in ("outputs", "parameters", "mappings"):
        yield section, "", len(template.get(section.capitalize(), {}))
    yield "template bytes", "", size
    yield "characters of a stack's name", "", len(stack)
    inline: dict[str, int] = defaultdict(int)
    for name, resource in resources.items():
        properties: Mapping[str, Any] = resource.get("Properties", {})
        yield "characters of a logical id", name, len(name)
        match resource["Type"]:
            case "AWS::CloudWatch::Dashboard":
                yield from _of_dashboard(name, properties.get("DashboardBody", ""))
            case "AWS::CloudWatch::Alarm":
                metrics = [each for each in properties.get("Metrics", ()) if "MetricStat" in each]
                yield "metrics of an alarm", name, len(metrics)
                yield "actions of an alarm", name, len(properties.get("AlarmActions", ()))
            case "AWS::CloudWatch::CompositeAlarm":
                rule = _text(properties.get("AlarmRule", ""))
                yield "children of a composite alarm", name, children_of(rule)
                yield "characters of an alarm rule", name, len(rule)
            case "AWS::IAM::Policy":
                for role in properties.get("Roles", ()):
                    inline[_text(role)] += _characters(properties.get("PolicyDocument", {}))
            case "AWS::IAM::ManagedPolicy":
                document = properties.get("PolicyDocument", {})
                yield "characters of a managed policy", name, _characters(document)
            case "AWS::Lambda::Function":
                variables = properties.get("Environment", {}).get("Variables", {})
                yield "bytes of a function's variables", name, _characters(variables)
            case "AWS::SSM::Parameter":
                yield "bytes of a standard parameter", name, len(_text(properties.get("Value", "")).encode())
    for name, resource in resources.items():
        if resource["Type"] == "AWS::IAM::Role":
            role = resource.get("Properties", {})
            yield "characters of a trust policy", name, _characters(role.get("AssumeRolePolicyDocument", {}))
            own = sum(_characters(each["PolicyDocument"]) for each in role.get("Policies", ()))
            total = own + inline.get(_text({"Ref": name}), 0)
            yield "characters of a role's inline policies", name, total


def _of_dashboard(name: str, body: Any) -> Iterator[tuple[str, str, int]]:
    try:
        widgets = json.loads(_text(body))["widgets"]
    except (ValueError, KeyError, TypeError):
        return  # CloudWatch's own refusal says what is wrong with it
    metrics = [len(each.get("properties", {}).get("metrics", ())) for each in widgets]
    yield "widgets of a dashboard", name, len(widgets)
    yield "metrics of a widget", name, max(metrics, default=0)
    yield "metrics of a dashboard", name, sum(metrics)


def _text(value: Any) -> str:
    """A value as text; parts that are known at deployment stand as what the template has for them, without quotes."""
    if isinstance(value, Mapping) and "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(_text(each) for each in parts)
    return value if isinstance(value, str) else re.sub(r'["\s]', "", json.dumps(value, sort_keys=True))


def _characters(document: Any) -> int:
    """Without whitespace, as IAM counts; a reference as a name of its own length."""
    return len(json.dumps(document, separators=(",", ":")))
