"""What a value refers to, and how people read it."""

from __future__ import annotations

from typing import Any

import pytest

from tritonstack.review.intrinsics import assets_in, readable, references


def test_every_form_of_a_reference_is_found() -> None:
    value = [
        {"Ref": "A"},
        {"Fn::GetAtt": ["B", "Arn"]},
        {"Fn::GetAtt": "C.Outputs.Name"},
        {"Fn::Sub": "${D}/${E.Arn}/${!Literal}"},
        {"Fn::Sub": ["${F}/${given}", {"given": {"Ref": "G"}}]},
        {"Fn::If": ["Condition", {"deep": [{"Ref": "H"}]}, {"Ref": "AWS::NoValue"}]},
        {"Ref": "not one", "Other": 1},
    ]
    assert set(references(value)) == {"A", "AWS::NoValue", "B", "C", "D", "E", "F", "G", "H"}


def test_assets_are_found_in_any_text() -> None:
    assert list(assets_in({"Key": "{asset:Handler/Code}.zip", "more": ["b/{asset:Source/Files}.zip", 1]})) == [
        "Handler/Code",
        "Source/Files",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (3, "3"),
        (True, "true"),
        (None, "null"),
        ({"Ref": "Bucket"}, "${Bucket}"),
        ({"Fn::GetAtt": ["Role", "Arn"]}, "${Role.Arn}"),
        ({"Fn::GetAtt": "Role.Arn"}, "${Role.Arn}"),
        ({"Fn::Sub": "arn:${AWS::Partition}:${!x}"}, "arn:${AWS::Partition}:${x}"),
        ({"Fn::Join": [",", ["a", {"Ref": "B"}]]}, "a,${B}"),
        ({"Fn::If": ["Big", 2, {"Ref": "Few"}]}, "2 if Big, else ${Few}"),
        ({"Fn::Select": [0, {"Fn::Split": [",", {"Ref": "Zones"}]}]}, "${Zones} split at ','[0]"),
        ({"b": [{"Ref": "A"}], "a": "x"}, '{"a": "x", "b": ["${A}"]}'),
        ({"Fn::Transform": {"Name": "Include"}}, '{"Fn::Transform": {"Name": "Include"}}'),
    ],
)
def test_a_value_reads_on_one_line(value: Any, text: str) -> None:
    assert readable(value) == text
