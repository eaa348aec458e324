"""Findings of cdk-nag that are right as they stand, each with a reason that a reader can check."""

from __future__ import annotations

import json

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(construct: IConstruct, *, finding: str, reason: str) -> None:
    """Take one finding on one construct as accepted.

    Args:
        construct: where the finding lies; nothing outside it is covered.
        finding: the whole id, with its detail (``AwsSolutions-IAM5[Resource::*]``); cdk-nag 3 matches no prefixes, so
            this never covers a wildcard that is added later.
        reason: why it is right, said so that it can be checked against the template or a service's documentation.
    """
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))


def acknowledge_wildcard(construct: IConstruct, *, resource: str, reason: str) -> None:
    """Accept one resource pattern in one policy.

    Args:
        construct: the policy.
        resource: the ARN as it stands in the statement; parameters and pseudo parameters may be in it.
        reason: why the pattern is no wider than it needs to be.
    """
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
