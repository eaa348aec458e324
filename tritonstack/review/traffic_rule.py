"""Traffic that a rule of a network is about: protocol, ports, and who is on the other end."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from tritonstack.review.conditions import cidr_covers
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
