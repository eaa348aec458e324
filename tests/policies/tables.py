"""What every role must be able to do, and what none may: written by hand, from what the code calls.

A row is (actions, resource, context). Actions are separated by blanks.
"""

from __future__ import annotations

from tests.policies.world import ACCOUNT, KEY, REGION, ROLE_PREFIX, arn
from tritonstack.iam_evaluation import Request

Row = tuple[str, str, dict[str, str]]


def of(service: str, names: str) -> str:
    """Actions of one service."""
    return " ".join(f"{service}:{name}" for name in names.split())


def on(service: str, names: str, resource: str, context: dict[str, str] | None = None) -> Row:
    """Actions of one service on its own resource, by what is special of its ARN."""
    return of(service, names), arn(service, resource), context or {}


def each(verbs: str, noun: str) -> str:
    """Names of actions on one kind of thing."""
    return " ".join(f"{verb}{noun}" for verb in verbs.split())


BUCKET = "arn:aws:s3:::archives"
STAGING = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
JOBS = f"{BUCKET}/staging/jobs/run/output/model.plan"
TRITON = f"arn:aws:ecr:{REGION}:763104351884:repository/sagemaker-tritonserver"
CPU = f"arn:aws:ecr:{REGION}:210987654321:repository/team/cpu"
LOG_STREAMS = of("logs", "CreateLogStream DescribeLogStreams PutLogEvents")
SCALED = "DescribeEndpoint UpdateEndpointWeightsAndCapacities"
RECOMMENDATION = "InferenceRecommendationsJob"
PULL = of("ecr", "BatchCheckLayerAvailability BatchGetImage GetDownloadUrlForLayer")
INTERFACE = arn("ec2", "network-interface/eni-1")
SUBNET = arn("ec2", "subnet/subnet-us-east-1a")
INSIDE = {"ec2:Subnet": SUBNET}
LENT = {**INSIDE, "ec2:AuthorizedService": "codebuild.amazonaws.com"}
DESCRIBE = of(
    "ec2", "DescribeDhcpOptions DescribeNetworkInterfaces DescribeSecurityGroups DescribeSubnets DescribeVpcs"
)
JOB_STREAM = arn("logs", "log-group:/aws/sagemaker/ProcessingJobs:log-stream:local-engine-a/algo-1")
FROM_S3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com"}
TO_SAGEMAKER = {"iam:PassedToService": "sagemaker.amazonaws.com"}
BY_A_STACK = {"aws:ResourceTag/aws:cloudformation:stack-id": arn("cloudformation", "stack/any/0")}
"""Context of what some stack has made, and CloudFormation has tagged."""
SCALING = {
    "application-autoscaling:service-namespace": "sagemaker",
    "application-autoscaling:scalable-dimension": "sagemaker:variant:DesiredInstanceCount",
}


def log_group(name: str) -> str:
    """A stream of a log group."""
    return arn("logs", f"log-group:{name}:log-stream:one")


def writes(log: str) -> Row:
    """A function writes its own log."""
    return ("logs:CreateLogStream logs:PutLogEvents", log_group(log), {})


def joins(group: str, *, lent: dict[str, str]) -> list[Row]:
    """A service puts its machines into the network."""
    return [
        ("ec2:CreateNetworkInterface", INTERFACE, {}),
        ("ec2:CreateNetworkInterface", SUBNET, {}),
        on("ec2", "CreateNetworkInterface", f"security-group/{group}"),
        ("ec2:DeleteNetworkInterface", INTERFACE, INSIDE),
        ("ec2:CreateNetworkInterfacePermission", INTERFACE, lent),
        (DESCRIBE, "*", {}),
    ]


def execution(endpoint: str, platform: str = "24.09-t4") -> list[Row]:
    """SageMaker runs an endpoint's containers."""
    archives = f"endpoints/{endpoint}/{platform}/"
    logs = arn("logs", f"log-group:/aws/sagemaker/Endpoints/local-{endpoint}")
    return [
        ("s3:GetObject", f"{BUCKET}/{archives}fast.0.tar.gz", {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": archives}),
        ("kms:Decrypt", KEY, {}),
        (PULL, TRITON, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        ("logs:CreateLogGroup", logs, {}),
        (LOG_STREAMS, f"{logs}:log-stream:v/i-1", {}),
        ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "AWS/SageMaker"}),
        *joins("security-group-0", lent=INSIDE),
        ("ec2:DeleteNetworkInterfacePermission", "*", {}),
    ]


def functions(endpoint: str, platform: str = "24.09-t4") -> dict[str, list[Row]]:
    """The functions of a serving stack."""
    records = arn("ssm", f"parameter/tritonstack/local/{endpoint}")
    removed = arn("ssm", f"parameter/tritonstack/local/_removed/{endpoint}")
    stack = arn("cloudformation", f"stack/local-serving-{endpoint}/0")
    served = arn("sagemaker", f"endpoint/local-{endpoint}")
    group = arn("logs", f"log-group:/aws/sagemaker/Endpoints/local-{endpoint}")
    setting_up = of(
        "logs", "AssociateKmsKey CreateLogGroup DeleteLogGroup PutRetentionPolicy TagResource UntagResource"
    )
    moved = of(
        "ssm",
        "AddTagsToResource DeleteParameters GetParameterHistory GetParameters PutParameter RemoveTagsFromResource",
    )
    return {
        "EndpointLogHandlerRole": [
            writes("EndpointLogHandlerLog"),
            (setting_up, group, {}),
            (setting_up, f"{group}:*", {}),
        ],
        "ActivationHandlerRole": [
            writes("ActivationHandlerLog"),
            ("s3:GetObject", f"{STAGING}/0.release-set", {}),
            ("s3:ListBucket", BUCKET, {"s3:prefix": f"endpoints/{endpoint}/25.04-a10g/fast.0.tar.gz"}),
            (moved, f"{records}/fast", {}),
            (moved, f"{removed}/fast", {}),
            ("ssm:GetParametersByPath", records, {}),
            ("ssm:GetParametersByPath", removed, {}),
            ("cloudformation:DescribeStacks", stack, {}),
        ],
        "VerificationHandlerRole": [
            writes("VerificationHandlerLog"),
            ("sagemaker:DescribeEndpoint sagemaker:InvokeEndpoint", served, {"sagemaker:TargetModel": "fast.0.tar.gz"}),
            ("cloudwatch:GetMetricStatistics", "*", {}),
            ("s3:GetObject", f"{STAGING}/0.release-set", {}),
            ("s3:GetObject", f"{BUCKET}/manifests/{endpoint}/{platform}/fast.0.json", {}),
            ("kms:Decrypt", KEY, FROM_S3),
            on("lambda", "InvokeFunction", "function:VerificationHandlerFunction"),
            ("cloudformation:DescribeStacks", stack, {}),
        ],
    }


def emptying(bucket: str) -> list[Row]:
    """A function empties and deletes a bucket that goes with its stack."""
    on_bucket = of("s3", "DeleteBucket GetBucketTagging ListBucketMultipartUploads ListBucketVersions")
    return [
        (on_bucket, f"arn:aws:s3:::{bucket}", {}),
        (of("s3", "AbortMultipartUpload DeleteObject DeleteObjectVersion"), f"arn:aws:s3:::{bucket}/any", {}),
    ]


def tokens(actions: str) -> list[str]:
    """The actions of a row."""
    return actions.split()


def requests(rows: list[Row]) -> list[Request]:
    """Every request of the rows; who asks is put in later."""
    return [
        Request(principal="", action=action, resource=resource, context=context)
        for actions, resource, context in rows
        for action in tokens(actions)
    ]


def _serving(endpoint: str, platform: str = "24.09-t4") -> dict[str, list[Row]]:
    roles = {"ExecutionRole": execution(endpoint, platform), **functions(endpoint, platform)}
    return {f"serving-{endpoint}/{name}": rows for name, rows in roles.items()}


MAY: dict[str, list[Row]] = {
    **_serving("e0"),
    **_serving("e1", "24.09-a10g"),
    **_serving("e2"),
    "artifacts/ArtifactsEmptyingHandlerRole": [
        writes("ArtifactsEmptyingHandlerLog"),
        *emptying("archives"),
        *emptying("access-logs"),
    ],
    "network/NetworkFlowLogRole": [
        (LOG_STREAMS, log_group("/tritonstack/local/network"), {}),
        ("logs:DescribeLogGroups", "*", {}),
    ],
    "builds/SignalsHandlerRole": [
        writes("SignalsHandlerLog"),
        ("s3:GetObject", f"{STAGING}/0.build-set", {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "endpoints/e0/24.09-t4/fast.0.tar.gz"}),
        ("s3:PutObject", f"{BUCKET}/staging/orders/0.json", {}),
        ("s3:GetObject s3:PutObject", f"{BUCKET}/staging/waits/0.json", {}),
        ("kms:Decrypt kms:GenerateDataKey", KEY, {}),
        on("ssm", "GetParametersByPath", "parameter/tritonstack/local/e0"),
        on("cloudformation", "DescribeStacks", "stack/local-serving-e0/0"),
        on("codebuild", "BatchGetBuilds StartBuild", "project/ModelBuildProject"),
        ("logs:GetLogEvents", log_group("/tritonstack/local/builds"), {}),
        on("codebuild", "BatchGetBuilds ListBuildsForProject StopBuild", "project/EngineProject"),
        ("sagemaker:ListProcessingJobs", "*", {}),
        on("sagemaker", "DescribeProcessingJob StopProcessingJob", "processing-job/local-engine-fast-0"),
        on("sqs", "SendMessage", "SignalsUndelivered"),
    ],
    "builds/EngineProjectRole": [
        (of("s3", "AbortMultipartUpload GetObject GetObjectVersion PutObject"), JOBS, {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "staging/jobs/run/"}),
        ("s3:GetBucketAcl s3:GetBucketLocation", BUCKET, {}),
        (of("kms", "Decrypt DescribeKey Encrypt GenerateDataKey ReEncryptFrom ReEncryptTo"), KEY, {}),
        (PULL, TRITON, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        writes("/tritonstack/local/engines"),
        *joins("builds-security-group-0", lent=LENT),
    ],
    "builds/ProcessingRole": [
        (of("s3", "AbortMultipartUpload GetObject GetObjectVersion PutObject"), JOBS, {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "staging/jobs/run/"}),
        ("kms:Decrypt kms:Encrypt kms:GenerateDataKey", KEY, {}),
        ("kms:CreateGrant", KEY, {"kms:GrantIsForAWSResource": "true"}),
        (PULL, TRITON, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        (LOG_STREAMS, JOB_STREAM, {}),
        ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "/aws/sagemaker/ProcessingJobs"}),
    ],
    "builds/ModelBuildRole": [
        ("s3:GetBucketAcl s3:GetBucketLocation", STAGING, {}),
        ("s3:GetObject s3:GetObjectVersion", f"{BUCKET}/staging/orders/0.json", {}),
        ("s3:PutObject", f"{BUCKET}/endpoints/e0/24.09-t4/fast.0.tar.gz", {}),
        ("s3:PutObject", f"{BUCKET}/timing-caches/t4/10.4/timing.cache", {}),
        ("s3:DeleteObject", JOBS, {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "manifests/e0/"}),
        ("kms:Decrypt kms:GenerateDataKey", KEY, {}),
        on("ssm", "GetParameter GetParameters GetParametersByPath", "parameter/tritonstack/local/e0/fast"),
        writes("/tritonstack/local/builds"),
        (PULL, CPU, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        *joins("builds-security-group-0", lent=LENT),
        on("codebuild", "BatchGetBuilds StartBuild StopBuild", "project/EngineProject"),
        ("logs:FilterLogEvents logs:GetLogEvents", log_group("/tritonstack/local/engines"), {}),
        on("sagemaker", each("Create Describe Stop", "ProcessingJob"), "processing-job/local-engine-fast-0"),
        on("sagemaker", "AddTags", "processing-job/local-engine-fast-0"),
        ("iam:PassRole", f"{ROLE_PREFIX}ProcessingRole", TO_SAGEMAKER),
        ("logs:GetLogEvents", JOB_STREAM, {}),
    ],
}
MAY["serving-e0/ExecutionRole"] += [
    ("cloudwatch:DescribeAlarms", arn("cloudwatch", f"alarm:{name}"), {})
    for name in ("EndpointRollbackAlarmsServerErrors", "EndpointRollbackAlarmsModelErrors")
]
MAY["serving-e2/ExecutionRole"] += [
    ("s3:PutObject", f"{BUCKET}/captured/e2/g4dn-xlarge/0.jsonl", {}),
    ("kms:GenerateDataKey", KEY, {}),
]
MAY["serving-e0/EndpointScalingHandlerRole"] = [
    writes("EndpointScalingHandlerLog"),
    on("sagemaker", SCALED, "endpoint/local-e0"),
    on("sagemaker", "DescribeEndpointConfig", "endpoint-config/any"),
    on("application-autoscaling", "RegisterScalableTarget PutScalingPolicy", "scalable-target/0", SCALING),
    (of("application-autoscaling", "DescribeScalableTargets DescribeScalingPolicies"), "*", {}),
    *[
        (of("cloudwatch", "PutMetricAlarm DescribeAlarms DeleteAlarms"), alarm, tags)
        for alarm, tags in (
            (arn("cloudwatch", "alarm:TargetTracking-endpoint/local-e0/variant/g4dn-xlarge-AlarmHigh-0"), {}),
            (arn("cloudwatch", "alarm:TargetTracking-endpoint/local-e0/variant/g4dn-xlarge-AlarmHigh-0"), BY_A_STACK),
            (arn("cloudwatch", "alarm:"), {}),
            (arn("cloudwatch", "alarm:*"), {}),
        )
    ],
    # What Application Auto Scaling tries first, with this role's rights: the alarm actions above without a name, and
    # these, whose name there it does not say (user guide, "Permissions validation for API calls on target resources").
    on("sagemaker", SCALED, "endpoint/any"),
    on("sagemaker", SCALED, "endpoint/local-e0", BY_A_STACK),
]

# The load-test stack.
TESTS = f"{BUCKET}/load-tests/1"
MAY["load-test/BenchRole"] = [
    on("sagemaker", "DescribeEndpoint InvokeEndpoint", "endpoint/local-e0"),
    on("sagemaker", "DescribeEndpointConfig", "endpoint-config/any"),
    on("sagemaker", "DescribeModel", "model/any"),
    on("ssm", "GetParameter GetParametersByPath", "parameter/tritonstack/local/e0/fast"),
    on("ssm", "GetParameter", "parameter/tritonstack/local/_artifacts/bucket-name"),
    on("ssm", "GetParameter", "parameter/tritonstack/local/_outputs/serving-e0"),
    ("s3:GetObject", f"{TESTS}/plan.json", {}),
    ("s3:PutObject", f"{TESTS}/results.json", {}),
    ("s3:GetObject", f"{BUCKET}/manifests/e0/24.09-t4/fast.0.json", {}),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "manifests/e0/"}),
    ("s3:GetBucketAcl s3:GetBucketLocation", STAGING, {}),
    ("kms:Decrypt kms:GenerateDataKey", KEY, {}),
    ("cloudwatch:GetMetricStatistics", "*", {}),
    writes("/tritonstack/local/load-tests"),
    *joins("builds-security-group-0", lent=LENT),
]
MAY["load-test/JobsRole"] = [
    ("s3:GetObject", f"{BUCKET}/endpoints/e2/24.09-t4/fast.0.tar.gz", {}),
    ("s3:GetObject", f"{TESTS}/payloads/fast.tar.gz", {}),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "endpoints/e2/24.09-t4/"}),
    ("kms:Decrypt", KEY, {}),
    (PULL, TRITON, {}),
    ("ecr:GetAuthorizationToken", "*", {}),
    on("sagemaker", "CreateEndpoint DeleteEndpoint DescribeEndpoint InvokeEndpoint", "endpoint/local-lt-1-1-a"),
    on("sagemaker", each("Create Delete Describe", "EndpointConfig"), "endpoint-config/local-lt-1-1-a"),
    on("sagemaker", "CreateModel DeleteModel DescribeModel AddTags", "model/local-lt-1-1-a"),
    on("sagemaker", "DescribeModelPackage", "model-package/local-lt-1/1"),
    ("iam:PassRole", f"{ROLE_PREFIX}JobsRole", TO_SAGEMAKER),
    (LOG_STREAMS, log_group("/aws/sagemaker/InferenceRecommendationsJobs"), {}),
    (LOG_STREAMS, log_group("/aws/sagemaker/Endpoints/local-lt-1-1-a"), {}),
    ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "AWS/SageMaker"}),
    ("cloudwatch:GetMetricData", "*", {}),
    *joins("security-group-0", lent=INSIDE),
    ("ec2:DeleteNetworkInterfacePermission", "*", {}),
]
MAY["load-test/StepsHandlerRole"] = [
    writes("StepsHandlerLog"),
    ("s3:GetObject s3:PutObject", f"{TESTS}/results.json", {}),
    ("s3:GetObject s3:PutObject", f"{TESTS}/closed.json", {}),
    ("s3:GetObject", f"{BUCKET}/endpoints/e2/24.09-t4/fast.0.tar.gz", {}),
    ("kms:Decrypt kms:GenerateDataKey", KEY, {}),
    on("sagemaker", each("Create Describe Delete", "ModelPackageGroup"), "model-package-group/local-lt-1"),
    on("sagemaker", "CreateModelPackage DescribeModelPackage DeleteModelPackage", "model-package/local-lt-1/1"),
    on("sagemaker", each("Create Describe Stop", RECOMMENDATION), "inference-recommendations-job/local-lt-1-1"),
    on("sagemaker", "AddTags", "inference-recommendations-job/local-lt-1-1"),
    ("iam:PassRole", f"{ROLE_PREFIX}JobsRole", TO_SAGEMAKER),
    on("sagemaker", "DeleteEndpoint", "endpoint/local-lt-1-1-a"),
    on("sagemaker", "DeleteEndpointConfig", "endpoint-config/local-lt-1-1-a"),
    on("sagemaker", "DeleteModel", "model/local-lt-1-1-a"),
    ("cloudwatch:GetMetricStatistics", "*", {}),
    (of("sagemaker", "ListEndpoints ListEndpointConfigs ListModels ListModelPackages"), "*", {}),
    on("sqs", "SendMessage", "StepsUndelivered"),
]
MAY["load-test/RecommenderRole"] = [
    on("lambda", "InvokeFunction", "function:StepsHandlerFunction"),
    (
        of(
            "logs",
            "CreateLogDelivery DeleteLogDelivery DescribeLogGroups DescribeResourcePolicies GetLogDelivery "
            "ListLogDeliveries PutResourcePolicy UpdateLogDelivery",
        ),
        "*",
        {},
    ),
    (of("xray", "GetSamplingRules GetSamplingTargets PutTelemetryRecords PutTraceSegments"), "*", {}),
]

OTHER_KEY, OTHER_BUCKET = arn("kms", "key/another"), "arn:aws:s3:::another"
OTHER_SUBNET = {"ec2:Subnet": arn("ec2", "subnet/another"), "ec2:AuthorizedService": "codebuild.amazonaws.com"}
OTHER_LOG = log_group("/another")
NONE_MAY: list[Row] = [
    (
        of("s3", "GetObject GetObjectVersion PutObject DeleteObject DeleteObjectVersion AbortMultipartUpload"),
        f"{OTHER_BUCKET}/endpoints/e0/24.09-t4/fast.0.tar.gz",
        {},
    ),
    (
        of("s3", "ListBucket ListBucketVersions GetBucketAcl GetBucketLocation PutBucketPolicy"),
        OTHER_BUCKET,
        {"s3:prefix": "endpoints/e0/24.09-t4/"},
    ),
    *[
        ("s3:ListBucket", OTHER_BUCKET, {"s3:prefix": prefix})
        for prefix in ("endpoints/e1/24.09-a10g/", "endpoints/e2/24.09-t4/", "manifests/e0/", "staging/jobs/run/")
    ],
    (of("s3", "ListBucket PutBucketPolicy DeleteBucket PutLifecycleConfiguration"), BUCKET, {"s3:prefix": "secrets/"}),
    ("s3:GetObject s3:PutObject", f"{BUCKET}/secrets/a", {}),
    ("s3:GetObject", f"{STAGING}/0.template.json", {}),
    ("s3:PutObject", f"{STAGING}/0.release-set", {}),
    ("kms:Decrypt kms:GenerateDataKey kms:Encrypt", OTHER_KEY, FROM_S3),
    ("kms:CreateGrant", OTHER_KEY, {"kms:GrantIsForAWSResource": "true"}),
    ("kms:CreateGrant kms:ScheduleKeyDeletion kms:PutKeyPolicy", KEY, {"kms:GrantIsForAWSResource": "false"}),
    ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", TO_SAGEMAKER),
    ("iam:PassRole", f"{ROLE_PREFIX}ProcessingRole", {"iam:PassedToService": "ec2.amazonaws.com"}),
    ("iam:CreateRole iam:PutRolePolicy sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin", {}),
    on("sagemaker", f"InvokeEndpoint {SCALED}", "endpoint/prod-e0", BY_A_STACK),
    on("sagemaker", "DeleteEndpoint UpdateEndpoint", "endpoint/local-e0"),
    on("sagemaker", "DescribeEndpointConfig", "model/another"),
    on("sagemaker", "DescribeModel", "endpoint-config/another"),
    on("sagemaker", "DeleteEndpointConfig", "endpoint-config/another"),
    on("sagemaker", "DeleteModel", "model/another"),
    on("sagemaker", "DeleteModelPackageGroup", "model-package-group/prod-lt-1"),
    on("sagemaker", "CreateModelPackage DescribeModelPackage DeleteModelPackage", "model-package/prod-lt-1/1"),
    on("sagemaker", each("Create Stop", RECOMMENDATION), "inference-recommendations-job/prod-lt-1-1"),
    ("iam:PassRole", f"{ROLE_PREFIX}JobsRole", {"iam:PassedToService": "ec2.amazonaws.com"}),
    on("sagemaker", "CreateProcessingJob DescribeProcessingJob StopProcessingJob", "processing-job/prod-engine-fast-0"),
    on("sagemaker", "StopProcessingJob", "processing-job/local-training-0"),
    on(
        "ssm",
        "GetParameter GetParameters GetParametersByPath PutParameter DeleteParameters",
        "parameter/tritonstack/prod/e0/fast",
    ),
    on("ssm", "AddTagsToResource RemoveTagsFromResource", "parameter/tritonstack/local/_artifacts/bucket-name"),
    (of("logs", "CreateLogStream PutLogEvents GetLogEvents DeleteLogGroup"), OTHER_LOG, {}),
    (of("logs", "PutRetentionPolicy CreateLogGroup DescribeLogStreams"), OTHER_LOG, {}),
    on("codebuild", "StartBuild StopBuild", "project/another"),
    on("codebuild", "UpdateProject", "project/ModelBuildProject"),
    on("lambda", "InvokeFunction", "function:another"),
    on("lambda", "UpdateFunctionCode", "function:VerificationHandlerFunction"),
    on("sqs", "SendMessage ReceiveMessage", "another"),
    on("cloudformation", "DescribeStacks DeleteStack", "stack/prod-serving-e0/0"),
    on("ec2", "CreateNetworkInterface", "subnet/another"),
    on("ec2", "CreateNetworkInterface", "security-group/another"),
    (of("ec2", "DeleteNetworkInterface CreateNetworkInterfacePermission"), INTERFACE, OTHER_SUBNET),
    on("ec2", "DeleteNetworkInterface CreateNetworkInterfacePermission", "instance/i-1", LENT),
    ("ec2:CreateNetworkInterfacePermission", INTERFACE, {"ec2:AuthorizedService": "codebuild.amazonaws.com"}),
    ("ec2:RunInstances ec2:AuthorizeSecurityGroupEgress", "*", {}),
    on("ecr", "BatchGetImage PutImage", "repository/another"),
    ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "Another"}),
    on("cloudwatch", "DescribeAlarms PutMetricAlarm DeleteAlarms", "alarm:another", BY_A_STACK),
    on(
        "application-autoscaling",
        "RegisterScalableTarget",
        "scalable-target/0",
        {**SCALING, "application-autoscaling:service-namespace": "ecs"},
    ),
    ("application-autoscaling:RegisterScalableTarget", arn("another", "scalable-target/0"), SCALING),
    (of("sagemaker", SCALED), f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:endpoint/any", {}),
    (
        of("cloudwatch", "DescribeAlarms PutMetricAlarm DeleteAlarms"),
        f"arn:aws:cloudwatch:eu-west-1:{ACCOUNT}:alarm:",
        {},
    ),
]
"""Another bucket, key, role, endpoint, environment, network; and the settings of what is one's own."""
BY_ANOTHER_WAY: dict[str, list[Row]] = {
    "SignalsHandlerRole": [
        on("codebuild", "StopBuild", "project/ModelBuildProject"),
        on("codebuild", "StartBuild", "project/EngineProject"),
        on("sagemaker", "CreateProcessingJob", "processing-job/local-engine-fast-0"),
    ],
    "VerificationHandlerRole": [("kms:Decrypt", KEY, {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"})],
}
"""What a role may not do, though others may."""
SERVED = ("e0", "e1", "e2")


def of_others(endpoint: str) -> list[Row]:
    """What no role of the stack of ``endpoint`` may do to the other endpoints."""
    rows: list[Row] = []
    for other in SERVED:
        if other != endpoint:
            platform = "24.09-a10g" if other == "e1" else "24.09-t4"
            records = arn("ssm", f"parameter/tritonstack/local/{other}/fast")
            rows += [
                ("s3:GetObject s3:PutObject", f"{BUCKET}/endpoints/{other}/{platform}/fast.0.tar.gz", {}),
                ("s3:GetObject", f"{BUCKET}/manifests/{other}/{platform}/fast.0.json", {}),
                ("s3:ListBucket", BUCKET, {"s3:prefix": f"endpoints/{other}/{platform}/"}),
                ("s3:PutObject", f"{BUCKET}/captured/{other}/v/0.jsonl", {}),
                ("ssm:AddTagsToResource ssm:GetParameters ssm:PutParameter", records, {}),
                on("sagemaker", f"InvokeEndpoint {SCALED}", f"endpoint/local-{other}", BY_A_STACK),
                ("logs:PutLogEvents logs:PutRetentionPolicy", log_group(f"/aws/sagemaker/Endpoints/local-{other}"), {}),
                on("cloudformation", "DescribeStacks", f"stack/local-serving-{other}/0"),
            ]
    return rows
