"""No log group stands in the way of one that a stack makes: their names are fixed."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.naming import log_group
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def log_groups(subject: Subject) -> dict[str, str]:
    """The log groups that stacks make by a name of ours → the stack. An endpoint's own is adopted where it exists."""
    environment = subject.environment
    name, found = environment.environment, {}
    if subject.builds_on_deploy:
        found[log_group(environment=name, of="builds")] = f"{name}-builds"
        if any(build.builder.kind == "codebuild" for build in subject.served.engines.builds):
            found[log_group(environment=name, of="engines")] = f"{name}-builds"
    if environment.network is not None and environment.network.created is not None:
        found[log_group(environment=name, of="network")] = f"{name}-network"
    return found


def check(subject: Subject) -> Iterator[Result]:
    """A result for each log group that a deployment has."""
    for group, stack in log_groups(subject).items():
        about = About(check="log-group", subject=group, needed=f"no such log group, or the one of {stack}")
        yield from about.look(_look, subject, stack)


def _look(about: About, subject: Subject, stack: str) -> Result:
    rows = subject.calls.pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=about.subject)
    if about.subject not in {row["logGroupName"] for row in rows}:
        return about.passes("no such log group yet")
    if about.subject in subject.stacks.made(stack, "AWS::Logs::LogGroup"):
        return about.passes(f"made by {stack}")
    return about.fails(
        f"a log group that {stack} did not make",
        advice=f"Keep what is needed of it, then: aws logs delete-log-group --region {subject.environment.region}"
        f" --log-group-name {about.subject}",
    )


CHECK = Check(name="log-group", title="names of log groups", run=check)
