"""What a stack's network lets through: security groups, network ACLs, routes, gateways, endpoints, subnets."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.review.opening_facts import Counts, Fact, TrafficRule, is_no_traffic, rule_of, width
from tritonstack.review.reading import Reading
from tritonstack.review.snapshot import Json, Resource, StackSnapshot

_GATEWAYS = {
    "AWS::EC2::InternetGateway": "an internet gateway",
    "AWS::EC2::EgressOnlyInternetGateway": "a gateway to the internet, outwards only",
    "AWS::EC2::NatGateway": "a NAT gateway: what is behind it reaches the internet",
    "AWS::EC2::VPCGatewayAttachment": "a gateway attached to the VPC",
    "AWS::EC2::VPNGateway": "a VPN gateway",
    "AWS::EC2::TransitGatewayAttachment": "an attachment to a transit gateway",
    "AWS::EC2::TransitGatewayVpcAttachment": "an attachment to a transit gateway",
    "AWS::EC2::VPCPeeringConnection": "a peering with another VPC",
}
_TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "EgressOnlyInternetGatewayId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
    "VpcEndpointId",
    "InstanceId",
    "NetworkInterfaceId",
    "CarrierGatewayId",
    "LocalGatewayId",
    "CoreNetworkArn",
)
_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
_EVERYWHERE = ("0.0.0.0/0", "::/0")
_INGRESS, _EGRESS = "lets in", "lets out"


def network_facts(stack: StackSnapshot) -> Iterator[Fact]:
    """Every fact of one stack's network."""
    network = _Network(stack)
    for resource in stack.resources.values():
        match resource.type:
            case "AWS::EC2::SecurityGroup":
                yield from network.group(resource)
            case "AWS::EC2::SecurityGroupIngress":
                yield network.rule(resource, resource.properties.get("GroupId"), resource.properties, _INGRESS)
            case "AWS::EC2::SecurityGroupEgress":
                yield network.rule(resource, resource.properties.get("GroupId"), resource.properties, _EGRESS)
            case "AWS::EC2::NetworkAclEntry":
                yield network.entry(resource)
            case "AWS::EC2::SubnetNetworkAclAssociation":
                yield network.acl(resource)
            case "AWS::EC2::Route":
                yield network.route(resource)
            case "AWS::EC2::SubnetRouteTableAssociation":
                yield from network.public_subnet(resource)
            case "AWS::EC2::Subnet":
                yield from network.subnet(resource)
            case "AWS::EC2::VPCEndpoint":
                yield from network.endpoint(resource)
            case type_ if type_ in _GATEWAYS:
                yield network.fact(
                    resource, "gateway", "", comes=f"{_GATEWAYS[type_]} comes", goes=f"{_GATEWAYS[type_]} goes"
                )


class _Network:
    """Reads one stack."""

    def __init__(self, stack: StackSnapshot) -> None:
        self._stack = stack
        self._reading = Reading(stack)

    def fact(
        self,
        resource: Resource,
        topic: str,
        detail: TrafficRule | str,
        *,
        comes: str,
        goes: str,
        owner: Json = None,
        opens: bool | None = True,
        counts: Counts = Counts.ALWAYS,
        paired: bool = False,
    ) -> Fact:
        """A fact that a resource tells of itself, or of the one that ``owner`` names."""
        name = resource.logical_id
        if owner is not None:
            name = self._reading.logical_id(owner) or self._reading.shown(owner)
        owned = self._stack.resources.get(name)
        return Fact(
            stack=self._stack.name,
            owner=name,
            topic=topic,
            detail=detail,
            name=name if owned is None else owned.path,
            logical_id=resource.logical_id,
            comes=comes,
            goes=goes,
            opens=opens,
            counts=counts,
            paired=paired,
        )

    def group(self, group: Resource) -> Iterator[Fact]:
        """The rules in a security group, and what AWS adds to one that is new without any outward."""
        own = {"Ref": group.logical_id}
        for each in _dicts(group.properties.get("SecurityGroupIngress")):
            yield self.rule(group, own, each, _INGRESS)
        outward = _dicts(group.properties.get("SecurityGroupEgress"))
        for each in outward:
            if not is_no_traffic(rule_of(each, self._reading)):
                yield self.rule(group, own, each, _EGRESS)
        if not outward:
            words = "every protocol and port to every address, as AWS adds it to a group without a rule outwards"
            counts = Counts.WITHOUT_OWNER
            comes, goes = f"lets out {words}", f"no longer lets out {words}"
            yield self.fact(group, "default", words, comes=comes, goes=goes, counts=counts)

    def rule(self, resource: Resource, group: Json, properties: dict[str, Json] | Json, verb: str) -> Fact:
        """One rule of a security group."""
        rule = rule_of(properties, self._reading)
        words = rule.words("from" if verb == _INGRESS else "to")
        comes, goes = f"{verb} {words}", f"no longer {verb} {words}"
        return self.fact(resource, verb, rule, owner=group, comes=comes, goes=goes)

    def entry(self, entry: Resource) -> Fact:
        """An entry of a network ACL; the first that matches counts, so that its number says something, too."""
        properties = entry.properties
        rule = rule_of(properties, self._reading)
        allows = str(properties.get("RuleAction", "")).lower() == "allow"
        outward = str(properties.get("Egress", False)).lower() == "true"
        words = f"{'allows' if allows else 'denies'} {rule.words('to' if outward else 'from')}"
        number = self._reading.shown(str(properties.get("RuleNumber")))
        return self.fact(
            entry,
            f"{'out' if outward else 'in'} {words}",
            number,
            owner=properties.get("NetworkAclId"),
            comes=f"{words} (rule {number})",
            goes=f"no longer {words} (rule {number})",
            opens=allows,
            counts=Counts.ALWAYS if allows else Counts.WITH_OWNER,
            paired=True,
        )

    def acl(self, association: Resource) -> Fact:
        """Which network ACL a subnet has."""
        acl = self._reading.shown(association.properties.get("NetworkAclId"))
        subnet = association.properties.get("SubnetId")
        comes, goes = f"has the network ACL {acl}", f"no longer has the network ACL {acl}"
        return self.fact(association, "acl", acl, owner=subnet, comes=comes, goes=goes, opens=None, paired=True)

    def route(self, route: Resource) -> Fact:
        """A route out of a subnet."""
        to, through = self._destination(route), self._target(route)
        words = f"{to}{width(to)} through {through}{self._kind_of(route)}"
        table = route.properties.get("RouteTableId")
        comes, goes = f"routes to {words}", f"no longer routes to {words}"
        return self.fact(route, "route", f"{to} {through}", owner=table, comes=comes, goes=goes)

    def public_subnet(self, association: Resource) -> Iterator[Fact]:
        """Whether a subnet's routes make it a public one."""
        table = self._reading.logical_id(association.properties.get("RouteTableId"))
        for route in self._stack.of_type("AWS::EC2::Route"):
            same = table is not None and self._reading.logical_id(route.properties.get("RouteTableId")) == table
            if same and self._destination(route) in _EVERYWHERE and self._is_internet(route):
                comes = "is a public subnet: it has a route to an internet gateway"
                goes = "is no longer a public subnet"
                yield self.fact(
                    association, "public", "", owner=association.properties.get("SubnetId"), comes=comes, goes=goes
                )

    def subnet(self, subnet: Resource) -> Iterator[Fact]:
        """Whether what starts in a subnet has a public address."""
        if str(subnet.properties.get("MapPublicIpOnLaunch", False)).lower() == "true":
            comes = "gives what starts in it a public address (MapPublicIpOnLaunch)"
            goes = "no longer gives what starts in it a public address (MapPublicIpOnLaunch)"
            yield self.fact(subnet, "addresses", "", comes=comes, goes=goes)

    def endpoint(self, endpoint: Resource) -> Iterator[Fact]:
        """A private way to a service."""
        service = self._reading.shown(endpoint.properties.get("ServiceName", ""))
        comes, goes = f"is a private way to {service}", f"is no longer a private way to {service}"
        yield self.fact(endpoint, "endpoint", service, comes=comes, goes=goes)
        if "PrivateDnsEnabled" in endpoint.properties:
            on = str(endpoint.properties["PrivateDnsEnabled"]).lower() == "true"
            comes = f"{'takes over' if on else 'does not take over'} the usual name of {service} (PrivateDnsEnabled)"
            yield self.fact(
                endpoint, "names", comes, comes=comes, goes=comes, opens=None, counts=Counts.WITH_OWNER, paired=True
            )

    def _destination(self, route: Resource) -> str:
        given = (route.properties[each] for each in _DESTINATIONS if each in route.properties)
        return self._reading.shown(next(given, "nowhere"))

    def _target(self, route: Resource) -> str:
        given = (route.properties[each] for each in _TARGETS if each in route.properties)
        return self._reading.shown(next(given, "nothing"))

    def _kind_of(self, route: Resource) -> str:
        if self._is_internet(route):
            return " (an internet gateway)"
        return " (a NAT gateway)" if "NatGatewayId" in route.properties else ""

    def _is_internet(self, route: Resource) -> bool:
        gateway = route.properties.get("GatewayId")
        own = self._reading.logical_id(gateway)
        if own is not None:
            return self._stack.resources[own].type == "AWS::EC2::InternetGateway"
        return gateway is not None and self._reading.shown(gateway).startswith("igw-")


def _dicts(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
