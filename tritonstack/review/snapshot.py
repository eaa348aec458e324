"""What a snapshot holds: the templates of every environment, as people read them in a diff.

Templates stand here in a normal form (``tritonstack.review.normal_form``): what is noise is out, ``Fn::Join`` without a
separator is ``Fn::Sub``, ``Tags`` are a map, text that is JSON stands as ``{"$json": …}``, and the hash of an asset is
``{asset:<construct path>}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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
