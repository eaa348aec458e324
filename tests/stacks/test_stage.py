"""One stage per environment: its stacks, their names, order and tags."""

from __future__ import annotations

import json

import pytest

from tests.constructs_lib.templates import template_of
from tests.stacks.environments import DIGITS, SINGLE, environment, stage


def test_an_environment_is_one_stage_with_an_artifacts_stack_and_a_serving_stack_an_endpoint() -> None:
    made = stage(environment(DIGITS, SINGLE))
    assert made.node.id == "dev"
    assert {stack.node.path: stack.stack_name for stack in [made.artifacts, *made.serving.values()]} == {
        "dev/artifacts": "dev-artifacts",
        "dev/serving-digits": "dev-serving-digits",
        "dev/serving-single": "dev-serving-single",
    }


def test_the_artifacts_stack_is_deployed_first() -> None:
    made = stage(environment(DIGITS, SINGLE))
    assert all(made.artifacts in stack.dependencies for stack in made.serving.values())
    assert made.artifacts.dependencies == []


def test_no_export_ties_the_stacks_together() -> None:
    made = stage(environment(DIGITS))
    for stack in [made.artifacts, *made.serving.values()]:
        text = json.dumps(template_of(stack))
        assert '"Export"' not in text
        assert "Fn::ImportValue" not in text


def test_account_and_region_are_those_of_the_settings() -> None:
    made = stage(environment(DIGITS, account="210987654321", region="eu-west-1"))
    for stack in [made.artifacts, *made.serving.values()]:
        assert (stack.account, stack.region) == ("210987654321", "eu-west-1")


UNTAGGED = {
    "AWS::IAM::Policy",
    "AWS::S3::BucketPolicy",
    "Custom::EmptiedBucket",
    "Custom::PublishedArchives",
    "Custom::ReleaseRecords",
    "Custom::VerifiedEndpoint",
}
"""Types that take no tags."""


def test_every_resource_that_takes_tags_carries_those_of_the_environment() -> None:
    made = stage(environment(DIGITS, tags={"team": "platform", "cost": "42"}, artifacts={"retain": False}))
    wanted = {("team", "platform"), ("cost", "42"), ("tritonstack:environment", "dev")}
    for stack in [made.artifacts, *made.serving.values()]:
        for name, resource in template_of(stack)["Resources"].items():
            if resource["Type"] in UNTAGGED:
                continue
            tags = resource["Properties"]["Tags"]
            pairs = tags.items() if isinstance(tags, dict) else [(each["Key"], each["Value"]) for each in tags]
            assert wanted <= set(pairs), name


@pytest.mark.parametrize("arn", ["arn:aws:iam::123456789012:policy/boundary", None])
def test_every_role_is_bounded_where_a_boundary_is_set(arn: str | None) -> None:
    made = stage(environment(DIGITS, permissions_boundary=arn, artifacts={"retain": False}))
    roles = [
        resource["Properties"]
        for stack in [made.artifacts, *made.serving.values()]
        for resource in template_of(stack)["Resources"].values()
        if resource["Type"] == "AWS::IAM::Role"
    ]
    assert len(roles) == 4
    assert {role.get("PermissionsBoundary") for role in roles} == {arn}
