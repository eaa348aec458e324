"""Every function, when any operation that it calls is throttled: it goes on, or fails before Lambda ends it."""

from __future__ import annotations

import importlib
import io
import json
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.policies.tables import MAY

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
wire: Any = importlib.import_module("tests.lambda.throttled_aws")
calling: Any = importlib.import_module("tests.lambda.calling")
clients: Any = importlib.import_module("lambda.shared.clients")
custom_resource: Any = importlib.import_module("lambda.shared.custom_resource")
emptying: Any = importlib.import_module("lambda.bucket_emptying.handler")

RUN_SECONDS, SEED = 900.0, 20240924
A, B = "a" * 16, "b" * 16
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/local-serving-digits/1"
RECORDS = "/tritonstack/local/digits/"
IDS = {**calling.IDS, "StackId": STACK}
Event = dict[str, Any]
SETS = {"old": {"fast": A, "gone": A}, "new": {"fast": B}}
SAMPLE = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [3.0]}]}
EXPECTED = [{"name": "y", "datatype": "FP32", "shape": [1], "data": [1.0]}]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A function, the events of a run through all that it calls, and what AWS answers.

    Attributes:
        function: the folder of the function.
        role: its role in the tables of policies, which name each action that it may take.
        events: in order; the answers may look at the one that is under way.
        answers: operation → answer.
        variables: the function's environment variables.
        answered: whether it answers CloudFormation; else a failure is the caller's to repeat.
    """

    function: str
    role: str
    events: tuple[Event, ...]
    answers: Callable[[Event], dict[str, Any]]
    variables: dict[str, str] = field(default_factory=dict)
    answered: bool = True

    def run(self, aws: Any) -> list[str]:
        """Deliver the events, and those that a run hands to itself; what the unanswered ones raised."""
        handler: Any = importlib.import_module(f"lambda.{self.function}.handler")
        waiting, raised = list(self.events), []
        while waiting:
            event, began = waiting.pop(0), aws.now
            aws.answers = self.answers(event)
            if "Invoke" in aws.answers:  # the next run of the same work

                def hand_over(given: dict[str, Any]) -> dict[str, Any]:
                    waiting.insert(0, {**json.loads(given["Payload"]), "then": True})
                    return {}

                aws.answers["Invoke"] = hand_over
            aws.run_seconds = began + RUN_SECONDS - custom_resource.SPARE_SECONDS if self.answered else float("inf")
            try:
                handler.handler(event, calling.context(seconds=RUN_SECONDS))
            except ClientError as error:
                assert not self.answered
                raised.append(str(error))
            finally:
                assert aws.now - began < RUN_SECONDS, "Lambda would have ended it"
        return raised


def body(document: Any) -> dict[str, Any]:
    """The answer of GetObject."""
    return {"Body": io.BytesIO(json.dumps(document).encode())}


def custom(request: str, kind: str, new: dict[str, str], old: dict[str, str] | None = None, **more: Any) -> Event:
    """An event of CloudFormation."""
    event = {**IDS, "RequestType": request, "ResourceType": kind, "ResourceProperties": new, **more}
    return event if old is None else {**event, "OldResourceProperties": old}


def stack(event: Event) -> dict[str, Any]:
    """The answer of DescribeStacks; an event says for itself whether it undoes an update."""
    return {"Stacks": [{"StackName": "s", "StackStatus": event.get("status", "UPDATE_IN_PROGRESS")}]}


def activation_case() -> Case:
    def properties(name: str, tags: str) -> dict[str, str]:
        return {
            "ReleaseSetBucket": "staging", "ReleaseSetKey": f"{name}.release-set", "ArchiveBucket": "archives",
            "ArchivePrefix": "endpoints/digits/24.09-t4/", "RecordPath": RECORDS, "Tags": tags,
        }  # fmt: skip

    old, new = properties("old", '{"team": "a", "old": "x"}'), properties("new", '{"team": "b"}')
    note = {"writer": "deployment", "digest": B, "before": A, "set": "new.release-set", "over": "old.release-set"}
    version = {"Version": 2, "Value": B, "Description": json.dumps(note)}
    records = {f"{RECORDS}fast": A, f"{RECORDS}gone": B}

    def parameters(given: dict[str, Any]) -> dict[str, Any]:
        asked = {name: value for name, value in records.items() if name in given.get("Names", records)}
        found = {name: value for name, value in asked.items() if name.startswith(given.get("Path", "/"))}
        return {"Parameters": [{"Name": name, "Value": value} for name, value in found.items()]}

    def answers(event: Event) -> dict[str, Any]:
        return {
            "DescribeStacks": stack(event),
            "GetObject": lambda given: body({"schema": 1, "models": SETS[given["Key"].partition(".")[0]]}),
            "ListObjectsV2": {"Contents": [{"Key": f"endpoints/digits/24.09-t4/fast.{B}.tar.gz"}]},
            "GetParameters": parameters, "GetParametersByPath": parameters,
            "GetParameterHistory": {"Parameters": [version]}, "PutParameter": {}, "DeleteParameters": {},
            "AddTagsToResource": {}, "RemoveTagsFromResource": {},
        }  # fmt: skip

    back = "UPDATE_ROLLBACK_IN_PROGRESS"
    events = (
        custom("Update", "Custom::ReleaseRecords", new, old),
        custom("Update", "Custom::ReleaseRecords", old, new, status=back),
        custom("Delete", "Custom::ReleaseRecords", old, PhysicalResourceId="p"),
    )
    return Case(function="activation", role="serving-e0/ActivationHandlerRole", events=events, answers=answers)


def verification_case() -> Case:
    properties = {
        "EndpointName": "local-digits", "EndpointConfigName": "c", "VariantName": "v", "Image": "i",
        "MultiModel": "true", "StopsAtUnload": "true", "Models": "20", "Minutes": "50", "ReleaseSetBucket": "staging",
        "ReleaseSetKey": "both.release-set", "ArchiveBucket": "archives", "ManifestPrefix": "manifests/",
    }  # fmt: skip
    sample = {"file": "r", "body": SAMPLE, "answer": {"outputs": EXPECTED}, "tolerance": 0.1}

    def read(given: dict[str, Any]) -> dict[str, Any]:
        if given["Bucket"] == "staging":
            return body({"models": {"fast": A, "slow": A}})
        return body({"sample": sample, "client_files": {}})

    def answers(event: Event) -> dict[str, Any]:
        return {
            "DescribeStacks": stack(event),
            "GetObject": read,
            "DescribeEndpoint": {
                "EndpointStatus": "Updating" if "moving" in event and "then" not in event else "InService",
                "EndpointConfigName": "c", "ProductionVariants": [{"VariantName": "v"}],
            },
            "InvokeEndpoint": lambda _given: {**body({"outputs": EXPECTED}), "ContentType": "application/json"},
            "GetMetricStatistics": {"Datapoints": []},
            "Invoke": {},
        }  # fmt: skip

    create = custom("Create", "Custom::VerifiedEndpoint", properties)
    later = {"began": wire.EPOCH - 300, "waiting": [f"fast.{A}", f"slow.{A}"], "checked": True}
    handed = {"began": wire.EPOCH, "waiting": [f"fast.{A}"], "checked": False}
    return Case(
        function="verification",
        role="serving-e0/VerificationHandlerRole",
        events=(create, {**create, "RequestType": "Update", "Work": later}, {**create, "Work": handed, "moving": True}),
        answers=answers,
    )


def scaling_case() -> Case:
    def scaling(variant: str, metric: int) -> str:
        policies = {f"tritonstack-{metric}": {"TargetValue": float(metric)}}
        schedules = [
            {"ScheduledActionName": "s", "Schedule": "cron(0 7 ? * * *)", "ScalableTargetAction": {"MinCapacity": 1}}
        ]
        return json.dumps(
            {"endpoint": "dev-digits", "variant": variant, "minimum": 1, "maximum": 9, "initial": 1,
             "policies": policies, "schedules": schedules, "routing": "CANARY"}
        )  # fmt: skip

    old, new = {"Scaling": scaling("a", 60)}, {"Scaling": scaling("b", 70)}

    def answers(event: Event) -> dict[str, Any]:
        live = event.get("live", "b")
        variant = {"VariantName": live, "DesiredInstanceCount": 1, "InitialInstanceCount": 1}
        config = {"EndpointConfigName": "config", "ProductionVariants": [variant]}
        return {
            "DescribeEndpoint": {"EndpointArn": "arn", "EndpointStatus": "InService", **config},
            "DescribeEndpointConfig": config,
            "ListTags": {"Tags": [{"Key": "tritonstack:scaled-to", "Value": "a/3"}]},
            "AddTags": {}, "UpdateEndpointWeightsAndCapacities": {}, "DescribeScalableTargets": {"ScalableTargets": []},
            "DescribeScalingPolicies": {"ScalingPolicies": [{"PolicyName": "tritonstack-60"}]},
            "RegisterScalableTarget": {}, "DeregisterScalableTarget": {}, "PutScalingPolicy": {},
            "DeleteScalingPolicy": {}, "PutScheduledAction": {},
        }  # fmt: skip

    events = (
        custom("Update", "Custom::ScalingBefore", new, old, live="a"),
        custom("Update", "Custom::ScalingAfter", new, old),
        custom("Delete", "Custom::ScalingSettled", old, PhysicalResourceId="p"),
    )
    variables = {"SCALING": new["Scaling"]}
    role = "serving-e0/EndpointScalingHandlerRole"
    return Case(function="scaling", role=role, events=events, answers=answers, variables=variables)


def builds(*, events: tuple[Event, ...], answered: bool) -> Case:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    variables = [{"name": "TRITONSTACK_WAIT", "value": f"staging/waits/{A}{A}.json"}]
    ended = {
        "id": "builds:1", "buildStatus": "FAILED", "startTime": began,
        "environment": {"environmentVariables": variables}, "logs": {"groupName": "g", "streamName": "s"}, "phases": [],
    }  # fmt: skip
    engine = {
        "id": "engines:1", "buildStatus": "IN_PROGRESS", "startTime": began,
        "environment": {"environmentVariables": [{"name": "TRITONSTACK_STARTED_BY", "value": "builds:1"}]},
    }  # fmt: skip
    build_set = {
        "schema": 1, "endpoint": "digits", "platform": {"release": "24.09", "gpu": "T4"},
        "archives": [{"model": "fast", "digest": A, "dependency": "engine"}],
    }  # fmt: skip
    read = {
        "GetObject": lambda given: body(build_set if given["Bucket"] == "staging" else {"handle": "https://handle"})
    }
    ordering = {
        **read, "ListObjectsV2": {}, "GetParametersByPath": {"Parameters": []}, "PutObject": {},
        "StartBuild": {"build": {"id": "builds:1"}},
    }  # fmt: skip
    ending = {
        **read, "BatchGetBuilds": lambda given: {"builds": [engine if given["ids"] == ["engines:1"] else ended]},
        "GetLogEvents": {"events": []}, "ListBuildsForProject": {"ids": ["engines:1"]}, "StopBuild": {},
        "ListProcessingJobs": {"ProcessingJobSummaries": [{"ProcessingJobName": "local-engine-1"}]},
        "DescribeProcessingJob": {
            "Environment": {"TRITONSTACK_STARTED_BY": "builds:1"}, "ProcessingJobStatus": "InProgress",
        },
        "StopProcessingJob": {},
    }  # fmt: skip
    return Case(
        function="model_builds",
        role="builds/SignalsHandlerRole",
        events=events,
        answers=lambda event: {**ordering, "DescribeStacks": stack(event)} if answered else dict(ending),
        variables={
            "ARTIFACT_BUCKET": "archives", "PROJECT": "builds", "RECORDS": "/tritonstack/local/",
            "ENGINE_PROJECT": "engines", "ENGINE_JOBS": "local-engine-",
        },
        answered=answered,
    )  # fmt: skip


def build_orders_case() -> Case:
    properties = {"BuildSetBucket": "staging", "BuildSetKey": "k", "WaitHandle": "https://handle", "Of": "local/digits"}
    return builds(events=(custom("Update", "Custom::ModelBuilds", properties, properties),), answered=True)


def build_ends_case() -> Case:
    return builds(events=({"detail": {"build-id": "arn:aws:codebuild:us-east-1:1:build/builds:1"}},), answered=False)


def emptying_case() -> Case:
    version = {"Key": "k", "VersionId": "v"}
    tags = [{"Key": emptying.TAG, "Value": emptying.VALUE}]
    answers = {
        "GetBucketTagging": {"TagSet": tags}, "ListObjectVersions": {"Versions": [version]}, "DeleteObjects": {},
        "ListMultipartUploads": {"Uploads": [{"Key": "k", "UploadId": "u"}]}, "AbortMultipartUpload": {},
        "DeleteBucket": {},
    }  # fmt: skip
    events = (custom("Delete", "Custom::EmptiedBucket", {"Bucket": "archives"}, PhysicalResourceId="p"),)
    role = "artifacts/ArtifactsEmptyingHandlerRole"
    return Case(function="bucket_emptying", role=role, events=events, answers=lambda _event: dict(answers))


def endpoint_log_case() -> Case:
    def exists(_given: dict[str, Any]) -> dict[str, Any]:
        raise wire.Refused("ResourceAlreadyExistsException", 400)

    names = {
        "LogGroupName": "g",
        "LogGroupArn": "arn:aws:logs:us-east-1:123456789012:log-group:g",
        "KmsKeyId": "arn:key",
    }
    new = {**names, "RetentionInDays": "90", "Retain": "false", "Tags": '{"team": "a"}'}
    answers = {
        "CreateLogGroup": exists, "TagResource": {}, "UntagResource": {}, "PutRetentionPolicy": {},
        "AssociateKmsKey": {}, "DeleteLogGroup": {},
    }  # fmt: skip
    events = (
        custom("Update", "Custom::EndpointLogGroup", new, {**new, "Tags": '{"old": "a"}'}),
        custom("Delete", "Custom::EndpointLogGroup", new, PhysicalResourceId="g"),
    )
    role = "serving-e0/EndpointLogHandlerRole"
    return Case(function="endpoint_log", role=role, events=events, answers=lambda _event: dict(answers))


def load_test_case() -> Case:
    job = {
        "name": "local-lt-1-1",
        "configuration": "fast",
        "instance_type": "ml.g4dn.xlarge",
        "load": "x",
        "job_type": "Default",
    }
    request = {"JobType": "Default", "InputConfig": {}}
    plan = {
        "group": "local-lt-1", "jobs": [{**job, "request": request}], "poll_seconds": 1, "document": {},
        "packages": {"fast": {}}, "results": {"fast": {}},
    }  # fmt: skip

    def missing(_given: dict[str, Any]) -> dict[str, Any]:
        raise wire.Refused("404", 404)

    def unknown(_given: dict[str, Any]) -> dict[str, Any]:
        raise wire.Refused("ResourceNotFound", 400)

    began = datetime(2026, 1, 1, tzinfo=UTC)
    found = {
        "EndpointConfiguration": {"EndpointName": "e", "VariantName": "v", "InstanceType": "ml.g4dn.xlarge"},
        "Metrics": {"MaxInvocations": 10, "ModelLatency": 10}, "InvocationStartTime": began, "InvocationEndTime": began,
    }  # fmt: skip

    def answers(event: Event) -> dict[str, Any]:
        step, looks = event.get("do", ""), iter(("IN_PROGRESS", "IN_PROGRESS"))
        arn = "arn:aws:sagemaker:us-east-1:123456789012:model-package/local-lt-1/1"

        def describe(_given: dict[str, Any]) -> dict[str, Any]:
            if step == "start":
                raise wire.Refused("ResourceNotFound", 400)
            running = step == "" and next(looks, None) is not None
            return {"Status": "IN_PROGRESS" if running else "COMPLETED", "InferenceRecommendations": [found]}

        return {
            "GetObject": lambda _given: body(plan), "HeadObject": missing, "PutObject": {},
            "DescribeModelPackageGroup": unknown if step == "register" else {},
            "CreateModelPackageGroup": {}, "CreateModelPackage": {},
            "ListModelPackages": {"ModelPackageSummaryList": [] if step == "register" else [{"ModelPackageArn": arn}]},
            "DescribeModelPackage": {"CustomerMetadataProperties": {"configuration": "fast"}},
            "CreateInferenceRecommendationsJob": {}, "DescribeInferenceRecommendationsJob": describe,
            "StopInferenceRecommendationsJob": {}, "GetMetricStatistics": {"Datapoints": []},
            "ListEndpoints": {"Endpoints": [{"EndpointName": "local-lt-1-1-e"}]},
            "ListEndpointConfigs": {"EndpointConfigs": [{"EndpointConfigName": "local-lt-1-1-e"}]},
            "ListModels": {"Models": [{"ModelName": "local-lt-1-1-e"}]},
            "DeleteEndpoint": {}, "DeleteEndpointConfig": {}, "DeleteModel": {}, "DeleteModelPackage": {},
            "DeleteModelPackageGroup": {},
        }  # fmt: skip

    each = {"id": "1", "job": job["name"], "poll_seconds": 1}
    cancelled = {"detail": {"status": "ABORTED", "input": '{"id": "1"}'}}
    return Case(
        function="load_test",
        role="load-test/StepsHandlerRole",
        events=(*({**each, "do": step} for step in ("register", "start", "look", "gather", "clean_up")), cancelled),
        answers=answers,
        variables={
            "ARTIFACT_BUCKET": "archives",
            "JOB_ROLE": "arn:aws:iam::123456789012:role/jobs",
            "NAMES": "local-lt-",
        },
        answered=False,
    )


CASES = {
    "activation": activation_case, "verification": verification_case, "scaling": scaling_case,
    "orders of builds": build_orders_case, "ends of builds": build_ends_case, "bucket emptying": emptying_case,
    "endpoint log": endpoint_log_case, "load test": load_test_case,
}  # fmt: skip


S3_OPERATIONS = {
    "GetObject", "PutObject", "HeadObject", "ListObjectsV2", "ListObjectVersions", "DeleteObjects",
    "ListMultipartUploads", "AbortMultipartUpload", "GetBucketTagging", "DeleteBucket",
}  # fmt: skip
CONCURRENT = {
    "PutParameter": "TooManyUpdates", "AddTagsToResource": "TooManyUpdates", "RemoveTagsFromResource": "TooManyUpdates",
    "CreateLogGroup": "OperationAbortedException", "PutRetentionPolicy": "OperationAbortedException",
    "AssociateKmsKey": "OperationAbortedException", "DeleteLogGroup": "OperationAbortedException",
    "RegisterScalableTarget": "ConcurrentUpdateException", "DeregisterScalableTarget": "ConcurrentUpdateException",
    "PutScalingPolicy": "ConcurrentUpdateException", "DeleteScalingPolicy": "ConcurrentUpdateException",
    "PutScheduledAction": "ConcurrentUpdateException",
}  # fmt: skip
"""What an operation answers while another change of the same resource is under way (its API reference, "Errors")."""
TOLERATED = {("ends of builds", "GetLogEvents"), ("load test", "GetMetricStatistics")}
"""What is told without: a failed build's last lines, a load test's percentiles."""
OF_ACTIONS = {
    "ListBucket": "ListObjectsV2", "ListBucketVersions": "ListObjectVersions", "DeleteObject": "DeleteObjects",
    "ListBucketMultipartUploads": "ListMultipartUploads", "DeleteObjectVersion": "DeleteObjects",
    "InvokeFunction": "Invoke",
}  # fmt: skip
"""The operation that an action of IAM is for, where their names differ."""
OWN_LOG, KEY = {"CreateLogStream", "PutLogEvents"}, {"Decrypt", "GenerateDataKey"}
NO_CALLS = {
    "serving-e0/ActivationHandlerRole": OWN_LOG,
    "serving-e0/VerificationHandlerRole": OWN_LOG | KEY,
    "serving-e0/EndpointScalingHandlerRole": OWN_LOG | {"DeleteAlarms", "DescribeAlarms", "PutMetricAlarm"},
    "builds/SignalsHandlerRole": OWN_LOG | KEY | {"SendMessage"},
    "artifacts/ArtifactsEmptyingHandlerRole": OWN_LOG,
    "serving-e0/EndpointLogHandlerRole": OWN_LOG,
    "load-test/StepsHandlerRole": OWN_LOG | KEY | {"SendMessage", "PassRole", "AddTags"},
}
"""Actions that services take for a function: its log, S3's with a key, and what its calls imply."""
ROWS = [(name, operation) for name in CASES for operation in CASES[name]().answers(CASES[name]().events[0])]
SAMPLE_OF_ROWS = random.Random(SEED).sample(ROWS, 16)


def rows(*, without: Collection[tuple[str, str]] = ()) -> list[Any]:
    """All rows; those that are not of the sample are long."""
    return [
        row if row in SAMPLE_OF_ROWS else pytest.param(*row, marks=pytest.mark.long)
        for row in ROWS
        if row not in without
    ]


def refusals(operation: str) -> list[tuple[str, int]]:
    """Codes and HTTP statuses that say of an operation: not now."""
    if operation in S3_OPERATIONS:
        return [("SlowDown", 503), ("TooManyRequests", 429)]
    if operation == "DescribeStacks":
        return [("Throttling", 400)]
    found = [("ThrottlingException", 400), ("TooManyRequestsException", 429)]
    return [*found, (CONCURRENT[operation], 400)] if operation in CONCURRENT else found


def deliver(
    case: Case, monkeypatch: pytest.MonkeyPatch, throttle: Any = None
) -> tuple[Any, list[dict[str, Any]], list[str]]:
    """Run a case; AWS, the answers to CloudFormation, and what unanswered events raised."""
    with monkeypatch.context() as patched:
        heard: list[dict[str, Any]] = calling.hear(patched)
        for name, value in case.variables.items():
            patched.setenv(name, value)
        aws = wire.ThrottledAws(answers={}, throttle=throttle)
        aws.install(patched)
        raised = case.run(aws)
    return aws, [each for each in heard if "LogicalResourceId" in each], raised


@pytest.mark.parametrize("name", CASES)
def test_a_case_succeeds_and_calls_all_that_it_has_answers_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]()
    aws, heard, raised = deliver(case, monkeypatch)
    assert {each["Status"] for each in heard} == ({"SUCCESS"} if case.answered else set()), heard
    assert not raised
    assert set(aws.operations) == set(case.answers(case.events[0]))


def test_the_cases_call_every_operation_that_the_functions_roles_allow() -> None:
    called: dict[str, set[str]] = {}
    for make in CASES.values():
        case = make()
        called.setdefault(case.role, set()).update(case.answers(case.events[0]))
    for role, operations in called.items():
        granted = {action.partition(":")[2] for actions, _, _ in MAY[role] for action in actions.split()}
        assert {OF_ACTIONS.get(action, action) for action in granted - NO_CALLS[role]} - operations == set(), role


@pytest.mark.parametrize(("name", "operation"), rows())
def test_what_is_throttled_for_a_time_is_tried_again_until_it_succeeds(
    name: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, status in refusals(operation):
        throttle = wire.Throttle(operation, code, status, times=clients.ATTEMPTS - 1)
        aws, heard, raised = deliver(CASES[name](), monkeypatch, throttle)
        assert throttle.times == 0, "it was never called so often"
        assert aws.now > 0
        assert not raised
        assert {each["Status"] for each in heard} <= {"SUCCESS"}, heard


@pytest.mark.parametrize(("name", "operation"), rows(without=TOLERATED))
def test_what_is_throttled_for_ever_fails_with_the_refusal_before_lambda_ends_the_run(
    name: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, status in refusals(operation):
        case = CASES[name]()
        _, heard, raised = deliver(case, monkeypatch, wire.Throttle(operation, code, status, times=float("inf")))
        failures = [each["Reason"] for each in heard if each["Status"] == "FAILED"]
        assert any(code in failure for failure in (failures if case.answered else raised)), (failures, raised)


@pytest.mark.parametrize(("name", "operation"), sorted(TOLERATED))
def test_what_can_be_done_without_keeps_nothing_from_being_done(
    name: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle = wire.Throttle(operation, "ThrottlingException", 400, times=float("inf"))
    assert deliver(CASES[name](), monkeypatch, throttle)[2] == []


def test_a_load_test_that_was_throttled_waits_for_its_jobs_in_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, status = load_test_case(), {"Status": "IN_PROGRESS"}
    cancelled = replace(
        case,
        events=case.events[-1:],
        answers=lambda event: {**case.answers(event), "DescribeInferenceRecommendationsJob": status},
    )
    throttle = wire.Throttle("StopInferenceRecommendationsJob", "ThrottlingException", 400, clients.ATTEMPTS - 1)
    with pytest.raises(TimeoutError, match="not ended in the time"):
        deliver(cancelled, monkeypatch, throttle)
