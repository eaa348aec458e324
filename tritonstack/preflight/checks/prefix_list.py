"""The prefix list that security groups let out to is S3's, of the region."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.catalogue import partition
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """A result where the settings name a prefix list."""
    network = subject.environment.network
    if network is not None and network.s3_prefix_list_id is not None:
        name = s3_list_name(subject.environment.region)
        about = About(check="prefix-list", subject=network.s3_prefix_list_id, needed=f"the prefix list {name}")
        yield from about.look(_look, subject, name)


def s3_list_name(region: str) -> str:
    """What AWS calls S3's prefix list of a region (VPC guide, "AWS-managed prefix lists")."""
    return f"{'cn.' if partition(region) == 'aws-cn' else ''}com.amazonaws.{region}.s3"


def _look(about: About, subject: Subject, name: str) -> Result:
    filters = [{"Name": "prefix-list-name", "Values": [name]}]
    rows = subject.calls.must("ec2", "describe_managed_prefix_lists", Filters=filters).get("PrefixLists", [])
    ids = sorted(row["PrefixListId"] for row in rows)
    if about.subject in ids:
        return about.passes(name)
    if not ids:
        return about.unknown(f"EC2 lists no {name}", advice="Look for S3's prefix list in the VPC console.")
    return about.fails(f"{name} is {', '.join(ids)}", advice=f"Set network.s3_prefix_list_id: {ids[0]}")


CHECK = Check(name="prefix-list", title="S3's prefix list", run=check)
