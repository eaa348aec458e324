"""``instance_types``: instance pools, types that an endpoint takes in order of preference where AWS lacks the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tritonstack.catalogue import load_catalogue
from tritonstack.config.fields import repeated
from tritonstack.errors import Location, Problem

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings

INSTANCE_TYPE_PATTERN = r"^ml\.[a-z0-9-]+\.[a-z0-9]+$"
FEWEST_POOLS, MOST_POOLS = 2, 5
"""CloudFormation's schema says "at least two" in one place, the API's model one; five at most in both."""
LEAST_PROVISION_SECONDS, LONGEST_PROVISION_SECONDS = 300, 3600
"""VariantInstanceProvisionTimeoutInSeconds (API reference, ProductionVariant)."""
POOL_ROUTING = "LEAST_OUTSTANDING_REQUESTS"
"""Types of a pool differ in speed. AWS's sample calls it required with pools, AWS's post recommends it."""


def preferred_type(value: Any) -> Any:
    """Settings of a file that lists ``instance_types``, with the first of them as ``instance_type``."""
    types = value.get("instance_types") if isinstance(value, Mapping) else None
    if not isinstance(types, list | tuple) or not types or "instance_type" in value:
        return value
    first = types[0]
    if not re.fullmatch(INSTANCE_TYPE_PATTERN, str(first)):  # reported where it is, and once
        first = next(iter(load_catalogue().instances))
    return {**value, "instance_type": first}


def check_pools(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Check an endpoint's ``instance_types`` together; each by itself is checked as an ``instance_type`` is."""
    types, place = endpoint.instance_types, (*location, "instance_types")
    if not types:
        return
    if endpoint.instance_type != types[0]:
        yield Problem(
            location=(*location, "instance_type"),
            found=f"{endpoint.instance_type} beside instance_types",
            allowed="one of the two: SageMaker takes InstanceType or InstancePools, never both",
            advice="Remove `instance_type`.",
        )
    if len(types) < FEWEST_POOLS:
        yield Problem(
            location=place,
            found=f"{len(types)} instance type",
            allowed=f"{FEWEST_POOLS} to {MOST_POOLS} in order of preference",
            advice=f"Set instance_type: {types[0]}, or add a type to fall back to.",
        )
    yield from repeated(types, location=place)
    if endpoint.multi_model:
        yield Problem(
            location=place,
            found="instance pools on a multi-model endpoint",
            allowed="instance_type: SageMaker has pools for single-model endpoints (developer guide, "
            '"Deploy to multiple instance types with instance pools")',
            advice="Set mode: single-model, or instance_type alone.",
        )
    if endpoint.variants:
        yield Problem(
            location=place,
            found=f"instance pools together with {len(endpoint.variants)} variants",
            allowed="pools on an endpoint with one production variant",
            advice="Remove `variants`, or give each an instance_type of its own.",
        )
    if endpoint.routing not in (None, POOL_ROUTING):
        yield Problem(
            location=(*location, "routing"),
            found=f"{endpoint.routing} with instance pools",
            allowed=f"null or {POOL_ROUTING}, which is rendered: the types differ in speed",
        )
    yield from _check_host_ami(endpoint, location=place)
    yield from _check_targets(endpoint, location=(*location, "scaling"))


def _check_host_ami(endpoint: EndpointSettings, *, location: Location) -> Iterator[Problem]:
    """A production variant has one InferenceAmiVersion: its types share a driver."""
    if endpoint.host_ami is not None:
        return  # check_release holds it against each type
    amis = {each.instance_type: each.inference_ami_version for each in endpoint.type_settings}
    if len(set(amis.values())) > 1:
        yield Problem(
            location=location,
            found=", ".join(f"{name} with {ami or 'the default of SageMaker'}" for name, ami in amis.items()),
            allowed="types for which the release takes one host AMI: a production variant has one InferenceAmiVersion",
            advice="Set host_ami to one that suits every type, or take types of one generation.",
        )


def _check_targets(endpoint: EndpointSettings, *, location: Location) -> Iterator[Problem]:
    """Utilization targets, which CloudWatch adds up over the GPUs or vCPUs of an instance and averages over types."""
    rows = [row for each in endpoint.instance_types if (row := load_catalogue().instance(each)) is not None]
    counts = {"GPUs": {row.name: row.gpu_count for row in rows}, "vCPUs": {row.name: row.vcpu for row in rows}}
    for field, unit in {"gpu_utilization": "GPUs", "gpu_memory": "GPUs", "cpu_utilization": "vCPUs"}.items():
        target = None if endpoint.scaling is None else getattr(endpoint.scaling, field)
        if target is not None and len(set(counts[unit].values())) > 1:
            types = ", ".join(f"{name} ({count} {unit})" for name, count in counts[unit].items())
            yield Problem(
                location=(*location, field),
                found=f"{target:g} with {types}",
                allowed=f"null, or types with the same number of {unit}: CloudWatch adds up what each of them uses",
                advice="Scale on concurrency or invocations_per_instance.",
            )
