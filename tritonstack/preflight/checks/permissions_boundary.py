"""The permissions boundary of every role exists, in the account."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """A result where the environment has a boundary."""
    arn = subject.environment.permissions_boundary
    if arn is not None:
        about = About(check="permissions-boundary", subject=arn, needed="a managed policy of the account, or of AWS")
        yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    answer = subject.calls.ask("iam", "get_policy", absent=("NoSuchEntity",), PolicyArn=about.subject)
    if answer is None:
        return about.fails("no such policy", advice="Create it, or name another one: every role is refused without it.")
    return about.passes("there")


CHECK = Check(name="permissions-boundary", title="permissions boundary", run=check)
