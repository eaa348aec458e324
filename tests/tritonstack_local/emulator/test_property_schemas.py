"""Properties of templates against CloudFormation's resource schemas."""

from __future__ import annotations

from typing import Any

import pytest

from tritonstack_local.emulator.cloudformation.property_schemas import resource_schemas


def test_everything_but_tags_replaces_a_model_and_a_config_and_only_the_name_an_endpoint() -> None:
    schemas = resource_schemas()
    for kind in ("Model", "EndpointConfig"):
        schema = schemas[f"AWS::SageMaker::{kind}"]
        settable = set(schema.root["properties"]) - set(schema.read_only) - {"Tags"}
        assert set(schema.create_only) == settable
    assert schemas["AWS::SageMaker::Endpoint"].create_only == ("EndpointName",)


RULE = "#/LifecycleConfiguration/Rules/0"


@pytest.mark.parametrize(
    ("type_name", "properties", "problems"),
    [
        (
            "AWS::S3::Bucket",
            {"LifecycleConfiguration": {"Rules": [{"Status": "enabled", "Expiry": 1}]}},
            [
                f"{RULE}/Status: enabled is not a valid enum value, allowed: Enabled, Disabled",
                f"{RULE}: extraneous key [Expiry] is not permitted",
            ],
        ),
        ("AWS::Lambda::Function", {"Code": {}}, ["#: required key [Role] not found"]),
        (
            "AWS::SageMaker::Endpoint",
            {"EndpointConfigName": "c", "EndpointArn": "a"},
            ["#: extraneous key [EndpointArn] is not permitted (near: EndpointName)"],
        ),
        ("AWS::IAM::Policy", {"PolicyName": "p", "PolicyDocument": {"Statement": [{"Whatever": 1}]}}, []),
    ],
    ids=["nested problems name their place", "a missing property", "an attribute is no property", "free form"],
)
def test_properties_are_checked(type_name: str, properties: dict[str, Any], problems: list[str]) -> None:
    assert sorted(resource_schemas()[type_name].problems(properties)) == problems
