"""Buckets of your own that the network's S3 endpoint shall let read are there."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """A result for each of ``network.additional_buckets``."""
    network = subject.environment.network
    for name in network.additional_buckets if network is not None else ():
        about = About(check="bucket", subject=name, needed="a bucket of that name")
        yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    answer = subject.calls.ask("s3", "head_bucket", absent=("404", "NoSuchBucket"), Bucket=about.subject)
    if answer is None:
        return about.fails("no such bucket", advice="Mend its name in network.additional_buckets, or take it out.")
    return about.passes("there")


CHECK = Check(name="bucket", title="buckets of your own", run=check)
