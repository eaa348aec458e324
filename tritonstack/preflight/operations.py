"""The API operations that preflight may call, each with the IAM action that it needs: none of them changes anything."""

from __future__ import annotations

ACTIONS: dict[tuple[str, str], str] = {
    ("cloudformation", "DescribeStacks"): "cloudformation:DescribeStacks",
    ("cloudformation", "ListStackResources"): "cloudformation:ListStackResources",
    ("cloudwatch", "DescribeAlarms"): "cloudwatch:DescribeAlarms",
    ("codebuild", "BatchGetBuilds"): "codebuild:BatchGetBuilds",
    ("codebuild", "ListBuilds"): "codebuild:ListBuilds",
    ("ec2", "DescribeInstanceTypeOfferings"): "ec2:DescribeInstanceTypeOfferings",
    ("ec2", "DescribeManagedPrefixLists"): "ec2:DescribeManagedPrefixLists",
    ("ec2", "DescribeRouteTables"): "ec2:DescribeRouteTables",
    ("ec2", "DescribeSecurityGroups"): "ec2:DescribeSecurityGroups",
    ("ec2", "DescribeSubnets"): "ec2:DescribeSubnets",
    ("ecr", "BatchGetImage"): "ecr:BatchGetImage",
    ("iam", "GetPolicy"): "iam:GetPolicy",
    ("iam", "GetRole"): "iam:GetRole",
    ("kms", "DescribeKey"): "kms:DescribeKey",
    ("kms", "Encrypt"): "kms:Encrypt",
    ("kms", "GetKeyPolicy"): "kms:GetKeyPolicy",
    ("logs", "DescribeLogGroups"): "logs:DescribeLogGroups",
    ("pricing", "GetProducts"): "pricing:GetProducts",
    ("s3", "GetObject"): "s3:GetObject",
    ("s3", "HeadBucket"): "s3:ListBucket",
    ("s3", "HeadObject"): "s3:GetObject",
    ("s3", "ListObjectsV2"): "s3:ListBucket",
    ("sagemaker", "DescribeEndpoint"): "sagemaker:DescribeEndpoint",
    ("sagemaker", "DescribeEndpointConfig"): "sagemaker:DescribeEndpointConfig",
    ("sagemaker", "DescribeModel"): "sagemaker:DescribeModel",
    ("sagemaker", "DescribeProcessingJob"): "sagemaker:DescribeProcessingJob",
    ("sagemaker", "ListEndpoints"): "sagemaker:ListEndpoints",
    ("sagemaker", "ListProcessingJobs"): "sagemaker:ListProcessingJobs",
    ("service-quotas", "ListAWSDefaultServiceQuotas"): "servicequotas:ListAWSDefaultServiceQuotas",
    ("service-quotas", "ListServiceQuotas"): "servicequotas:ListServiceQuotas",
    ("sns", "ListSubscriptionsByTopic"): "sns:ListSubscriptionsByTopic",
    ("ssm", "GetParameter"): "ssm:GetParameter",
    ("ssm", "GetParametersByPath"): "ssm:GetParametersByPath",
    ("sts", "GetCallerIdentity"): "sts:GetCallerIdentity",
}
"""(botocore's service, operation) → IAM action (Service Authorization Reference)."""

DRY_RUN_ONLY = frozenset({("kms", "Encrypt")})
"""Operations that are called with ``DryRun`` alone: KMS then says whether it would, and encrypts nothing."""


class MutatingCallError(Exception):
    """A call that preflight must not make. It means a mistake in this package, never one of the user."""


def refuse_others(service: str, operation: str, request: object) -> None:
    """Raise :class:`MutatingCallError` for a call that is not in ``ACTIONS``, or lacks the DryRun that it must have."""
    if (service, operation) not in ACTIONS:
        raise MutatingCallError(f"preflight only reads, and {service} {operation} is not among its operations")
    if (service, operation) in DRY_RUN_ONLY and not (isinstance(request, dict) and request.get("DryRun") is True):
        raise MutatingCallError(f"preflight calls {service} {operation} with DryRun alone")
