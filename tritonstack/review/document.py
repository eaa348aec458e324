"""The report as data: what ``--json`` writes, and what every other form of it is made from.

Every field is always there. Values of properties are text, as people read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.review.change import (
    ABSENT,
    Effect,
    PropertyChange,
    ResourceChange,
    StackChange,
)
from tritonstack.review.fail_on import Match
from tritonstack.review.report import EnvironmentReport, Report, standing
from tritonstack.review.snapshot import Finding
from tritonstack.review.values import texts_of
from tritonstack.review.verdict import BY_WEIGHT, Level

VERSION = 1
"""Of the document. A field that comes makes no new version; one that goes, or means something else, does."""
SCHEMA_ID = f"urn:tritonstack:review:{VERSION}"


class _Part(BaseModel):
    # A later form of the same version adds fields: a reader of this one passes over them.
    model_config = ConfigDict(extra="ignore", frozen=True)


class BaseEntry(_Part):
    """What the change is compared with."""

    ref: str = Field(description="Branch, tag or commit.")
    commit: str = Field(description="The merge base of it and HEAD: its snapshots are compared.")
    chosen: bool = Field(description="Whether it was named; if not, it is the default.")


class PhraseEntry(_Part):
    """One thing that a verdict says."""

    level: Level = Field(description="How closely to look at it.")
    text: str = Field(description="In words.")


class PropertyEntry(_Part):
    """One property, as deep in as the values differ."""

    name: str = Field(description="ProductionVariants[0].InstanceType.")
    before: str | None = Field(description="Null where it is new.")
    after: str | None = Field(description="Null where it is gone.")
    replaces: Literal["no", "maybe", "yes"] = Field(description="Whether it replaces its resource.")
    follows: str | None = Field(description="What moves the value though its text stays; else null.")
    certain: bool = Field(description="Whether the value moves; if not, that is known only when it is deployed.")


class ResourceEntry(_Part):
    """One resource that changes."""

    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="Its construct's path in the stack.")
    logical_id: str = Field(description="In the template after the change; before it, where it is gone.")
    type: str = Field(description="AWS::SageMaker::Endpoint.")
    effect: Effect = Field(description="What a deployment does to it.")
    sentences: tuple[str, ...] = Field(description="Why, and what else is to be known.")
    tags_only: bool = Field(description="Whether nothing but tags changes.")
    properties: tuple[PropertyEntry, ...] = Field(
        description="Properties and attributes that change; of a resource that is new or gone, all of them."
    )


class TrafficEntry(_Part):
    """What happens to the calls that an endpoint answers."""

    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="Its SageMaker name, or its logical id where the name is generated.")
    touched: bool | None = Field(description="Whether calls move or end; null where only the deployment knows.")
    update: str = Field(description="How it is updated.")
    sentences: tuple[str, ...] = Field(description="What happens.")


class FilesEntry(_Part):
    """The files of an asset that change."""

    path: str = Field(description="The asset's construct path.")
    kind: str = Field(description="code or image.")
    new: tuple[str, ...] = Field(description="Files that come.")
    changed: tuple[str, ...] = Field(description="Files with other content.")
    removed: tuple[str, ...] = Field(description="Files that go.")
    users: tuple[str, ...] = Field(description="Logical ids of the resources that use it.")


class DocumentEntry(_Part):
    """A small document, such as an endpoint's release set."""

    path: str = Field(description="Its construct path.")
    members: tuple[PropertyEntry, ...] = Field(description="What changes in it.")


class StackEntry(_Part):
    """What changes in a stack beside its resources."""

    name: str = Field(description="Its name in the environment.")
    stack_name: str = Field(description="Its name in CloudFormation.")
    effect: Effect = Field(description="new, changed in place, removed, replaced.")
    sentences: tuple[str, ...] = Field(description="Of the stack as a whole.")
    template: tuple[PropertyEntry, ...] = Field(description="Other sections of the template.")
    files: tuple[FilesEntry, ...] = Field(description="Code and images.")
    documents: tuple[DocumentEntry, ...] = Field(description="Release sets and the like.")


class FindingEntry(_Part):
    """A policy finding."""

    change: Literal["new", "gone", "accepted", "no longer accepted", "accepted for another reason"] = Field(
        description="What happens to it."
    )
    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="The construct's path in the stack.")
    rule: str = Field(description="AwsSolutions-IAM5[Resource::*].")
    reason: str | None = Field(description="Why it is accepted; null for one that stands open.")
    description: str = Field(description="What the rule says, of an open one.")


class EnvironmentEntry(_Part):
    """One environment."""

    name: str = Field(description="dev.")
    effect: Effect | None = Field(description="Null where nothing changes.")
    level: Level = Field(description="How closely to look at it.")
    verdict: tuple[PhraseEntry, ...] = Field(description="What happens, in a line.")
    traffic: tuple[TrafficEntry, ...] = Field(description="Every endpoint of a stack that changes.")
    resources: tuple[ResourceEntry, ...] = Field(description="By effect, what can hurt first.")
    stacks: tuple[StackEntry, ...] = Field(description="Every stack that changes.")
    findings_known: bool = Field(description="Whether both sides were validated.")
    findings: tuple[FindingEntry, ...] = Field(description="Policy findings that come, go, or are accepted.")


class MatchEntry(_Part):
    """A word of --fail-on that matches."""

    policy: str = Field(description="The word, as it was given.")
    environment: str = Field(description="Where.")
    sentence: str = Field(description="What matches.")


class ReviewDocument(_Part):
    """What `tritonstack review --json` writes."""

    model_config = ConfigDict(json_schema_extra={"$id": SCHEMA_ID})

    version: Literal[1] = Field(description="Of this document.")
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
        base=BaseEntry(ref=report.base.ref, commit=report.base.commit, chosen=report.base.chosen),
        notes=report.notes,
        environments=tuple(_environment(each) for each in report.environments),
        matches=tuple(
            MatchEntry(policy=each.policy, environment=each.environment, sentence=each.sentence) for each in matches
        ),
    )


def _environment(report: EnvironmentReport) -> EnvironmentEntry:
    changes = report.changes
    return EnvironmentEntry(
        name=report.name,
        effect=changes.effect,
        level=report.verdict.level,
        verdict=tuple(PhraseEntry(level=each.level, text=each.text) for each in report.verdict.phrases),
        traffic=tuple(
            TrafficEntry(
                stack=stack.name,
                endpoint=each.endpoint,
                touched=each.touched,
                update=each.update.value,
                sentences=each.sentences,
            )
            for stack in standing(changes.stacks)
            for each in stack.traffic
        ),
        resources=_resources(standing(changes.stacks)),
        stacks=tuple(_stack(each) for each in changes.stacks),
        findings_known=changes.findings.known,
        findings=tuple(_findings(report)),
    )


def _resources(stacks: Iterable[StackChange]) -> tuple[ResourceEntry, ...]:
    found = [_resource(stack.name, each) for stack in stacks for each in stack.resources]
    return tuple(sorted(found, key=lambda each: BY_WEIGHT.index(each.effect)))


def _resource(stack: str, change: ResourceChange) -> ResourceEntry:
    return ResourceEntry(
        stack=stack,
        path=change.path,
        logical_id=change.logical_id,
        type=change.type,
        effect=change.effect,
        sentences=tuple(_sentences(change)),
        tags_only=change.tags_only,
        properties=tuple(_property(each) for each in (*_whole(change), *change.properties, *change.attributes)),
    )


def _sentences(change: ResourceChange) -> Iterator[str]:
    yield from change.reasons
    if change.renamed_from is not None:
        yield f"Its logical id was {change.renamed_from}."
    if change.old_one_stays:
        yield "The old one stays in the account."


def _whole(change: ResourceChange) -> Iterator[PropertyChange]:
    """The properties of a resource that is new or gone, which the comparison does not list."""
    if change.before is None and change.after is not None:
        yield from (
            PropertyChange(path=(name,), before=ABSENT, after=value)
            for name, value in sorted(change.after.properties.items())
        )
    elif change.after is None and change.before is not None:
        yield from (
            PropertyChange(path=(name,), before=value, after=ABSENT)
            for name, value in sorted(change.before.properties.items())
        )


def _property(change: PropertyChange) -> PropertyEntry:
    before, after = texts_of(change.before, change.after)
    return PropertyEntry(
        name=change.name,
        before=before,
        after=after,
        replaces=change.replaces.value,
        follows=change.follows,
        certain=change.certain,
    )


def _stack(change: StackChange) -> StackEntry:
    return StackEntry(
        name=change.name,
        stack_name=change.stack_name,
        effect=change.effect,
        sentences=change.reasons,
        template=tuple(_property(each) for each in change.template),
        files=tuple(
            FilesEntry(
                path=each.path,
                kind=each.kind,
                new=each.new,
                changed=each.changed,
                removed=each.removed,
                users=each.users,
            )
            for each in change.assets
        ),
        documents=tuple(
            DocumentEntry(path=each.path, members=tuple(_property(one) for one in each.members))
            for each in change.documents
        ),
    )


def _findings(report: EnvironmentReport) -> Iterator[FindingEntry]:
    findings = report.changes.findings
    yield from (_finding("new", each) for each in findings.new)
    yield from (_finding("gone", each) for each in findings.gone)
    yield from (_finding("accepted", each) for each in findings.accepted)
    yield from (_finding("no longer accepted", each) for each in findings.no_longer_accepted)
    yield from (_finding("accepted for another reason", each) for each in findings.reworded)


def _finding(
    change: Literal["new", "gone", "accepted", "no longer accepted", "accepted for another reason"], finding: Finding
) -> FindingEntry:
    return FindingEntry(
        change=change,
        stack=finding.stack,
        path=finding.path,
        rule=finding.rule,
        reason=finding.accepted,
        description=finding.description,
    )
