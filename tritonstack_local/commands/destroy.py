"""``tritonstack local destroy``: an environment's stacks, those that left its file included."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import click

from tritonstack.cli.conventions import environment_option
from tritonstack.cli.progress import Steps
from tritonstack.deployed.deletion import Deleter
from tritonstack.deployed.stacks import DeployedStack
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.local_aws import LOCAL_POLL_SECONDS
from tritonstack.naming import NAME_PATTERN
from tritonstack_local.aws import LocalAws, require_local_aws
from tritonstack_local.commands.deploy import LocalDeployment, following, one_deployment
from tritonstack_local.commands.stacks import goes_on_with, own_stacks


@click.command("destroy", epilog="example: tritonstack local destroy -e local")
@environment_option()
def destroy_command(*, environment: str) -> None:
    """Remove ENVIRONMENT from the local AWS with the real CDK CLI, and with it the stacks that left its file."""
    if not re.fullmatch(NAME_PATTERN, environment):
        raise InputError([Problem(field="--environment", found=environment, allowed="the name of an environment")])
    deployment = LocalDeployment(aws=require_local_aws(), environment=environment)
    if not is_synthesised(deployment.assembly) and not own_stacks(deployment.aws, environment):
        found = f"environment {environment!r} was not deployed from here"
        advice = f"tritonstack local deploy -e {environment}"
        raise InputError([Problem(found=found, allowed="an environment that was", advice=advice)])
    steps = Steps()
    try:
        with one_deployment(steps):
            destroy(deployment, steps)
    except KeyboardInterrupt:
        click.echo(goes_on_with(deployment.aws, environment), err=True)
        raise


def destroy(deployment: LocalDeployment, steps: Steps) -> None:
    """Delete the stacks that left the app, then the app's by ``cdk destroy``, then those that these still used.

    Raises WorkFailedError: a stack is still deployed; with what failed.
    """
    aws, name = deployment.aws, deployment.environment
    for stack in own_stacks(aws, name):
        _wait_for_update(aws, stack, steps)
    stacks = own_stacks(aws, name)
    synthesised = is_synthesised(deployment.assembly)
    app = stack_names(deployment.assembly) if synthesised else frozenset()
    left = [each for each in stacks if each.name not in app]
    belonging = [each for each in stacks if each.name in app]
    first = [each for each in left if not each.used_by(belonging)]
    _delete(aws, first, steps)
    if synthesised:
        with steps.step(f"destroy {name} (cdk destroy)") as step:
            try:
                following(deployment, step).destroy()
            except WorkFailedError as error:
                raise WorkFailedError("\n".join([str(error), *_still_deployed(aws, name)])) from error
    _delete(aws, [each for each in left if each not in first], steps)
    remaining = _still_deployed(aws, name)
    if remaining:
        raise WorkFailedError("\n".join(remaining))


def is_synthesised(assembly: Path) -> bool:
    """Whether a cloud assembly is whole: its manifest is written last."""
    return (assembly / "manifest.json").is_file()


def stack_names(assembly: Path) -> frozenset[str]:
    """The names in CloudFormation of the stacks of a cloud assembly and of its stages."""
    names = set()
    for file in (assembly / "manifest.json", *sorted(assembly.glob("assembly-*/manifest.json"))):
        for artifact in json.loads(file.read_text(encoding="utf-8")).get("artifacts", {}).values():
            if artifact.get("type") == "aws:cloudformation:stack":
                names.add(artifact["properties"]["stackName"])
    return frozenset(names)


def _wait_for_update(aws: LocalAws, stack: DeployedStack, steps: Steps) -> None:
    """Until a stack is no longer updated: CloudFormation refuses to delete it before (DeleteStack, ValidationError)."""
    if not (stack.in_progress and stack.status.startswith("UPDATE_")):
        return
    with steps.step(f"wait until the update of {stack.name} has ended: it cannot be deleted before") as step:
        ended = Deleter(aws.session(), step=steps.step, poll_seconds=LOCAL_POLL_SECONDS).until_idle(stack, step)
        step.end_with(ended)


def _delete(aws: LocalAws, stacks: Sequence[DeployedStack], steps: Steps) -> None:
    Deleter(aws.session(), step=steps.step, poll_seconds=LOCAL_POLL_SECONDS).delete(stacks)


def _still_deployed(aws: LocalAws, environment: str) -> list[str]:
    """Lines on each stack that is still there, with what to do; none where all are gone."""
    stacks = own_stacks(aws, environment)
    lines = [f"{each.name} is still deployed: {each.status}. {each.reason}".rstrip(". ") for each in stacks]
    again = f"  do:      fix that, then run the same command again: tritonstack local destroy -e {environment}"
    return [*lines, again] if lines else []
