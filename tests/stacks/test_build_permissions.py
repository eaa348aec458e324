"""What the roles of builds may do, and what they may not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.constructs_lib.templates import of_type, template_of
from tests.engines.engine_environments import A10G, T4
from tests.stacks.engine_stages import engine_stage
from tests.stacks.policy import Policy

ACCOUNT = "123456789012"
BUCKET = "arn:aws:s3:::${ArtifactsBucketNameA6BBDB86}"
OTHER_KEY = "arn:aws:kms:us-east-1:123456789012:key/other"
BUILDERS = ("build", "engines", "processing")
ENGINES = ("engines", "processing")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = engine_stage(tmp_path_factory.mktemp("permissions"), A10G, T4)
    assert made.builds is not None
    return template_of(made.builds)


@pytest.fixture(scope="module")
def policies(template: dict[str, Any]) -> dict[str, Policy]:
    begins = {
        "build": "ModelBuildAccess",
        "engines": "EngineProjectAccess",
        "processing": "ProcessingRoleAccess",
        "function": "SignalsHandlerAccess",
    }
    return {name: Policy(template, begins=start) for name, start in begins.items()}


def test_there_is_no_other_policy(template: dict[str, Any]) -> None:
    assert len(of_type(template, "AWS::IAM::Policy")) == 4


JOB = "staging/jobs/run/job/model.onnx"
OUTPUT = "staging/jobs/run/output/model.plan"
ARCHIVE = "endpoints/e0/24.09-t4/fast.0123456789abcdef.tar.gz"
MANIFEST = "manifests/e0/24.09-t4/fast.0123456789abcdef.json"
INPUTS = "inputs/0123456789abcdef.zip"
CACHE = "timing-caches/t4/10.4/timing.cache"
ORDER, WAIT = "staging/orders/0.json", "staging/waits/0.json"
EVERY = (JOB, OUTPUT, ARCHIVE, MANIFEST, INPUTS, CACHE, ORDER, WAIT)
READS = {
    "build": {JOB, OUTPUT, ARCHIVE, MANIFEST, INPUTS, CACHE, ORDER},
    "engines": {JOB, OUTPUT},
    "processing": {JOB, OUTPUT},
    "function": {WAIT},
}
WRITES = {
    "build": {JOB, OUTPUT, ARCHIVE, MANIFEST, INPUTS, CACHE},
    "engines": {JOB, OUTPUT},
    "processing": {JOB, OUTPUT},
    "function": {ORDER, WAIT},
}
DELETES: dict[str, set[str]] = {"build": {JOB, OUTPUT}, "engines": set(), "processing": set(), "function": set()}


@pytest.mark.parametrize(
    ("action", "expected"), [("s3:GetObject", READS), ("s3:PutObject", WRITES), ("s3:DeleteObject", DELETES)]
)
def test_each_role_reads_writes_and_deletes_its_own_keys_alone(
    policies: dict[str, Policy], action: str, expected: dict[str, set[str]]
) -> None:
    for role, policy in policies.items():
        assert {key for key in EVERY if policy.allows(action, f"{BUCKET}/{key}")} == expected[role], role


def test_nobody_touches_another_bucket_or_a_bucket_s_settings(policies: dict[str, Policy]) -> None:
    for role, policy in policies.items():
        for action in policy.actions("s3"):
            assert not policy.allows(action, "arn:aws:s3:::other"), role
            assert not policy.allows(action, f"arn:aws:s3:::other/{ARCHIVE}"), role
        changing = {name for name in policy.actions("s3") if "Bucket" in name and "Get" not in name}
        assert changing <= {"s3:ListBucket"}, role
        assert not policy.actions("s3") & {"s3:DeleteObjectVersion", "s3:PutObjectAcl"}, role


@pytest.mark.parametrize(
    ("role", "listed"),
    [
        ("build", {"endpoints/e0/", "manifests/e0/", "inputs/", "staging/jobs/run/"}),
        ("engines", {"staging/jobs/run/"}),
        ("processing", {"staging/jobs/run/"}),
        ("function", {"endpoints/e0/"}),
    ],
)
def test_each_role_lists_what_it_looks_for_and_no_waits(
    policies: dict[str, Policy], role: str, listed: set[str]
) -> None:
    every = ("", "endpoints/e0/", "manifests/e0/", "inputs/", "staging/jobs/run/", "staging/waits/", "staging/")
    assert {prefix for prefix in every if policies[role].allows("s3:ListBucket", BUCKET, s3_prefix=prefix)} == listed
    assert not policies[role].allows("s3:ListBucket", BUCKET)


def test_of_the_staging_bucket_a_build_reads_its_source_and_the_function_build_sets(
    policies: dict[str, Policy],
) -> None:
    staging = "arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1"
    assert policies["function"].allows("s3:GetObject", f"{staging}/0.build-set")
    for name in ("0.release-set", "0.zip", "0.json"):
        assert not any(policy.allows("s3:GetObject", f"{staging}/{name}") for policy in policies.values())
    sources = {arn for arn in policies["build"].resources("s3:GetObject") if arn.startswith(staging)}
    assert len(sources) == 1
    assert "*" not in next(iter(sources))
    assert not any(policy.allows("s3:PutObject", f"{staging}/0.build-set") for policy in policies.values())


def test_the_build_passes_one_role_to_sagemaker_and_no_other(
    policies: dict[str, Policy], template: dict[str, Any]
) -> None:
    [role] = [name for name in of_type(template, "AWS::IAM::Role") if name.startswith("ProcessingRole")]
    build, arn = policies["build"], f"${{{role}.Arn}}"
    assert build.allows("iam:PassRole", arn, iam_PassedToService="sagemaker.amazonaws.com")
    assert not build.allows("iam:PassRole", arn, iam_PassedToService="ec2.amazonaws.com")
    assert not build.allows("iam:PassRole", arn)
    others = [name for name in of_type(template, "AWS::IAM::Role") if name != role]
    for other in (*(f"${{{name}.Arn}}" for name in others), f"arn:aws:iam::{ACCOUNT}:role/admin"):
        assert not build.allows("iam:PassRole", other, iam_PassedToService="sagemaker.amazonaws.com")
    assert not any(policies[name].actions("iam") for name in (*ENGINES, "function"))


def test_the_build_runs_engine_jobs_of_its_environment_and_nothing_else_of_sagemaker(
    policies: dict[str, Policy],
) -> None:
    build, jobs = policies["build"], f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:processing-job"
    for action in ("CreateProcessingJob", "DescribeProcessingJob", "StopProcessingJob", "AddTags"):
        assert build.allows(f"sagemaker:{action}", f"{jobs}/local-engine-fast-01234567")
        for other in ("local-fast", "prod-engine-fast-01234567", "locals-engine-fast"):
            assert not build.allows(f"sagemaker:{action}", f"{jobs}/{other}")
    assert len(build.actions("sagemaker")) == 4
    assert not any(policies[name].actions("sagemaker") for name in ENGINES)


def test_the_function_stops_engines_of_its_environment_and_starts_none(
    policies: dict[str, Policy], template: dict[str, Any]
) -> None:
    function, jobs = policies["function"], f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:processing-job"
    assert function.actions("sagemaker") == {
        "sagemaker:DescribeProcessingJob", "sagemaker:ListProcessingJobs", "sagemaker:StopProcessingJob",
    }  # fmt: skip
    for action in ("DescribeProcessingJob", "StopProcessingJob"):
        assert function.allows(f"sagemaker:{action}", f"{jobs}/local-engine-fast-01234567")
        for other in ("local-fast", "prod-engine-fast-01234567", "locals-engine-fast"):
            assert not function.allows(f"sagemaker:{action}", f"{jobs}/{other}")
    [engines] = [name for name in of_type(template, "AWS::CodeBuild::Project") if name.startswith("EngineProject")]
    assert function.resources("codebuild:StopBuild") == {f"${{{engines}.Arn}}"}


def test_the_build_starts_engines_and_the_function_starts_the_build(
    policies: dict[str, Policy], template: dict[str, Any]
) -> None:
    projects = of_type(template, "AWS::CodeBuild::Project")
    [engines] = [name for name in projects if name.startswith("EngineProject")]
    [build] = [name for name in projects if name.startswith("ModelBuild")]
    started = {role: policy.resources("codebuild:StartBuild") for role, policy in policies.items()}
    assert started == {
        "build": {f"${{{engines}.Arn}}"},
        "function": {f"${{{build}.Arn}}"},
        "engines": set(),
        "processing": set(),
    }
    assert policies["build"].actions("codebuild") == {
        "codebuild:BatchGetBuilds", "codebuild:StartBuild", "codebuild:StopBuild",
    }  # fmt: skip


def test_records_are_read_and_never_written(policies: dict[str, Policy]) -> None:
    parameters = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/tritonstack"
    for role in ("build", "function"):
        assert policies[role].allows("ssm:GetParametersByPath", f"{parameters}/local/e0")
        assert not policies[role].allows("ssm:GetParametersByPath", f"{parameters}/prod/e0")
        assert not policies[role].allows("ssm:GetParametersByPath", f"{parameters}/locals/e0")
        assert all(name.startswith("ssm:GetParameter") for name in policies[role].actions("ssm"))
    assert not any(policies[name].actions("ssm") for name in ENGINES)


@pytest.mark.parametrize("role", ENGINES)
def test_engines_machines_pull_the_triton_image_alone(policies: dict[str, Policy], role: str) -> None:
    triton = "arn:aws:ecr:us-east-1:763104351884:repository/sagemaker-tritonserver"
    policy = policies[role]
    assert policy.resources("ecr:BatchGetImage") == {triton}
    assert policy.actions("ecr") == {
        "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetAuthorizationToken",
        "ecr:GetDownloadUrlForLayer",
    }  # fmt: skip


def test_each_role_writes_its_own_log(policies: dict[str, Policy]) -> None:
    written = {role: policy.resources("logs:PutLogEvents") for role, policy in policies.items()}
    assert not written["build"] & written["engines"]
    for role in ("build", "engines", "function"):
        assert written[role], role
        assert all("*" not in arn for arn in written[role]), role
    processing = f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/ProcessingJobs:log-stream"
    assert policies["processing"].allows("logs:PutLogEvents", f"{processing}:local-engine-fast-0/algo-1")
    assert not policies["processing"].allows("logs:PutLogEvents", f"{processing}:prod-engine-fast-0/algo-1")
    assert not any("logs:DeleteLogStream" in policy.actions("logs") for policy in policies.values())


def test_the_key_is_used_and_never_managed(policies: dict[str, Policy]) -> None:
    for role, policy in policies.items():
        assert policy.actions("kms"), role
        assert all(not policy.allows(action, OTHER_KEY) for action in policy.actions("kms")), role
        managing = {"kms:PutKeyPolicy", "kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:RevokeGrant"}
        assert not policy.actions("kms") & managing, role
    [key] = policies["processing"].resources("kms:CreateGrant")
    assert not policies["processing"].allows("kms:CreateGrant", key)
    assert policies["processing"].allows("kms:CreateGrant", key, kms_GrantIsForAWSResource="true")


def test_metrics_of_a_job_go_to_its_own_namespace(policies: dict[str, Policy]) -> None:
    processing = policies["processing"]
    own = {"cloudwatch_namespace": "/aws/sagemaker/ProcessingJobs"}
    assert processing.allows("cloudwatch:PutMetricData", "*", **own)
    assert not processing.allows("cloudwatch:PutMetricData", "*", cloudwatch_namespace="AWS/SageMaker")


def test_roles_are_assumed_by_their_service_for_this_account_alone(template: dict[str, Any]) -> None:
    services = {}
    for name, role in of_type(template, "AWS::IAM::Role").items():
        [statement] = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        services[name[:10]] = statement["Principal"]["Service"]
        if "lambda" not in statement["Principal"]["Service"]:
            assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT}}
    assert services == {
        "ModelBuild": "codebuild.amazonaws.com",
        "EngineProj": "codebuild.amazonaws.com",
        "Processing": "sagemaker.amazonaws.com",
        "SignalsHan": "lambda.amazonaws.com",
    }


def test_only_the_rule_of_this_project_may_call_the_function_and_leave_what_it_cannot_deliver(
    template: dict[str, Any],
) -> None:
    [(rule, found)] = of_type(template, "AWS::Events::Rule").items()
    [permission] = of_type(template, "AWS::Lambda::Permission").values()
    [queue_policy] = of_type(template, "AWS::SQS::QueuePolicy").values()
    [(queue, _)] = of_type(template, "AWS::SQS::Queue").items()
    [project] = [name for name in of_type(template, "AWS::CodeBuild::Project") if name.startswith("ModelBuild")]
    pattern = found["Properties"]["EventPattern"]
    assert pattern["source"] == ["aws.codebuild"]
    assert pattern["detail"]["project-name"] == [{"Ref": project}]
    assert set(pattern["detail"]["build-status"]) == {"SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT"}
    assert permission["Properties"]["SourceArn"] == {"Fn::GetAtt": [rule, "Arn"]}
    keeping, refusing = queue_policy["Properties"]["PolicyDocument"]["Statement"]
    assert keeping["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": [rule, "Arn"]}}}
    assert refusing["Effect"] == "Deny"
    [target] = found["Properties"]["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [queue, "Arn"]}}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 43200, "MaximumRetryAttempts": 185}


def test_an_event_that_the_function_fails_on_is_kept(policies: dict[str, Policy], template: dict[str, Any]) -> None:
    [(queue, _)] = of_type(template, "AWS::SQS::Queue").items()
    [config] = of_type(template, "AWS::Lambda::EventInvokeConfig").values()
    arn = {"Fn::GetAtt": [queue, "Arn"]}
    assert config["Properties"]["DestinationConfig"] == {"OnFailure": {"Destination": arn}}
    assert any(name.startswith("SignalsHandlerAccess") for name in config["DependsOn"])
    sends = {role: policy.resources("sqs:SendMessage") for role, policy in policies.items()}
    assert sends == {"function": {f"${{{queue}.Arn}}"}, "build": set(), "engines": set(), "processing": set()}
