"""CloudFormation's resource schemas, as the local AWS and reviews read them."""

from __future__ import annotations

import json

import pytest

from tritonstack.cloudformation.resource_schemas import replacement_lists, resource_schemas


def test_source_and_version_are_named() -> None:
    assert {schema.source for schema in resource_schemas().values()} == {
        "CloudFormation resource schemas in cfn-lint 1.58.0, us-east-1"
    }


def test_everything_but_tags_replaces_a_model_and_a_config_and_only_the_name_an_endpoint() -> None:
    schemas = resource_schemas()
    for kind in ("Model", "EndpointConfig"):
        schema = schemas[f"AWS::SageMaker::{kind}"]
        settable = set(schema.root["properties"]) - set(schema.read_only) - {"Tags"}
        assert set(schema.create_only) == settable
    assert schemas["AWS::SageMaker::Endpoint"].create_only == ("EndpointName",)


def test_nested_problems_name_their_place() -> None:
    rules = {"Rules": [{"Status": "enabled", "Expiry": 1}]}
    problems = resource_schemas()["AWS::S3::Bucket"].problems({"LifecycleConfiguration": rules})
    assert sorted(problems) == [
        "#/LifecycleConfiguration/Rules/0/Status: enabled is not a valid enum value, allowed: Enabled, Disabled",
        "#/LifecycleConfiguration/Rules/0: extraneous key [Expiry] is not permitted",
    ]


def test_missing_required_property_is_a_problem() -> None:
    assert "#: required key [Role] not found" in resource_schemas()["AWS::Lambda::Function"].problems({"Code": {}})


def test_attribute_is_no_property() -> None:
    problems = resource_schemas()["AWS::SageMaker::Endpoint"].problems({"EndpointConfigName": "c", "EndpointArn": "a"})
    assert problems == ["#: extraneous key [EndpointArn] is not permitted (near: EndpointName)"]


def test_free_form_objects_are_not_checked() -> None:
    policy = {"Version": "2012-10-17", "Statement": [{"Whatever": 1}]}
    assert resource_schemas()["AWS::IAM::Policy"].problems({"PolicyName": "p", "PolicyDocument": policy}) == []


@pytest.mark.parametrize("type_name", sorted(resource_schemas()))
def test_every_reference_of_a_schema_resolves(type_name: str) -> None:
    schema = resource_schemas()[type_name]
    text = json.dumps([schema.root, schema.definitions])
    references = {part.split('"')[0].partition("/")[0] for part in text.split('"ref": "')[1:]}
    assert references <= schema.definitions.keys()


def test_a_property_of_which_only_a_part_replaces_is_not_one_that_replaces() -> None:
    assert "DnsOptions/PrivateDnsPreference" in (replacement_lists("AWS::EC2::VPCEndpoint") or {})["create_only"]
    assert all("/" not in name for each in resource_schemas().values() for name in each.create_only)


def test_types_that_the_local_aws_lacks_have_their_lists_too() -> None:
    assert "AWS::Athena::WorkGroup" not in resource_schemas()
    assert replacement_lists("AWS::Athena::WorkGroup") == {"create_only": ["Name"]}
    assert replacement_lists("AWS::Nobody::Knows") is None
