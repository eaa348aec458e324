"""A network against its region, and against what builds and endpoints in it need to reach."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator

from tritonstack.catalogue import partition
from tritonstack.config.builds import BuildSettings
from tritonstack.config.checks.site import Site
from tritonstack.config.endpoint import Endpoint
from tritonstack.config.findings import Finding, shown
from tritonstack.config.network import CreatedNetwork, ImportedNetwork, NetworkSettings
from tritonstack.config.yaml_source import Location

LARGEST, SMALLEST = 16, 24
"""A VPC has /16 at most (VPC guide: "VPC CIDR blocks"); it is split in sixteen, and a subnet has /28 at least."""
FEWEST_ZONES = 2
PRIVATE = tuple(ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
"""RFC 1918; also 100.64.0.0/10 would do, which few want."""


def check_network(*, network: NetworkSettings, builds: BuildSettings | None, site: Site) -> Iterator[Finding]:
    """Everything that is wrong with a network whose fields have the right types.

    Args:
        network: the network.
        builds: how models are made; None where that is unreadable.
        site: the environment's own fields.
    """
    if network.imported is None and network.created is None:
        yield Finding(
            location=("network",),
            found="neither imported nor created",
            allowed="one of the two: imported names a VPC that exists, created makes one",
        )
        return
    if network.join in ("created", "imported") and getattr(network, network.join) is None:
        yield Finding(
            location=("network", "join"),
            found=f"{network.join}, and no network.{network.join}",
            allowed="the network that is there, or nothing",
        )
        return
    yield from _check_joined(network)
    yield from _check_zones(network=network, site=site)
    if network.makes_endpoints and site.region is not None and partition(site.region) == "aws-cn":
        yield Finding(
            location=("network",),
            found=f"VPC endpoints to be made in {site.region}",
            allowed="imported, with endpoints: false: how services' endpoints are called in China is not verified",
        )
    if network.created is not None:
        yield from _check_created(network.created)
    if network.imported is not None:
        yield from _check_imported(network.imported)
    if network.makes_group and network.s3_prefix_list_id is None:
        yield Finding(
            location=("network", "s3_prefix_list_id"),
            found="nothing",
            allowed="the id of S3's prefix list in the region (pl-…), which the security group lets out to",
            advice=_look_up(site.region),
        )
    if builds is not None:
        yield from _check_builds(network=network, builds=builds)


def _look_up(region: str | None) -> str:
    there = region or "<region>"
    return (
        f"aws ec2 describe-managed-prefix-lists --region {there} "
        f"--filters Name=prefix-list-name,Values=com.amazonaws.{there}.s3"
    )


def _check_joined(network: NetworkSettings) -> Iterator[Finding]:
    """Both networks are there only while an environment goes from one to the other."""
    both = network.imported is not None and network.created is not None
    if both and network.join is None:
        yield Finding(
            location=("network", "join"),
            found="nothing, and both imported and created",
            allowed="created or imported: the one that containers and builds join; the other stays beside it",
            advice="Take the other away in a later deployment.",
        )
    left = () if network.created is None else network.created.leave_zones
    unknown = sorted(set(left) - set(() if network.created is None else network.created.zones))
    if unknown:
        yield Finding(
            location=("network", "created", "leave_zones"),
            found=", ".join(unknown),
            allowed="zones of network.created.zones, which stay there until nothing runs in them",
        )
    elif left and network.joined == "created" and len(network.zones) < FEWEST_ZONES:
        yield Finding(
            location=("network", "created", "leave_zones"),
            found=f"{', '.join(left)}, which leaves {', '.join(network.zones) or 'none'}",
            allowed="two zones or more to join, as SageMaker wants them",
        )


def _check_zones(*, network: NetworkSettings, site: Site) -> Iterator[Finding]:
    zones = [("created", each) for each in sorted(network.created.zones if network.created else ())]
    zones += [("imported", each) for each in sorted(network.imported.subnets if network.imported else ())]
    for kind, zone in zones:
        if site.region is not None and zone[:-1] != site.region:
            yield Finding(
                location=("network", kind, "zones") if kind == "created" else ("network", kind, "subnets", zone),
                found=zone,
                allowed=f"a zone of the environment's region, {site.region}a for example",
            )


def _check_created(created: CreatedNetwork) -> Iterator[Finding]:
    for zone, count in Counter(created.zones).items():
        if count > 1:
            yield Finding(
                location=("network", "created", "zones"), found=f"{zone} {count} times", allowed="each zone once"
            )
    try:
        cidr = ipaddress.IPv4Network(created.cidr)
    except ValueError as error:
        yield Finding(
            location=("network", "created", "cidr"),
            found=f"{shown(created.cidr)}: {error}",
            allowed="a range that begins where its prefix says (10.20.0.0/16)",
        )
        return
    if not LARGEST <= cidr.prefixlen <= SMALLEST or not any(cidr.subnet_of(range_) for range_ in PRIVATE):
        yield Finding(
            location=("network", "created", "cidr"),
            found=str(cidr),
            allowed=f"/{LARGEST} to /{SMALLEST} within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16",
        )


def _check_imported(imported: ImportedNetwork) -> Iterator[Finding]:
    for subnet, count in Counter(imported.subnets.values()).items():
        if count > 1:
            yield Finding(
                location=("network", "imported", "subnets"),
                found=f"{subnet} in {count} zones",
                allowed="each subnet once: a subnet lies in one zone",
            )
    if imported.endpoints and imported.owner_account is not None:
        yield Finding(
            location=("network", "imported", "endpoints"),
            found=f"true, in a VPC of account {imported.owner_account}",
            # AWS re:Post, "Troubleshoot errors when you create interface VPC endpoints": CreateVpcEndpoint "does not
            # support shared VPCs" from a participant's account.
            allowed="false: only the owner of a shared VPC makes its endpoints",
        )
    if imported.endpoints and not imported.route_table_ids:
        yield Finding(
            location=("network", "imported", "route_table_ids"),
            found="none, and endpoints are to be made",
            allowed="the route tables of the subnets: the S3 endpoint is a route in each",
        )


def _check_builds(*, network: NetworkSettings, builds: BuildSettings) -> Iterator[Finding]:
    """Without a way out, a build in CodeBuild's own image waits for the package index until it times out."""
    within = builds.network is None and not builds.outside_network and builds.on_deploy is not False
    if network.is_closed and within and builds.image.startswith("aws/codebuild"):
        yield Finding(
            location=("network", "created", "nat"),
            found=f"false, and builds in {builds.image} fetch Python packages from the internet",
            allowed="one or each; or builds.outside_network: true; or an image in ECR that has the packages "
            "(builds.image); or no builds (builds.on_deploy: false)",
        )
    if builds.network is not None and builds.outside_network:
        yield Finding(
            location=("builds", "outside_network"),
            found="true beside builds.network",
            allowed="one of the two",
        )


ELSEWHERE = ("://", "redis", "host=")
"""What an argument has in it that names another host: a model repository or a trace collector by URL, a Redis cache."""


def check_isolation(*, endpoint: Endpoint, location: Location) -> Iterator[Finding]:
    """An isolated container can reach no host; multi-model mode works all the same, for SageMaker brings the archives.

    Sources: developer guide, "Model Deployment Feature Matrix" (network isolation beside multi-model endpoints) and
    "Run Training and Inference Containers in Internet-Free Mode".
    """
    if not endpoint.network_isolation:
        return
    for index, argument in enumerate(endpoint.container.additional_args):
        if any(sign in argument for sign in ELSEWHERE):
            yield Finding(
                location=(*location, "container", "additional_args", index),
                found=f"{shown(argument)}, and network_isolation is true",
                allowed="an argument that names no other host: an isolated container reaches none, not even in its VPC",
                advice="Set network_isolation: false and a network, whose security groups let the container out.",
            )
