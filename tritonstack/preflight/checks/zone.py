"""The network's zones have the instance types."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """A result for each instance type, where the environment has a network.

    EC2 says which zones have a type; that SageMaker's instances are where EC2's are is taken for granted, no operation
    of SageMaker's tells.
    """
    network = subject.environment.network
    if network is None or not network.zones:
        return
    for name in sorted({endpoint.instance_type for endpoint in subject.environment.endpoints}):
        about = About(check="zone", subject=name, needed=f"in one of {', '.join(network.zones)}")
        yield from about.look(_look, subject, network.zones)


def _look(about: About, subject: Subject, zones: tuple[str, ...]) -> Result:
    wanted = {"instance-type": [about.subject.removeprefix("ml.")], "location": list(zones)}
    rows = subject.calls.pages(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": name, "Values": values} for name, values in wanted.items()],
    )
    there = sorted({row["Location"] for row in rows})
    if not there:
        return about.fails("EC2 has it in none of them", advice="Take other zones, or another instance type.")
    if len(there) < len(zones):
        return about.passes(f"EC2 has it in {', '.join(there)} alone: every instance will be there")
    return about.passes(f"EC2 has it in {', '.join(there)}")


CHECK = Check(name="zone", title="zones of the network", run=check)
