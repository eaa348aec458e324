"""Responses decoded and compared without NumPy, checked against the client, which uses NumPy and tritonclient."""

from __future__ import annotations

import importlib
import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.cases import cases
from tritonstack.client.body import BINARY_PREFIX, encode
from tritonstack.models.sample import READY_REQUEST

samples: Any = importlib.import_module("lambda.verification.samples")  # `lambda` is a word of the language
TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


def response_of(**outputs: Any) -> tuple[bytes, str]:
    """A response with these outputs, made by the request's encoder: the two differ in the name of the list alone."""
    body = encode(outputs, payload_format="binary")
    size = int(body.content_type.removeprefix(BINARY_PREFIX))
    read = json.loads(body.content[:size])
    header = json.dumps({"model_name": "m", "outputs": read["inputs"]}).encode()
    return header + body.content[size:], f"{BINARY_PREFIX}{len(header)}"


@given(
    st.sampled_from(TYPES).flatmap(
        lambda kind: arrays.arrays(np.dtype(kind), arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    )
)
def test_every_type_is_decoded_as_numpy_has_it(array: Any) -> None:
    output = samples.decode(*response_of(y=array, z=array))["z"]
    assert output.shape == array.shape
    np.testing.assert_array_equal(np.array(output.values, array.dtype).reshape(array.shape), array)


def test_brain_floats_are_decoded() -> None:
    array = np.array([1.5, -2.0, 3.140625, float("inf")], ml_dtypes.bfloat16)
    assert list(samples.decode(*response_of(y=array))["y"].values) == [1.5, -2.0, 3.140625, float("inf")]


@given(st.lists(st.binary(max_size=9), max_size=5))
def test_bytes_are_decoded(items: list[bytes]) -> None:
    array = np.empty(len(items), object)
    array[:] = items
    assert samples.decode(*response_of(y=array))["y"].values == items


def test_a_response_in_json_is_accepted_too() -> None:
    outputs = [
        {"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [[1, 2], [3, 4]]},
        {"name": "t", "datatype": "BYTES", "shape": [1], "data": ["é"]},
    ]
    found = samples.decode(json.dumps({"outputs": outputs}).encode(), "application/json")
    assert (found["y"].values, found["t"].values) == ([1, 2, 3, 4], ["é".encode()])


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"Internal error", "text/plain"),
        (b"{}", "application/json"),
        (b'{"outputs":' + b"[" * 100_000, "application/json"),
        (b'{"outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[1]}]}', "application/json"),
        (b'{"outputs":[{"name":"y","datatype":"FP99","shape":[1]}]}', "application/json"),
        (response_of(y=np.zeros(3))[0][:-1], response_of(y=np.zeros(3))[1]),
        (response_of(y=np.zeros(3))[0], BINARY_PREFIX + "many"),
        (b"\xff\xfe", BINARY_PREFIX + "2"),
    ],
)
def test_an_invalid_response_is_an_error(content: bytes, content_type: str) -> None:
    with pytest.raises(samples.VerificationError, match="no inference response"):
        samples.decode(content, content_type)


def compared(expected: Any, found: Any, *, datatype: str = "FP32", tolerance: float = 0.1) -> None:
    wanted = np.array(expected)
    read = [{"name": "y", "datatype": datatype, "shape": list(wanted.shape), "data": wanted.tolist()}]
    output = samples.Output(datatype=datatype, shape=np.shape(found), values=samples.flat(np.array(found).tolist()))
    samples.compare(read, {"y": output}, tolerance=tolerance)


@cases("datatype, expected, found")
def test_what_is_within_the_tolerance_is_right(datatype: str, expected: Any, found: Any) -> None:
    compared(expected, found, datatype=datatype)


@cases("datatype, expected, found, message")
def test_a_difference_is_reported_with_its_place(datatype: str, expected: Any, found: Any, message: str) -> None:
    with pytest.raises(samples.VerificationError, match=message):
        compared(expected, found, datatype=datatype)


def test_whole_numbers_have_no_tolerance() -> None:
    with pytest.raises(samples.VerificationError, match=r"y\[0\]: 3 expected, 4 found$"):
        compared([3], [4], datatype="INT64", tolerance=10.0)


def test_texts_are_compared_as_bytes_and_shown() -> None:
    read = [{"name": "t", "datatype": "BYTES", "shape": [2], "data": ["yes", "é"]}]
    right = samples.decode(*response_of(t=np.array([b"yes", "é".encode()], object)))
    samples.compare(read, right, tolerance=0.0)
    wrong = samples.decode(*response_of(t=np.array([b"yes", b"x" * 99], object)))
    with pytest.raises(samples.VerificationError, match=r"t\[1\]: b'\\xc3\\xa9' expected, b'xxx.*…"):
        samples.compare(read, wrong, tolerance=0.0)


def test_another_type_and_a_missing_output_are_reported() -> None:
    read = [{"name": "y", "datatype": "FP32", "shape": [1], "data": [1.0]}]
    with pytest.raises(samples.VerificationError, match="datatype FP32 expected, INT32 found"):
        samples.compare(read, samples.decode(*response_of(y=np.zeros(1, np.int32))), tolerance=1.0)
    with pytest.raises(samples.VerificationError, match="output y: expected, not found; found z"):
        samples.compare(read, samples.decode(*response_of(z=np.zeros(1, np.float32))), tolerance=1.0)


def test_an_output_that_the_sample_does_not_name_is_free_but_for_nan() -> None:
    samples.compare([], samples.decode(*response_of(z=np.ones(1))), tolerance=0.0)
    with pytest.raises(samples.VerificationError, match=r"z\[1\]: a number expected"):
        samples.compare([], samples.decode(*response_of(z=np.array([1.0, np.nan]))), tolerance=0.0)


def test_a_ready_request_is_what_the_client_would_send() -> None:
    body = encode({"x": np.arange(200, dtype=np.uint8), "t": np.array(["{}"], object)}, payload_format="binary")
    assert samples.ready_request(body.content) == (body.content, body.content_type)


def test_builder_and_function_agree_on_the_requests_name() -> None:
    assert samples.READY_REQUEST == READY_REQUEST
