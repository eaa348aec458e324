"""cdk-nag findings that are accepted, each with a reason that a reader can check."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import TypedDict

import aws_cdk as cdk
import yaml
from constructs import IConstruct


def acknowledge(construct: IConstruct, *, finding: str, reason: str) -> None:
    """Accept one finding on one construct, and on nothing outside it.

    Args:
        finding: the whole id, with its detail (``AwsSolutions-IAM5[Resource::*]``); cdk-nag 3 matches no prefixes, so
            this never covers a wildcard that is added later.
        reason: why it is right, in a form that can be checked against the template or a service's documentation.
    """
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))


def acknowledge_wildcard(construct: IConstruct, *, resource: str, reason: str) -> None:
    """Accept one resource pattern in one policy: the statement's ARN, parameters included."""
    acknowledge(construct, finding=f"AwsSolutions-IAM5[Resource::{_as_nag_writes(construct, resource)}]", reason=reason)


def _as_nag_writes(construct: IConstruct, text: str) -> str:
    """Text with references as cdk-nag writes them in a finding: ``<LogicalId>`` or ``<LogicalId.Attribute>``.

    The value of another stack is written in the form that it has before the app is synthesised, as a ``Ref``; cdk-nag
    sees the export by then. So an app that brings its bucket from another stack accepts that finding itself.
    """
    return _flatten(cdk.Stack.of(construct).resolve(text))


def _flatten(value: object) -> str:
    match value:
        case str():
            return value.replace("${", "<").replace("}", ">")  # as Fn::Sub names references
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(_flatten(part) for part in parts)
        case {"Fn::Sub": inner} | {"Fn::ImportValue": inner}:
            return _flatten(inner)
        case _:
            return json.dumps(value, separators=(",", ":"))


class Accepted(TypedDict):
    """An entry of ``data/nist_accepted.yaml``."""

    rule: str
    paths: list[str]
    reason: str


def acknowledge_nist(stage: cdk.Stage) -> None:
    """Accept the findings of ``data/nist_accepted.yaml`` on the constructs of a stage.

    Called only where cdk-nag runs, because it visits every construct.
    """
    text = (Path(__file__).parent / "data" / "nist_accepted.yaml").read_text(encoding="utf-8")
    accepted: list[Accepted] = yaml.safe_load(text)
    for construct in stage.node.find_all():
        if not isinstance(construct, cdk.CfnElement):
            continue
        path = construct.node.path
        for each in accepted:
            if any(fnmatch.fnmatchcase(path, pattern) for pattern in each["paths"]):
                acknowledge(construct, finding=f"NIST.800.53.R5-{each['rule']}", reason=each["reason"])
