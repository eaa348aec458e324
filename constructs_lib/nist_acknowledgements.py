"""Findings of NIST 800-53 R5 that are right as they stand, each by rule and by the constructs that it is about.

They are made only where cdk-nag looks: a pass over the tree takes time that other runs need not pay. A pattern names
constructs by the end of their path, so that a finding on anything else still fails synthesis.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

import aws_cdk as cdk
from constructs import IConstruct

from constructs_lib.acknowledgement import acknowledge


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A rule that does not hold for some constructs.

    Attributes:
        rule: the rule's name without that of the pack.
        paths: patterns of the constructs' paths below their stage.
        reason: why, so that it can be checked against the template or a service's documentation.
    """

    rule: str
    paths: tuple[str, ...]
    reason: str


HANDLERS = ("*/Handler/Function",)
ACCEPTED = (
    Accepted(
        rule="LambdaInsideVPC",
        paths=HANDLERS,
        reason="Functions of a deployment call CloudFormation's presigned URLs and the APIs of AWS, never an address "
        "in the VPC. Inside it they would need endpoints and interfaces that must be there before, and outlive, "
        "the stack that they deploy; each call is signed, and their roles are bounded.",
    ),
    Accepted(
        rule="LambdaConcurrency",
        paths=HANDLERS,
        reason="A function is called by one stack's custom resources, a few times in a deployment. Reserved "
        "concurrency would be taken from the whole account's, and throttling would fail a deployment or its rollback.",
    ),
    Accepted(
        rule="LambdaDLQ",
        paths=HANDLERS,
        reason="A function answers CloudFormation, which fails the deployment when no answer comes: a lost event is "
        "seen. The one function that events call keeps what it failed on in a queue (OnFailure of BuildSignals), which "
        "the rule does not look for.",
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
        "principal, and five versions of it would outlive an update. What it allows is simulated in tests/policies.",
    ),
    Accepted(
        rule="S3BucketReplicationEnabled",
        paths=("*/Artifacts/Archives/Resource", "*/Artifacts/AccessLogs/Resource"),
        reason="Archives are made from a commit and named by its digest, so that another region builds them itself; "
        "their bucket is versioned. Access logs are about this bucket alone and expire.",
    ),
    Accepted(
        rule="S3BucketVersioningEnabled",
        paths=("*/Artifacts/AccessLogs/Resource",),
        reason="S3 writes each access log once, under a name of its own, and nobody here may write or overwrite one; "
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
        "CreateEndpointConfig, KmsKeyId); their disks are encrypted by the hardware. Types with a volume take one by "
        "volume_key_arn, which the settings refuse elsewhere.",
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
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in each.paths):
            acknowledge(construct, finding=f"NIST.800.53.R5-{each.rule}", reason=each.reason)
