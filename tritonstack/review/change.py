"""Vocabulary of a review's report, shared by all its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tritonstack.cloudformation.resource_schemas import Replaces
from tritonstack.review.snapshot import Json, Resource

if TYPE_CHECKING:
    from tritonstack.review.document import FilesEntry, FindingEntry, TrafficEntry


class Absent:
    """No value, where ``None`` would be JSON's null."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


class Level(StrEnum):
    """How much attention a change needs."""

    NOTHING = "nothing changes"
    PLAIN = "plain"
    LOOK = "look at it"
    CLOSE = "look closely"


class Effect(StrEnum):
    """Effect of a deployment on a resource, in the order of a report: those that can hurt come first."""

    REFUSED = "refused"
    """CloudFormation rejects the update: the deployment fails and is rolled back."""
    REPLACED = "replaced"
    MAY_BE_REPLACED = "may be replaced"
    REMOVED = "removed"
    RETAINED = "removed from the stack, kept in the account"
    NEW = "new"
    RENAMED = "renamed"
    """An inline policy that its role has under another name, the new one before the old one goes."""
    CHANGED = "changed in place"
    """Of a custom resource: its function is called, and its response decides whether it is replaced."""
    MAY_CHANGE = "may change in place"
    """Only values that other changes may bring."""
    TEMPLATE_ONLY = "changed in the template only"
    """Order or deletion policies: CloudFormation touches nothing."""


@dataclass(frozen=True, kw_only=True)
class PropertyChange:
    """One property, as deep in as the two values differ."""

    # names and list indexes from the resource's properties: ``("ProductionVariants", 0, "InstanceType")``. An index may
    # be the item's own name in brackets (``[ReadArchives]``: its Sid, VariantName, Name, Id, …)
    path: tuple[str | int, ...]
    before: Json | Absent  # in the snapshot's normal form; ABSENT for a new property
    after: Json | Absent  # likewise; ABSENT for a removed one
    replaces: Replaces = "no"  # whether the change replaces the resource, by CloudFormation's resource schemas
    # what gives the value another content though the text is the same (``before`` and ``after`` are then equal): a
    # logical id, a parameter's name, an asset's or document's construct path. Else None
    follows: str | None = None
    # whether the value moves; False where that is known only when deployed: the response of a custom resource, the
    # value of a parameter
    certain: bool = True

    @property
    def name(self) -> str:
        """``ProductionVariants[0].InstanceType``."""
        text = ""
        for number, part in enumerate(self.path):
            if isinstance(part, int) or part.startswith("["):
                text += f"[{part}]" if isinstance(part, int) else part
            else:
                text += f".{part}" if number else part
        return text


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """One resource."""

    logical_id: str  # in the template after the change; before it, of a removed resource
    type: str  # its type
    path: str  # the construct's path in its stack: the name to show
    effect: Effect  # what the deployment does
    properties: tuple[PropertyChange, ...] = ()  # by path; none for a resource that is new or removed
    # changes of ``DeletionPolicy``, ``DependsOn`` and the like; paths begin with the attribute
    attributes: tuple[PropertyChange, ...] = ()
    reasons: tuple[str, ...] = ()  # sentences that explain the effect
    before: Resource | None = None  # the resource before; None for a new one
    after: Resource | None = None  # the resource after; None for a removed one
    # logical id of the same resource before, where only that changed; of an inline policy also where its statements did
    renamed_from: str | None = None
    # ``deleted`` and ``replaced``, each where the resource was kept then and is no longer
    no_longer_kept: tuple[str, ...] = ()

    @property
    def tags_only(self) -> bool:
        """Whether nothing but tags changes."""
        return bool(self.properties) and not self.attributes and all(each.path[0] == "Tags" for each in self.properties)

    @property
    def only_follows(self) -> bool:
        """Whether it is a change in place of nothing but values that follow others; an endpoint's moves traffic."""
        in_place = self.effect in {Effect.CHANGED, Effect.MAY_CHANGE} and self.type != "AWS::SageMaker::Endpoint"
        return in_place and not self.attributes and all(each.follows is not None for each in self.properties)

    @property
    def old_one_stays(self) -> bool:
        """Whether the old physical resource stays in the account after a replacement."""
        if self.before is None or self.after is None or self.effect not in {Effect.REPLACED, Effect.MAY_BE_REPLACED}:
            return False
        # With another logical id the old one is removed from the stack, and its own policy counts.
        return self.after.kept_on_replacement if self.renamed_from is None else self.before.kept_on_removal


class Update(StrEnum):
    """How an endpoint is updated."""

    NONE = "no update"
    CREATED = "created"
    REMOVED = "removed"
    REPLACED = "replaced"
    """By another endpoint: requests to the old name fail."""
    ALL_AT_ONCE = "blue/green, all at once"
    CANARY = "blue/green, canary"
    LINEAR = "blue/green, linear"
    ROLLING = "rolling"
    UNKNOWN = "decided while it is deployed"


@dataclass(frozen=True, kw_only=True)
class StackChange:
    """One stack."""

    name: str  # its id in the stage: ``serving-digits``
    stack_name: str  # its name in CloudFormation
    effect: Effect  # NEW, CHANGED, REMOVED; REPLACED for another CloudFormation name, account or region
    resources: tuple[ResourceChange, ...]  # every resource that changes, by path and logical id
    reasons: tuple[str, ...] = ()  # sentences about the stack as a whole
    # changes of the other sections; paths begin with the section (``Outputs``, ``Parameters``, …), with ``StackTags``,
    # or with ``StackName``, ``Account``, ``Region``
    template: tuple[PropertyChange, ...] = ()
    assets: tuple[FilesEntry, ...] = ()  # assets with other content
    # construct path of a small JSON asset, such as an endpoint's release set → its members that change
    documents: Mapping[str, tuple[PropertyChange, ...]] = field(default_factory=dict)
    traffic: tuple[TrafficEntry, ...] = ()  # every endpoint of the stack, the untouched ones included


@dataclass(frozen=True, kw_only=True)
class EnvironmentChange:
    """One environment."""

    name: str  # ``dev``
    effect: Effect | None  # NEW, CHANGED, REMOVED; None where nothing changes
    stacks: tuple[StackChange, ...]  # the stacks that change, by name
    findings: tuple[FindingEntry, ...]  # policy findings that come, go, or are accepted
    findings_known: bool  # whether both sides were validated; if not, ``findings`` is empty and means nothing
