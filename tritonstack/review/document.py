"""The report as data: what ``--json`` writes, and what every other form of it is made from.

Every field is always there. Values of properties are text, as people read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import ConfigDict, Field

from tritonstack.review.change import (
    ABSENT,
    PropertyChange,
    ResourceChange,
    StackChange,
)
from tritonstack.review.cost import Amount, CostChange, CostTotals
from tritonstack.review.cost_table import CostRow, CostTable, compared
from tritonstack.review.engines import EngineBuildNotice, Need
from tritonstack.review.entries import (
    AmountEntry,
    ArchivesEntry,
    BaseEntry,
    CostEntry,
    CostRowEntry,
    CostTableEntry,
    DocumentEntry,
    EngineEntry,
    EnvironmentEntry,
    FilesEntry,
    FindingEntry,
    MatchEntry,
    ModelEntry,
    OpeningEntry,
    Part,
    PermissionEntry,
    PhraseEntry,
    PropertyEntry,
    ResourceEntry,
    StackEntry,
    TrafficEntry,
    texts_of,
)
from tritonstack.review.fail_on import Match
from tritonstack.review.models import EndpointSizes, ModelChange
from tritonstack.review.opening_facts import OpeningChange
from tritonstack.review.permission_change import PermissionChange
from tritonstack.review.report import BY_WEIGHT, EnvironmentReport, Report, standing
from tritonstack.review.snapshot import Finding

VERSION = 1
"""Of the document. A field that comes makes no new version; one that goes, or means something else, does."""
SCHEMA_ID = f"urn:tritonstack:review:{VERSION}"


class ReviewDocument(Part):
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
        permissions=tuple(_permission(each) for each in report.parts.permissions),
        openings=tuple(_opening(each) for each in report.parts.openings),
        models=tuple(_model(each) for each in report.parts.models),
        archives=tuple(_archives(each) for each in report.parts.archives),
        engines=tuple(_engine(each) for each in report.parts.engines),
        cost=_total(report.parts.cost),
        costs=tuple(_cost(each) for each in report.parts.costs),
        cost_table=cost_table_entry(*report.parts.tables),
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


def _permission(change: PermissionChange) -> PermissionEntry:
    return PermissionEntry(
        kind=change.kind.value,
        stack=change.stack,
        principal=change.principal,
        statement=change.statement,
        wildcards=change.wildcards,
        conditions=change.conditions,
        other_accounts=change.other_accounts,
        logical_id=change.logical_id,
        source=change.source,
    )


def _opening(change: OpeningChange) -> OpeningEntry:
    return OpeningEntry(
        kind=change.kind.value,
        stack=change.stack,
        name=change.name,
        sentence=change.sentence,
        logical_id=change.logical_id,
    )


def _model(change: ModelChange) -> ModelEntry:
    return ModelEntry(
        kind=change.kind.value,
        stack=change.stack,
        endpoint=change.endpoint,
        model=change.model,
        before=change.before,
        after=change.after,
        size_bytes=change.size_bytes,
        size_unknown=change.size.reason,
        sentence=change.sentence,
    )


def _archives(sizes: EndpointSizes) -> ArchivesEntry:
    total = sizes.after
    return ArchivesEntry(
        stack=sizes.stack,
        endpoint=sizes.endpoint,
        count=0 if total is None else total.models,
        packed_bytes=0 if total is None else total.packed,
        unpacked_bytes=0 if total is None else total.unpacked,
        unknown=0 if total is None else total.unknown,
        exceeds_disk=sizes.exceeds_disk,
        sentences=sizes.sentences,
    )


def _engine(notice: EngineBuildNotice) -> EngineEntry:
    return EngineEntry(
        model=notice.model,
        digest=notice.digest,
        platform=str(notice.platform),
        certain=notice.need is Need.YES,
        where=notice.site.text,
        last_seconds=notice.seconds,
        sentence=notice.sentence,
    )


def _cost(change: CostChange) -> CostEntry:
    before, after = change.before, change.after
    return CostEntry(
        endpoint=change.endpoint,
        minimum_before=None if before is None else _amount(before.minimum),
        minimum_after=None if after is None else _amount(after.minimum),
        maximum_before=None if before is None else _amount(before.maximum),
        maximum_after=None if after is None else _amount(after.maximum),
        sentences=change.sentences,
    )


def _total(totals: CostTotals) -> CostEntry:
    return CostEntry(
        endpoint=None,
        minimum_before=_amount(totals.minimum_before),
        minimum_after=_amount(totals.minimum_after),
        maximum_before=_amount(totals.maximum_before),
        maximum_after=_amount(totals.maximum_after),
        sentences=(totals.sentence,),
    )


def cost_table_entry(before: CostTable, after: CostTable) -> CostTableEntry:
    """A cost table as data, of both sides."""
    return CostTableEntry(
        rows=tuple(_row(each) for each in compared(before, after)),
        idle_before=_amount(before.idle),
        idle_after=_amount(after.idle),
        most_before=_amount(before.most),
        most_after=_amount(after.most),
        by_use=after.uses,
        unknown=tuple(sorted({*before.unknown, *after.unknown})),
    )


def _row(row: CostRow) -> CostRowEntry:
    before, after = row.before, row.after
    return CostRowEntry(
        name=row.name,
        quantity_before=None if before is None else before.quantity,
        quantity_after=None if after is None else after.quantity,
        idle_before=None if before is None or before.idle is None else _amount(before.idle),
        idle_after=None if after is None or after.idle is None else _amount(after.idle),
        most_before=None if before is None or before.most is None else _amount(before.most),
        most_after=None if after is None or after.most is None else _amount(after.most),
        changed=row.changed,
        by_use=(after.grows if after is not None else before.grows if before is not None else ()),
    )


def _amount(amount: Amount) -> AmountEntry:
    whole = amount.usd_per_hour
    return AmountEntry(
        usd_per_hour=None if whole is None else float(whole),
        at_least=float(amount.known),
        unknown=tuple(sorted(amount.unknown)),
        text=amount.text,
    )
