"""Compared responses: each difference names tensor, index, expected and found value."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tritonstack.models.comparison import base64_outputs, json_outputs, output_differences

INF, NAN = float("inf"), float("nan")


def output(datatype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": "y", "datatype": datatype, "shape": shape, "data": data}


def encoded(*texts: str | bytes) -> list[str]:
    return [base64.b64encode(each if isinstance(each, bytes) else each.encode()).decode() for each in texts]


LONG = "a" * 100


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        (
            output("FP32", [2, 2], [[1, 2], [3, 4]]),
            output("FP32", [2, 2], [1, 2.25, 5, 4]),
            "tensor y[1, 0]: 3 expected, 5 found: differs by 2 from the expected response, 0.1 allowed; 2 of 4 values",
        ),
        (
            output("INT64", [3], [1, 2, 3]),
            output("INT64", [3], [1, 7, 9]),
            "tensor y[1]: 2 expected, 7 found; 2 of 3 values differ",
        ),
        (
            output("BYTES", [1, 2], ["cat", "Tromsø"]),
            output("BYTES", [1, 2], encoded("cat", "Rome")),
            "tensor y[0, 1]: 'Tromsø' expected, 'Rome' found; 1 of 2 values differ",
        ),
        (
            output("BYTES", [1], ["text"]),
            output("BYTES", [1], encoded(b"\xff\x00")),
            "tensor y[0]: 'text' expected, b'\\xff\\x00' found; 1 of 1 values differ",
        ),
        (
            output("BYTES", [1], [LONG + "right"]),
            output("BYTES", [1], encoded(LONG + "wrong")),
            f"tensor y[0]: …'{LONG[:20]}right' expected, …'{LONG[:20]}wrong' found; 1 of 1 values differ",
        ),
        (
            output("FP32", [1], [1.0]),
            output("FP64", [1], [1.0]),
            "tensor y: datatype FP32 expected, FP64 found",
        ),
        (output("FP32", [1], [1.0]), output("FP32", [1, 1], [1.0]), "tensor y: shape [1] expected, [1, 1] found"),
        (
            output("FP32", [2], [INF, 1.0]),
            output("FP32", [2], [INF, NAN]),
            "tensor y[1]: 1 expected, nan found: differs by inf from the expected response, 0.1 allowed; 1 of 2 values",
        ),
        (
            output("FP32", [], [1.0]),
            output("FP32", [], [2.0]),
            "tensor y: 1 expected, 2 found: differs by 1 from the expected response, 0.1 allowed; 1 of 1 values",
        ),
    ],
)
def test_a_difference_names_tensor_index_expected_and_found(
    expected: dict[str, Any], found: dict[str, Any], said: str
) -> None:
    _, [difference] = output_differences(json_outputs([expected]), base64_outputs([found]), tolerance=0.1)
    assert str(difference) == said


def test_every_output_that_differs_or_is_missing_is_named_and_others_are_free() -> None:
    expected = [output("FP32", [1], [1.0]), {**output("BYTES", [1], ["a"]), "name": "label"}]
    found = [output("FP32", [1], [3.0]), {**output("FP32", [1], [0.0]), "name": "more"}]
    largest, differences = output_differences(json_outputs(expected), base64_outputs(found), tolerance=0)
    assert largest == 2
    assert [each.tensor for each in differences] == ["y", "label"]
    assert str(differences[1]) == "tensor label: expected, not found; found more, y"


def test_within_the_tolerance_the_largest_difference_is_returned() -> None:
    expected, found = output("FP32", [3], [1.0, INF, 2.0]), output("FP32", [3], [1.25, INF, 2.5])
    assert output_differences(json_outputs([expected]), base64_outputs([found]), tolerance=0.5) == (0.5, ())
