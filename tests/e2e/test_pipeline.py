"""The pipeline's stack deploys and reads back; then its build commands are run in its order, by hand: nothing here
executes a pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tests.e2e.deployments import InBackground, advance, eventually
from tests.e2e.pipeline_checkout import PHASE_SECONDS, Checkout, Ran, container_credentials, stack_of
from tests.e2e.project import Project
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

LOAD_TEST = "load-test"
"""A gate's name."""


@pytest.fixture(scope="module")
def checkout(local_aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout whose pipeline is deployed; the account is bootstrapped."""
    project = Project(tmp_path_factory.mktemp("checkout"))
    made = Checkout(project, local_aws, name="line")
    empty = project.root / "empty"
    empty.mkdir()
    command = [str(project.root / "node_modules/.bin/cdk"), "bootstrap", "aws://123456789012/us-east-1"]
    project.execute(["sh", "-c", f"cd empty && {' '.join(command)}"], variables=made.variables())
    made.deploy_pipeline()
    return made


def declared(checkout: Checkout) -> dict[str, Any]:
    """The pipeline as CodePipeline has it."""
    found = checkout.aws.client("codepipeline").get_pipeline(name=checkout.name)
    pipeline: dict[str, Any] = found["pipeline"]
    return pipeline


def actions(checkout: Checkout) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stage and action, in the order in which CodePipeline would run them."""
    for stage in declared(checkout)["stages"]:
        for action in sorted(stage["actions"], key=lambda each: each["runOrder"]):
            yield stage["name"], action


def test_the_pipelines_stack_deploys_and_reads_back(checkout: Checkout) -> None:
    template = json.loads((checkout.root / "cdk.first" / "pipeline.template.json").read_text())
    [written] = [
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::CodePipeline::Pipeline"
    ]
    kept = declared(checkout)
    assert [stage["name"] for stage in kept["stages"]] == [stage["Name"] for stage in written["Stages"]]
    assert [stage["name"] for stage in kept["stages"]] == [
        "Source",
        "Build",
        "UpdatePipeline",
        "Assets",
        checkout.dev,
        f"gates-{checkout.dev}",
        f"approve-{checkout.live}",
        checkout.live,
    ]
    rolled_back = [stage["name"] for stage in kept["stages"] if stage.get("onFailure") == {"result": "ROLLBACK"}]
    assert rolled_back == [checkout.dev, checkout.live]
    projects = {each["configuration"]["ProjectName"] for _, each in actions(checkout) if is_build(each)}
    found = checkout.aws.client("codebuild").batch_get_projects(names=sorted(projects))["projects"]
    assert {each["name"] for each in found} == projects


def is_build(action: Mapping[str, Any]) -> bool:
    return bool(action["actionTypeId"]["provider"] == "CodeBuild")


@contextmanager
def job_hurried(aws: LocalAws, environment: str) -> Iterator[None]:
    """The clock goes on by a job's phases once the environment's one job runs."""
    machine = aws.client("ssm").get_parameter(Name=f"/tritonstack/{environment}/_load-test/state-machine-arn")
    executions, sagemaker = aws.client("stepfunctions"), aws.client("sagemaker")

    def running() -> bool:
        listed = executions.list_executions(stateMachineArn=machine["Parameter"]["Value"], statusFilter="RUNNING")
        for each in listed["executions"]:
            with suppress(sagemaker.exceptions.ClientError):
                job = sagemaker.describe_inference_recommendations_job(JobName=f"{environment}-lt-{each['name']}-1")
                return bool(job["Status"] == "IN_PROGRESS")
        return False

    def hurry() -> str:
        eventually(running)
        advance(aws, PHASE_SECONDS)
        return ""

    hurried = InBackground(hurry)
    yield
    hurried.ended()


class Execution:
    """A person who does what the pipeline would, action by action."""

    def __init__(self, checkout: Checkout, credentials: Mapping[str, str]) -> None:
        self.checkout, self._credentials = checkout, credentials
        self.done: list[str] = []
        self.said: dict[str, str] = {}

    def run(self) -> str | None:
        """Every action in order; the name of that which failed, or None."""
        for stage, action in list(actions(self.checkout)):
            name, provider = action["name"], action["actionTypeId"]["provider"]
            if is_build(action) and stage not in ("UpdatePipeline", "Assets"):
                ran = self._build(name, action["configuration"]["ProjectName"], given=self._given(action))
                self.said[name] = ran.said
                if ran.code != 0:
                    return str(name)
            elif provider == "CloudFormation" and action["configuration"]["ActionMode"] == "CHANGE_SET_EXECUTE":
                self._deploy(stage, action)
            elif provider == "Manual":
                assert not self._deployed(self.checkout.live), "nothing of it is touched before the approval"
            self.done.append(f"{stage}/{name}")
        return None

    def _build(self, name: str, project: str, *, given: Mapping[str, str]) -> Ran:
        """A load test takes as long as its phases, by the clock of the local AWS."""
        if name != LOAD_TEST:
            return self.checkout.build(project, given=given)
        with job_hurried(self.checkout.aws, self.checkout.dev):
            return self.checkout.build(project, given=given)

    def _given(self, action: Mapping[str, Any]) -> dict[str, str]:
        """Synthesis calls nobody, so that it gets no credentials."""
        return {} if action["name"] == "synth" else dict(self._credentials)

    def _deploy(self, stage: str, action: Mapping[str, Any]) -> None:
        """What the actions Prepare and Deploy of a stack do, and asset publishing before them: the CDK does all."""
        prepare = next(
            each
            for _, each in actions(self.checkout)
            if each["actionTypeId"]["provider"] == "CloudFormation"
            and each["configuration"]["ActionMode"] == "CHANGE_SET_REPLACE"
            and each["configuration"]["StackName"] == action["configuration"]["StackName"]
        )
        self.checkout.cdk(
            "deploy", stack_of(self.checkout.root, prepare), "--app", "cdk.out", "--exclusively",
            "--require-approval", "never",
        )  # fmt: skip
        assert stage in (self.checkout.dev, self.checkout.live)

    def _deployed(self, environment: str) -> list[str]:
        stacks = self.checkout.aws.client("cloudformation").describe_stacks()["Stacks"]
        return [each["StackName"] for each in stacks if each["StackName"].startswith(f"{environment}-")]


@pytest.fixture(scope="module")
def execution(checkout: Checkout) -> Execution:
    """The whole line, once."""
    with container_credentials(checkout) as (credentials, asked):
        execution = Execution(checkout, credentials)
        assert execution.run() is None, execution.said
        assert asked, "the builds took the credentials that CodeBuild serves"
    return execution


def test_the_pipelines_commands_deploy_both_environments_and_the_deployment_builds_nothing(
    checkout: Checkout, execution: Execution
) -> None:
    done = execution.done
    for environment in (checkout.dev, checkout.live):
        order = [
            f"{environment}/artifacts.Deploy",
            f"{environment}/builds.Deploy",
            f"{environment}/pipeline-access.Deploy",
            f"{environment}/pipeline-access.prepare-{environment}",
            f"{environment}/serving-small.Deploy",
            f"{environment}/verify-{environment}",
        ]
        places = [done.index(each) for each in order]
        assert places == sorted(places)
        assert "doubles" in execution.said[f"verify-{environment}"]
        assert builds_started(checkout, environment) == [], "the wait of the deployment found nothing to build"


def test_gates_are_run_after_what_they_look_at_and_before_the_approval(
    checkout: Checkout, execution: Execution
) -> None:
    done, order = execution.done, ["sound", LOAD_TEST]
    gates = [done.index(f"gates-{checkout.dev}/{each}") for each in order]
    assert gates == sorted(gates)
    assert done.index(f"{checkout.dev}/verify-{checkout.dev}") < gates[0]
    assert gates[-1] < done.index(f"approve-{checkout.live}/approve-{checkout.live}")
    assert f"gate of {checkout.dev}: passed" in execution.said[LOAD_TEST]
    assert "Constructed responses of the local AWS" in execution.said[LOAD_TEST]


def builds_started(checkout: Checkout, environment: str) -> list[str]:
    name = f"/tritonstack/{environment}/_builds/project-name"
    project = checkout.aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    found: list[str] = checkout.aws.client("codebuild").list_builds_for_project(projectName=project)["ids"]
    return found
