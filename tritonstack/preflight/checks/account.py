"""The caller's account and region are those of the environment's file: else every other answer is about another one."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """The account of the credentials, and the region that clients talk to."""
    environment = subject.environment
    about = About(
        check="account", subject=environment.environment, needed=f"{environment.account} in {environment.region}"
    )
    yield from about.look(_compare, subject)


def _compare(about: About, subject: Subject) -> Result:
    environment = subject.environment
    identity = subject.calls.must("sts", "get_caller_identity")
    region = subject.calls.client("sts").meta.region_name
    found = f"{identity['Account']} in {region}, as {identity['Arn']}"
    if identity["Account"] != environment.account:
        return about.fails(found, advice="Choose credentials of that account (AWS_PROFILE), or name yours in the file.")
    if region != environment.region:
        return about.fails(found, advice=f"The local AWS is {region} alone: name that region in the file.")
    return about.passes(found)


CHECK = Check(name="account", title="account and region", run=check)
