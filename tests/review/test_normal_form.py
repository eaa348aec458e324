"""A template's normal form: noise is out, and what says the same reads the same."""

from __future__ import annotations

from tests.review.small import resource
from tritonstack.review.assembly import normal, normal_resources, normal_sections

HASH = "ab" * 32


def test_a_join_without_a_separator_reads_as_one_text() -> None:
    join = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":s3:::", {"Fn::GetAtt": ["Bucket", "Name"]}, "/*"]]}
    assert normal(join, {}) == {"Fn::Sub": "arn:${AWS::Partition}:s3:::${Bucket.Name}/*"}


def test_text_that_looks_like_a_variable_stays_text() -> None:
    assert normal({"Fn::Join": ["", ["${x}", {"Ref": "B"}]]}, {}) == {"Fn::Sub": "${!x}${B}"}


def test_joins_with_a_separator_or_other_functions_stay() -> None:
    for join in (
        {"Fn::Join": [",", ["a", {"Ref": "B"}]]},
        {"Fn::Join": ["", ["a", {"Fn::Select": [0, {"Ref": "B"}]}]]},
    ):
        assert normal(join, {}) == join


def test_an_assets_hash_is_its_path_wherever_it_stands_and_other_hashes_stay() -> None:
    other = "cd" * 32
    value = {"Key": f"{HASH}.zip", "Location": f"bucket/{HASH}.zip", "Other": other}
    assert normal(value, {HASH: "Handler/Code"}) == {
        "Key": "{asset:Handler/Code}.zip",
        "Location": "bucket/{asset:Handler/Code}.zip",
        "Other": other,
    }


def test_tags_are_a_map_and_what_is_more_than_tags_is_not() -> None:
    tags = [{"Key": "team", "Value": "platform"}, {"Key": "a", "Value": {"Ref": "B"}}]
    assert normal({"Tags": tags}, {}) == {"Tags": {"a": {"Ref": "B"}, "team": "platform"}}
    twice = {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}
    scaled = {"Tags": [{"Key": "a", "Value": "1", "PropagateAtLaunch": True}]}
    assert normal(twice, {}) == twice
    assert normal(scaled, {}) == scaled


def test_text_that_is_json_is_read() -> None:
    assert normal('{"widgets": [{"y": 0, "x": 1}]}', {}) == {"$json": {"widgets": [{"x": 1, "y": 0}]}}
    assert normal("{not json}", {}) == "{not json}"
    assert normal("{}", {}) == "{}"


def test_what_the_cdk_adds_to_every_template_is_out() -> None:
    template = {
        "Metadata": {"x": 1},
        "Parameters": {"BootstrapVersion": {"Type": "String"}, "Mine": {"Type": "String"}},
        "Rules": {"CheckBootstrapVersion": {}},
        "Conditions": {"CDKMetadataAvailable": {}},
        "Resources": {
            "CDKMetadata": resource("AWS::CDK::Metadata", {"Analytics": "v2"}),
            "Topic": resource(
                "AWS::SNS::Topic",
                Metadata={"aws:cdk:path": "a/b", "cdk_nag": {}, "aws:asset:path": "asset.1", "Mine": 1},
                DependsOn=["B", "A"],
            ),
        },
    }
    assert normal_sections(template, {}) == {"Parameters": {"Mine": {"Type": "String"}}}
    resources = normal_resources(template, paths={"Topic": "Alarms/Topic"}, assets={})
    assert list(resources) == ["Topic"]
    assert resources["Topic"].path == "Alarms/Topic"
    assert resources["Topic"].attributes == {"DependsOn": ["A", "B"], "Metadata": {"Mine": 1}}


def test_names_are_sorted_and_lists_keep_their_order() -> None:
    made = normal({"b": [2, 1], "a": {"d": 1, "c": 2}}, {})
    assert list(made) == ["a", "b"]
    assert list(made["a"]) == ["c", "d"]
    assert made["b"] == [2, 1]
