"""Openings: access to networks and data, and outbound access of programs, that a change opens or closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tritonstack.aws.iam_policies import listed
from tritonstack.catalogue.data_file import read_data
from tritonstack.review.access.permissions import Direction, PermissionChange
from tritonstack.review.access.policies import SubjectKind
from tritonstack.review.access.traffic_rules import TrafficRule, width
from tritonstack.review.document import OpeningEntry
from tritonstack.review.intrinsics import StackValues
from tritonstack.review.resource_changes import renamed_ids
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot


class OpeningKind(StrEnum):
    """Change of an opening."""

    OPENED = "opened"
    CLOSED = "closed"
    OTHER = "other"
    """Changed, and neither side covers the other."""


def opening_changes(
    before: EnvironmentSnapshot, after: EnvironmentSnapshot, *, permissions: Iterable[PermissionChange]
) -> tuple[OpeningEntry, ...]:
    """Openings that change in an environment. Sorted.

    Rules of security groups are compared by the traffic that they allow, wherever they are. What closes (encryption,
    a VPC, network isolation, a public access block) is reported where its resource is on both sides. ``permissions``:
    what ``permission_changes`` returns of them.
    """
    renamed = {key: each.logical_id for key, each in renamed_ids(before, after).items()}
    old = [replace(each, owner=renamed.get((each.stack, each.owner), each.owner)) for each in _facts(before)]
    owners = frozenset((stack, renamed.get((stack, name), name)) for stack, name in _owners(before))
    changes = list(_compared(old, _facts(after), owners_before=owners, owners_after=_owners(after)))
    for permission in permissions:
        sentence = _opening_sentence(permission)
        if sentence is not None:
            changes.append(
                OpeningEntry(
                    kind=_KINDS[Direction(permission.kind)],
                    stack=permission.stack,
                    name=permission.principal,
                    sentence=sentence,
                    logical_id=permission.logical_id,
                )
            )
    kinds = list(OpeningKind)

    def order(each: OpeningEntry) -> tuple[object, ...]:
        return each.stack, kinds.index(OpeningKind(each.kind)), each.name, each.sentence, each.logical_id

    return tuple(sorted(changes, key=order))


_KINDS = {
    Direction.WIDER: OpeningKind.OPENED,
    Direction.NARROWER: OpeningKind.CLOSED,
    Direction.OTHER: OpeningKind.OTHER,
}


def _opening_sentence(change: PermissionChange) -> str | None:
    """What a resource's policy opens: to requests without TLS, to everybody, through a VPC endpoint; else None."""
    if change.about is not SubjectKind.RESOURCE:
        return None
    if change.type == "AWS::EC2::VPCEndpoint":
        return None if change.whole else f"its policy: {change.statement}"
    if not change.allows and "Bool aws:securetransport false" in change.conditions:
        verb = "are refused from now on" if change.kind == Direction.NARROWER else "are no longer refused"
        return None if change.whole else f"requests without TLS {verb}: {', '.join(change.actions)}"
    return f"open to everybody: {change.statement}" if change.allows and "anybody" in change.who else None


class Counts(StrEnum):
    """When a fact that is on one side only is a change."""

    ALWAYS = "always"
    WITH_OWNER = "where its resource is on both sides"
    WITHOUT_OWNER = "where its resource is new or removed"


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing that is open or closed."""

    stack: str  # the stack's name
    owner: str  # logical id, or the name of a resource outside the app
    topic: str  # what of the owner
    detail: TrafficRule | str  # what exactly; one traffic rule may cover another
    name: str = field(compare=False)  # of the owner, to show
    logical_id: str = field(compare=False)  # of the resource that causes it
    comes: str = field(compare=False)  # the sentence for one that comes
    opens: bool = True  # whether it opens or closes
    counts: Counts = Counts.ALWAYS  # when it is a change
    paired: bool = False  # whether one that goes and one that comes of the same topic are one change

    @property
    def about(self) -> tuple[str, str, str]:
        """Stack, owner and topic."""
        return (self.stack, self.owner, self.topic)

    def covers(self, other: Fact) -> bool:
        """Whether it holds all that the other one holds."""
        if self.about != other.about or self.opens is not other.opens:
            return False
        if isinstance(self.detail, TrafficRule) and isinstance(other.detail, TrafficRule):
            return self.detail.covers(other.detail)
        return self.detail == other.detail


Owners = frozenset[tuple[str, str]]
"""Stack and logical id of every resource of a side."""


def _owners(environment: EnvironmentSnapshot) -> Owners:
    return frozenset((stack.name, name) for stack in environment.stacks.values() for name in stack.resources)


def _least(facts: Iterable[Fact]) -> list[Fact]:
    """The facts that no other one covers, sorted."""
    kept: list[Fact] = []
    for fact in sorted(facts, key=lambda each: (each.about, str(each.detail), each.logical_id)):
        if not any(each.covers(fact) for each in kept):
            kept = [each for each in kept if not fact.covers(each)]
            kept.append(fact)
    return kept


def _compared(
    before: Iterable[Fact], after: Iterable[Fact], *, owners_before: Owners, owners_after: Owners
) -> Iterator[OpeningEntry]:
    """Openings that a change adds or removes."""
    old, new = _least(before), _least(after)
    outside = frozenset(each.about[:2] for each in (*old, *new)) - owners_before - owners_after

    def counts(fact: Fact, owners: Owners) -> bool:
        there = (fact.stack, fact.owner) in owners | outside
        return fact.counts is Counts.ALWAYS or there is (fact.counts is Counts.WITH_OWNER)

    def made(fact: Fact, kind: OpeningKind, sentence: str) -> OpeningEntry:
        return OpeningEntry(kind=kind, stack=fact.stack, name=fact.name, sentence=sentence, logical_id=fact.logical_id)

    come = [each for each in new if not any(other.covers(each) for other in old) and counts(each, owners_before)]
    gone = [each for each in old if not any(other.covers(each) for other in new) and counts(each, owners_after)]
    for fact in come:
        others = [each for each in gone if fact.paired and each.about == fact.about]
        if others:
            was = "; ".join(sorted(each.comes for each in others))
            yield made(fact, OpeningKind.OTHER, f"{fact.comes} — before: {was}")
        else:
            yield made(fact, OpeningKind.OPENED if fact.opens else OpeningKind.CLOSED, fact.comes)
    for fact in gone:
        if not any(fact.paired and each.about == fact.about for each in come):
            yield made(fact, OpeningKind.CLOSED if fact.opens else OpeningKind.OPENED, f"no longer {fact.comes}")


_TYPES = read_data("resource_types.json")
_BLOCKS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")


def _facts(environment: EnvironmentSnapshot) -> Iterator[Fact]:
    for stack in environment.stacks.values():
        facts = _StackFacts(stack)
        for resource in stack.resources.values():
            yield from facts.network(resource)
            yield from facts.exposure(resource)


class _StackFacts:
    """Facts of one stack's resources."""

    def __init__(self, stack: StackSnapshot) -> None:
        self._stack = stack
        self._values = StackValues(stack)

    def network(self, resource: Resource) -> Iterator[Fact]:
        """Security groups, routes, gateways, VPC endpoints, subnets."""
        properties = resource.properties
        match resource.type:
            case "AWS::EC2::SecurityGroup":
                yield from self._group(resource)
            case "AWS::EC2::SecurityGroupIngress":
                yield self._rule(resource, properties.get("GroupId"), properties, "lets in", "from")
            case "AWS::EC2::SecurityGroupEgress":
                yield self._rule(resource, properties.get("GroupId"), properties, "lets out", "to")
            case "AWS::EC2::Route":
                to, through = self._first(resource, "route_destinations"), self._first(resource, "route_targets")
                kind = " (a NAT gateway)" if "NatGatewayId" in properties else ""
                kind = " (an internet gateway)" if self._is_internet(resource) else kind
                words = f"routes to {to}{width(to)} through {through}{kind}"
                yield self._fact(resource, "route", words, f"{to} {through}", owner=properties.get("RouteTableId"))
            case "AWS::EC2::SubnetRouteTableAssociation":
                if self._leads_to_internet(properties.get("RouteTableId")):
                    words = "is a public subnet, by a route to an internet gateway"
                    yield self._fact(resource, "public", words, owner=properties.get("SubnetId"))
            case "AWS::EC2::Subnet" if _is_on(properties.get("MapPublicIpOnLaunch")):
                yield self._fact(resource, "addresses", "gives instances in it a public address (MapPublicIpOnLaunch)")
            case "AWS::EC2::VPCEndpoint":
                service = self._values.shown(properties.get("ServiceName", ""))
                yield self._fact(resource, "endpoint", f"is a private way to {service}", service)
            case type_ if type_ in _TYPES["gateways"]:
                yield self._fact(resource, "gateway", f"is {_TYPES['gateways'][type_]}")

    def exposure(self, resource: Resource) -> Iterator[Fact]:
        """VPCs, network isolation, public access, encryption, function URLs."""
        if resource.type in _TYPES["run_in_a_vpc"]:
            yield from self._vpc(resource)
        if _is_on(resource.properties.get("EnableNetworkIsolation")):
            yield self._closes(resource, "isolation", "isolated from every network (EnableNetworkIsolation)")
        if resource.type in {"AWS::S3::Bucket", "AWS::S3::AccessPoint"}:
            yield from self._public_access(resource)
        for path in _TYPES["encryption"].get(resource.type, ()):
            key = self._key(resource, path)
            if key is not None:
                yield self._closes(resource, path, f"encrypts its data by {path} {key}", key, paired=True)
        if resource.type == "AWS::Lambda::Url" and resource.properties.get("AuthType") == "NONE":
            yield self._fact(resource, "url", "open to everybody: requests need no signature (AuthType NONE)")

    def _fact(
        self,
        resource: Resource,
        topic: str,
        comes: str,
        detail: TrafficRule | str = "",
        *,
        owner: Json = None,
        **members: Any,
    ) -> Fact:
        """A fact about a resource, or about the one that ``owner`` names."""
        name = resource.logical_id
        if owner is not None:
            name = self._values.logical_id(owner) or self._values.shown(owner)
        owned = self._stack.resources.get(name)
        return Fact(
            stack=self._stack.name,
            owner=name,
            topic=topic,
            detail=detail,
            name=name if owned is None else owned.path,
            logical_id=resource.logical_id,
            comes=comes,
            **members,
        )

    def _closes(self, resource: Resource, topic: str, comes: str, detail: str = "", *, paired: bool = False) -> Fact:
        return self._fact(resource, topic, comes, detail, opens=False, counts=Counts.WITH_OWNER, paired=paired)

    def _group(self, group: Resource) -> Iterator[Fact]:
        """The rules in a security group, and the one that AWS adds to a new group without an outbound rule."""
        own = {"Ref": group.logical_id}
        for each in _dicts(group.properties.get("SecurityGroupIngress")):
            yield self._rule(group, own, each, "lets in", "from")
        outbound = _dicts(group.properties.get("SecurityGroupEgress"))
        for each in outbound:
            if not TrafficRule.of(each, self._values).is_nothing:
                yield self._rule(group, own, each, "lets out", "to")
        if not outbound:
            comes = (
                "lets out every protocol and port to every address, as AWS adds it to a group without an outbound rule"
            )
            yield self._fact(group, "default", comes, counts=Counts.WITHOUT_OWNER)

    def _rule(
        self, resource: Resource, group: Json, properties: Mapping[str, Json], verb: str, preposition: str
    ) -> Fact:
        rule = TrafficRule.of(properties, self._values)
        return self._fact(resource, verb, f"{verb} {rule.words(preposition)}", rule, owner=group)

    def _vpc(self, resource: Resource) -> Iterator[Fact]:
        config = resource.properties.get("VpcConfig")
        if config:
            where = "; ".join(
                f"{part}: {', '.join(sorted(map(self._values.shown, listed(value))))}"
                for part, value in sorted(config.items())
            )
            yield self._closes(resource, "vpc", f"runs in a VPC ({where})", where, paired=True)
        elif resource.type == "AWS::SageMaker::Model" and not _is_on(resource.properties.get("EnableNetworkIsolation")):
            comes = "has outbound internet access from its containers: no VPC, no network isolation"
            yield self._fact(resource, "internet", comes, counts=Counts.WITHOUT_OWNER)

    def _public_access(self, resource: Resource) -> Iterator[Fact]:
        """The public access block. A new bucket has all of it unless the template sets another (S3 user guide)."""
        given = resource.properties.get("PublicAccessBlockConfiguration")
        for flag in _BLOCKS:
            if isinstance(given, dict) and _is_on(given.get(flag)):
                yield self._closes(resource, flag, f"blocks public access ({flag})")
            elif given is not None:
                words = f"leaves public access open ({flag})"
                yield self._fact(resource, f"no {flag}", words, counts=Counts.WITHOUT_OWNER)

    def _key(self, resource: Resource, path: str) -> str | None:
        """The KMS key of the data; None for AWS's own keys."""
        value: Json = resource.properties
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if path in {"BucketEncryption", "EncryptionConfiguration"}:
            value = _key_inside(value)
        return None if value in (None, False, "false", {}) else self._values.shown(value)

    def _first(self, resource: Resource, of: str) -> str:
        """The value of the first property, of a list in the table of types, that a resource has."""
        given = resource.properties
        return self._values.shown(next((given[each] for each in _TYPES[of] if each in given), ""))

    def _leads_to_internet(self, table: Json) -> bool:
        own = self._values.logical_id(table)
        return own is not None and any(
            self._values.logical_id(route.properties.get("RouteTableId")) == own
            and self._first(route, "route_destinations") in {"0.0.0.0/0", "::/0"}
            and self._is_internet(route)
            for route in self._stack.of_type("AWS::EC2::Route")
        )

    def _is_internet(self, route: Resource) -> bool:
        gateway = route.properties.get("GatewayId")
        own = self._values.logical_id(gateway)
        if own is not None:
            return self._stack.resources[own].type == "AWS::EC2::InternetGateway"
        return gateway is not None and self._values.shown(gateway).startswith("igw-")


def _key_inside(value: Json) -> Json:
    """The key in a bucket's or a repository's encryption settings; None where there is none."""
    if isinstance(value, list):
        return next((key for key in map(_key_inside, value) if key is not None), None)
    if not isinstance(value, dict):
        return None
    for name in ("KMSMasterKeyID", "KmsKey"):
        if name in value:
            return value[name]
    if "aws:kms" in value.values() or "KMS" in value.values():
        return "with AWS's own key of the service in KMS"
    return _key_inside(list(value.values()))


def _is_on(value: Json) -> bool:
    return str(value).lower() == "true"


def _dicts(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
