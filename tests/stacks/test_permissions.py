"""Every wildcard in a permission, with its reason; and every accepted finding, with proof that it is needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import allowed, flat, listed, new_app, template_of
from tests.engines.engine_environments import A10G, T4, served_engines, write_models
from tests.stacks.engine_stages import stage_of
from tests.stacks.environments import DIGITS, SINGLE, digests, environment, stage
from tritonstack.engines.order import Served

WITH_ALL_OPTIONS = environment(
    {**DIGITS, "scaling": {"minimum": 1, "maximum": 2, "gpu_utilization": 60}},
    {**SINGLE, "volume_key_arn": "arn:aws:kms:us-east-1:123456789012:alias/volumes"},
    permissions_boundary="arn:aws:iam::123456789012:policy/boundary",
    artifacts={"retain": False},
)

BUCKET = r"arn:aws:s3:::\$\{\w+\}"
RECORDS = "arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/dev"
INTERFACES = r"arn:aws:ec2:us-east-1:123456789012:network-interface/\*"
TRACKING = "arn:aws:cloudwatch:us-east-1:123456789012:alarm:TargetTracking-endpoint"
PROCESSING_STREAMS = (
    "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/ProcessingJobs:log-stream:local-engine-\\*"
)
WILDCARDS = {
    ("SeeEndpointConfigs", r"arn:aws:sagemaker:us-east-1:123456789012:endpoint-config/\*"): "its name is generated",
    ("ScaleVariants", r"arn:aws:application-autoscaling:us-east-1:123456789012:scalable-target/\*"): (
        "its id is generated; namespace and dimension are conditions"
    ),
    ("SeeScaling", r"\*"): "Application Auto Scaling's Describe actions have no resource type",
    ("TrackTargets", rf"{TRACKING}/dev-digits/variant/\*"): "Application Auto Scaling ends their names with an id",
    ("PassEndpointValidation", r"arn:aws:sagemaker:us-east-1:123456789012:endpoint/\*"): (
        "Application Auto Scaling tries the caller's rights on names of its own; what stacks made is left out"
    ),
    ("PassAlarmValidation", r"arn:aws:cloudwatch:us-east-1:123456789012:alarm:\*"): "the same, without a name",
    ("ReadArchives", r"arn:aws:s3:::\$\{\w+\}/endpoints/[a-z]+/24\.09-(t4|a10g)/\*"): "callers name the archive",
    ("LogInToRegistry", r"\*"): "ecr:GetAuthorizationToken has no resource type",
    ("WriteMetrics", r"\*"): "cloudwatch:PutMetricData has no resource type; its namespace is a condition",
    ("WriteLogs", r"arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/dev-[a-z]+:log-stream:\*"): (
        "SageMaker names streams after instances"
    ),
    ("AttachEncryptedVolume", r"arn:aws:kms:us-east-1:123456789012:key/\*"): "the alias is a condition",
    ("ReadManifests", rf"{BUCKET}/manifests/[a-z]+/24\.09-(t4|a10g)/\*"): "models come and go",
    ("SeeUnloads", r"\*"): "cloudwatch:GetMetricStatistics has no resource type",
    ("ReadReleaseSets", r"arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1/\*\.release-set"): (
        "keys of other deployments are not known"
    ),
    ("EmptyArchives", r"\$\{\w+\.Arn\}/\*"): "the bucket is deleted with its stack",
    ("EmptyAccessLogs", r"\$\{\w+\.Arn\}/\*"): "the bucket is deleted with its stack",
    ("MoveRecords", rf"{RECORDS}/(_removed/)?[a-z]+/\*"): "models come and go",
    ("FindRecords", rf"{RECORDS}/(_removed/)?[a-z]+/\*"): "models come and go",
    ("ReadAndWriteJobs", rf"{BUCKET}/staging/jobs/\*"): "each run has a folder of a new name",
    ("ReadFiles", rf"{BUCKET}/staging/(orders|jobs)/\*"): "orders and runs have new names",
    ("ReadFiles", rf"{BUCKET}/(endpoints|manifests|inputs|timing-caches)/\*"): "what was committed, by kind",
    ("WriteFiles", rf"{BUCKET}/staging/jobs/\*"): "each run has a folder of a new name",
    ("WriteFiles", rf"{BUCKET}/(endpoints|manifests|inputs|timing-caches)/\*"): "what is committed, by kind",
    ("RemoveJobs", rf"{BUCKET}/staging/jobs/\*"): "each run has a folder of a new name",
    ("FindEngineJobs", r"\*"): "sagemaker:ListProcessingJobs has no resource type",
    ("StopEngineJobs", r"arn:aws:sagemaker:us-east-1:123456789012:processing-job/local-engine-\*"): (
        "each job has a new name"
    ),
    ("ReadParameters", r"arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/local/\*"): "models come and go",
    ("ReadRecords", r"arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/local/\*"): "models come and go",
    ("ProcessEngines", r"arn:aws:sagemaker:us-east-1:123456789012:processing-job/local-engine-\*"): (
        "a job's name is used once"
    ),
    ("ReadProcessingLog", PROCESSING_STREAMS): "SageMaker names streams after jobs",
    ("WriteLog", PROCESSING_STREAMS): "SageMaker names streams after jobs",
    ("ReadBuildSets", r"arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1/\*\.build-set"): (
        "keys of other endpoints and deployments are not known"
    ),
    ("WriteOrders", rf"{BUCKET}/staging/orders/\*"): "orders have new names",
    ("KeepWaits", rf"{BUCKET}/staging/waits/\*"): "orders have new names",
    ("SeeRollbacks", r"arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-\*"): (
        "endpoints come and go; a stack's ARN ends in digits of its own"
    ),
    ("MakeInterfaces", INTERFACES): "an interface has no name before it is made",
    ("RemoveInterfaces", INTERFACES): "the subnets are a condition",
    ("LendInterfaces", INTERFACES): "the subnets are a condition",
    ("TakeInterfacesBack", r"\*"): "the permission of an interface has no resource type",
    ("DescribeNetwork", r"\*"): "EC2's Describe actions have no resource type",
}
"""(what the statement is for, the whole resource as a pattern) → why it may hold a wildcard."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engines")
    write_models(folder)
    return folder


@pytest.fixture(scope="module")
def engines(project: Path) -> Served:
    """An environment in whose builds stack nothing is left out."""
    network = "{vpc_id: vpc-1a, subnet_ids: [subnet-1], security_group_ids: [sg-1]}"
    image = "210987654321.dkr.ecr.us-east-1.amazonaws.com/team/cpu:1"
    header = (
        f"builds: {{network: {network}, image: '{image}'}}\n"
        "permissions_boundary: arn:aws:iam::123456789012:policy/boundary"
    )
    return served_engines(project, A10G, T4, header=header)


@pytest.fixture(scope="module")
def permissions(engines: Served, project: Path) -> list[dict[str, Any]]:
    made, building = stage(WITH_ALL_OPTIONS), stage_of(engines, project)
    assert building.builds is not None
    stacks = (made.artifacts, *made.serving.values(), building.builds)
    return [each for stack in stacks for each in allowed(template_of(stack))]


def test_no_action_has_a_wildcard(permissions: list[dict[str, Any]]) -> None:
    assert not [action for each in permissions for action in listed(each["Action"]) if "*" in action]


def test_every_wildcard_in_a_resource_is_one_with_a_reason(permissions: list[dict[str, Any]]) -> None:
    found = {(each["Sid"], flat(arn)) for each in permissions for arn in listed(each["Resource"]) if "*" in flat(arn)}
    unexplained = {
        (sid, arn) for sid, arn in found if not any(sid == of and re.fullmatch(as_, arn) for of, as_ in WILDCARDS)
    }
    unused = {(of, as_) for of, as_ in WILDCARDS if not any(sid == of and re.fullmatch(as_, arn) for sid, arn in found)}
    assert unexplained == set()
    assert unused == set()


def test_every_statement_of_a_role_says_what_it_is_for(permissions: list[dict[str, Any]]) -> None:
    assert all(each.get("Sid") for each in permissions)


ACKNOWLEDGMENT = cdk.Acknowledgment


class Acknowledgements:
    """What the constructs acknowledge: finding → reason. Where ``heeded`` is false, nag hears of none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, heeded: bool) -> None:
        self.made: dict[str, str] = {}
        self.heeded = heeded
        monkeypatch.setattr(cdk, "Acknowledgment", self._make)

    def _make(self, *, id: str, reason: str) -> cdk.Acknowledgment:  # noqa: A002 - as the CDK spells it
        self.made[id] = reason
        return ACKNOWLEDGMENT(id=id if self.heeded else "AwsSolutions-NONE", reason=reason)


def checked_by_nag(engines: Served, project: Path) -> None:
    """Synthesise with cdk-nag; raises RuntimeError with what it finds."""
    app = new_app()
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    EnvironmentStage(app, environment=WITH_ALL_OPTIONS, release_sets=digests(WITH_ALL_OPTIONS))
    stage_of(engines, project, scope=app)
    app.synth()


def test_nag_is_content_and_every_reason_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, engines: Served, project: Path
) -> None:
    acknowledgements = Acknowledgements(monkeypatch, heeded=True)
    checked_by_nag(engines, project)
    assert acknowledgements.made
    for finding, reason in acknowledgements.made.items():
        assert reason.endswith("."), finding
        assert len(reason.split()) > 12, finding


def test_every_acknowledgement_is_needed(monkeypatch: pytest.MonkeyPatch, engines: Served, project: Path) -> None:
    """Without them the synthesis fails, and nag finds each: so none is stale, and nag does look at all of it."""
    acknowledgements = Acknowledgements(monkeypatch, heeded=False)
    with pytest.raises(RuntimeError) as caught:
        checked_by_nag(engines, project)
    found = set(re.findall(r"Acknowledge with 'AwsSolutions::(.+)'", str(caught.value)))
    assert found == set(acknowledgements.made)
