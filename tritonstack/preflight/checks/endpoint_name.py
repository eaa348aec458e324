"""No endpoint that the environment's stacks did not make has the name of one of theirs: names are fixed."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.config import Endpoint
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject
from tritonstack.releases.deployed import stack_name

_ENDPOINT = "AWS::SageMaker::Endpoint"
_ABSENT = ("ValidationException", "ResourceNotFound")
"""DescribeEndpoint of a name that nothing has: "Could not find endpoint"."""


def check(subject: Subject) -> Iterator[Result]:
    """A result for each endpoint."""
    for endpoint in subject.environment.endpoints:
        about = About(
            check="endpoint-name",
            subject=endpoint.sagemaker_name(subject.environment.environment),
            needed="no endpoint of that name, or the stack's own",
        )
        yield from about.look(_look, subject, endpoint)


def _look(about: About, subject: Subject, endpoint: Endpoint) -> Result:
    answer = subject.calls.ask("sagemaker", "describe_endpoint", absent=_ABSENT, EndpointName=about.subject)
    if answer is None:
        return about.passes("no such endpoint yet")
    stack = stack_name(environment=subject.environment.environment, endpoint=endpoint.name)
    own = {name.rpartition("/")[2].lower() for name in subject.stacks.made(stack, _ENDPOINT)}
    if about.subject.lower() in own:
        return about.passes(f"{answer['EndpointStatus']}, made by {stack}")
    return about.fails(
        f"an endpoint ({answer['EndpointStatus']}) that {stack} did not make",
        advice="Delete it, or call the endpoint or the environment otherwise.",
    )


CHECK = Check(name="endpoint-name", title="names of endpoints", run=check)
