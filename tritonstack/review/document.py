"""The report as data: what ``--json`` writes, and what every other form of it is made from.

Every field is always there. Values of properties are text, as people read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.review.change import ABSENT, Absent, Effect, PropertyChange, ResourceChange, StackChange
from tritonstack.review.cost import Amount, CostTotals
from tritonstack.review.cost_table import CostLine, CostTable
from tritonstack.review.fail_on import Match
from tritonstack.review.intrinsics import Names, is_function, readable
from tritonstack.review.report import EnvironmentReport, Level, Report, SettingEffect, standing
from tritonstack.review.resource_changes import repeats
from tritonstack.review.snapshot import Finding, Json

VERSION = 2
"""Of the document. A new field makes no new version; one that goes, or means something else, does."""
SCHEMA_ID = f"urn:tritonstack:review:{VERSION}"
ONE_LINE = 100
"""Characters: a list or map that is longer is shown a member a line."""


class Part(BaseModel):
    """A part of the document."""

    # A later form of the same version adds fields: a reader of this one passes over them.
    model_config = ConfigDict(extra="ignore", frozen=True, from_attributes=True)


class BaseEntry(Part):
    """What the change is compared with."""

    ref: str = Field(description="Branch, tag or commit.")
    commit: str = Field(description="The merge base of it and HEAD: its snapshots are compared.")
    chosen: bool = Field(description="Whether it was named; if not, it is the default.")


class PhraseEntry(Part):
    """One part of a verdict."""

    level: Level = Field(description="How closely to look at it.")
    text: str = Field(description="In words.")


class PropertyEntry(Part):
    """One property, as deep in as the values differ."""

    name: str = Field(description="ProductionVariants[0].InstanceType.")
    before: str | None = Field(description="Null where it is new.")
    after: str | None = Field(description="Null where it is gone.")
    replaces: Literal["no", "maybe", "yes"] = Field(description="Whether it replaces its resource.")
    follows: str | None = Field(
        description="What moves the value though its text stays, by name or construct path; else null."
    )
    certain: bool = Field(description="Whether the value moves; if not, that is known only when deployed.")


class ResourceEntry(Part):
    """One resource that changes."""

    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="Its construct's path in the stack.")
    logical_id: str = Field(description="In the template after the change; before it, of a removed resource.")
    type: str = Field(description="AWS::SageMaker::Endpoint.")
    effect: Effect = Field(description="What a deployment does to it.")
    sentences: tuple[str, ...] = Field(description="Why, and what else is to be known.")
    tags_only: bool = Field(description="Whether nothing but tags changes.")
    repeats: bool = Field(description="Whether it only follows another change or repeats values of other resources.")
    properties: tuple[PropertyEntry, ...] = Field(
        description="Properties and attributes that change; of a resource that is new or removed, all of them."
    )


class SettingEntry(Part):
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


class TrafficEntry(Part):
    """What happens to the traffic of an endpoint."""

    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="Its SageMaker name, or its logical id where the name is generated.")
    touched: bool | None = Field(description="Whether requests shift or fail; null where that is known when deployed.")
    update: str = Field(description="How it is updated.")
    sentences: tuple[str, ...] = Field(description="What happens.")


class FilesEntry(Part):
    """The files of an asset that change."""

    path: str = Field(description="The asset's construct path.")
    kind: str = Field(description="code or image.")
    new: tuple[str, ...] = Field(description="New files.")
    changed: tuple[str, ...] = Field(description="Files with other content.")
    removed: tuple[str, ...] = Field(description="Removed files.")
    users: tuple[str, ...] = Field(description="Logical ids of the resources that use it.")


class DocumentEntry(Part):
    """A small document, such as an endpoint's release set."""

    path: str = Field(description="Its construct path.")
    members: tuple[PropertyEntry, ...] = Field(description="What changes in it.")


class StackEntry(Part):
    """What changes in a stack besides its resources."""

    name: str = Field(description="Its name in the environment.")
    stack_name: str = Field(description="Its name in CloudFormation.")
    effect: Effect = Field(description="new, changed in place, removed, replaced.")
    sentences: tuple[str, ...] = Field(description="About the stack as a whole.")
    template: tuple[PropertyEntry, ...] = Field(description="Other sections of the template.")
    files: tuple[FilesEntry, ...] = Field(description="Code and images.")
    documents: tuple[DocumentEntry, ...] = Field(description="Release sets and the like.")


FindingKind = Literal["new", "gone", "accepted", "no longer accepted", "accepted for another reason"]


class FindingEntry(Part):
    """A policy finding."""

    change: FindingKind = Field(description="What happens to it.")
    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="The construct's path in the stack.")
    rule: str = Field(description="AwsSolutions-IAM5[Resource::*].")
    reason: str | None = Field(description="Why it is accepted; null for an open one.")
    description: str = Field(description="The rule's own, of an open one.")


class PermissionEntry(Part):
    """What is allowed that was not before, or no longer."""

    kind: str = Field(description="wider, narrower or other.")
    stack: str = Field(description="Its stack's name in the environment.")
    principal: str = Field(description="Construct path of the role or resource that the policy is of.")
    statement: str = Field(description="What changes: `may now: s3:GetObject on …`.")
    wildcards: tuple[str, ...] = Field(description="Its wildcards, with the reasons that accept them.")
    conditions: tuple[str, ...] = Field(description="Tests that a request must pass.")
    other_accounts: tuple[str, ...] = Field(description="Accounts among the principals that are not the stack's.")
    logical_id: str = Field(description="Of the resource that has the statement.")
    source: str = Field(description="The property there.")


class OpeningEntry(Part):
    """What opens or closes: a network, data, outbound access of a program."""

    kind: str = Field(description="opened, closed or other.")
    stack: str = Field(description="Its stack's name in the environment.")
    name: str = Field(description="What is open or closed: mostly a construct path.")
    sentence: str = Field(description="What comes or goes: `lets in tcp 443 from 0.0.0.0/0`.")
    logical_id: str = Field(description="Of the resource that causes it.")


class ModelEntry(Part):
    """A model of an endpoint."""

    kind: str = Field(description="added, removed, rebuilt, rolled back, moved to another platform.")
    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="The endpoint's name in the environment.")
    model: str = Field(description="Its name.")
    before: str | None = Field(description="Digest; null where it is added.")
    after: str | None = Field(description="Digest; null where it is removed.")
    size_bytes: int | None = Field(description="Of the archive; null where it is unknown.")
    size_unknown: str = Field(description="Why the size is unknown; empty where it is known.")
    sentence: str = Field(description="All of it in words.")


class EngineEntry(Part):
    """A TensorRT engine that is to be built."""

    model: str = Field(description="Of this model.")
    digest: str = Field(description="Of the model's inputs.")
    platform: str = Field(description="Release and GPU that it is for.")
    certain: bool = Field(description="Whether it is known that the archive needs one.")
    where: str = Field(description="What builds it.")
    last_seconds: float | None = Field(description="How long the last one took; null where that is unknown.")
    sentence: str = Field(description="All of it in words.")


class AmountEntry(Part):
    """USD an hour."""

    usd_per_hour: float | None = Field(description="Null where a part of it is unknown, which is never counted as 0.")
    at_least: float = Field(description="The parts that are known.")
    unknown: tuple[str, ...] = Field(description="What is unknown.")
    text: str = Field(description="In words.")


class CostEntry(Part):
    """What all endpoints of an environment cost."""

    minimum_before: AmountEntry = Field(description="At their fewest instances.")
    minimum_after: AmountEntry = Field(description="Likewise after the change.")
    maximum_before: AmountEntry = Field(description="At their most instances.")
    maximum_after: AmountEntry = Field(description="Likewise after the change.")
    sentence: str = Field(description="What changes.")


class CostRowEntry(Part):
    """One row of what an environment costs: an endpoint, or what stands besides the endpoints."""

    name: str = Field(description="endpoint prod-digits, NAT gateways.")
    quantity_before: str | None = Field(description="How many, in words; null where there was none.")
    quantity_after: str | None = Field(description="Null where there is none any more.")
    idle_before: AmountEntry | None = Field(description="With the fewest instances; null: nothing is billed by time.")
    idle_after: AmountEntry | None = Field(description="Likewise after the change.")
    most_before: AmountEntry | None = Field(description="With the most instances; null: nothing is billed by time.")
    most_after: AmountEntry | None = Field(description="Likewise after the change.")
    changed: bool = Field(description="Whether it comes, goes or costs another amount by time.")
    by_use: tuple[str, ...] = Field(description="What of it is billed by use, each with its price where that is known.")


class CostTableEntry(Part):
    """What all of an environment costs."""

    rows: tuple[CostRowEntry, ...] = Field(description="Endpoints, then what stands beside them.")
    idle_before: AmountEntry = Field(description="The sum of the rows, without what is billed by use.")
    idle_after: AmountEntry = Field(description="Likewise after the change.")
    most_before: AmountEntry = Field(description="The sum of the rows at the most instances.")
    most_after: AmountEntry = Field(description="Likewise after the change.")
    by_use: tuple[str, ...] = Field(description="What is billed by use after the change, in a word or two each.")
    unknown: tuple[str, ...] = Field(description="What is unknown, mostly prices with their regions.")

    @property
    def changed(self) -> bool:
        """Whether any row changes."""
        return any(each.changed for each in self.rows)


class EnvironmentEntry(Part):
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
    findings_known: bool = Field(description="Whether both sides were validated.")
    findings: tuple[FindingEntry, ...] = Field(description="Policy findings that come, go, or are accepted.")

    @property
    def told(self) -> bool:
        """Whether there is more to report than the verdict."""
        return self.effect is not None or bool(self.settings)


class MatchEntry(Part):
    """A word of --fail-on that matches."""

    policy: str = Field(description="The word, as it was given.")
    environment: str = Field(description="Where.")
    sentence: str = Field(description="What matches.")


class ReviewDocument(Part):
    """What `tritonstack review --json` writes."""

    model_config = ConfigDict(json_schema_extra={"$id": SCHEMA_ID})

    version: Literal[2] = Field(description="Of this document.")
    base: BaseEntry
    notes: tuple[str, ...] = Field(description="What is to be known of the comparison itself.")
    environments: tuple[EnvironmentEntry, ...] = Field(description="Of either side, by name.")
    matches: tuple[MatchEntry, ...] = Field(description="What --fail-on matches; the command then ends with 1.")

    def text(self) -> str:
        """As JSON: the same bytes for the same report."""
        return self.model_dump_json(indent=2) + "\n"


def document_of(report: Report, matches: Sequence[Match] = ()) -> ReviewDocument:
    """The report as data."""
    return ReviewDocument(
        version=VERSION,
        base=BaseEntry.model_validate(report.base),
        notes=report.notes,
        environments=tuple(_environment(each) for each in report.environments),
        matches=tuple(map(MatchEntry.model_validate, matches)),
    )


def _environment(report: EnvironmentReport) -> EnvironmentEntry:
    changes, parts = report.changes, report.parts
    stacks = standing(changes.stacks)
    order = list(Effect)
    echoes, names = repeats(stacks), parts.names
    resources = [
        _resource(stack.name, each, repeats=(stack.name, each.logical_id) in echoes, names=names)
        for stack in stacks
        for each in stack.resources
    ]
    return EnvironmentEntry(
        name=report.name,
        effect=changes.effect,
        level=report.level,
        verdict=tuple(map(PhraseEntry.model_validate, report.phrases)),
        settings=tuple(map(_setting, parts.settings)),
        traffic=tuple(
            TrafficEntry.model_validate({"stack": stack.name, **vars(each)})
            for stack in stacks
            for each in stack.traffic
        ),
        resources=tuple(sorted(resources, key=lambda each: order.index(each.effect))),
        stacks=tuple(_stack(each, names) for each in changes.stacks),
        permissions=tuple(map(PermissionEntry.model_validate, parts.permissions)),
        openings=tuple(map(OpeningEntry.model_validate, parts.openings)),
        models=tuple(map(ModelEntry.model_validate, parts.models)),
        engines=tuple(
            EngineEntry.model_validate(
                {
                    **vars(each),
                    "platform": str(each.platform),
                    "where": each.site.text,
                    "last_seconds": each.seconds,
                    "sentence": each.sentence,
                }
            )
            for each in parts.engines
        ),
        cost=_total(parts.cost),
        cost_notes=tuple(sentence for each in parts.costs for sentence in each.sentences),
        cost_table=cost_table_entry(*parts.tables),
        findings_known=changes.findings.known,
        findings=tuple(_findings(report)),
    )


def _setting(effect: SettingEffect) -> SettingEntry:
    before, after = texts_of(effect.setting.before, effect.setting.after)
    return SettingEntry(
        file=effect.setting.file,
        path=effect.setting.path,
        before=before,
        after=after,
        level=effect.level,
        effect=None if effect.phrases is None else tuple(map(PhraseEntry.model_validate, effect.phrases)),
        together=effect.together,
    )


def _resource(stack: str, change: ResourceChange, *, repeats: bool, names: Names) -> ResourceEntry:
    properties = [*change.properties, *change.attributes]
    if change.before is None or change.after is None:
        # A new or removed resource: the comparison does not list its properties.
        given = {} if change.before is None else change.before.properties
        taken = {} if change.after is None else change.after.properties
        properties = [
            PropertyChange(path=(name,), before=given.get(name, ABSENT), after=taken.get(name, ABSENT))
            for name in sorted(given.keys() | taken.keys())
        ] + properties
    stays = ("The old one stays in the account.",) if change.old_one_stays else ()
    return ResourceEntry(
        stack=stack,
        path=change.path,
        logical_id=change.logical_id,
        type=change.type,
        effect=change.effect,
        sentences=(*change.reasons, *stays),
        tags_only=change.tags_only,
        repeats=repeats,
        properties=tuple(_property(each, stack, names) for each in properties),
    )


def _property(change: PropertyChange, stack: str, names: Names) -> PropertyEntry:
    """One property, with the names of what it refers to in place of logical ids."""
    texts = texts_of(change.before, change.after)
    name = names.of_resource if change.path[0] == "DependsOn" else names.in_text
    named = [each and name(stack, each) for each in texts]
    # A resource under another logical id has the same name: then the ids alone show what changes.
    before, after = _laid_out(*(texts if named[0] == named[1] and texts[0] != texts[1] else named))
    follows = change.follows and names.of_resource(stack, change.follows)
    return PropertyEntry.model_validate(
        {**vars(change), "name": change.name, "before": before, "after": after, "follows": follows}
    )


def _laid_out(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """Long JSON that has references in it, a member a line: of a dashboard's body two long lines would differ."""
    given = [each for each in (before, after) if each is not None]
    if not all(len(each) > ONE_LINE and each.startswith(("{", "[")) and "\n" not in each for each in given):
        return before, after
    try:
        laid = [each and json.dumps(json.loads(each), indent=2, ensure_ascii=False) for each in (before, after)]
    except ValueError:
        return before, after
    return (before, after) if laid[0] == laid[1] else (laid[0], laid[1])


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
    if isinstance(value, dict | list) and not is_function(value) and len(text) > ONE_LINE:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text


def _stack(change: StackChange, names: Names) -> StackEntry:
    return StackEntry(
        name=change.name,
        stack_name=change.stack_name,
        effect=change.effect,
        sentences=change.reasons,
        template=tuple(_property(each, change.name, names) for each in change.template),
        files=tuple(map(FilesEntry.model_validate, change.assets)),
        documents=tuple(
            DocumentEntry(path=each.path, members=tuple(_property(one, change.name, names) for one in each.members))
            for each in change.documents
        ),
    )


def _findings(report: EnvironmentReport) -> Iterator[FindingEntry]:
    findings = report.changes.findings
    kinds: tuple[tuple[FindingKind, tuple[Finding, ...]], ...] = (
        ("new", findings.new),
        ("gone", findings.gone),
        ("accepted", findings.accepted),
        ("no longer accepted", findings.no_longer_accepted),
        ("accepted for another reason", findings.reworded),
    )
    for kind, found in kinds:
        for each in found:
            yield FindingEntry.model_validate({**vars(each), "change": kind, "reason": each.accepted})


def _total(totals: CostTotals) -> CostEntry:
    return CostEntry(
        minimum_before=_known(totals.minimum_before),
        minimum_after=_known(totals.minimum_after),
        maximum_before=_known(totals.maximum_before),
        maximum_after=_known(totals.maximum_after),
        sentence=totals.sentence,
    )


def cost_table_entry(before: CostTable, after: CostTable) -> CostTableEntry:
    """A cost table as data, of both sides; rows that went stand last."""
    old, new = _keyed(before), _keyed(after)
    return CostTableEntry(
        rows=tuple(_row(key[0], old.get(key), new.get(key)) for key in {**new, **old}),
        idle_before=_known(before.idle),
        idle_after=_known(after.idle),
        most_before=_known(before.most),
        most_after=_known(after.most),
        by_use=after.uses,
        unknown=tuple(sorted({*before.unknown, *after.unknown})),
    )


def _keyed(table: CostTable) -> dict[tuple[str, int], CostLine]:
    """Name and number of that name → row: endpoints whose names are generated may be called the same."""
    found: dict[tuple[str, int], CostLine] = {}
    for each in table.lines:
        number = sum(name == each.name for name, _ in found)
        found[each.name, number] = each
    return found


def _row(name: str, before: CostLine | None, after: CostLine | None) -> CostRowEntry:
    present = after or before
    return CostRowEntry(
        name=name,
        quantity_before=None if before is None else before.quantity,
        quantity_after=None if after is None else after.quantity,
        idle_before=None if before is None else _amount(before.idle),
        idle_after=None if after is None else _amount(after.idle),
        most_before=None if before is None else _amount(before.most),
        most_after=None if after is None else _amount(after.most),
        changed=(before and (before.idle, before.most)) != (after and (after.idle, after.most)),
        by_use=() if present is None else present.grows,
    )


def _amount(amount: Amount | None) -> AmountEntry | None:
    return None if amount is None else _known(amount)


def _known(amount: Amount) -> AmountEntry:
    whole = amount.usd_per_hour
    return AmountEntry(
        usd_per_hour=None if whole is None else float(whole),
        at_least=float(amount.known),
        unknown=tuple(sorted(amount.unknown)),
        text=amount.text,
    )
