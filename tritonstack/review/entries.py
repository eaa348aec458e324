"""The parts of the document that a review is written from, and values as it shows them."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.review.change import ABSENT, Absent, Effect
from tritonstack.review.report import Level
from tritonstack.review.snapshot import Json, is_function, readable

ONE_LINE = 100
"""Characters: a list or map that is longer is shown a member a line."""
AROUND = 2
"""Lines of the same that are shown around a difference."""

_WORD = string.ascii_letters + string.digits

Sign = Literal["+", "-", " ", "…"]


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference.

    Attributes:
        sign: ``+`` comes, ``-`` goes, `` `` stays, ``…`` lines that stay are left out here.
        head: what the line shares with the one that it takes the place of.
        changed: what differs; the whole line where it takes the place of none.
        tail: what it shares again.
    """

    sign: Sign
    head: str = ""
    changed: str = ""
    tail: str = ""

    @property
    def text(self) -> str:
        """The whole line."""
        return self.head + self.changed + self.tail


def texts_of(before: Json | Absent, after: Json | Absent) -> tuple[str | None, str | None]:
    """Both values as text; None for one that is absent. Values of two types never read the same."""
    old, new = _text(before), _text(after)
    if old == new and before != after:
        return json.dumps(before, sort_keys=True), json.dumps(after, sort_keys=True)
    return old, new


def diff_lines(before: str | None, after: str | None) -> tuple[DiffLine, ...]:
    """The lines of a difference; None is no text at all."""
    old = [] if before is None else before.split("\n")
    new = [] if after is None else after.split("\n")
    if len(old) == len(new) == 1:
        return tuple(_pair(old[0], new[0]))
    return tuple(_lines(old, new))


def _text(value: Json | Absent) -> str | None:
    if value is ABSENT:
        return None
    if value == "":
        return '""'
    text = readable(value)
    if isinstance(value, dict | list) and not is_function(value) and len(text) > ONE_LINE:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text


def _pair(before: str, after: str) -> Iterator[DiffLine]:
    """One line in the place of another: what they share at both ends is told apart."""
    head = _shared(before, after)
    rest = min(len(before), len(after)) - len(head)
    tail = _shared(before[::-1], after[::-1])[:rest][::-1]
    head, tail = head.rstrip(_WORD), tail.lstrip(_WORD)
    if len(head) + len(tail) < max(len(before), len(after)) // 3:
        head = tail = ""
    yield DiffLine("-", head, before[len(head) : len(before) - len(tail)], tail)
    yield DiffLine("+", head, after[len(head) : len(after) - len(tail)], tail)


def _shared(one: str, other: str) -> str:
    """What both begin with."""
    same = next((number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return one[: min(len(one), len(other)) if same is None else same]


def _lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    for kind, first, last, start, end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _same(old[first:last], at_start=first == 0, at_end=last == len(old))
            continue
        yield from (DiffLine("-", changed=line) for line in old[first:last])
        yield from (DiffLine("+", changed=line) for line in new[start:end])


def _same(lines: list[str], *, at_start: bool, at_end: bool) -> Iterator[DiffLine]:
    head, tail = (0 if at_start else AROUND), (0 if at_end else AROUND)
    if len(lines) <= head + tail + 1:
        yield from (DiffLine(" ", line) for line in lines)
        return
    yield from (DiffLine(" ", line) for line in lines[:head])
    yield DiffLine("…", f"{len(lines) - head - tail} lines stay")
    yield from (DiffLine(" ", line) for line in lines[len(lines) - tail :])


class Part(BaseModel):
    """A part of the document."""

    # A later form of the same version adds fields: a reader of this one passes over them.
    model_config = ConfigDict(extra="ignore", frozen=True)


class BaseEntry(Part):
    """What the change is compared with."""

    ref: str = Field(description="Branch, tag or commit.")
    commit: str = Field(description="The merge base of it and HEAD: its snapshots are compared.")
    chosen: bool = Field(description="Whether it was named; if not, it is the default.")


class PhraseEntry(Part):
    """One thing that a verdict says."""

    level: Level = Field(description="How closely to look at it.")
    text: str = Field(description="In words.")


class PropertyEntry(Part):
    """One property, as deep in as the values differ."""

    name: str = Field(description="ProductionVariants[0].InstanceType.")
    before: str | None = Field(description="Null where it is new.")
    after: str | None = Field(description="Null where it is gone.")
    replaces: Literal["no", "maybe", "yes"] = Field(description="Whether it replaces its resource.")
    follows: str | None = Field(description="What moves the value though its text stays; else null.")
    certain: bool = Field(description="Whether the value moves; if not, that is known only when it is deployed.")


class ResourceEntry(Part):
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


class TrafficEntry(Part):
    """What happens to the calls that an endpoint answers."""

    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="Its SageMaker name, or its logical id where the name is generated.")
    touched: bool | None = Field(description="Whether calls move or end; null where only the deployment knows.")
    update: str = Field(description="How it is updated.")
    sentences: tuple[str, ...] = Field(description="What happens.")


class FilesEntry(Part):
    """The files of an asset that change."""

    path: str = Field(description="The asset's construct path.")
    kind: str = Field(description="code or image.")
    new: tuple[str, ...] = Field(description="Files that come.")
    changed: tuple[str, ...] = Field(description="Files with other content.")
    removed: tuple[str, ...] = Field(description="Files that go.")
    users: tuple[str, ...] = Field(description="Logical ids of the resources that use it.")


class DocumentEntry(Part):
    """A small document, such as an endpoint's release set."""

    path: str = Field(description="Its construct path.")
    members: tuple[PropertyEntry, ...] = Field(description="What changes in it.")


class StackEntry(Part):
    """What changes in a stack beside its resources."""

    name: str = Field(description="Its name in the environment.")
    stack_name: str = Field(description="Its name in CloudFormation.")
    effect: Effect = Field(description="new, changed in place, removed, replaced.")
    sentences: tuple[str, ...] = Field(description="Of the stack as a whole.")
    template: tuple[PropertyEntry, ...] = Field(description="Other sections of the template.")
    files: tuple[FilesEntry, ...] = Field(description="Code and images.")
    documents: tuple[DocumentEntry, ...] = Field(description="Release sets and the like.")


class FindingEntry(Part):
    """A policy finding."""

    change: Literal["new", "gone", "accepted", "no longer accepted", "accepted for another reason"] = Field(
        description="What happens to it."
    )
    stack: str = Field(description="Its stack's name in the environment.")
    path: str = Field(description="The construct's path in the stack.")
    rule: str = Field(description="AwsSolutions-IAM5[Resource::*].")
    reason: str | None = Field(description="Why it is accepted; null for one that stands open.")
    description: str = Field(description="What the rule says, of an open one.")


class PermissionEntry(Part):
    """What may be done that could not be done before, or no longer."""

    kind: str = Field(description="wider, narrower or other.")
    stack: str = Field(description="Its stack's name in the environment.")
    principal: str = Field(description="Whom the policy is about: construct path of the role or resource.")
    statement: str = Field(description="What is other than before: `may now: s3:GetObject on …`.")
    wildcards: tuple[str, ...] = Field(description="What is broad in it.")
    conditions: tuple[str, ...] = Field(description="Tests that a request must pass.")
    other_accounts: tuple[str, ...] = Field(description="Accounts among the principals that are not the stack's.")
    logical_id: str = Field(description="Of the resource that the statement stands in.")
    source: str = Field(description="The property there.")


class OpeningEntry(Part):
    """What opens or closes: a network, data, what a program may reach."""

    kind: str = Field(description="opened, closed or other.")
    stack: str = Field(description="Its stack's name in the environment.")
    name: str = Field(description="What is open or closed: mostly a construct path.")
    sentence: str = Field(description="What comes or goes: `lets in tcp 443 from 0.0.0.0/0`.")
    logical_id: str = Field(description="Of the resource that says it.")


class ModelEntry(Part):
    """A model of an endpoint."""

    kind: str = Field(description="added, removed, rebuilt, rolled back, moved to another platform.")
    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="The endpoint's name in the environment.")
    model: str = Field(description="Its name.")
    before: str | None = Field(description="Digest; null where it is added.")
    after: str | None = Field(description="Digest; null where it is removed.")
    size_bytes: int | None = Field(description="Of the archive; null where it is not known.")
    size_unknown: str = Field(description="Why the size is not known; empty where it is.")
    sentence: str = Field(description="All of it in words.")


class ArchivesEntry(Part):
    """All archives of an endpoint whose models change."""

    stack: str = Field(description="Its stack's name in the environment.")
    endpoint: str = Field(description="The endpoint's name in the environment.")
    count: int = Field(description="How many there are after the change; 0 where the endpoint goes.")
    packed_bytes: int = Field(description="Of those whose size is known, as an instance fetches them.")
    unpacked_bytes: int = Field(description="Likewise, as they lie on its disk.")
    unknown: int = Field(description="How many sizes are not known.")
    exceeds_disk: bool | None = Field(
        description="Whether they are more than an instance's disk holds; null where that is not known."
    )
    sentences: tuple[str, ...] = Field(description="All of it in words, before and after, beside what an instance has.")


class EngineEntry(Part):
    """A TensorRT engine that is to be built."""

    model: str = Field(description="Of this model.")
    digest: str = Field(description="Of the model's inputs.")
    platform: str = Field(description="Release and GPU that it is for.")
    certain: bool = Field(description="Whether it is known that the archive needs one.")
    where: str = Field(description="What builds it.")
    last_seconds: float | None = Field(description="How long the last one took; null where nobody knows.")
    sentence: str = Field(description="All of it in words.")


class AmountEntry(Part):
    """USD an hour."""

    usd_per_hour: float | None = Field(description="Null where a part of it is not known, which is never counted as 0.")
    at_least: float = Field(description="The parts that are known.")
    unknown: tuple[str, ...] = Field(description="What is not known.")
    text: str = Field(description="In words.")


class CostEntry(Part):
    """What an endpoint costs, or all of an environment."""

    endpoint: str | None = Field(description="Its SageMaker name; null for all of them.")
    minimum_before: AmountEntry | None = Field(description="At its fewest instances; null where it is new.")
    minimum_after: AmountEntry | None = Field(description="Null where it goes.")
    maximum_before: AmountEntry | None = Field(description="At its most instances; null where it is new.")
    maximum_after: AmountEntry | None = Field(description="Null where it goes.")
    sentences: tuple[str, ...] = Field(description="What changes, and why what is unknown is.")


class CostRowEntry(Part):
    """One row of what an environment costs: an endpoint, or what stands beside the endpoints."""

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
    unknown: tuple[str, ...] = Field(description="What is not known, mostly prices with their regions.")

    @property
    def changed(self) -> bool:
        """Whether a row is other than it was."""
        return any(each.changed for each in self.rows)


class EnvironmentEntry(Part):
    """One environment."""

    name: str = Field(description="dev; pipeline is the stack of the pipeline over them.")
    effect: Effect | None = Field(description="Null where nothing changes.")
    level: Level = Field(description="How closely to look at it.")
    verdict: tuple[PhraseEntry, ...] = Field(description="What happens, in a line.")
    traffic: tuple[TrafficEntry, ...] = Field(description="Every endpoint of a stack that changes.")
    resources: tuple[ResourceEntry, ...] = Field(description="By effect, what can hurt first.")
    stacks: tuple[StackEntry, ...] = Field(description="Every stack that changes.")
    permissions: tuple[PermissionEntry, ...] = Field(description="Permissions that widen or narrow.")
    openings: tuple[OpeningEntry, ...] = Field(description="What the network lets through from now on, or no longer.")
    models: tuple[ModelEntry, ...] = Field(description="Models that change.")
    archives: tuple[ArchivesEntry, ...] = Field(description="What the archives of their endpoints come to.")
    engines: tuple[EngineEntry, ...] = Field(description="Engines that are to be built.")
    cost: CostEntry = Field(description="Of all endpoints together.")
    costs: tuple[CostEntry, ...] = Field(description="Of each endpoint.")
    cost_table: CostTableEntry = Field(description="Of everything that the templates have.")
    findings_known: bool = Field(description="Whether both sides were validated.")
    findings: tuple[FindingEntry, ...] = Field(description="Policy findings that come, go, or are accepted.")


class MatchEntry(Part):
    """A word of --fail-on that matches."""

    policy: str = Field(description="The word, as it was given.")
    environment: str = Field(description="Where.")
    sentence: str = Field(description="What matches.")
