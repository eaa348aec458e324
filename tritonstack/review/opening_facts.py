"""What is open or closed on one side of a change, a fact each, and how two sides compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tritonstack.review.opening_change import OpeningChange, OpeningKind
from tritonstack.review.traffic_rule import TrafficRule


class Counts(StrEnum):
    """When a fact that is on one side only is news."""

    ALWAYS = "always"
    WITH_OWNER = "where its resource is on both sides"
    WITHOUT_OWNER = "where its resource is new or gone"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is open or closed.

    Attributes:
        stack: the stack's name.
        owner: logical id, or the name of a resource that is not of the app.
        topic: what of the owner: two facts of one topic with other details are a change of it, where ``paired``.
        detail: what exactly; a rule of traffic may hold another one.
        name: to show.
        logical_id: of the resource that says it.
        comes: the sentence for one that comes.
        goes: the sentence for one that goes.
        opens: whether it opens; False: it closes; None: neither can be said.
        counts: when it is news.
        paired: whether one that goes and one that comes are one change.
    """

    stack: str
    owner: str
    topic: str
    detail: TrafficRule | str
    name: str = field(compare=False)
    logical_id: str = field(compare=False)
    comes: str = field(compare=False)
    goes: str = field(compare=False)
    opens: bool | None = True
    counts: Counts = Counts.ALWAYS
    paired: bool = False

    @property
    def about(self) -> tuple[str, str, str]:
        """What it is a fact of."""
        return (self.stack, self.owner, self.topic)

    def holds(self, other: Fact) -> bool:
        """Whether it says all that the other one says."""
        if self.about != other.about or self.opens is not other.opens:
            return False
        if isinstance(self.detail, TrafficRule) and isinstance(other.detail, TrafficRule):
            return self.detail.covers(other.detail)
        return self.detail == other.detail


Owners = frozenset[tuple[str, str]]
"""Stack and logical id of every resource of a side; what is not of the app counts as there."""


def least_facts(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts that no other one holds, in an order of their own."""
    kept: list[Fact] = []
    for fact in sorted(facts, key=lambda each: (each.about, str(each.detail), each.logical_id)):
        if not any(each.holds(fact) for each in kept):
            kept = [each for each in kept if not fact.holds(each)]
            kept.append(fact)
    return tuple(kept)


def compare_facts(
    before: Iterable[Fact], after: Iterable[Fact], *, owners_before: Owners, owners_after: Owners
) -> Iterator[OpeningChange]:
    """What comes and goes."""
    old, new = least_facts(before), least_facts(after)
    come = [each for each in new if not any(other.holds(each) for other in old)]
    gone = [each for each in old if not any(other.holds(each) for other in new)]
    outside = frozenset(each.about[:2] for each in (*old, *new)) - owners_before - owners_after
    come = [each for each in come if _counts(each, owners_before | outside)]
    gone = [each for each in gone if _counts(each, owners_after | outside)]
    for fact in come:
        others = [each for each in gone if fact.paired and each.about == fact.about]
        if others:
            was = "; ".join(sorted(each.comes for each in others))
            yield _change(fact, OpeningKind.OTHER, f"{fact.comes} — before: {was}")
        else:
            yield _change(fact, _kind(fact, came=True), fact.comes)
    for fact in gone:
        if not any(fact.paired and each.about == fact.about for each in come):
            yield _change(fact, _kind(fact, came=False), fact.goes)


def _counts(fact: Fact, owners: Owners) -> bool:
    """Whether a fact that is missing on the side with these owners is news."""
    there = (fact.stack, fact.owner) in owners
    return fact.counts is Counts.ALWAYS or there is (fact.counts is Counts.WITH_OWNER)


def _kind(fact: Fact, *, came: bool) -> OpeningKind:
    if fact.opens is None:
        return OpeningKind.OTHER
    return OpeningKind.OPENED if came is fact.opens else OpeningKind.CLOSED


def _change(fact: Fact, kind: OpeningKind, sentence: str) -> OpeningChange:
    return OpeningChange(kind=kind, stack=fact.stack, name=fact.name, sentence=sentence, logical_id=fact.logical_id)
