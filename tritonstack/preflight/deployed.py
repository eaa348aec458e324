"""Checks of deployed resources: stack states that block updates, leftover stacks, names of endpoints, objects' key."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack import naming
from tritonstack.config.environment import CREATED
from tritonstack.deployed.stacks import of_environment
from tritonstack.deployed.states import stuck_stacks
from tritonstack.preflight.ec2 import made_by
from tritonstack.preflight.subject import GONE, CheckedItem, PreflightResult, Subject


def check_stacks(subject: Subject) -> Iterator[PreflightResult]:
    """No stack of the environment is in a state that no update goes on from, or at work."""
    name = subject.environment.environment
    item = CheckedItem(check="stacks", subject=f"{name}-*", needed="stacks that can be updated")
    yield from item.look(_states, subject)


def _states(item: CheckedItem, subject: Subject) -> Iterator[PreflightResult]:
    settings = subject.environment
    found = subject.facts.deployed(settings, project=subject.project)
    own = of_environment(found.stacks, settings.environment)
    left = {each.stack.id for each in found.left}
    stuck = stuck_stacks(each for each in own if each.id not in left)
    for each in stuck:
        one = CheckedItem(check=item.check, subject=each.stack.name, needed=item.needed)
        yield one.fails(each.sentence, advice=f"{each.advice[:1].upper()}{each.advice[1:]}.")
    if not stuck:
        running = ", ".join(f"{each.name} is {each.status}" for each in own if each.in_progress)
        yield item.passes(running or f"{len(own)} stacks, none in a failed state")


def check_left_stacks(subject: Subject) -> Iterator[PreflightResult]:
    """Warn about deployed stacks that left the environment's file: no deployment removes them, and they are billed."""
    name = subject.environment.environment
    item = CheckedItem(
        check="left-stacks", subject=f"{name}-*", needed="nothing deployed that the environment's file does not have"
    )
    yield from item.look(_left, subject)


def _left(item: CheckedItem, subject: Subject) -> Iterator[PreflightResult]:
    settings = subject.environment
    left = subject.facts.deployed(settings, project=subject.project).left
    for each in left:
        one = CheckedItem(check=item.check, subject=each.stack.name, needed=item.needed)
        yield one.warns(each.sentence, advice=f"tritonstack leftovers -e {settings.environment} --delete")
    if not left:
        yield item.passes("none")


def check_endpoint_name(subject: Subject) -> Iterator[PreflightResult]:
    """Endpoints called as the environment's are its own, by their tags; one that is not there yet is fine."""
    environment = subject.environment
    for endpoint in environment.hosted_endpoints:
        name = endpoint.sagemaker_name(environment.environment)
        item = CheckedItem(
            check="endpoint-name", subject=name, needed="no endpoint of that name, or this environment's own"
        )
        yield from item.look(_owner, subject, name, endpoint.name)


def _owner(item: CheckedItem, subject: Subject, name: str, endpoint: str) -> PreflightResult:
    described = subject.calls.ask("sagemaker", "describe_endpoint", absent=GONE, EndpointName=name)
    if described is None:
        return item.passes("no endpoint of that name")
    answer = subject.calls.must("sagemaker", "list_tags", ResourceArn=described["EndpointArn"])
    tags = {each["Key"]: each["Value"] for each in answer.get("Tags", ())}
    owner = tags.get(naming.ENVIRONMENT_TAG), tags.get(naming.ENDPOINT_TAG)
    if owner == (subject.environment.environment, endpoint):
        return item.passes("this environment's own")
    advice = (
        f"Rename endpoint {endpoint} in the environment's file, or delete the other one where nothing calls it: "
        f"aws sagemaker delete-endpoint --region {subject.environment.region} --endpoint-name {name}"
    )
    if owner == (None, None):
        return item.fails(f"an endpoint without the tag {naming.ENVIRONMENT_TAG}: no stack made it", advice=advice)
    found = f"endpoint {owner[1] or 'unknown'} of environment {owner[0] or 'unknown'}"
    return item.fails(f"{found}, by its tags", advice=advice)


def check_key_change(subject: Subject) -> Iterator[PreflightResult]:
    """A key that is changed stays allowed, as ``artifacts.earlier_key``, until every object is written anew."""
    name = naming.artifact_parameter(environment=subject.environment.environment, value="key-arn")
    needed = "the key that objects are under is artifacts.key_arn or artifacts.earlier_key"
    yield from CheckedItem(check="key-change", subject="key of the artifacts", needed=needed).look(
        _change, subject, name
    )


def _change(item: CheckedItem, subject: Subject, name: str) -> PreflightResult:
    settings = subject.environment.artifacts
    answer = subject.calls.ask("ssm", "get_parameter", absent=("ParameterNotFound",), Name=name)
    if answer is None:
        return item.passes("nothing is deployed yet")
    deployed = str(answer["Parameter"]["Value"])
    allowed = (settings.key_arn or CREATED, settings.earlier_key)
    if deployed in allowed:
        return item.passes(deployed)
    stack = naming.stack_name(environment=subject.environment.environment, part=naming.ARTIFACTS)
    made = {deployed.partition("/")[0] + f"/{each}" for each in made_by(subject, stack).get("AWS::KMS::Key", ())}
    current = CREATED if deployed in made else deployed
    if current in allowed:
        return item.passes(deployed)
    return item.fails(
        f"{deployed}, which roles could use no longer"
        + (", and which would leave its stack" if current == CREATED else "")
        + ": no archive that is under it could be loaded",
        advice=f"Set `artifacts: {{earlier_key: {current}}}` in the environment's file while the key is changed: "
        "tritonstack docs updates#change-the-key has the steps.",
    )
