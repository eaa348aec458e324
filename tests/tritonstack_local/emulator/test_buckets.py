"""Buckets in stacks keep their properties; objects are written once; a full bucket stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.arns import ACCOUNT
from tests.tritonstack_local.emulator.running import Emulator


def _resources(name: str) -> dict[str, Any]:
    return {
        "Key": {
            "Type": "AWS::KMS::Key",
            "Properties": {"KeyPolicy": {"Version": "2012-10-17", "Statement": []}},
        },
        "Logs": {"Type": "AWS::S3::Bucket", "Properties": {}},
        "Bucket": {
            "Type": "AWS::S3::Bucket",
            "Properties": {
                "BucketName": name,
                "BucketEncryption": {
                    "ServerSideEncryptionConfiguration": [
                        {
                            "BucketKeyEnabled": True,
                            "ServerSideEncryptionByDefault": {
                                "SSEAlgorithm": "aws:kms",
                                "KMSMasterKeyID": {"Fn::GetAtt": ["Key", "Arn"]},
                            },
                        }
                    ]
                },
                "LifecycleConfiguration": {
                    "Rules": [
                        {
                            "Id": "old",
                            "Status": "Enabled",
                            "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
                            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
                        },
                        {"Id": "logs", "Status": "Enabled", "Prefix": "logs/", "ExpirationInDays": 90},
                    ]
                },
                "LoggingConfiguration": {"DestinationBucketName": {"Ref": "Logs"}, "LogFilePrefix": "s3/"},
                "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                "PublicAccessBlockConfiguration": {
                    "BlockPublicAcls": True,
                    "BlockPublicPolicy": True,
                    "IgnorePublicAcls": True,
                    "RestrictPublicBuckets": True,
                },
                "Tags": [{"Key": "team", "Value": "platform"}],
                "VersioningConfiguration": {"Status": "Enabled"},
            },
        },
    }


def test_every_property_of_a_bucket_is_kept_changed_and_taken_away(aws: Emulator, name: str) -> None:
    resources = _resources(name)
    assert aws.deploy(name, resources) == "CREATE_COMPLETE", aws.failures(name)
    s3, logs, key = aws.client("s3"), aws.physical(name, "Logs"), aws.physical(name, "Key")
    encryption = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert encryption["ApplyServerSideEncryptionByDefault"]["KMSMasterKeyID"].endswith(key)
    assert encryption["BucketKeyEnabled"] is True
    rules = {rule["ID"]: rule for rule in s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]}
    assert rules["old"]["NoncurrentVersionExpiration"]["NoncurrentDays"] == 30
    assert rules["old"]["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] == 7
    assert (rules["logs"]["Expiration"]["Days"], rules["logs"]["Filter"]["Prefix"]) == (90, "logs/")
    logging = {"TargetBucket": logs, "TargetPrefix": "s3/"}
    assert s3.get_bucket_logging(Bucket=name)["LoggingEnabled"] == logging
    ownership = s3.get_bucket_ownership_controls(Bucket=name)["OwnershipControls"]["Rules"]
    assert ownership == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert all(s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"].values())
    assert {"Key": "team", "Value": "platform"} in s3.get_bucket_tagging(Bucket=name)["TagSet"]
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"

    bucket = resources["Bucket"]["Properties"]
    bucket["LifecycleConfiguration"]["Rules"] = bucket["LifecycleConfiguration"]["Rules"][:1]
    bucket["VersioningConfiguration"]["Status"] = "Suspended"
    del bucket["LoggingConfiguration"]
    assert aws.deploy(name, resources) == "UPDATE_COMPLETE", aws.failures(name)
    assert len(s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]) == 1
    assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Suspended"
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=name)
    assert aws.delete_stack(name) == "DELETE_COMPLETE"


@pytest.mark.parametrize("leftover", ["object", "old version"])
def test_bucket_that_is_not_empty_is_not_deleted(aws: Emulator, name: str, leftover: str) -> None:
    properties = {"BucketName": name, "VersioningConfiguration": {"Status": "Enabled"}}
    assert aws.deploy(name, {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": properties}}) == "CREATE_COMPLETE"
    s3 = aws.client("s3")
    s3.put_object(Bucket=name, Key="k", Body=b"x")
    if leftover == "old version":
        s3.delete_object(Bucket=name, Key="k")
    assert aws.delete_stack(name) == "DELETE_FAILED"
    assert "not empty" in aws.failures(name)
    for kind in ("Versions", "DeleteMarkers"):
        for version in s3.list_object_versions(Bucket=name).get(kind, []):
            s3.delete_object(Bucket=name, Key=version["Key"], VersionId=version["VersionId"])
    assert aws.delete_stack(name) == "DELETE_COMPLETE"


def test_lifecycle_rule_part_that_would_be_lost_is_refused_and_no_bucket_stays(aws: Emulator, name: str) -> None:
    rule = {"Status": "Enabled", "ExpirationInDays": 1, "ObjectSizeGreaterThan": "5"}
    properties = {"BucketName": name, "LifecycleConfiguration": {"Rules": [rule]}}
    resources = {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": properties}}
    assert aws.deploy(name, resources) == "ROLLBACK_COMPLETE"
    assert "ObjectSizeGreaterThan of a lifecycle rule would have no effect" in aws.failures(name)
    assert name not in {bucket["Name"] for bucket in aws.client("s3").list_buckets()["Buckets"]}


def test_put_and_copy_are_made_only_once(aws: Emulator, bucket: str) -> None:
    s3 = aws.client("s3")
    put = {"Bucket": bucket, "Key": "from", "IfNoneMatch": "*"}
    s3.put_object(**put, Body=b"body")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(**put, Body=b"loser")
    copy = {"Bucket": bucket, "Key": "to", "CopySource": f"{bucket}/from"}
    s3.copy_object(**copy, IfNoneMatch="*")
    s3.put_object(Bucket=bucket, Key="from", Body=b"other")
    with pytest.raises(ClientError) as refused:
        s3.copy_object(**copy, IfNoneMatch="*")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412
    assert s3.get_object(Bucket=bucket, Key="to")["Body"].read() == b"body"
    s3.copy_object(**copy)
    assert s3.get_object(Bucket=bucket, Key="to")["Body"].read() == b"other"


def _store(aws: Emulator, name: str) -> str:
    """A bucket under a key with one object; the key's ARN."""
    assert aws.deploy(name, _resources(name)) == "CREATE_COMPLETE", aws.failures(name)
    aws.client("s3").put_object(Bucket=name, Key="written", Body=b"1")
    [rule] = aws.client("s3").get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"]
    return str(rule["ApplyServerSideEncryptionByDefault"]["KMSMasterKeyID"])


@pytest.mark.parametrize(
    ("operation", "code", "sentence"),
    [
        ("disable_key", "KMS.DisabledException", "is disabled."),
        ("schedule_key_deletion", "KMS.KMSInvalidStateException", "is pending deletion."),
    ],
)
def test_objects_are_neither_read_nor_written_by_a_key_that_cannot_be_used(
    aws: Emulator, name: str, operation: str, code: str, sentence: str
) -> None:
    key, s3, kms = _store(aws, name), aws.client("s3"), aws.client("kms")
    getattr(kms, operation)(KeyId=key)
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket=name, Key="written")
    assert refused.value.response["Error"]["Code"] == code
    assert refused.value.response["Error"]["Message"].startswith(f"{key} {sentence}")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    for written in ("written", "another"):
        with pytest.raises(ClientError, match=code):
            s3.put_object(Bucket=name, Key=written, Body=b"2")
    with pytest.raises(ClientError, match=code):
        s3.copy_object(Bucket=name, Key="copied", CopySource=f"{name}/written")
    if operation == "schedule_key_deletion":
        kms.cancel_key_deletion(KeyId=key)  # after which the key is disabled
    kms.enable_key(KeyId=key)
    assert s3.get_object(Bucket=name, Key="written")["Body"].read() == b"1"


def test_a_bucket_of_another_account_than_the_expected_one_is_refused(aws: Emulator, name: str) -> None:
    """S3 user guide, "Verifying bucket ownership with bucket owner condition": 403, and nothing is written."""
    s3, other = aws.client("s3"), "210987654321"
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="a", Body=b"1", ExpectedBucketOwner=ACCOUNT)
    copy = {"Bucket": name, "Key": "b", "CopySource": f"{name}/a"}
    refused: list[Callable[[], Any]] = [
        lambda: s3.head_bucket(Bucket=name, ExpectedBucketOwner=other),
        lambda: s3.put_object(Bucket=name, Key="a", Body=b"2", ExpectedBucketOwner=other),
        lambda: s3.list_objects_v2(Bucket=name, ExpectedBucketOwner=other),
        lambda: s3.copy_object(**copy, ExpectedBucketOwner=ACCOUNT, ExpectedSourceBucketOwner=other),
    ]
    for call in refused:
        with pytest.raises(ClientError) as error:
            call()
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    s3.copy_object(**copy, ExpectedBucketOwner=ACCOUNT, ExpectedSourceBucketOwner=ACCOUNT)
    assert s3.get_object(Bucket=name, Key="b", ExpectedBucketOwner=ACCOUNT)["Body"].read() == b"1"
    with pytest.raises(ClientError, match="404"):
        s3.head_bucket(Bucket=f"{name}-none", ExpectedBucketOwner=other)


def test_a_key_that_leaves_its_stack_is_scheduled_for_deletion(aws: Emulator, name: str) -> None:
    """KMS developer guide: removing a key from a stack schedules its deletion, after PendingWindowInDays."""
    resources = _resources(name)
    resources["Key"]["Properties"]["PendingWindowInDays"] = 7
    aws.deploy(name, resources)
    key = aws.client("kms").describe_key(KeyId=aws.physical(name, "Key"))["KeyMetadata"]
    del resources["Bucket"]["Properties"]["BucketEncryption"], resources["Key"]
    assert aws.deploy(name, resources) == "UPDATE_COMPLETE"
    after = aws.client("kms").describe_key(KeyId=key["Arn"])["KeyMetadata"]
    assert after["KeyState"] == "PendingDeletion"
    assert 6 < (after["DeletionDate"] - key["CreationDate"]).total_seconds() / 86400 < 8


@pytest.mark.parametrize(("policy", "left"), [("Retain", True), ("RetainExceptOnCreate", False)])
def test_a_creation_that_fails_leaves_what_is_retained_except_on_create_alone_out(
    aws: Emulator, name: str, policy: str, left: bool
) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "DeletionPolicy": policy, "Properties": {"BucketName": name}}
    late = {"Type": "AWS::CloudFormation::WaitCondition", "DependsOn": "Bucket"}
    broken = {"Bucket": bucket, "Wait": {**late, "Properties": {"Handle": "none", "Timeout": "43201"}}}
    assert aws.deploy(name, broken) == "ROLLBACK_COMPLETE"
    assert (name in [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]]) is left
    if not left:
        stack = f"{name}-later"
        assert aws.deploy(stack, {"Bucket": bucket}) == "CREATE_COMPLETE"
        assert aws.deploy(stack, {"Other": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String",
                          "Value": "1"}}}) == "UPDATE_COMPLETE"  # fmt: skip
        assert name in [each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]]
