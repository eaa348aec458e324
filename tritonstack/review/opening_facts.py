"""What is open or closed on one side of a change, a fact each, and how two sides compare."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tritonstack.review.iam_patterns import cidr_covers
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import Json

ALL = "-1"
EVERY_PORT = (0, 65535)
_PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": ALL}
_PEERS = (
    "CidrIp",
    "CidrIpv6",
    "CidrBlock",
    "Ipv6CidrBlock",
    "SourceSecurityGroupId",
    "SourceSecurityGroupName",
    "DestinationSecurityGroupId",
    "SourcePrefixListId",
    "DestinationPrefixListId",
)


@dataclass(frozen=True, kw_only=True, order=True)
class TrafficRule:
    """What a rule lets through.

    Attributes:
        protocol: ``tcp``, ``udp``, ``icmp``, …; ``-1`` for every one.
        ports: first and last; of ICMP, type and code. None where they are not known before it is deployed.
        peer: a range of addresses, a prefix list, a security group: as it is compared.
        shown: the ports and the peer as they are shown.
    """

    protocol: str
    ports: tuple[int, int] | None
    peer: str
    shown: tuple[str, str] = field(default=("", ""), compare=False)

    def covers(self, other: TrafficRule) -> bool:
        """Whether all that the other one lets through is let through by this one."""
        peers = self.peer == other.peer or cidr_covers(self.peer, other.peer)
        if not peers or self.protocol == ALL:
            return peers
        if self.protocol != other.protocol:
            return False
        if self.protocol in {"tcp", "udp"} and self.ports is not None and other.ports is not None:
            return self.ports[0] <= other.ports[0] and other.ports[1] <= self.ports[1]
        return (self.ports, self.shown[0]) == (other.ports, other.shown[0])

    def words(self, preposition: str) -> str:
        """``tcp 443 from 0.0.0.0/0 (every IPv4 address)``."""
        what = "every protocol and port" if self.protocol == ALL else f"{self.protocol} {self.shown[0]}"
        return f"{what} {preposition} {self.shown[1]}{width(self.peer)}"


def rule_of(properties: Mapping[str, Json], reading: Reading) -> TrafficRule:
    """The traffic of a security group's rule, or of an entry of a network ACL."""
    protocol = reading.shown(str(properties.get("IpProtocol", properties.get("Protocol", ALL)))).lower()
    protocol = _PROTOCOLS.get(protocol, protocol)
    given = properties.get("PortRange") or {}
    ports = [properties.get("FromPort", given.get("From")), properties.get("ToPort", given.get("To"))]
    known, text = _ports(protocol, ports, reading)
    peer = next((reading.canonical(properties[each]) for each in _PEERS if each in properties), "nobody")
    name = next((reading.shown(properties[each]) for each in _PEERS if each in properties), "nobody")
    return TrafficRule(protocol=protocol, ports=known, peer=peer, shown=(text, name))


def is_no_traffic(rule: TrafficRule) -> bool:
    """Whether a rule is the one by which the CDK says that nothing is let out: an ICMP type that nobody sends."""
    return rule.protocol == "icmp" and rule.ports == (252, 86) and rule.peer == "255.255.255.255/32"


def width(peer: str) -> str:
    """How many addresses a range is, in words; nothing of a single one or of what is no range."""
    try:
        network = ipaddress.ip_network(peer, strict=False)
    except ValueError:
        return ""
    if network.prefixlen == 0:
        return f" (every IPv{network.version} address)"
    return f" ({network.num_addresses} addresses)" if network.num_addresses > 1 else ""


def _ports(protocol: str, given: list[Json], reading: Reading) -> tuple[tuple[int, int] | None, str]:
    """First and last port, and the words for them."""
    if protocol == ALL:
        return EVERY_PORT, ""
    texts = ["-1" if each is None else reading.shown(each) for each in given]
    try:
        first, last = int(texts[0]), int(texts[1])
    except ValueError:
        return None, f"{texts[0]} to {texts[1]}"
    if protocol in {"tcp", "udp"}:
        first, last = EVERY_PORT if first == -1 else (first, last)
        text = "every port" if (first, last) == EVERY_PORT else str(first) if first == last else f"{first}-{last}"
    else:
        text = f"type {first}, code {last}"
    return (first, last), text


class OpeningKind(StrEnum):
    """What happens to it."""

    OPENED = "opened"
    CLOSED = "closed"
    OTHER = "other"
    """Changed, and neither side holds the other."""


@dataclass(frozen=True, kw_only=True)
class OpeningChange:
    """One opening.

    Attributes:
        kind: what happens to it.
        stack: the stack's name in its environment.
        name: what is open or closed: a construct path, or the name of a resource that is not of the app.
        sentence: what comes or goes, without its subject: ``lets in tcp 443 from 0.0.0.0/0``.
        logical_id: of the resource that says it, after the change or before it where it is gone.
    """

    kind: OpeningKind
    stack: str
    name: str
    sentence: str
    logical_id: str

    @property
    def order(self) -> tuple[object, ...]:
        """A place in a report: by stack, what opens first."""
        return (self.stack, list(OpeningKind).index(self.kind), self.name, self.sentence, self.logical_id)


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
