"""Activation: what the custom resource is told, when it runs, and what its function may do."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from constructs_lib.activation import Activation
from constructs_lib.artifact_bucket import ArtifactBucket
from tests.constructs_lib.templates import ACCOUNT, PREFIX, REGION, flat, listed, new_app, only, properties, statements

SET = {"bert": "0123456789abcdef", "resnet": "fedcba9876543210"}
COMMITS = {"bert": "1" * 40, "resnet": "uncommitted"}


def synthesised(folder: Path, release_set: dict[str, str]) -> dict[str, Any]:
    app = new_app(outdir=str(folder))
    stack = cdk.Stack(app, "stack", env=cdk.Environment(account=ACCOUNT, region=REGION))
    endpoint = cdk.CfnResource(stack, "Endpoint", type="AWS::SNS::Topic")  # stands in for the endpoint
    Activation(
        stack,
        "Activation",
        environment="local",
        endpoint="digits",
        artifacts=ArtifactBucket.from_parameters(stack, "Artifacts", environment="local"),
        archive_prefix=PREFIX,
        release_set=release_set,
        around=endpoint,
        commits=COMMITS,
        tags={"team": "platform"},
    )
    template: dict[str, Any] = app.synth().get_stack_by_name("stack").template
    return template


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assembly")


@pytest.fixture(scope="module")
def template(folder: Path) -> dict[str, Any]:
    return synthesised(folder, SET)


def test_the_endpoint_waits_for_the_archives_and_the_records_for_the_endpoint(template: dict[str, Any]) -> None:
    policy, _ = only(template, "AWS::IAM::Policy")
    archives_id, archives = only(template, "Custom::PublishedArchives")
    _, records = only(template, "Custom::ReleaseRecords")
    assert archives["DependsOn"] == [policy]
    assert template["Resources"]["Endpoint"]["DependsOn"] == [archives_id]
    assert set(records["DependsOn"]) == {"Endpoint", policy}


def test_both_custom_resources_are_told_the_same_and_the_records_their_tags(template: dict[str, Any]) -> None:
    archives, records = (properties(template, f"Custom::{name}") for name in ("PublishedArchives", "ReleaseRecords"))
    assert records == {**archives, "Tags": '{"team": "platform"}'}


def test_the_release_set_travels_as_a_file_and_the_properties_say_where(folder: Path, template: dict[str, Any]) -> None:
    records = properties(template, "Custom::ReleaseRecords")
    asset = folder / f"asset.{records['ReleaseSetKey']}"
    told = {"platform": "24.09-t4", "models": SET, "commits": COMMITS}
    assert json.loads(asset.read_text()) == {"schema": 1, **told}
    assert records["ReleaseSetBucket"] == "cdk-hnb659fds-assets-123456789012-us-east-1"
    assert records["ArchivePrefix"] == PREFIX
    assert records["RecordPath"] == "/tritonstack/local/digits/"
    assert "BucketName" in flat(records["ArchiveBucket"])


def test_a_new_release_set_changes_nothing_but_its_key(template: dict[str, Any], tmp_path: Path) -> None:
    changed = synthesised(tmp_path, {**SET, "bert": "0" * 16})
    old = properties(template, "Custom::ReleaseRecords")["ReleaseSetKey"]
    new = properties(changed, "Custom::ReleaseRecords")["ReleaseSetKey"]
    assert new != old
    assert json.loads(json.dumps(changed).replace(new, old)) == template


def test_the_order_of_models_does_not_matter(template: dict[str, Any], tmp_path: Path) -> None:
    assert synthesised(tmp_path, dict(reversed(SET.items()))) == template


def test_cloudformation_waits_longer_than_the_function_may_run(template: dict[str, Any]) -> None:
    waits = int(properties(template, "Custom::ReleaseRecords")["ServiceTimeout"])
    assert properties(template, "AWS::Lambda::Function")["Timeout"] < waits <= 3600


def test_the_function_may_write_records_of_its_endpoint_alone(template: dict[str, Any]) -> None:
    access = statements(properties(template, "AWS::IAM::Policy"))
    root = "arn:aws:ssm:us-east-1:123456789012:parameter/tritonstack/local"
    folders = [f"{root}/digits", f"{root}/_removed/digits"]
    records = [f"{folder}/*" for folder in folders]
    assert access["MoveRecords"]["Resource"] == records
    assert set(access["FindRecords"]["Resource"]) == {*folders, *records}


def test_what_the_function_keeps_of_removed_models_lies_where_it_may_write(template: dict[str, Any]) -> None:
    release_set: Any = importlib.import_module("lambda.activation.release_set")  # `lambda` is a word of the language
    told = properties(template, "Custom::ReleaseRecords")
    kept = release_set.Properties.of({**told, "ReleaseSetBucket": "b", "ArchiveBucket": "a"}).removed_path
    access = statements(properties(template, "AWS::IAM::Policy"))
    assert f"arn:aws:ssm:us-east-1:123456789012:parameter{kept}*" in access["MoveRecords"]["Resource"]


def test_the_function_may_look_at_its_own_stack_and_change_none(template: dict[str, Any]) -> None:
    access = statements(properties(template, "AWS::IAM::Policy"))
    assert access["SeeRollbacks"]["Resource"] == {"Ref": "AWS::StackId"}
    asked = [action for each in access.values() for action in listed(each["Action"]) if "cloudformation" in action]
    assert asked == ["cloudformation:DescribeStacks"]


def test_the_function_may_do_nothing_else(template: dict[str, Any]) -> None:
    policy = properties(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    allowed = {action for each in policy for action in listed(each["Action"])}
    assert allowed == {
        "cloudformation:DescribeStacks",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "s3:GetObject",
        "s3:ListBucket",
        "ssm:AddTagsToResource",
        "ssm:DeleteParameters",
        "ssm:GetParameterHistory",
        "ssm:GetParameters",
        "ssm:GetParametersByPath",
        "ssm:PutParameter",
        "ssm:RemoveTagsFromResource",
    }
    assert {each["Effect"] for each in policy} == {"Allow"}


def test_the_function_may_read_release_sets_and_list_archives_but_read_none(template: dict[str, Any]) -> None:
    access = statements(properties(template, "AWS::IAM::Policy"))
    assert access["ReadReleaseSets"]["Resource"].endswith("/*.release-set")
    assert access["FindArchives"]["Action"] == "s3:ListBucket"
    assert access["FindArchives"]["Condition"] == {"StringLike": {"s3:prefix": ["endpoints/digits/*"]}}
    reading = [each["Sid"] for each in access.values() if "s3:GetObject" in listed(each["Action"])]
    assert reading == ["ReadReleaseSets"]
