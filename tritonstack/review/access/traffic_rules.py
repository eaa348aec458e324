"""Traffic rules of security groups: peers, protocols and ports, and which rule covers another."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field

from tritonstack.aws.iam_policies import cidr_covers
from tritonstack.catalogue.data_file import read_data
from tritonstack.review.intrinsics import StackValues
from tritonstack.review.snapshot import Json

_TYPES = read_data("resource_types.json")
_ALL = "-1"
_EVERY_PORT = (0, 65535)
_PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": _ALL}


@dataclass(frozen=True, kw_only=True, order=True)
class TrafficRule:
    """Traffic that a rule allows."""

    protocol: str  # ``tcp``, ``udp``, ``icmp``, …; ``-1`` for every one
    # first and last; of ICMP, type and code. None where they are known only when deployed
    ports: tuple[int, int] | None
    peer: str  # a range of addresses, a prefix list, a security group: as it is compared
    shown: tuple[str, str] = field(compare=False)  # the ports and the peer as they are shown

    @classmethod
    def of(cls, properties: Mapping[str, Json], values: StackValues) -> TrafficRule:
        """The traffic of a security group's rule."""
        protocol = values.shown(str(properties.get("IpProtocol", _ALL))).lower()
        protocol = _PROTOCOLS.get(protocol, protocol)
        peer = next((properties[each] for each in _TYPES["security_group_peers"] if each in properties), "nobody")
        texts = [values.shown(properties.get(each, "-1")) for each in ("FromPort", "ToPort")]
        ports: tuple[int, int] | None = None
        shown = f"{texts[0]} to {texts[1]}"
        if protocol == _ALL:
            ports, shown = _EVERY_PORT, ""
        elif all(text.removeprefix("-").isdecimal() for text in texts):
            first, last = (int(text) for text in texts)
            ports, shown = (first, last), f"type {first}, code {last}"
            if protocol in {"tcp", "udp"}:
                ports = _EVERY_PORT if first == -1 else ports
                shown = "every port" if ports == _EVERY_PORT else f"{first}" if first == last else f"{first}-{last}"
        return cls(protocol=protocol, ports=ports, peer=values.canonical(peer), shown=(shown, values.shown(peer)))

    def covers(self, other: TrafficRule) -> bool:
        """Whether all traffic that the other one allows is allowed by this one."""
        peers = self.peer == other.peer or cidr_covers(self.peer, other.peer)
        if not peers or self.protocol == _ALL:
            return peers
        if self.protocol != other.protocol:
            return False
        if self.protocol in {"tcp", "udp"} and self.ports is not None and other.ports is not None:
            return self.ports[0] <= other.ports[0] and other.ports[1] <= self.ports[1]
        return (self.ports, self.shown[0]) == (other.ports, other.shown[0])

    def words(self, preposition: str) -> str:
        """``tcp 443 from 0.0.0.0/0 (every IPv4 address)``."""
        what = "every protocol and port" if self.protocol == _ALL else f"{self.protocol} {self.shown[0]}"
        return f"{what} {preposition} {self.shown[1]}{width(self.peer)}"

    @property
    def is_nothing(self) -> bool:
        """Whether it is the CDK's rule for no outbound traffic: an ICMP type that nothing sends."""
        return self.protocol == "icmp" and self.ports == (252, 86) and self.peer == "255.255.255.255/32"


def width(peer: str) -> str:
    """Number of addresses of a range, in words; empty for a single one or for other text."""
    try:
        network = ipaddress.ip_network(peer, strict=False)
    except ValueError:
        return ""
    if network.prefixlen == 0:
        return f" (every IPv{network.version} address)"
    return f" ({network.num_addresses} addresses)" if network.num_addresses > 1 else ""
