"""CloudFormation's resource schemas, as the local AWS and reviews read them."""

from __future__ import annotations

from typing import Any

import pytest

from tritonstack.cloudformation.resource_schemas import replacement_rules, resource_schemas


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


# What a change of a property does to its resource: settled from AWS's template reference, not from our data.


@pytest.mark.parametrize(
    ("type_name", "path", "answer"),
    [
        # Template reference of each type, "Update requires"; more: tests/review/corpus/settled_by_hand.yaml.
        ("AWS::SageMaker::EndpointConfig", ("ProductionVariants", 0, "InstanceType"), "yes"),
        ("AWS::SageMaker::EndpointConfig", ("Tags", "team"), "no"),
        ("AWS::EC2::VPC", ("InstanceTenancy",), "maybe"),
        ("AWS::EC2::SecurityGroup", ("SecurityGroupIngress", 0, "CidrIp"), "no"),
        ("AWS::EC2::SecurityGroup", ("GroupDescription",), "yes"),
        ("AWS::IAM::Policy", ("PolicyDocument", "Statement", "[Read]", "Action"), "no"),
    ],
)
def test_what_replaces_is_what_the_template_reference_says(
    type_name: str, path: tuple[str | int, ...], answer: str
) -> None:
    rules = replacement_rules(type_name)
    assert rules is not None
    assert rules.of(path) == answer


def test_a_whole_property_replaces_where_the_part_that_replaces_differs() -> None:
    rules = replacement_rules("AWS::EC2::VPCEndpoint")
    assert rules is not None
    options = {"PrivateDnsPreference": "ALL_DOMAINS"}
    assert rules.of(("DnsOptions",), None, options) == "yes"
    assert rules.of(("DnsOptions",), None, {"DnsRecordIpType": "ipv4"}) == "no"
    assert rules.of(("DnsOptions", "DnsRecordIpType"), "ipv4", "dualstack") == "no"


def test_custom_resources_share_the_rules_of_one_type() -> None:
    assert replacement_rules("Custom::Anything") == replacement_rules("AWS::CloudFormation::CustomResource")
    assert replacement_rules("AWS::Nobody::Knows") is None


def test_a_name_of_the_templates_choice_is_known_by_the_types_own_word() -> None:
    names = {
        "AWS::SageMaker::Model": "ModelName",
        "AWS::SSM::Parameter": "Name",
        "AWS::EC2::VPC": None,
        "AWS::Lambda::LayerVersion": None,
    }
    assert {kind: rules.name for kind in names if (rules := replacement_rules(kind)) is not None} == names
