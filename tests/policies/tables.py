"""What every role must be able to do, and what none may: written by hand, from what the code calls.

A row is (actions, resource, context). Actions are separated by blanks.
"""

from __future__ import annotations

from tests.policies.world import ACCOUNT, KEY, REGION, ROLE_PREFIX, arn
from tritonstack.iam_policies import Request

Row = tuple[str, str, dict[str, str]]

BUCKET = "arn:aws:s3:::archives"
STAGING = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
JOBS = f"{BUCKET}/staging/jobs/run/output/model.plan"
TRITON = f"arn:aws:ecr:{REGION}:763104351884:repository/sagemaker-tritonserver"
CPU = f"arn:aws:ecr:{REGION}:210987654321:repository/team/cpu"
PULL = "ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetDownloadUrlForLayer"
INTERFACE = arn("ec2", "network-interface/eni-1")
SUBNET = arn("ec2", "subnet/subnet-us-east-1a")
INSIDE = {"ec2:Subnet": SUBNET}
LENT = {**INSIDE, "ec2:AuthorizedService": "codebuild.amazonaws.com"}
DESCRIBE = (
    "ec2:DescribeDhcpOptions ec2:DescribeNetworkInterfaces ec2:DescribeSecurityGroups ec2:DescribeSubnets "
    "ec2:DescribeVpcs"
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
        ("ec2:CreateNetworkInterface", arn("ec2", f"security-group/{group}"), {}),
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
        ("logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents", f"{logs}:log-stream:v/i-1", {}),
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
    setting_up = (
        "logs:AssociateKmsKey logs:CreateLogGroup logs:DeleteLogGroup logs:PutRetentionPolicy logs:TagResource "
        "logs:UntagResource"
    )
    moved = (
        "ssm:AddTagsToResource ssm:DeleteParameters ssm:GetParameterHistory ssm:GetParameters ssm:PutParameter "
        "ssm:RemoveTagsFromResource"
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
            ("lambda:InvokeFunction", arn("lambda", "function:VerificationHandlerFunction"), {}),
            ("cloudformation:DescribeStacks", stack, {}),
        ],
    }


def emptying(bucket: str) -> list[Row]:
    """A function empties and deletes a bucket that goes with its stack."""
    on_bucket = "s3:DeleteBucket s3:GetBucketTagging s3:ListBucketMultipartUploads s3:ListBucketVersions"
    return [
        (on_bucket, f"arn:aws:s3:::{bucket}", {}),
        ("s3:AbortMultipartUpload s3:DeleteObject s3:DeleteObjectVersion", f"arn:aws:s3:::{bucket}/any", {}),
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
        ("logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents", log_group("/tritonstack/local/network"), {}),
        ("logs:DescribeLogGroups", "*", {}),
    ],
    "builds/SignalsHandlerRole": [
        writes("SignalsHandlerLog"),
        ("s3:GetObject", f"{STAGING}/0.build-set", {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "endpoints/e0/24.09-t4/fast.0.tar.gz"}),
        ("s3:PutObject", f"{BUCKET}/staging/orders/0.json", {}),
        ("s3:GetObject s3:PutObject", f"{BUCKET}/staging/waits/0.json", {}),
        ("kms:Decrypt kms:GenerateDataKey", KEY, {}),
        ("ssm:GetParametersByPath", arn("ssm", "parameter/tritonstack/local/e0"), {}),
        ("cloudformation:DescribeStacks", arn("cloudformation", "stack/local-serving-e0/0"), {}),
        ("codebuild:BatchGetBuilds codebuild:StartBuild", arn("codebuild", "project/ModelBuildProject"), {}),
        ("logs:GetLogEvents", log_group("/tritonstack/local/builds"), {}),
        (
            "codebuild:BatchGetBuilds codebuild:ListBuildsForProject codebuild:StopBuild",
            arn("codebuild", "project/EngineProject"),
            {},
        ),
        ("sagemaker:ListProcessingJobs", "*", {}),
        (
            "sagemaker:DescribeProcessingJob sagemaker:StopProcessingJob",
            arn("sagemaker", "processing-job/local-engine-fast-0"),
            {},
        ),
        ("sqs:SendMessage", arn("sqs", "SignalsUndelivered"), {}),
    ],
    "builds/EngineProjectRole": [
        ("s3:AbortMultipartUpload s3:GetObject s3:GetObjectVersion s3:PutObject", JOBS, {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "staging/jobs/run/"}),
        ("s3:GetBucketAcl s3:GetBucketLocation", BUCKET, {}),
        ("kms:Decrypt kms:DescribeKey kms:Encrypt kms:GenerateDataKey kms:ReEncryptFrom kms:ReEncryptTo", KEY, {}),
        (PULL, TRITON, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        writes("/tritonstack/local/engines"),
        *joins("builds-security-group-0", lent=LENT),
    ],
    "builds/ProcessingRole": [
        ("s3:AbortMultipartUpload s3:GetObject s3:GetObjectVersion s3:PutObject", JOBS, {}),
        ("s3:ListBucket", BUCKET, {"s3:prefix": "staging/jobs/run/"}),
        ("kms:Decrypt kms:Encrypt kms:GenerateDataKey", KEY, {}),
        ("kms:CreateGrant", KEY, {"kms:GrantIsForAWSResource": "true"}),
        (PULL, TRITON, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        ("logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents", JOB_STREAM, {}),
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
        (
            "ssm:GetParameter ssm:GetParameters ssm:GetParametersByPath",
            arn("ssm", "parameter/tritonstack/local/e0/fast"),
            {},
        ),
        writes("/tritonstack/local/builds"),
        (PULL, CPU, {}),
        ("ecr:GetAuthorizationToken", "*", {}),
        *joins("builds-security-group-0", lent=LENT),
        (
            "codebuild:BatchGetBuilds codebuild:StartBuild codebuild:StopBuild",
            arn("codebuild", "project/EngineProject"),
            {},
        ),
        ("logs:FilterLogEvents logs:GetLogEvents", log_group("/tritonstack/local/engines"), {}),
        (
            "sagemaker:CreateProcessingJob sagemaker:DescribeProcessingJob sagemaker:StopProcessingJob",
            arn("sagemaker", "processing-job/local-engine-fast-0"),
            {},
        ),
        ("sagemaker:AddTags", arn("sagemaker", "processing-job/local-engine-fast-0"), {}),
        ("iam:PassRole", f"{ROLE_PREFIX}ProcessingRole", TO_SAGEMAKER),
        ("logs:GetLogEvents", JOB_STREAM, {}),
    ],
}
MAY["serving-e0/ExecutionRole"] += [
    ("cloudwatch:DescribeAlarms", arn("cloudwatch", f"alarm:{name}"), {})
    for name in ("bad-release", "EndpointRollbackAlarmsServerErrors", "EndpointRollbackAlarmsModelErrors")
]
MAY["serving-e2/ExecutionRole"] += [
    ("s3:PutObject", f"{BUCKET}/captured/e2/g4dn-xlarge/0.jsonl", {}),
    ("kms:GenerateDataKey", KEY, {}),
]
MAY["serving-e0/EndpointScalingHandlerRole"] = [
    writes("EndpointScalingHandlerLog"),
    (
        "sagemaker:DescribeEndpoint sagemaker:UpdateEndpointWeightsAndCapacities",
        arn("sagemaker", "endpoint/local-e0"),
        {},
    ),
    ("sagemaker:DescribeEndpointConfig", arn("sagemaker", "endpoint-config/any"), {}),
    (
        "application-autoscaling:RegisterScalableTarget application-autoscaling:PutScalingPolicy",
        arn("application-autoscaling", "scalable-target/0"),
        SCALING,
    ),
    ("application-autoscaling:DescribeScalableTargets application-autoscaling:DescribeScalingPolicies", "*", {}),
    *[
        ("cloudwatch:PutMetricAlarm cloudwatch:DescribeAlarms cloudwatch:DeleteAlarms", alarm, tags)
        for alarm, tags in (
            (arn("cloudwatch", "alarm:TargetTracking-endpoint/local-e0/variant/g4dn-xlarge-AlarmHigh-0"), {}),
            (arn("cloudwatch", "alarm:TargetTracking-endpoint/local-e0/variant/g4dn-xlarge-AlarmHigh-0"), BY_A_STACK),
            (arn("cloudwatch", "alarm:"), {}),
            (arn("cloudwatch", "alarm:*"), {}),
        )
    ],
    # What Application Auto Scaling tries first, with this role's rights: the alarm actions above without a name, and
    # these, whose name there it does not say (user guide, "Permissions validation for API calls on target resources").
    (
        "sagemaker:DescribeEndpoint sagemaker:UpdateEndpointWeightsAndCapacities",
        arn("sagemaker", "endpoint/any"),
        {},
    ),
    (
        "sagemaker:DescribeEndpoint sagemaker:UpdateEndpointWeightsAndCapacities",
        arn("sagemaker", "endpoint/local-e0"),
        BY_A_STACK,
    ),
]

OTHER_KEY, OTHER_BUCKET = arn("kms", "key/another"), "arn:aws:s3:::another"
OTHER_SUBNET = {"ec2:Subnet": arn("ec2", "subnet/another"), "ec2:AuthorizedService": "codebuild.amazonaws.com"}
OTHER_LOG = log_group("/another")
NONE_MAY: list[Row] = [
    (
        "s3:GetObject s3:GetObjectVersion s3:PutObject s3:DeleteObject s3:DeleteObjectVersion s3:AbortMultipartUpload",
        f"{OTHER_BUCKET}/endpoints/e0/24.09-t4/fast.0.tar.gz",
        {},
    ),
    (
        "s3:ListBucket s3:ListBucketVersions s3:GetBucketAcl s3:GetBucketLocation s3:PutBucketPolicy",
        OTHER_BUCKET,
        {"s3:prefix": "endpoints/e0/24.09-t4/"},
    ),
    *[
        ("s3:ListBucket", OTHER_BUCKET, {"s3:prefix": prefix})
        for prefix in ("endpoints/e1/24.09-a10g/", "endpoints/e2/24.09-t4/", "manifests/e0/", "staging/jobs/run/")
    ],
    (
        "s3:ListBucket s3:PutBucketPolicy s3:DeleteBucket s3:PutLifecycleConfiguration",
        BUCKET,
        {"s3:prefix": "secrets/"},
    ),
    ("s3:GetObject s3:PutObject", f"{BUCKET}/secrets/a", {}),
    ("s3:GetObject", f"{STAGING}/0.template.json", {}),
    ("s3:PutObject", f"{STAGING}/0.release-set", {}),
    ("kms:Decrypt kms:GenerateDataKey kms:Encrypt", OTHER_KEY, FROM_S3),
    ("kms:CreateGrant", OTHER_KEY, {"kms:GrantIsForAWSResource": "true"}),
    ("kms:CreateGrant kms:ScheduleKeyDeletion kms:PutKeyPolicy", KEY, {"kms:GrantIsForAWSResource": "false"}),
    ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", TO_SAGEMAKER),
    ("iam:PassRole", f"{ROLE_PREFIX}ProcessingRole", {"iam:PassedToService": "ec2.amazonaws.com"}),
    ("iam:CreateRole iam:PutRolePolicy sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin", {}),
    (
        "sagemaker:InvokeEndpoint sagemaker:DescribeEndpoint sagemaker:UpdateEndpointWeightsAndCapacities",
        arn("sagemaker", "endpoint/prod-e0"),
        BY_A_STACK,
    ),
    ("sagemaker:DeleteEndpoint sagemaker:UpdateEndpoint", arn("sagemaker", "endpoint/local-e0"), {}),
    ("sagemaker:DescribeEndpointConfig", arn("sagemaker", "model/another"), {}),
    ("sagemaker:DescribeModel", arn("sagemaker", "endpoint-config/another"), {}),
    ("sagemaker:DeleteEndpointConfig", arn("sagemaker", "endpoint-config/another"), {}),
    ("sagemaker:DeleteModel", arn("sagemaker", "model/another"), {}),
    ("sagemaker:DeleteModelPackageGroup", arn("sagemaker", "model-package-group/prod-lt-1"), {}),
    (
        "sagemaker:CreateModelPackage sagemaker:DescribeModelPackage sagemaker:DeleteModelPackage",
        arn("sagemaker", "model-package/prod-lt-1/1"),
        {},
    ),
    (
        "sagemaker:CreateInferenceRecommendationsJob sagemaker:StopInferenceRecommendationsJob",
        arn("sagemaker", "inference-recommendations-job/prod-lt-1-1"),
        {},
    ),
    ("iam:PassRole", f"{ROLE_PREFIX}JobsRole", {"iam:PassedToService": "ec2.amazonaws.com"}),
    (
        "sagemaker:CreateProcessingJob sagemaker:DescribeProcessingJob sagemaker:StopProcessingJob",
        arn("sagemaker", "processing-job/prod-engine-fast-0"),
        {},
    ),
    ("sagemaker:StopProcessingJob", arn("sagemaker", "processing-job/local-training-0"), {}),
    (
        "ssm:GetParameter ssm:GetParameters ssm:GetParametersByPath ssm:PutParameter ssm:DeleteParameters",
        arn("ssm", "parameter/tritonstack/prod/e0/fast"),
        {},
    ),
    (
        "ssm:AddTagsToResource ssm:RemoveTagsFromResource",
        arn("ssm", "parameter/tritonstack/local/_artifacts/bucket-name"),
        {},
    ),
    ("logs:CreateLogStream logs:PutLogEvents logs:GetLogEvents logs:DeleteLogGroup", OTHER_LOG, {}),
    ("logs:PutRetentionPolicy logs:CreateLogGroup logs:DescribeLogStreams", OTHER_LOG, {}),
    ("codebuild:StartBuild codebuild:StopBuild", arn("codebuild", "project/another"), {}),
    ("codebuild:UpdateProject", arn("codebuild", "project/ModelBuildProject"), {}),
    ("lambda:InvokeFunction", arn("lambda", "function:another"), {}),
    ("lambda:UpdateFunctionCode", arn("lambda", "function:VerificationHandlerFunction"), {}),
    ("sqs:SendMessage sqs:ReceiveMessage", arn("sqs", "another"), {}),
    ("cloudformation:DescribeStacks cloudformation:DeleteStack", arn("cloudformation", "stack/prod-serving-e0/0"), {}),
    ("ec2:CreateNetworkInterface", arn("ec2", "subnet/another"), {}),
    ("ec2:CreateNetworkInterface", arn("ec2", "security-group/another"), {}),
    ("ec2:DeleteNetworkInterface ec2:CreateNetworkInterfacePermission", INTERFACE, OTHER_SUBNET),
    ("ec2:DeleteNetworkInterface ec2:CreateNetworkInterfacePermission", arn("ec2", "instance/i-1"), LENT),
    ("ec2:CreateNetworkInterfacePermission", INTERFACE, {"ec2:AuthorizedService": "codebuild.amazonaws.com"}),
    ("ec2:RunInstances ec2:AuthorizeSecurityGroupEgress", "*", {}),
    ("ecr:BatchGetImage ecr:PutImage", arn("ecr", "repository/another"), {}),
    ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "Another"}),
    (
        "cloudwatch:DescribeAlarms cloudwatch:PutMetricAlarm cloudwatch:DeleteAlarms",
        arn("cloudwatch", "alarm:another"),
        BY_A_STACK,
    ),
    (
        "application-autoscaling:RegisterScalableTarget",
        arn("application-autoscaling", "scalable-target/0"),
        {**SCALING, "application-autoscaling:service-namespace": "ecs"},
    ),
    ("application-autoscaling:RegisterScalableTarget", arn("another", "scalable-target/0"), SCALING),
    (
        "sagemaker:DescribeEndpoint sagemaker:UpdateEndpointWeightsAndCapacities",
        f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:endpoint/any",
        {},
    ),
    (
        "cloudwatch:DescribeAlarms cloudwatch:PutMetricAlarm cloudwatch:DeleteAlarms",
        f"arn:aws:cloudwatch:eu-west-1:{ACCOUNT}:alarm:",
        {},
    ),
]
"""Another bucket, key, role, endpoint, environment, network; and the settings of what is one's own."""
BY_ANOTHER_WAY: dict[str, list[Row]] = {
    "SignalsHandlerRole": [
        ("codebuild:StopBuild", arn("codebuild", "project/ModelBuildProject"), {}),
        ("codebuild:StartBuild", arn("codebuild", "project/EngineProject"), {}),
        ("sagemaker:CreateProcessingJob", arn("sagemaker", "processing-job/local-engine-fast-0"), {}),
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
                (
                    "sagemaker:InvokeEndpoint sagemaker:DescribeEndpoint sagemaker:UpdateEndpointWeightsAndCapacities",
                    arn("sagemaker", f"endpoint/local-{other}"),
                    BY_A_STACK,
                ),
                ("logs:PutLogEvents logs:PutRetentionPolicy", log_group(f"/aws/sagemaker/Endpoints/local-{other}"), {}),
                ("cloudformation:DescribeStacks", arn("cloudformation", f"stack/local-serving-{other}/0"), {}),
            ]
    return rows
