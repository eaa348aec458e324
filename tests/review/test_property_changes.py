"""Two values, property by property."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.review.values import json_values
from tritonstack.review.change import ABSENT
from tritonstack.review.resource_changes import differences


def told(before: Any, after: Any) -> dict[str, tuple[Any, Any]]:
    return {each.name: (each.before, each.after) for each in differences(before, after)}


def test_a_difference_is_told_as_deep_in_as_it_lies() -> None:
    before = {"Container": {"Image": "a", "Mode": "MultiModel"}, "Gone": 1, "Same": [1]}
    after = {"Container": {"Image": "b", "Mode": "MultiModel"}, "New": None, "Same": [1]}
    assert told(before, after) == {"Container.Image": ("a", "b"), "Gone": (1, ABSENT), "New": (ABSENT, None)}


def test_items_with_names_are_matched_by_them() -> None:
    before = {"Statement": [{"Sid": "Read", "Action": "a"}, {"Sid": "Write", "Action": "b"}]}
    after = {"Statement": [{"Sid": "Write", "Action": "c"}, {"Sid": "Read", "Action": "a"}, {"Sid": "List"}]}
    assert told(before, after) == {
        "Statement[Write].Action": ("b", "c"),
        "Statement[List]": (ABSENT, {"Sid": "List"}),
    }


def test_a_single_item_is_matched_by_place_so_that_its_name_may_change() -> None:
    before = [{"VariantName": "g4dn-xlarge", "InstanceType": "ml.g4dn.xlarge"}]
    after = [{"VariantName": "g5-xlarge", "InstanceType": "ml.g5.xlarge"}]
    assert told(before, after) == {
        "[0].InstanceType": ("ml.g4dn.xlarge", "ml.g5.xlarge"),
        "[0].VariantName": ("g4dn-xlarge", "g5-xlarge"),
    }


def test_a_single_item_has_its_number_even_where_its_name_stays() -> None:
    assert told([{"Sid": "A", "x": 1}], [{"Sid": "A", "x": 2}]) == {"[0].x": (1, 2)}


def test_items_without_a_name_in_common_are_matched_by_place() -> None:
    assert told([{"Name": "a"}, {"Name": "b"}], [{"Name": "a2"}, {"Name": "b2"}]) == {
        "[0].Name": ("a", "a2"),
        "[1].Name": ("b", "b2"),
    }


def test_another_order_of_the_same_items_is_one_difference() -> None:
    before, after = [{"Sid": "A"}, {"Sid": "B"}], [{"Sid": "B"}, {"Sid": "A"}]
    assert told({"S": before}, {"S": after}) == {"S": (before, after)}


def test_functions_differ_as_a_whole() -> None:
    before, after = {"Fn::GetAtt": ["A", "Arn"]}, {"Fn::GetAtt": ["B", "Arn"]}
    assert told({"Role": before}, {"Role": after}) == {"Role": (before, after)}


def test_one_is_not_true() -> None:
    assert told({"a": 1, "b": [0]}, {"a": True, "b": [False]}) == {"a": (1, True), "b[0]": (0, False)}


@given(json_values(), json_values())
def test_there_is_a_difference_exactly_where_the_json_differs(before: Any, after: Any) -> None:
    found = list(differences(before, after))
    assert bool(found) == (repr_of(before) != repr_of(after))
    assert list(differences(before, before)) == []
    assert len({each.path for each in found}) == len(found)


def repr_of(value: Any) -> str:
    import json

    return json.dumps(value, sort_keys=True)
