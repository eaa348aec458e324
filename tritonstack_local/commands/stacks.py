"""Stacks on the local AWS as CloudFormation has them: stuck ones, ones at work, and ones that left their file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws.read_only import NotKnownError, ReadOnlyCalls
from tritonstack.aws.session import code_of
from tritonstack.cli.leftovers import leftovers_command
from tritonstack.config import load_environment
from tritonstack.deployed.left import LeftEntry, deployed_and_left, deployed_without_file
from tritonstack.deployed.stacks import DeployedStack, deployed_stacks, of_environment
from tritonstack.deployed.states import stuck_stacks
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.paths import environment_file, project_folder
from tritonstack_local import REGION
from tritonstack_local.aws import LocalAws

BOOTSTRAP_STACK = "CDKToolkit"
BUCKET_OUTPUT = "BucketName"
"""Output of the bootstrap stack: the bucket of assets (aws-cdk, bootstrap-template.yaml)."""
ENV = 'eval "$(tritonstack local env)"; '
"""Points the AWS CLI at the local AWS."""


def own_stacks(aws: LocalAws, environment: str) -> tuple[DeployedStack, ...]:
    """The stacks of an environment, in the order of their deletion.

    Raises WorkFailedError: the local AWS does not respond.
    """
    try:
        return of_environment(deployed_stacks(ReadOnlyCalls(aws.session()), region=REGION), environment)
    except NotKnownError as error:
        raise WorkFailedError(f"{error.found}; its log: {aws.emulator.log}") from error


def refuse_stuck(aws: LocalAws, environment: str) -> None:
    """Raise WorkFailedError where a stack of the environment is in a state that no deployment goes on from.

    Before anything is built: the deployment would fail at it at its end.
    """
    stuck = stuck_stacks(own_stacks(aws, environment))
    if stuck:
        lines = [f"{each.sentence}\n  do:      {ENV}{each.advice}" for each in stuck]
        again = f"  or:      tritonstack local destroy -e {environment}, then tritonstack local deploy -e {environment}"
        raise WorkFailedError("\n".join([*lines, again]))


def goes_on_with(aws: LocalAws, environment: str) -> str:
    """Operations that CloudFormation continues after a command was interrupted; empty without any."""
    try:
        running = [each for each in own_stacks(aws, environment) if each.in_progress]
    except WorkFailedError:
        return ""
    if not running:
        return ""
    names = ", ".join(f"{each.name} ({each.status})" for each in running)
    updates = [each.name for each in running if each.status == "UPDATE_IN_PROGRESS"]
    cancel = "".join(
        f"\n  or:      {ENV}aws cloudformation cancel-update-stack --stack-name {name}" for name in updates
    )
    return (
        f"CloudFormation goes on with {names}, without this command\n"
        f"  do:      run the same command again, which waits for that first{cancel}"
    )


def bootstrap_stands(aws: LocalAws) -> bool:
    """Whether the account is bootstrapped.

    Raises WorkFailedError: its bucket is gone, which the stack does not notice; or the local AWS does not respond.
    """
    cloudformation = aws.client("cloudformation")
    try:
        stack = cloudformation.describe_stacks(StackName=BOOTSTRAP_STACK)["Stacks"][0]
        if stack["StackStatus"] not in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"):
            return False
        outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}
        bucket = outputs.get(BUCKET_OUTPUT)
        if bucket is not None:
            aws.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        if code_of(error) == "ValidationError" and "does not exist" in str(error):
            return False
        if code_of(error) in ("404", "NoSuchBucket"):
            raise WorkFailedError(
                f"the bucket {bucket} of the CDK's bootstrap is gone, and the stack {BOOTSTRAP_STACK} still has it: "
                "every deployment fails at its first asset\n"
                f"  do:      {ENV}aws cloudformation delete-stack --stack-name {BOOTSTRAP_STACK}, then deploy again, "
                "which bootstraps the account anew (tritonstack docs troubleshooting)"
            ) from error
        raise WorkFailedError(f"{error}; its log: {aws.emulator.log}") from error
    except BotoCoreError as error:
        raise WorkFailedError(f"{error}; its log: {aws.emulator.log}") from error
    return True


@dataclass(frozen=True, kw_only=True)
class LeftOnLocalAws:
    """Deployed resources of an environment that its file no longer has, or the reason why they are unknown."""

    environment: str  # its name
    left: tuple[LeftEntry, ...]  # in the order of their deletion
    lines: tuple[str, ...]  # what a person reads


def left_on(aws: LocalAws) -> tuple[LeftOnLocalAws, ...]:
    """Leftover resources of every deployed environment, by its file in this project; empty without any."""
    calls = ReadOnlyCalls(aws.session())
    try:
        stacks = deployed_stacks(calls, region=REGION)
    except NotKnownError as error:
        return (
            LeftOnLocalAws(
                environment="", left=(), lines=(f"stacks that left their files could not be listed: {error.found}",)
            ),
        )
    found = (_left_of(calls, each) for each in _environments(stacks))
    return tuple(each for each in found if each.lines)


def _environments(stacks: Iterable[DeployedStack]) -> list[str]:
    return sorted({each.environment for each in stacks if each.part})


def _left_of(calls: ReadOnlyCalls, environment: str) -> LeftOnLocalAws:
    file, project = environment_file(environment), project_folder()
    name = f"environments/{environment}.yaml"
    try:
        if file.is_file():
            command = leftovers_command(environment, local=True)
            deployed = deployed_and_left(calls, load_environment(file), project=project)
            do = f"{command} --delete"
        else:
            why = f"this project has no {name}"
            deployed = deployed_without_file(calls, environment, region=REGION, why=why, project=project)
            do = f"tritonstack local destroy -e {environment}"
    except (NotKnownError, InputError) as error:
        text = f"stacks that left {name} could not be listed: {error}"
        return LeftOnLocalAws(environment=environment, left=(), lines=(text,))
    lines = [each.sentence for each in deployed.left]
    return LeftOnLocalAws(
        environment=environment,
        left=tuple(map(LeftEntry.of, deployed.left)),
        lines=(*lines, f"  do:      {do}") if lines else (),
    )
