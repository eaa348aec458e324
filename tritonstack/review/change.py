"""What a review reports about a change: the vocabulary that every part of a report shares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tritonstack.review.snapshot import Finding, Json, Resource

_RANKS: dict[Json, int] = {"Delete": 0, "Snapshot": 1, "Retain": 2, "RetainExceptOnCreate": 2}
_WHEN = {"DeletionPolicy": "deleted", "UpdateReplacePolicy": "replaced"}
_SAID = {
    ("deleted", 0): "It is no longer kept: from now on it goes with its stack, or when the stack has it no more.",
    ("deleted", 1): "It is no longer kept, but for a snapshot, when its stack is deleted or has it no more.",
    ("replaced", 0): "Where it is replaced, the old one is no longer kept.",
    ("replaced", 1): "Where it is replaced, only a snapshot of the old one is kept from now on.",
}


def no_longer_kept(before: Resource, after: Resource) -> dict[str, str]:
    """``deleted`` and ``replaced``, each where less is kept then than before → what to say of it."""
    found = {}
    for policy, when in _WHEN.items():
        kept = _RANKS.get(_policy(after, policy), 0)
        if kept < _RANKS.get(_policy(before, policy), 0):
            found[when] = _SAID[when, kept]
    return found


def _policy(resource: Resource, name: str) -> Json:
    """What the template says, or what holds where it says nothing.

    Source: template reference, "DeletionPolicy attribute" and "UpdateReplacePolicy attribute".
    """
    database = resource.type == "AWS::RDS::DBInstance" and "DBClusterIdentifier" not in resource.properties
    by_snapshot = name == "DeletionPolicy" and (database or resource.type == "AWS::RDS::DBCluster")
    return resource.attributes.get(name, "Snapshot" if by_snapshot else "Delete")


class Absent:
    """No value, where ``None`` would be JSON's null."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


class Effect(StrEnum):
    """What a deployment does to a resource."""

    NEW = "new"
    CHANGED = "changed in place"
    """Of a custom resource: its function is called, and decides by its answer whether it is replaced."""
    MAY_CHANGE = "may change in place"
    """Nothing of it changes but values that other changes may bring."""
    REPLACED = "replaced"
    MAY_BE_REPLACED = "may be replaced"
    RENAMED = "renamed"
    """Of an inline policy: its role has it under another name, the new one before the old one goes."""
    REMOVED = "removed"
    RETAINED = "removed from the stack, kept in the account"
    REFUSED = "refused"
    """CloudFormation does not take the update: the deployment fails and is rolled back."""
    TEMPLATE_ONLY = "changed in the template only"
    """Order or policies on deletion: CloudFormation touches nothing."""


class Replaces(StrEnum):
    """Whether a property's change replaces its resource, as CloudFormation's resource schemas say."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


@dataclass(frozen=True, kw_only=True)
class PropertyChange:
    """One property, as deep in as the two values differ.

    Attributes:
        path: names and list places from the resource's properties: ``("ProductionVariants", 0, "InstanceType")``. A
            list place may be the item's own name in brackets (``[ReadArchives]``: its Sid, VariantName, Name, Id, …).
        before: in the snapshot's normal form; ABSENT where the property is new.
        after: likewise; ABSENT where it is gone.
        replaces: what the change does to the resource.
        follows: what moves the value though the text is the same: a logical id, a parameter's name, or an asset's or
            document's construct path; ``before`` and ``after`` are then equal. None where the text changed.
        certain: whether the value moves; False where that is known only when it is deployed: what a custom resource
            answers, what a parameter holds.
    """

    path: tuple[str | int, ...]
    before: Json | Absent
    after: Json | Absent
    replaces: Replaces = Replaces.NO
    follows: str | None = None
    certain: bool = True

    @property
    def name(self) -> str:
        """The path as people write it: ``ProductionVariants[0].InstanceType``."""
        text = ""
        for number, part in enumerate(self.path):
            if isinstance(part, int) or part.startswith("["):
                text += f"[{part}]" if isinstance(part, int) else part
            else:
                text += f".{part}" if number else part
        return text


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """One resource.

    Attributes:
        logical_id: in the template after the change; before it, where the resource is gone.
        type: its type.
        path: the construct's path in its stack: the name to show.
        effect: what the deployment does.
        properties: property by property, sorted by path; for a resource that is new or gone, none.
        attributes: changes of ``DeletionPolicy``, ``DependsOn`` and the like; paths begin with the attribute.
        reasons: sentences why the effect is what it is, where it is not plain.
        before: the resource before; None where it is new.
        after: the resource after; None where it is gone.
        renamed_from: the logical id of the same resource before, where only that changed; of an inline policy also
            where its statements did.
    """

    logical_id: str
    type: str
    path: str
    effect: Effect
    properties: tuple[PropertyChange, ...] = ()
    attributes: tuple[PropertyChange, ...] = ()
    reasons: tuple[str, ...] = ()
    before: Resource | None = None
    after: Resource | None = None
    renamed_from: str | None = None

    @property
    def tags_only(self) -> bool:
        """Whether nothing but tags changes."""
        return bool(self.properties) and not self.attributes and all(each.path[0] == "Tags" for each in self.properties)

    @property
    def follows_only(self) -> bool:
        """Whether only values move that other changes bring."""
        return (
            bool(self.properties) and not self.attributes and all(each.follows is not None for each in self.properties)
        )

    @property
    def old_one_stays(self) -> bool:
        """Whether the old physical resource stays in the account after a replacement."""
        if self.before is None or self.after is None or self.effect not in {Effect.REPLACED, Effect.MAY_BE_REPLACED}:
            return False
        # By another logical id the old one is removed from the stack, and its own policy counts.
        return self.after.kept_on_replacement if self.renamed_from is None else self.before.kept_on_removal

    @property
    def no_longer_kept(self) -> dict[str, str]:
        """``deleted`` and ``replaced``, each where it was kept then and is no longer → a sentence that says so."""
        return {} if self.before is None or self.after is None else no_longer_kept(self.before, self.after)


class Update(StrEnum):
    """How an endpoint is updated."""

    NONE = "no update"
    CREATED = "created"
    REMOVED = "removed"
    REPLACED = "replaced"
    """Another endpoint takes its place: callers of the old name fail."""
    ALL_AT_ONCE = "blue/green, all at once"
    CANARY = "blue/green, canary"
    LINEAR = "blue/green, linear"
    ROLLING = "rolling"
    UNKNOWN = "decided while it is deployed"


class FleetChange(StrEnum):
    """What of an endpoint's fleet changes."""

    NOTHING = "nothing"
    CAPACITY = "instance count"
    INSTANCE_TYPE = "instance type"
    VARIANTS = "production variants"
    CONTAINER = "container or model"
    OTHER = "settings of the endpoint's configuration"


@dataclass(frozen=True, kw_only=True)
class TrafficChange:
    """What a deployment does to the calls that one endpoint answers.

    Attributes:
        endpoint: the endpoint's SageMaker name, or its logical id where the name is generated.
        logical_id: of the AWS::SageMaker::Endpoint.
        touched: whether calls move to another fleet, or end; None where that is known only when it is deployed.
        update: how.
        fleet: what changes, by weight; empty where nothing does.
        sentences: what happens, in full sentences, for a report.
    """

    endpoint: str
    logical_id: str
    touched: bool | None
    update: Update
    fleet: tuple[FleetChange, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AssetChange:
    """The files of one asset.

    Attributes:
        path: the asset's construct path in its stack.
        kind: ``code``, ``image``; a source never changes here.
        new: names of files.
        changed: likewise.
        removed: likewise.
        users: logical ids of the resources that use it after the change, or before it where it is gone.
    """

    path: str
    kind: str
    new: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    users: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class DocumentChange:
    """A small JSON asset, such as an endpoint's release set, member by member.

    Attributes:
        path: its construct path in its stack.
        members: what changed; paths from the document's root.
        before: the whole document; ABSENT where it is new.
        after: likewise.
    """

    path: str
    members: tuple[PropertyChange, ...]
    before: Json | Absent
    after: Json | Absent


@dataclass(frozen=True, kw_only=True)
class StackChange:
    """One stack.

    Attributes:
        name: its id in the stage: ``serving-digits``.
        stack_name: what CloudFormation calls it.
        effect: NEW, CHANGED, REMOVED; REPLACED where its CloudFormation name, account or region is another.
        resources: every resource that changes, by path and logical id.
        template: changes of the other sections; paths begin with the section (``Outputs``, ``Parameters``, …), with
            ``StackTags``, or with ``StackName``, ``Account``, ``Region``.
        assets: assets with other content.
        documents: documents with other content.
        traffic: every endpoint of the stack, the untouched ones included.
        reasons: sentences about the stack as a whole, such as that no deployment removes one that the app lost.
    """

    name: str
    stack_name: str
    effect: Effect
    resources: tuple[ResourceChange, ...]
    reasons: tuple[str, ...] = ()
    template: tuple[PropertyChange, ...] = ()
    assets: tuple[AssetChange, ...] = ()
    documents: tuple[DocumentChange, ...] = ()
    traffic: tuple[TrafficChange, ...] = ()

    @property
    def stack_name_before(self) -> str:
        """What CloudFormation calls the stack that is deployed."""
        return next((str(each.before) for each in self.template if each.path == ("StackName",)), self.stack_name)


@dataclass(frozen=True, kw_only=True)
class FindingChanges:
    """Policy findings that come and go.

    Attributes:
        known: whether both sides were validated; if not, ``new`` and ``gone`` are empty and say nothing.
        new: open findings that come.
        gone: open findings that go.
        accepted: findings that are accepted from now on.
        no_longer_accepted: findings whose acceptance is taken back.
        reworded: findings that stay accepted, for the reason that stands here now.
    """

    known: bool
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    accepted: tuple[Finding, ...]
    no_longer_accepted: tuple[Finding, ...]
    reworded: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EnvironmentChange:
    """One environment.

    Attributes:
        name: ``dev``.
        effect: NEW, CHANGED, REMOVED; None where nothing changes.
        stacks: the stacks that change, by name.
        findings: its policy findings.
    """

    name: str
    effect: Effect | None
    stacks: tuple[StackChange, ...]
    findings: FindingChanges


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Every environment of either side, the unchanged ones included, by name."""

    environments: tuple[EnvironmentChange, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing changes anywhere."""
        return all(each.effect is None for each in self.environments)
