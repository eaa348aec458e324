"""cdk-nag findings that are accepted, each with a reason that a reader can check."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import IConstruct

from tritonstack.catalogue import load_catalogue


def acknowledge(construct: IConstruct, *, finding: str, reason: str) -> None:
    """Accept one finding on one construct, and on nothing outside it.

    Args:
        finding: the whole id, with its detail (``AwsSolutions-IAM5[Resource::*]``); cdk-nag 3 matches no prefixes, so
            this never covers a wildcard that is added later.
        reason: why it is right, in a form that can be checked against the template or a service's documentation.
    """
    cdk.Validations.of(construct).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))


def acknowledge_wildcard(construct: IConstruct, *, resource: str, reason: str) -> None:
    """Accept one resource pattern in one policy: the ARN as it stands in the statement, parameters included."""
    acknowledge(construct, finding=f"AwsSolutions-IAM5[Resource::{_as_nag_writes(construct, resource)}]", reason=reason)


def _as_nag_writes(construct: IConstruct, text: str) -> str:
    """Text with references as cdk-nag writes them in a finding: ``<LogicalId>`` or ``<LogicalId.Attribute>``.

    The value of another stack is written in the form that it has before the app is synthesised, as a ``Ref``; cdk-nag
    sees the export by then. So an app that brings its bucket from another stack accepts that finding itself.
    """
    return _flatten(cdk.Stack.of(construct).resolve(text))


def _flatten(value: object) -> str:
    match value:
        case str():
            return value.replace("${", "<").replace("}", ">")  # as Fn::Sub names references
        case {"Ref": str(name)}:
            return f"<{name}>"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(_flatten(part) for part in parts)
        case {"Fn::Sub": inner} | {"Fn::ImportValue": inner}:
            return _flatten(inner)
        case _:
            return json.dumps(value, separators=(",", ":"))


# They are made only where cdk-nag looks: a pass over the tree takes time that other runs need not pay. A pattern names
# constructs by the end of their path, so that a finding on anything else still fails synthesis.


def has_no_volume(construct: IConstruct) -> bool:
    """Whether no variant of an endpoint config gets an EBS volume: every instance type has local NVMe disks.

    False for a type that the catalogue does not list.
    """
    if not isinstance(construct, sagemaker.CfnEndpointConfig) or not isinstance(construct.production_variants, list):
        return False
    names = [str(getattr(each, "instance_type", "")) for each in construct.production_variants]
    types = [load_catalogue().instance(name) for name in names]
    return all(each is not None and each.local_nvme_gb > 0 for each in types)


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A rule that does not hold for some constructs, and why, so that it can be checked."""

    rule: str  # without the name of its pack
    paths: tuple[str, ...]  # patterns of the constructs' paths
    reason: str
    where: Callable[[IConstruct], bool] | None = None  # what else must hold for the reason to be true


HANDLERS = ("*/Handler/Function",)
ACCEPTED = (
    Accepted(
        rule="LambdaInsideVPC",
        paths=HANDLERS,
        reason="Functions of a deployment call CloudFormation's presigned URLs and the APIs of AWS, never an address "
        "in the VPC. Inside it they would need endpoints and interfaces that must be there before, and outlive, "
        "the stack that they deploy; each call is signed, and their roles name what they may do to what.",
    ),
    Accepted(
        rule="LambdaConcurrency",
        paths=HANDLERS,
        reason="A function is called by one stack's custom resources, a few times in a deployment, or once when a "
        "build ends; no other principal may invoke it. Reserved concurrency would be taken from the whole account's, "
        "and throttling would fail a deployment or its rollback.",
    ),
    Accepted(
        rule="LambdaDLQ",
        paths=HANDLERS,
        reason="A function responds to CloudFormation, which fails the deployment without a response: a lost event is "
        "noticed. The function that events call keeps failed events in a queue (OnFailure of BuildSignals), which the "
        "rule does not look for.",
    ),
    Accepted(
        rule="CloudWatchLogGroupEncrypted",
        paths=("*/Handler/Log/Resource",),
        reason="CloudWatch Logs encrypts every group by itself. A customer key must name its groups in its policy, and "
        "these have generated names; functions write names, digests and reasons, and nothing of requests or models.",
    ),
    Accepted(
        rule="IAMNoInlinePolicy",
        paths=("*/Access/Resource", "*/ExecutionRole/Access????????/Resource"),
        reason="Each policy is of one role and goes with it. As a managed policy it could be attached to another "
        "principal, and up to four old versions of it would stay. What it allows is simulated in tests/policies.",
    ),
    Accepted(
        rule="S3BucketReplicationEnabled",
        paths=("*/Artifacts/Archives/Resource", "*/Artifacts/AccessLogs/Resource"),
        reason="Archives are made from a commit and named by the digest of what they are made from, so that another "
        "region builds them itself; their bucket is versioned. What else lies in it (orders of builds, captured calls) "
        "expires, as access logs do.",
    ),
    Accepted(
        rule="S3BucketVersioningEnabled",
        paths=("*/Artifacts/AccessLogs/Resource",),
        reason="S3 writes each access log once, under a name of its own, and no principal here may write one; "
        "a lifecycle rule deletes them, which versions would undo.",
    ),
    Accepted(
        rule="S3DefaultEncryptionKMS",
        paths=("*/Artifacts/AccessLogs/Resource",),
        reason="S3 delivers access logs to a bucket with SSE-S3 (user guide: Enabling Amazon S3 server access "
        "logging); with a customer key as the default they would not arrive.",
    ),
    Accepted(
        rule="SageMakerEndpointConfigurationKMSKeyConfigured",
        paths=("*/Endpoint/Config",),
        reason="The key is for an EBS volume, which instance types with local NVMe do not get (API reference: "
        "CreateEndpointConfig, KmsKeyId); their disks are encrypted by the hardware, and the settings refuse a key "
        "there. A config with any other type is not accepted: it needs volume_key_arn.",
        where=has_no_volume,
    ),
    Accepted(
        rule="VPCNoUnrestrictedRouteToIGW",
        paths=("*/Created/Public-*-Out",),
        reason="A public subnet holds a NAT gateway and nothing else, which needs this route; subnets of containers "
        "and builds have none to the internet gateway, and no subnet gives public addresses.",
    ),
    Accepted(
        rule="VPCDefaultSecurityGroupClosed",
        paths=("*/Created/Vpc",),
        reason="Nothing is put into the default security group: every Model, project and endpoint names its own. "
        "CloudFormation cannot change that group's rules, and a function that does would need rights on every group.",
    ),
)


def acknowledge_nist(stage: cdk.Stage) -> None:
    """Accept the findings of ``ACCEPTED`` on the constructs of a stage."""
    for construct in stage.node.find_all():
        if isinstance(construct, cdk.CfnElement):
            _acknowledge(construct)


def _acknowledge(construct: IConstruct) -> None:
    path = construct.node.path
    for each in ACCEPTED:
        holds = each.where is None or each.where(construct)
        if holds and any(fnmatch.fnmatchcase(path, pattern) for pattern in each.paths):
            acknowledge(construct, finding=f"NIST.800.53.R5-{each.rule}", reason=each.reason)
