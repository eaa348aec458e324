"""Load tests: who may start one, and the state machine that runs Inference Recommender."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aws_cdk import aws_iam as iam
from typing_extensions import TypedDict

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.model_build import allow_parameters
from constructs_lib.permission import allow, allow_key_through_s3, allow_listing, arn, endpoint_arns
from tritonstack import naming

TESTS = naming.load_test_prefix()
FILE = Path(__file__).parent / "data" / "load_test.asl.json"


def allow_load_tests(policy: iam.Policy, *, environment: str, artifacts: ArtifactBucketReference) -> None:
    """Allow what starting any load test takes: parameters of the stacks, and the folder of tests."""
    allow_parameters(policy, environment)
    allow(
        policy,
        "KeepTests",
        ["s3:GetObject", "s3:PutObject"],
        [artifacts.objects_arn(f"{TESTS}*")],
        wildcard="A test has a folder of its own, which comes after the deployment that made this role.",
    )
    # Without it S3 reports a missing object as access denied.
    allow_listing(policy, "FindTests", artifacts=artifacts, prefixes=[TESTS])
    allow_key_through_s3(policy, "UseKey", ["kms:Decrypt", "kms:GenerateDataKey"], artifacts=artifacts)


def allow_bench_builds(policy: iam.Policy, *, project_name: str) -> None:
    """Allow running builds of the load-test project, which tests multi-model endpoints."""
    project = arn(policy, "codebuild", "project", project_name)
    allow(policy, "RunBench", ["codebuild:BatchGetBuilds", "codebuild:StartBuild", "codebuild:StopBuild"], [project])


def allow_recommender(
    policy: iam.Policy,
    *,
    environment: str,
    endpoints: Sequence[str],
    artifacts: ArtifactBucketReference,
    state_machine_name: str,
) -> None:
    """Allow running the state machine that tests single-model endpoints. ``endpoints``: their names in settings."""
    allow(policy, "DescribeEndpoints", ["sagemaker:DescribeEndpoint"], endpoint_arns(policy, environment, endpoints))
    allow_describing_models(policy)
    prefixes = [f"manifests/{each}/" for each in endpoints]
    allow(
        policy,
        "ReadManifests",
        ["s3:GetObject"],
        [artifacts.objects_arn(f"{prefix}*") for prefix in prefixes],
        wildcard="A manifest is named after its archive's digest; archives come and go.",
    )
    allow_listing(policy, "FindManifests", artifacts=artifacts, prefixes=prefixes)
    machine = arn(policy, "states", "stateMachine", state_machine_name)
    executions = arn(policy, "states", "execution", f"{state_machine_name}:*")
    jobs = arn(policy, "sagemaker", "inference-recommendations-job", f"{naming.load_test_job_prefix(environment)}*")
    why = "Executions and jobs of the one state machine are named after tests."
    allow(policy, "StartRecommender", ["states:StartExecution"], [machine])
    actions = ["states:DescribeExecution", "states:StopExecution"]
    allow(policy, "FollowRecommender", actions, [executions], wildcard=why)
    allow(policy, "FollowJobs", ["sagemaker:DescribeInferenceRecommendationsJob"], [jobs], wildcard=why)


def allow_describing_models(policy: iam.Policy) -> None:
    """A test's results state the endpoint config and the model that were measured."""
    for action, resource in (("DescribeEndpointConfig", "endpoint-config"), ("DescribeModel", "model")):
        allow(
            policy,
            action,
            [f"sagemaker:{action}"],
            [arn(policy, "sagemaker", resource, "*")],
            wildcard="CloudFormation names configs and models anew with each replacement; they are described, for "
            "the results to say what was measured, and not changed.",
        )


class Definition(TypedDict):
    """Top-level fields of a state machine definition (Amazon States Language)."""

    Comment: str
    StartAt: str
    TimeoutSeconds: int
    States: dict[str, dict[str, Any]]


def definition(*, at_once: int, partition: str = "aws") -> Definition:
    """The state machine's definition, with ``at_once`` jobs at a time; DefinitionSubstitutions put ``${Function}``."""
    document: Definition = json.loads(FILE.read_text(encoding="utf-8").replace("arn:aws:", f"arn:{partition}:"))
    document["States"]["Measure"]["MaxConcurrency"] = at_once
    return document
