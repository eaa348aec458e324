"""The artifact bucket: who can read it, under which key, and what expires in it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from constructs_lib.artifact_bucket import ArtifactBucket
from tests.constructs_lib.templates import built, flat, of_type
from tests.stacks.environments import environment

emptying: Any = importlib.import_module("lambda.bucket_emptying.handler")  # `lambda` is a word of the language


def bucket_template(*, retain: bool = True) -> dict[str, Any]:
    settings = {"retain": retain, "noncurrent_days": 31, "incomplete_upload_days": 8, "access_log_days": 91}
    return built(lambda stack: ArtifactBucket(stack, "Artifacts", environment=environment(artifacts=settings)))


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return bucket_template()


@pytest.fixture(scope="module")
def archives(template: dict[str, Any]) -> dict[str, Any]:
    [(_, bucket)] = [each for each in of_type(template, "AWS::S3::Bucket").items() if "Archives" in each[0]]
    return dict(bucket["Properties"])


def test_only_the_log_service_may_write_logs_and_only_for_the_archives(template: dict[str, Any]) -> None:
    grants = [
        statement
        for policy in of_type(template, "AWS::S3::BucketPolicy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    [grant] = grants
    assert grant["Principal"] == {"Service": "logging.s3.amazonaws.com"}
    assert grant["Action"] == "s3:PutObject"
    assert "Archives" in flat(grant["Condition"]["ArnLike"]["aws:SourceArn"])
    assert grant["Condition"]["StringEquals"] == {"aws:SourceAccount": "123456789012"}


def test_old_versions_uploads_staging_and_access_logs_expire_and_current_archives_never(
    template: dict[str, Any], archives: dict[str, Any]
) -> None:
    assert archives["VersioningConfiguration"] == {"Status": "Enabled"}
    abort = {"Id": "abort-incomplete-uploads", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 8}}
    assert [{**rule, "Status": ""} for rule in archives["LifecycleConfiguration"]["Rules"]] == [
        {**rule, "Status": ""}
        for rule in (
            {"Id": "expire-noncurrent-versions", "NoncurrentVersionExpiration": {"NoncurrentDays": 31}},
            {"Id": "expire-staging", "Prefix": "staging/", "ExpirationInDays": 7},
            abort,
        )
    ]
    [logs] = [each for name, each in of_type(template, "AWS::S3::Bucket").items() if "AccessLogs" in name]
    rules = logs["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rules[0]["ExpirationInDays"] == 91
    assert {rule["Status"] for rule in (*rules, *archives["LifecycleConfiguration"]["Rules"])} == {"Enabled"}


@pytest.mark.parametrize(
    ("retain", "deleted", "replaced"), [(True, "RetainExceptOnCreate", "Retain"), (False, "Delete", "Delete")]
)
def test_buckets_and_key_outlive_the_stack_only_if_set_and_never_a_creation_that_failed(
    retain: bool, deleted: str, replaced: str
) -> None:
    template = bucket_template(retain=retain)
    kept = {**of_type(template, "AWS::S3::Bucket"), **of_type(template, "AWS::KMS::Key")}
    assert len(kept) == 3
    assert {resource["DeletionPolicy"] for resource in kept.values()} == {deleted}
    assert {resource["UpdateReplacePolicy"] for resource in kept.values()} == {replaced}


@pytest.fixture(scope="module")
def passing() -> dict[str, Any]:
    """A bucket that goes with its stack."""
    return bucket_template(retain=False)


def test_buckets_deleted_with_the_stack_are_emptied_while_their_key_and_the_function_exist(
    passing: dict[str, Any],
) -> None:
    """CloudFormation deletes what depends on others before them."""
    emptied = of_type(passing, "Custom::EmptiedBucket")
    buckets = of_type(passing, "AWS::S3::Bucket")
    assert {each["Properties"]["Bucket"]["Ref"] for each in emptied.values()} == set(buckets)
    for each in emptied.values():
        assert {each["Properties"]["Bucket"]["Ref"], *of_type(passing, "AWS::KMS::Key")} <= set(each["DependsOn"])
        assert set(of_type(passing, "AWS::IAM::Policy")) <= set(each["DependsOn"])


def test_a_buckets_policy_goes_before_the_bucket_and_with_it_the_right_to_deliver_access_logs(
    passing: dict[str, Any],
) -> None:
    emptied = of_type(passing, "Custom::EmptiedBucket")
    policies = of_type(passing, "AWS::S3::BucketPolicy")
    assert {each["Properties"]["Bucket"]["Ref"] for each in policies.values()} == set(
        of_type(passing, "AWS::S3::Bucket")
    )
    for policy in policies.values():
        [removes] = [
            name for name, each in emptied.items() if each["Properties"]["Bucket"] == policy["Properties"]["Bucket"]
        ]
        assert removes in policy["DependsOn"]


def test_only_a_bucket_deleted_with_the_stack_has_the_tag_that_its_function_requires(
    passing: dict[str, Any], template: dict[str, Any]
) -> None:
    tag = {"Key": emptying.TAG, "Value": emptying.VALUE}
    assert all(tag in each["Properties"]["Tags"] for each in of_type(passing, "AWS::S3::Bucket").values())
    assert not any(tag in each["Properties"].get("Tags", []) for each in of_type(template, "AWS::S3::Bucket").values())


def test_archives_are_emptied_before_the_logs_that_this_writes(passing: dict[str, Any]) -> None:
    emptied = of_type(passing, "Custom::EmptiedBucket")
    [archives] = [each for each in emptied.values() if "Archives" in each["Properties"]["Bucket"]["Ref"]]
    [logs] = [name for name, each in emptied.items() if "AccessLogs" in each["Properties"]["Bucket"]["Ref"]]
    assert logs in archives["DependsOn"]
