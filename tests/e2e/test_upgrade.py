"""An environment that an earlier version of the product deployed, updated by this one; see ``previous.py``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.calls import invoke, target_model
from tests.e2e.deployments import aws_fails
from tests.e2e.previous import ENDPOINT, MODEL, NAME, PREVIOUS, deploy, destroy, unpack, write
from tests.e2e.project import REPOSITORY, Project
from tests.e2e.running import running
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]
LASTING = (
    "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SageMaker::Endpoint", "AWS::SNS::Topic", "AWS::Logs::LogGroup",
    "Custom::ReleaseRecords", "Custom::EndpointLogGroup",
)  # fmt: skip
"""Types that hold data, or a name that callers and people use: an update must not replace them."""
CHANGED: dict[str, Any] = {
    "tags": "{team: models, stage: trial}",
    "days": 30,
    "adds": 2,
    "instance_type": "ml.g4dn.2xlarge",  # of the same GPU: the archives' prefix stays
    "scaling": "{minimum: 1, maximum: 3, requests_per_second: 30, safety_factor: 0.6}",
    "container": "{shm_default_bytes: 33554432}",
}
"""What the user changes in the same deployment: each custom resource has an Update from the properties of then."""


NOT_PERMITTED = {
    # Application Auto Scaling tests its scaling function's rights with a name that the role does not cover.
    "0.1.0-00b180d.tar.xz",
    # Its execution roles may list a prefix with its slash alone; which of both SageMaker lists is UNVERIFIED.
    "0.1.0-a96f3e3f.tar.xz",
}
"""Versions whose deployment fails where permissions are enforced."""
OTHER_BUILDS = {*NOT_PERMITTED}
"""Versions whose function of builds had no name of its own: their ``Custom::ModelBuilds`` is replaced, not updated."""


@dataclass(frozen=True)
class Upgraded:
    """The environment on a local AWS of its own."""

    version: str  # the archive's name
    project: Project
    aws: LocalAws

    def answer(self, target: str) -> float:
        client = self.aws.client("sagemaker-runtime")
        return invoke(client, endpoint=ENDPOINT, target=target, value=3.0, environment=NAME)

    @property
    def target(self) -> str:
        return target_model(self.aws, endpoint=ENDPOINT, model=MODEL, environment=NAME)

    def resources(self) -> dict[tuple[str, str], tuple[str, str]]:
        cloudformation = self.aws.client("cloudformation")
        stacks = [one["StackName"] for one in cloudformation.describe_stacks()["Stacks"]]
        return {
            (stack, one["LogicalResourceId"]): (one["ResourceType"], one["PhysicalResourceId"])
            for stack in stacks
            if stack.startswith(f"{NAME}-")
            for one in cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
        }

    def lasting(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Those of the resources that no update may replace.

        Not the logs of functions where CloudFormation made up their names, as in earlier versions.
        """
        return {
            place: found
            for place, found in self.resources().items()
            if found[0] in LASTING and not found[1].startswith("/aws/cloudformation/")
        }

    def updated(self, stack: str) -> set[str]:
        """Types of the custom resources of a stack that its last operation, and what undid it, updated."""
        found: set[str] = set()
        for event in self.aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]:
            kind, status = event["ResourceType"], event["ResourceStatus"]
            if kind == "AWS::CloudFormation::Stack" and status == "UPDATE_IN_PROGRESS":
                return found
            if kind.startswith("Custom::") and status == "UPDATE_COMPLETE":
                found.add(kind)
        raise AssertionError(f"{stack} was never updated")

    def scaling(self) -> tuple[str, int, float]:
        """The variant that scales, its greatest number of instances, and the target of its policy."""
        client = self.aws.client("application-autoscaling")
        [target] = client.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        [policy] = client.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
        assert policy["ResourceId"] == target["ResourceId"]
        tracked = policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]
        return target["ResourceId"].rpartition("/")[2], target["MaxCapacity"], tracked

    def log_days(self) -> int:
        prefix = f"/aws/sagemaker/Endpoints/{NAME}-{ENDPOINT}"
        [group] = self.aws.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
        return int(group["retentionInDays"])


@pytest.fixture(scope="module", params=sorted(PREVIOUS.glob("*.tar.xz")), ids=lambda archive: archive.name)
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """What a version of then deployed; the project has the user's files of then."""
    archive: Path = request.param
    project = Project(tmp_path_factory.mktemp("upgraded"))
    shutil.copytree(REPOSITORY / "requirements", project.root / "requirements")
    with running(project, *(["--no-iam"] if archive.name in NOT_PERMITTED else [])) as aws:
        deploy(unpack(archive, project), project, aws)
        yield Upgraded(archive.name, project, aws)


def test_what_an_earlier_version_deployed_answers_here(upgraded: Upgraded) -> None:
    assert upgraded.answer(upgraded.target) == 4.0
    assert (upgraded.scaling()[1], upgraded.log_days()) == (4, 14)


def test_a_failed_update_by_this_version_goes_back_to_the_earlier_one(upgraded: Upgraded) -> None:
    before, target, scaling = upgraded.resources(), upgraded.target, upgraded.scaling()
    write(upgraded.project, **CHANGED)
    # The last of the deployment: by then everything else of the stack has been updated, and is sent back.
    fault = {"operation": "PutParameter", "status": 400, "code": "ParameterLimitExceeded", "times": 1}
    with aws_fails(upgraded.aws, fault):
        failed = upgraded.project.run("local", "deploy", "-e", NAME, expect=1)
    assert "ParameterLimitExceeded" in failed.stderr
    stack = upgraded.aws.client("cloudformation").describe_stacks(StackName=f"{NAME}-serving-{ENDPOINT}")["Stacks"][0]
    assert stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert (upgraded.target, upgraded.scaling()) == (target, scaling)
    assert upgraded.answer(target) == 4.0
    assert {place: found for place, found in upgraded.resources().items() if place[0] == stack["StackName"]} == {
        place: found for place, found in before.items() if place[0] == stack["StackName"]
    }
    assert upgraded.log_days() == 14


def test_an_update_by_this_version_replaces_nothing_that_lasts_and_everything_answers(upgraded: Upgraded) -> None:
    before, old_target = upgraded.lasting(), upgraded.target
    write(upgraded.project, **CHANGED)
    upgraded.project.run("local", "deploy", "-e", NAME)
    assert upgraded.lasting().items() >= before.items()
    assert upgraded.updated(f"{NAME}-serving-{ENDPOINT}") >= {
        "Custom::ScalingBefore",
        "Custom::ScalingSettled",
        "Custom::ScalingAfter",
        "Custom::PublishedArchives",
        "Custom::ReleaseRecords",
        "Custom::VerifiedEndpoint",
        "Custom::EndpointLogGroup",
        *(() if upgraded.version in OTHER_BUILDS else ("Custom::ModelBuilds",)),
    }
    assert upgraded.target != old_target
    assert (upgraded.answer(upgraded.target), upgraded.answer(old_target)) == (5.0, 4.0)
    variant, most, tracked = upgraded.scaling()
    live = upgraded.aws.client("sagemaker").describe_endpoint(EndpointName=f"{NAME}-{ENDPOINT}")
    assert [one["VariantName"] for one in live["ProductionVariants"]] == [variant]
    assert (most, tracked) == (3, 30 * 60 * 0.6)
    assert upgraded.log_days() == 30


def test_the_updated_environment_is_destroyed_and_its_bucket_emptied(upgraded: Upgraded) -> None:
    assembly = upgraded.project.root / ".local" / "cdk.out" / NAME
    destroy(assembly, upgraded.project, upgraded.aws)
    assert upgraded.resources() == {}
    assert not [one for one in upgraded.aws.client("s3").list_buckets()["Buckets"] if one["Name"].startswith(NAME)]
