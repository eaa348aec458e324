"""The report as data: what ``--json`` writes, and what every other form of it is made from.

Every field is always there. Values of properties are text, as people read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.review.change import Effect, Level

VERSION = 3
"""Of the document. A new field makes no new version; one that goes, or means something else, does."""
SCHEMA_ID = f"urn:tritonstack:review:{VERSION}"
ACCEPTED = " — accepted: "
"""In the wildcards of a permission, before the reason that accepts one."""


class _ReviewModel(BaseModel):
    """Part of the document; unknown fields are ignored."""

    # A later form of the same version adds fields: a reader of this one passes over them.
    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)


class BaseEntry(_ReviewModel):
    """The base that the change is compared with."""

    ref: str = Field(description="Branch, tag or commit.")
    commit: str = Field(description="The merge base of it and HEAD: its snapshots are compared.")
    chosen: bool = Field(description="Whether it was named; if not, it is the default.")


class PhraseEntry(_ReviewModel):
    """One part of a verdict."""

    level: Level = Field(description="How closely to look at it.")
    text: str = Field(description="In words.")


def closest(phrases: Iterable[PhraseEntry]) -> Level:
    """The closest level of some phrases."""
    return max((each.level for each in phrases), key=list(Level).index, default=Level.NOTHING)


class PropertyEntry(_ReviewModel):
    """One property, as deep in as the values differ."""

    name: str = Field(description="ProductionVariants[0].InstanceType.")
    before: str | None = Field(description="Null where it is new.")
    after: str | None = Field(description="Null where it is gone.")
    replaces: Literal["no", "maybe", "yes"] = Field(description="Whether it replaces its resource.")
    follows: str | None = Field(
        description="What moves the value though its text stays, by name or construct path; else null."
    )
    certain: bool = Field(description="Whether the value moves; if not, that is known only when deployed.")


class ResourceEntry(_ReviewModel):
    """One resource that changes."""

    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="Its construct's path in the stack.")
    logical_id: str = Field(description="In the template after the change; before it, of a removed resource.")
    type: str = Field(description="AWS::SageMaker::Endpoint.")
    effect: Effect = Field(description="What a deployment does to it.")
    sentences: tuple[str, ...] = Field(description="Why, and what else is to be known.")
    tags_only: bool = Field(description="Whether nothing but tags changes.")
    only_follows: bool = Field(description="Whether it only follows other changes.")
    no_longer_kept: tuple[str, ...] = Field(
        description="deleted, replaced: each where the resource was kept then and is no longer."
    )
    properties: tuple[PropertyEntry, ...] = Field(
        description="Properties and attributes that change; of a resource that is new or removed, all of them."
    )


class SettingEntry(_ReviewModel):
    """A setting that changes."""

    file: str = Field(description="environments/prod.yaml.")
    path: str = Field(description="endpoints.digits.scaling.maximum: an endpoint by its name.")
    before: str | None = Field(description="Null where it was not set, and its default applied.")
    after: str | None = Field(description="Null where it is no longer set.")
    level: Level | None = Field(description="How closely to look at it; null where its effect is unknown.")
    effect: tuple[PhraseEntry, ...] | None = Field(
        description="What a deployment of this change alone does; empty: nothing. Null where that is unknown."
    )
    together: tuple[str, ...] = Field(description="Settings that it is valid only with: the effect is that of all.")


class TrafficEntry(_ReviewModel):
    """Change of an endpoint's traffic."""

    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="Its SageMaker name, or its logical id where the name is generated.")
    logical_id: str = Field(description="Of the AWS::SageMaker::Endpoint.")
    touched: bool | None = Field(description="Whether requests shift or fail; null where that is known when deployed.")
    update: str = Field(description="How it is updated.")
    sentences: tuple[str, ...] = Field(description="What happens.")


class FilesEntry(_ReviewModel):
    """The files of an asset that change."""

    path: str = Field(description="The asset's construct path.")
    kind: str = Field(description="code or image.")
    new: tuple[str, ...] = Field(description="New files.")
    changed: tuple[str, ...] = Field(description="Files with other content.")
    removed: tuple[str, ...] = Field(description="Removed files.")
    users: tuple[str, ...] = Field(description="Logical ids of the resources that use it.")


class DocumentEntry(_ReviewModel):
    """A small document, such as an endpoint's release set."""

    path: str = Field(description="Its construct path.")
    members: tuple[PropertyEntry, ...] = Field(description="What changes in it.")


class StackEntry(_ReviewModel):
    """Changes of a stack besides its resources."""

    name: str = Field(description="Its name in the environment.")
    stack_name: str = Field(description="Its name in CloudFormation.")
    effect: Effect = Field(description="new, changed in place, removed, replaced.")
    sentences: tuple[str, ...] = Field(description="About the stack as a whole.")
    template: tuple[PropertyEntry, ...] = Field(description="Other sections of the template.")
    files: tuple[FilesEntry, ...] = Field(description="Code and images.")
    documents: tuple[DocumentEntry, ...] = Field(description="Release sets and the like.")

    @property
    def stack_name_before(self) -> str:
        """Its name in CloudFormation before the change."""
        return next((each.before or "" for each in self.template if each.name == "StackName"), self.stack_name)


FindingKind = Literal["new", "gone", "accepted", "no longer accepted"]


class FindingEntry(_ReviewModel):
    """A policy finding."""

    change: FindingKind = Field(description="What happens to it.")
    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="The construct's path in the stack.")
    rule: str = Field(description="AwsSolutions-IAM5[Resource::*].")
    reason: str | None = Field(description="Why it is accepted; null for an open one.")
    description: str = Field(description="The rule's own, of an open one.")


class PermissionEntry(_ReviewModel):
    """A permission that is new, or that is removed."""

    kind: str = Field(description="wider, narrower or other.")
    stack: str = Field(description="Its stack's name in the environment.")
    principal: str = Field(description="Construct path of the role or resource that the policy is of.")
    statement: str = Field(description="What changes: `may now: s3:GetObject on …`.")
    wildcards: tuple[str, ...] = Field(description="Its wildcards, with the reasons that accept them.")
    conditions: tuple[str, ...] = Field(description="Tests that a request must pass.")
    other_accounts: tuple[str, ...] = Field(description="Accounts among the principals that are not the stack's.")
    logical_id: str = Field(description="Of the resource that has the statement.")
    source: str = Field(description="The property there.")

    @property
    def unreasoned(self) -> bool:
        """Whether it has a wildcard that no written reason accepts."""
        return any(ACCEPTED not in each for each in self.wildcards)


class OpeningEntry(_ReviewModel):
    """An opening or closing: a network, data, outbound access of a program."""

    kind: str = Field(description="opened, closed or other.")
    stack: str = Field(description="Its stack's name in the environment.")
    name: str = Field(description="What is open or closed: mostly a construct path.")
    sentence: str = Field(description="What comes or goes: `lets in tcp 443 from 0.0.0.0/0`.")
    logical_id: str = Field(description="Of the resource that causes it.")


class ModelEntry(_ReviewModel):
    """A model of an endpoint."""

    kind: str = Field(
        description="added, added next to another endpoint's of the same name, removed, rebuilt, rolled back, moved to "
        "another platform."
    )
    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="The endpoint's name in the environment.")
    model: str = Field(description="Its name.")
    before: str | None = Field(description="Digest; null where it is added.")
    after: str | None = Field(description="Digest; null where it is removed.")
    sentence: str = Field(description="All of it in words.")


class EngineEntry(_ReviewModel):
    """A TensorRT engine that is to be built."""

    model: str = Field(description="Of this model.")
    digest: str = Field(description="Of the model's inputs.")
    platform: str = Field(description="Release and GPU that it is for.")
    where: str = Field(description="What builds it.")
    sentence: str = Field(description="All of it in words.")


class AmountEntry(_ReviewModel):
    """USD an hour."""

    usd_per_hour: float | None = Field(description="Null where a part of it is unknown, which is never counted as 0.")
    at_least: float = Field(description="The parts that are known.")
    unknown: tuple[str, ...] = Field(description="What is unknown.")
    text: str = Field(description="In words.")


class CostEntry(_ReviewModel):
    """Cost of all endpoints of an environment."""

    minimum_before: AmountEntry = Field(description="At their fewest instances.")
    minimum_after: AmountEntry = Field(description="Likewise after the change.")
    maximum_before: AmountEntry = Field(description="At their most instances.")
    maximum_after: AmountEntry = Field(description="Likewise after the change.")
    sentence: str = Field(description="What changes.")


class CostRowEntry(_ReviewModel):
    """One row of an environment's cost: an endpoint, or another billed resource."""

    name: str = Field(description="endpoint prod-digits, NAT gateways.")
    quantity_before: str | None = Field(description="How many, in words; null where there was none.")
    quantity_after: str | None = Field(description="Null where there is none any more.")
    idle_before: AmountEntry | None = Field(description="With the fewest instances; null where there was none.")
    idle_after: AmountEntry | None = Field(description="Likewise after the change.")
    most_before: AmountEntry | None = Field(description="With the most instances; null where there was none.")
    most_after: AmountEntry | None = Field(description="Likewise after the change.")
    endpoint: str = Field(description="The SageMaker name of an endpoint; empty of other rows.")
    changed: bool = Field(description="Whether it comes, goes or costs another amount.")


class CostTableEntry(_ReviewModel):
    """Cost of a whole environment."""

    rows: tuple[CostRowEntry, ...] = Field(description="Endpoints, then other resources.")
    idle_before: AmountEntry = Field(description="The sum of the rows, without what is billed by use.")
    idle_after: AmountEntry = Field(description="Likewise after the change.")
    most_before: AmountEntry = Field(description="The sum of the rows at the most instances.")
    most_after: AmountEntry = Field(description="Likewise after the change.")
    unknown: tuple[str, ...] = Field(description="What is unknown, mostly prices with their regions.")

    @property
    def changed(self) -> bool:
        """Whether any row changes."""
        return any(each.changed for each in self.rows)


class EnvironmentEntry(_ReviewModel):
    """One environment."""

    name: str = Field(description="dev; pipeline is the stack of the pipeline over them.")
    effect: Effect | None = Field(description="Null where nothing changes.")
    level: Level = Field(description="How closely to look at it.")
    verdict: tuple[PhraseEntry, ...] = Field(description="What happens, in a line.")
    settings: tuple[SettingEntry, ...] = Field(description="Settings of its file that change.")
    traffic: tuple[TrafficEntry, ...] = Field(description="Every endpoint of a stack that changes.")
    resources: tuple[ResourceEntry, ...] = Field(description="By effect, what can hurt first.")
    stacks: tuple[StackEntry, ...] = Field(description="Every stack that changes.")
    permissions: tuple[PermissionEntry, ...] = Field(description="Permissions that widen or narrow.")
    openings: tuple[OpeningEntry, ...] = Field(description="What opens or closes of networks, data and programs.")
    models: tuple[ModelEntry, ...] = Field(description="Models that change.")
    engines: tuple[EngineEntry, ...] = Field(description="Engines that are to be built.")
    cost: CostEntry = Field(description="Of all endpoints together.")
    cost_notes: tuple[str, ...] = Field(description="Why a part is unknown, and what both fleets cost in an update.")
    cost_table: CostTableEntry = Field(description="Of everything that the templates have.")
    vulnerable_releases: tuple[str, ...] = Field(description="Triton releases that add known vulnerabilities.")
    lost_keys: tuple[str, ...] = Field(description="Keys of the artifacts that roles may no longer use.")
    findings_known: bool = Field(description="Whether both sides were validated.")
    findings: tuple[FindingEntry, ...] = Field(description="Policy findings that come, go, or are accepted.")

    @property
    def sentence(self) -> str:
        """The verdict on one line."""
        return "; ".join(each.text for each in self.verdict)

    @property
    def has_changes(self) -> bool:
        """Whether there is more to report than the verdict."""
        return self.effect is not None or bool(self.settings)


class MatchEntry(_ReviewModel):
    """A word of --fail-on that matches."""

    policy: str = Field(description="The word, as it was given.")
    environment: str = Field(description="Where.")
    sentence: str = Field(description="What matches.")


class ReviewDocument(_ReviewModel):
    """Output of `tritonstack review --json`."""

    model_config = ConfigDict(json_schema_extra={"$id": SCHEMA_ID})

    version: Literal[3] = Field(description="Of this document.")
    base: BaseEntry
    notes: tuple[str, ...] = Field(description="What is to be known of the comparison itself.")
    environments: tuple[EnvironmentEntry, ...] = Field(description="Of either side, by name.")
    matches: tuple[MatchEntry, ...] = Field(description="What --fail-on matches; the command then ends with 1.")

    def text(self) -> str:
        """The document as JSON: the same bytes for the same report."""
        return self.model_dump_json(indent=2) + "\n"
