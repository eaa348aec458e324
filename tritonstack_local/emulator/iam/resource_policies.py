"""Policies of resources and of VPC endpoints, and the tags of resources, as MiniStack and our services keep them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tritonstack.aws.iam_evaluation import Policy
from tritonstack_local.emulator.iam.principals import role_record, statements_of
from tritonstack_local.emulator.ministack_adapter import ec2, iam

MUST_ALLOW = frozenset({"kms"})
"""Services whose resource policy must allow every request, the account's administrator's too (KMS developer guide)."""
_ENDPOINT_SERVICES = {
    "cloudwatch": ("monitoring",),
    "ecr": ("ecr.api", "ecr.dkr"),
    "sagemaker": ("sagemaker.api",),
}
"""Prefix of actions → the VPC endpoint services that they go through (AWS PrivateLink guide, list of services).

Those of other names than the prefix's.
"""
_RUNTIME = "sagemaker.runtime"
own_tags: list[Callable[[str], Mapping[str, str] | None]] = []
"""Where services that MiniStack lacks give the tags of an ARN; None of one that is not theirs."""


def trust_policy(role_arn: str) -> Policy | None:
    """The statements of a role's trust policy; None where there is no such role."""
    record = role_record(role_arn.rpartition("/")[2], account=role_arn.split(":")[4])
    return None if record is None else statements_of(record["AssumeRolePolicyDocument"] or "{}")


def resource_policy(action: str, resource: str) -> Policy | None:
    """The statements of a resource's own policy; None of a resource that has none."""
    service = action.partition(":")[0]
    if action in ("sts:AssumeRole", "sts:TagSession"):
        return trust_policy(resource)
    policy = iam.resource_policy_document(service, resource) if resource.startswith("arn:") else None
    if policy is None:
        return None
    return statements_of(policy if isinstance(policy, str) else json.dumps(policy, sort_keys=True))


def endpoint_policies(vpc: str, action: str) -> list[Policy]:
    """The policies of a VPC's endpoints that a request from inside goes through.

    None where the VPC has no such endpoint.

    One without a policy lets everything through, as AWS's default policy does.
    """
    service = action.partition(":")[0]
    names = (
        (_RUNTIME,) if action.startswith("sagemaker:InvokeEndpoint") else _ENDPOINT_SERVICES.get(service, (service,))
    )
    return [
        statements_of(document if isinstance(document, str) else json.dumps(document, sort_keys=True))
        for each in list(ec2.vpc_endpoints().values())
        if each["VpcId"] == vpc
        and each["ServiceName"].split(".", 3)[-1] in names
        and (document := each.get("PolicyDocument"))
    ]


def resource_tags(arn: str) -> Mapping[str, str]:
    """The tags of a resource; empty where it has none or is not there."""
    for tags_of in own_tags:
        found = tags_of(arn)
        if found is not None:
            return found
    return iam.resource_tags(arn) or {}
