"""What the roles of the load-test stack must be able to do: as in ``tables``."""

from __future__ import annotations

from tests.policies.tables import (
    BUCKET,
    INSIDE,
    LENT,
    PULL,
    STAGING,
    TO_SAGEMAKER,
    TRITON,
    Row,
    joins,
    log_group,
    writes,
)
from tests.policies.world import KEY, ROLE_PREFIX, arn

LOAD_TESTS: dict[str, list[Row]] = {}
TESTS = f"{BUCKET}/load-tests/1"
LOAD_TESTS["load-test/BenchRole"] = [
    ("sagemaker:DescribeEndpoint sagemaker:InvokeEndpoint", arn("sagemaker", "endpoint/local-e0"), {}),
    ("sagemaker:DescribeEndpointConfig", arn("sagemaker", "endpoint-config/any"), {}),
    ("sagemaker:DescribeModel", arn("sagemaker", "model/any"), {}),
    ("ssm:GetParameter ssm:GetParametersByPath", arn("ssm", "parameter/tritonstack/local/e0/fast"), {}),
    ("ssm:GetParameter", arn("ssm", "parameter/tritonstack/local/_artifacts/bucket-name"), {}),
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
LOAD_TESTS["load-test/JobsRole"] = [
    ("s3:GetObject", f"{BUCKET}/endpoints/e2/24.09-t4/fast.0.tar.gz", {}),
    ("s3:GetObject", f"{TESTS}/payloads/fast.tar.gz", {}),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "endpoints/e2/24.09-t4/"}),
    ("kms:Decrypt", KEY, {}),
    (PULL, TRITON, {}),
    ("ecr:GetAuthorizationToken", "*", {}),
    (
        "sagemaker:CreateEndpoint sagemaker:DeleteEndpoint sagemaker:DescribeEndpoint sagemaker:InvokeEndpoint",
        arn("sagemaker", "endpoint/local-lt-1-1-a"),
        {},
    ),
    (
        "sagemaker:CreateEndpointConfig sagemaker:DeleteEndpointConfig sagemaker:DescribeEndpointConfig",
        arn("sagemaker", "endpoint-config/local-lt-1-1-a"),
        {},
    ),
    (
        "sagemaker:CreateModel sagemaker:DeleteModel sagemaker:DescribeModel sagemaker:AddTags",
        arn("sagemaker", "model/local-lt-1-1-a"),
        {},
    ),
    ("sagemaker:DescribeModelPackage", arn("sagemaker", "model-package/local-lt-1/1"), {}),
    ("iam:PassRole", f"{ROLE_PREFIX}JobsRole", TO_SAGEMAKER),
    (
        "logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents",
        log_group("/aws/sagemaker/InferenceRecommendationsJobs"),
        {},
    ),
    (
        "logs:CreateLogStream logs:DescribeLogStreams logs:PutLogEvents",
        log_group("/aws/sagemaker/Endpoints/local-lt-1-1-a"),
        {},
    ),
    ("cloudwatch:PutMetricData", "*", {"cloudwatch:namespace": "AWS/SageMaker"}),
    ("cloudwatch:GetMetricData", "*", {}),
    *joins("security-group-0", lent=INSIDE),
    ("ec2:DeleteNetworkInterfacePermission", "*", {}),
]
LOAD_TESTS["load-test/StepsHandlerRole"] = [
    writes("StepsHandlerLog"),
    ("s3:GetObject s3:PutObject", f"{TESTS}/results.json", {}),
    ("s3:GetObject s3:PutObject", f"{TESTS}/closed.json", {}),
    ("s3:GetObject", f"{BUCKET}/endpoints/e2/24.09-t4/fast.0.tar.gz", {}),
    ("kms:Decrypt kms:GenerateDataKey", KEY, {}),
    (
        "sagemaker:CreateModelPackageGroup sagemaker:DescribeModelPackageGroup sagemaker:DeleteModelPackageGroup",
        arn("sagemaker", "model-package-group/local-lt-1"),
        {},
    ),
    (
        "sagemaker:CreateModelPackage sagemaker:DescribeModelPackage sagemaker:DeleteModelPackage",
        arn("sagemaker", "model-package/local-lt-1/1"),
        {},
    ),
    (
        (
            "sagemaker:CreateInferenceRecommendationsJob sagemaker:DescribeInferenceRecommendationsJob "
            "sagemaker:StopInferenceRecommendationsJob sagemaker:AddTags"
        ),
        arn("sagemaker", "inference-recommendations-job/local-lt-1-1"),
        {},
    ),
    ("iam:PassRole", f"{ROLE_PREFIX}JobsRole", TO_SAGEMAKER),
    ("sagemaker:DeleteEndpoint", arn("sagemaker", "endpoint/local-lt-1-1-a"), {}),
    ("sagemaker:DeleteEndpointConfig", arn("sagemaker", "endpoint-config/local-lt-1-1-a"), {}),
    ("sagemaker:DeleteModel", arn("sagemaker", "model/local-lt-1-1-a"), {}),
    (
        (
            "cloudwatch:GetMetricStatistics sagemaker:ListEndpoints sagemaker:ListEndpointConfigs sagemaker:ListModels "
            "sagemaker:ListModelPackages"
        ),
        "*",
        {},
    ),
    ("sqs:SendMessage", arn("sqs", "StepsUndelivered"), {}),
]
LOAD_TESTS["load-test/RecommenderRole"] = [
    ("lambda:InvokeFunction", arn("lambda", "function:StepsHandlerFunction"), {}),
    (
        (
            "logs:CreateLogDelivery logs:DeleteLogDelivery logs:DescribeLogGroups logs:DescribeResourcePolicies "
            "logs:GetLogDelivery logs:ListLogDeliveries logs:PutResourcePolicy logs:UpdateLogDelivery"
        ),
        "*",
        {},
    ),
    (
        "xray:GetSamplingRules xray:GetSamplingTargets xray:PutTelemetryRecords xray:PutTraceSegments",
        "*",
        {},
    ),
]
