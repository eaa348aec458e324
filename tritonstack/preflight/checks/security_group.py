"""Imported security groups and route tables are there, and of their VPC."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """A result for each security group and each route table that the settings name."""
    network, builds = subject.environment.network, subject.environment.builds.network
    groups: dict[str, str] = {}
    tables: dict[str, str] = {}
    if network is not None and network.imported is not None:
        groups |= dict.fromkeys(network.imported.security_group_ids, network.imported.vpc_id)
        tables |= dict.fromkeys(network.imported.route_table_ids, network.imported.vpc_id)
    if builds is not None and subject.builds_on_deploy:
        groups |= dict.fromkeys(builds.security_group_ids, builds.vpc_id)
    for group, vpc in sorted(groups.items()):
        about = About(check="security-group", subject=group, needed=f"a security group of {vpc}")
        yield from about.look(_group, subject, vpc)
    for table, vpc in sorted(tables.items()):
        about = About(check="security-group", subject=table, needed=f"a route table of {vpc}")
        yield from about.look(_table, subject, vpc)


def _group(about: About, subject: Subject, vpc: str) -> Result:
    filters = [{"Name": "group-id", "Values": [about.subject]}]
    rows = subject.calls.must("ec2", "describe_security_groups", Filters=filters).get("SecurityGroups", [])
    # The local AWS knows no such filter, and answers with every group.
    return _of_vpc(about, [row["VpcId"] for row in rows if row["GroupId"] == about.subject], vpc)


def _table(about: About, subject: Subject, vpc: str) -> Result:
    filters = [{"Name": "route-table-id", "Values": [about.subject]}]
    rows = subject.calls.must("ec2", "describe_route_tables", Filters=filters).get("RouteTables", [])
    return _of_vpc(about, [row["VpcId"] for row in rows], vpc)


def _of_vpc(about: About, found: list[str], vpc: str) -> Result:
    if not found:
        return about.fails("there is none in the region", advice=f"Name one of {vpc}.")
    if found[0] != vpc:
        return about.fails(f"of {found[0]}", advice=f"Name one of {vpc}.")
    return about.passes(f"of {vpc}")


CHECK = Check(name="security-group", title="imported security groups and route tables", run=check)
