"""S3: conditions of copies, and AWS::S3::Bucket properties that MiniStack drops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tritonstack_local.emulator.cloudformation.provisioning import Properties, complete
from tritonstack_local.emulator.ministack_adapter import cloudformation, s3
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, get_region
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import call

ServiceResponse = tuple[int, dict[str, str], Any]


def install() -> None:
    """Have CopyObject heed its conditions (S3 API reference), and complete MiniStack's provisioner of buckets."""
    copy = s3.copy_object.current

    def copy_object(bucket: str, key: str, headers: dict[str, str]) -> ServiceResponse:
        destination = s3.object_record(bucket, key)
        answer: ServiceResponse = s3.check_put_preconditions(headers, destination) or copy(bucket, key, headers)
        return answer

    s3.copy_object.replace(copy_object)
    complete(TYPE, check=_check, apply=_apply)
    cloudformation.stack_tag_property()[TYPE] = ("Tags", "list")
    cloudformation.resource_handlers()[TYPE]["delete"] = _delete


# --- AWS::S3::Bucket ---
# MiniStack keeps CORS, notifications, public access block, website and enabled versioning. Here come encryption,
# lifecycle, logging, ownership, tags and suspended versioning; a property that neither keeps is refused, so
# that no property of a template is ignored.

TYPE = "AWS::S3::Bucket"
_BY_MINISTACK = {
    "BucketName",
    "CorsConfiguration",
    "NotificationConfiguration",
    "PublicAccessBlockConfiguration",
    "WebsiteConfiguration",
}


def _encryption(_bucket: str, value: Any) -> dict[str, Any]:
    rules = []
    for rule in value["ServerSideEncryptionConfiguration"]:
        default = dict(rule.get("ServerSideEncryptionByDefault", {}))
        if default.get("SSEAlgorithm", "").startswith("aws:kms"):
            # No key means the account's AWS managed key; MiniStack wants it spelled out.
            managed = f"arn:aws:kms:{get_region()}:{get_account_id()}:alias/aws/s3"
            default.setdefault("KMSMasterKeyID", managed)
        kept: dict[str, Any] = {"ApplyServerSideEncryptionByDefault": default}
        if "BucketKeyEnabled" in rule:
            kept["BucketKeyEnabled"] = rule["BucketKeyEnabled"]
        rules.append(kept)
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


def _logging(bucket: str, value: Any) -> dict[str, Any]:
    target = value.get("DestinationBucketName", bucket)
    target = {"TargetBucket": target, "TargetPrefix": value.get("LogFilePrefix", "")}
    return {"BucketLoggingStatus": {"LoggingEnabled": target}}


def _lifecycle_rule(rule: dict[str, Any], number: int) -> dict[str, Any]:
    """A rule as the API spells it; raises ``RefusedError`` on a part that would be lost."""
    spelled: dict[str, Any] = {
        "ID": rule.get("Id", f"rule{number}"),
        "Status": rule["Status"],
        "Filter": {"Prefix": rule.get("Prefix", "")},
    }
    same = ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload")
    spelled |= {name: rule[name] for name in same if name in rule}
    if "ExpirationInDays" in rule:
        spelled["Expiration"] = {"Days": rule["ExpirationInDays"]}
    _refuse_lost(rule.keys() - {"Id", "Status", "Prefix", "ExpirationInDays", *same}, "a lifecycle rule")
    return spelled


# Each property with the operation that sets it, its parameters, and the request that removes the property again.
_Call = tuple[str, dict[str, Any]]
_BY_US: dict[str, tuple[str, Callable[[str, Any], dict[str, Any]], _Call]] = {
    "BucketEncryption": ("PutBucketEncryption", _encryption, ("DeleteBucketEncryption", {})),
    "LifecycleConfiguration": (
        "PutBucketLifecycleConfiguration",
        lambda _, value: {"LifecycleConfiguration": {"Rules": list(map(_lifecycle_rule, value["Rules"], count()))}},
        ("DeleteBucketLifecycle", {}),
    ),
    "LoggingConfiguration": ("PutBucketLogging", _logging, ("PutBucketLogging", {"BucketLoggingStatus": {}})),
    "OwnershipControls": (
        "PutBucketOwnershipControls",
        lambda _, value: {"OwnershipControls": value},
        ("DeleteBucketOwnershipControls", {}),
    ),
    "Tags": ("PutBucketTagging", lambda _, value: {"Tagging": {"TagSet": value}}, ("DeleteBucketTagging", {})),
    "VersioningConfiguration": (
        "PutBucketVersioning",
        lambda _, value: {"VersioningConfiguration": value},
        ("PutBucketVersioning", {"VersioningConfiguration": {"Status": "Suspended"}}),
    ),
}


def _apply(bucket: str, new: Properties, old: Properties) -> None:
    for name, (operation, request_of, (removing, without)) in _BY_US.items():
        if name in new and new[name] != old.get(name):
            call("s3", operation, {"Bucket": bucket, **request_of(bucket, new[name])})
        elif name in old and name not in new:
            call("s3", removing, {"Bucket": bucket, **without})


def _refuse_lost(names: Any, where: str) -> None:
    if names:
        raise RefusedError(
            "ValidationException",
            f"{', '.join(sorted(names))} of {where} would have no effect in the local AWS, so it is refused",
            source="tritonstack_local.emulator",
        )


def _check(properties: Properties) -> None:
    """Refuse what neither keeps; a bucket's ACL is private."""
    lost = properties.keys() - _BY_MINISTACK - _BY_US.keys()
    _refuse_lost(lost - ({"AccessControl"} if properties.get("AccessControl") == "Private" else set()), "a bucket")


def _delete(bucket: str, _properties: Properties) -> None:
    try:
        call("s3", "DeleteBucket", {"Bucket": bucket})
    except RefusedError as refusal:
        if refusal.code != "NoSuchBucket":
            raise
