"""Openings: networks, ways into data, ways out for programs that a change opens or closes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tritonstack.review.network_facts import network_facts
from tritonstack.review.opening_facts import Counts, Fact, OpeningChange, OpeningKind, Owners, compare_facts
from tritonstack.review.permission_change import Direction, PermissionChange
from tritonstack.review.permissions import permission_changes
from tritonstack.review.policies import SubjectKind
from tritonstack.review.reading import Reading, renames
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot

_IN_VPC = {
    "AWS::SageMaker::Model": "VpcConfig",
    "AWS::SageMaker::EndpointConfig": "VpcConfig",
    "AWS::Lambda::Function": "VpcConfig",
    "AWS::CodeBuild::Project": "VpcConfig",
}
_BLOCKS = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "AWS::S3::Bucket": (("BucketEncryption",),),
    "AWS::SNS::Topic": (("KmsMasterKeyId",),),
    "AWS::SQS::Queue": (("KmsMasterKeyId",), ("SqsManagedSseEnabled",)),
    "AWS::Logs::LogGroup": (("KmsKeyId",),),
    "AWS::SageMaker::EndpointConfig": (("KmsKeyId",), ("DataCaptureConfig", "KmsKeyId")),
    "AWS::Lambda::Function": (("KmsKeyArn",),),
    "AWS::CodeBuild::Project": (("EncryptionKey",),),
    "AWS::ECR::Repository": (("EncryptionConfiguration",),),
    "AWS::SecretsManager::Secret": (("KmsKeyId",),),
    "AWS::DynamoDB::Table": (("SSESpecification",),),
    "AWS::CodePipeline::Pipeline": (("ArtifactStore", "EncryptionKey"),),
    "AWS::CloudTrail::Trail": (("KMSKeyId",),),
    "AWS::EFS::FileSystem": (("Encrypted",), ("KmsKeyId",)),
    "AWS::EC2::Volume": (("Encrypted",), ("KmsKeyId",)),
}
"""Type → the properties that say how its data is encrypted."""
_BY_KEY = ("BucketEncryption", "EncryptionConfiguration")
"""Those that hold the key deeper in."""


def exposure_facts(stack: StackSnapshot) -> Iterator[Fact]:
    """Every such fact of one stack."""
    reading = Reading(stack)
    for resource in stack.resources.values():
        yield from _vpc(stack, resource, reading)
        yield from _isolation(stack, resource)
        yield from _public_access(stack, resource)
        yield from _encryption(stack, resource, reading)
        if resource.type == "AWS::Lambda::Url" and resource.properties.get("AuthType") == "NONE":
            comes, goes = "can be called by anybody, without a signature (AuthType NONE)", "no longer answers anybody"
            yield _fact(stack, resource, "url", "NONE", comes=comes, goes=goes, opens=True, counts=Counts.ALWAYS)


def _fact(
    stack: StackSnapshot,
    resource: Resource,
    topic: str,
    detail: str,
    *,
    comes: str,
    goes: str,
    opens: bool = False,
    counts: Counts = Counts.WITH_OWNER,
    paired: bool = False,
) -> Fact:
    return Fact(
        stack=stack.name,
        owner=resource.logical_id,
        topic=topic,
        detail=detail,
        name=resource.path,
        logical_id=resource.logical_id,
        comes=comes,
        goes=goes,
        opens=opens,
        counts=counts,
        paired=paired,
    )


def _vpc(stack: StackSnapshot, resource: Resource, reading: Reading) -> Iterator[Fact]:
    """Which network it runs in; a model that is new, and neither in one nor isolated, reaches the internet."""
    name = _IN_VPC.get(resource.type)
    if name is None:
        return
    config = resource.properties.get(name)
    if config:
        where = "; ".join(
            f"{part}: {', '.join(sorted(map(reading.shown, value if isinstance(value, list) else [value])))}"
            for part, value in sorted(config.items())
        )
        goes = f"no longer runs in a VPC ({where}): its traffic leaves the network"
        yield _fact(stack, resource, "vpc", where, comes=f"runs in a VPC ({where})", goes=goes, paired=True)
    elif resource.type == "AWS::SageMaker::Model" and not _is_on(resource.properties.get("EnableNetworkIsolation")):
        yield _fact(
            stack,
            resource,
            "internet",
            "",
            comes="runs in no VPC and without network isolation: its containers reach the internet",
            goes="no longer runs with a way to the internet from its containers",
            opens=True,
            counts=Counts.WITHOUT_OWNER,
        )


def _isolation(stack: StackSnapshot, resource: Resource) -> Iterator[Fact]:
    if _is_on(resource.properties.get("EnableNetworkIsolation")):
        comes = "is isolated: its containers make no calls (EnableNetworkIsolation)"
        goes = "is no longer isolated: its containers may make calls (EnableNetworkIsolation)"
        yield _fact(stack, resource, "isolation", "", comes=comes, goes=goes)


def _public_access(stack: StackSnapshot, resource: Resource) -> Iterator[Fact]:
    """The public access block. A new bucket has all of it unless the template says otherwise (S3 user guide)."""
    if resource.type not in {"AWS::S3::Bucket", "AWS::S3::AccessPoint"}:
        return
    given = resource.properties.get("PublicAccessBlockConfiguration")
    config = given if isinstance(given, dict) else {}
    for flag in _BLOCKS:
        if _is_on(config.get(flag)):
            comes, goes = f"blocks public access ({flag})", f"no longer blocks public access ({flag})"
            yield _fact(stack, resource, flag, "", comes=comes, goes=goes)
        elif given is not None:
            comes, goes = f"does not block public access ({flag})", f"public access was not blocked ({flag})"
            counts = Counts.WITHOUT_OWNER
            yield _fact(stack, resource, f"no {flag}", "", comes=comes, goes=goes, opens=True, counts=counts)


def _encryption(stack: StackSnapshot, resource: Resource, reading: Reading) -> Iterator[Fact]:
    for path in _KEYS.get(resource.type, ()):
        value: Json = resource.properties
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, dict) and path[-1] in _BY_KEY:
            value = _key_in(value)
        if value in (None, False, "false", {}):
            continue
        name, shown = ".".join(path), reading.shown(value)
        comes = f"encrypts its data by {name} {shown}"
        goes = f"no longer encrypts its data by {name} {shown}"
        yield _fact(stack, resource, name, shown, comes=comes, goes=goes, paired=True)


def _key_in(value: Json) -> Json:
    """The key of a bucket's or a repository's encryption; None where AWS's own keys encrypt, as they do anyway."""
    if isinstance(value, list):
        return next((key for key in map(_key_in, value) if key is not None), None)
    if not isinstance(value, dict):
        return None
    for name in ("KMSMasterKeyID", "KmsKey"):
        if name in value:
            return value[name]
    if "aws:kms" in value.values() or "KMS" in value.values():
        return "with AWS's own key of the service in KMS"
    return _key_in(list(value.values()))


def _is_on(value: Json) -> bool:
    return str(value).lower() == "true"


_KINDS = {
    Direction.WIDER: OpeningKind.OPENED,
    Direction.NARROWER: OpeningKind.CLOSED,
    Direction.OTHER: OpeningKind.OTHER,
}
_WITHOUT_TLS = "Bool aws:securetransport false"


def opening_changes(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> tuple[OpeningChange, ...]:
    """What an environment opens or closes.

    Rules of security groups are compared by the traffic that they let through, wherever they stand. What is closed by
    nature (encryption, a VPC, network isolation, a public access block) is told where its resource is on both sides: a
    resource that is new closes nothing. Sorted; the same for the same snapshots.

    Args:
        before: None where the environment is new.
        after: None where it is gone.
    """
    renamed = _renamed(before, after)
    old = (replace(each, owner=renamed.get((each.stack, each.owner), each.owner)) for each in _facts(before))
    owners = frozenset((stack, renamed.get((stack, name), name)) for stack, name in _owners(before))
    changes = list(compare_facts(old, _facts(after), owners_before=owners, owners_after=_owners(after)))
    for permission in permission_changes(before, after):
        changes += _of_permission(permission)
    return tuple(sorted(changes, key=lambda each: each.order))


def _facts(environment: EnvironmentSnapshot | None) -> Iterator[Fact]:
    for stack in environment.stacks.values() if environment is not None else ():
        yield from network_facts(stack)
        yield from exposure_facts(stack)


def _renamed(before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None) -> dict[tuple[str, str], str]:
    """Stack and logical id before → logical id after, of what is the same but for that: it opens and closes nothing."""
    if before is None or after is None:
        return {}
    return {
        (name, old): new
        for name in before.stacks.keys() & after.stacks.keys()
        for new, old in renames(before.stacks[name].resources, after.stacks[name].resources).items()
    }


def _owners(environment: EnvironmentSnapshot | None) -> Owners:
    stacks = environment.stacks.values() if environment is not None else ()
    return frozenset((stack.name, name) for stack in stacks for name in stack.resources)


def _of_permission(change: PermissionChange) -> Iterator[OpeningChange]:
    """What a resource's policy opens: to calls without TLS, to everybody, through a VPC endpoint."""
    if change.about is not SubjectKind.RESOURCE:
        return
    if change.type == "AWS::EC2::VPCEndpoint":
        if not change.whole:
            yield _opening(change, f"its policy: {change.statement}")
    elif not change.allows and _WITHOUT_TLS in change.conditions:
        if not change.whole:
            verb = "are refused from now on" if change.kind is Direction.NARROWER else "are no longer refused"
            yield _opening(change, f"calls without TLS {verb}: {', '.join(change.actions)}")
    elif change.allows and "anybody" in change.who:
        yield _opening(change, f"open to everybody: {change.statement}")


def _opening(change: PermissionChange, sentence: str) -> OpeningChange:
    return OpeningChange(
        kind=_KINDS[change.kind],
        stack=change.stack,
        name=change.principal,
        sentence=sentence,
        logical_id=change.logical_id,
    )
