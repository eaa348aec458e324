"""Bodies: what Triton reads of ours, and what we read of Triton's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.client import fake_triton
from tritonstack.client.body import JSON_LIMIT_BYTES, PayloadFormat, decode, encode
from tritonstack.client.errors import MalformedResponseError
from tritonstack.errors import InputError

PREFIX = fake_triton.PREFIX
NUMBERS = [np.dtype(dtype) for name, dtype in fake_triton.DTYPES.items() if name != "BF16"]
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)


def texts(shape: tuple[int, ...]) -> st.SearchStrategy[fake_triton.Array]:
    size = int(np.prod(shape))
    lists = st.lists(st.binary(max_size=12), min_size=size, max_size=size)
    return lists.map(lambda items: fake_triton._objects(items).reshape(shape))


ARRAYS = st.one_of(
    st.sampled_from(NUMBERS).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)),
    hnp.arrays(np.float32, SHAPES).map(lambda array: array.astype(ml_dtypes.bfloat16)),
    SHAPES.flatmap(texts),
)
NAMED = st.dictionaries(st.text("abcXYZ_0é", min_size=1, max_size=8), ARRAYS, min_size=1, max_size=3)


def assert_same(have: Mapping[str, Any], want: Mapping[str, Any]) -> None:
    """Same names, types, shapes and bytes (so that NaN equals NaN)."""
    assert list(have) == list(want)
    for name, array in want.items():
        assert have[name].dtype == array.dtype, name
        assert have[name].shape == array.shape, name
        assert fake_triton.to_raw(have[name]) == fake_triton.to_raw(array), name


@pytest.mark.filterwarnings("ignore:overflow encountered in cast", "ignore:invalid value encountered in cast")
@settings(max_examples=300)
@given(arrays=NAMED, payload_format=st.sampled_from(["auto", "binary"]))
def test_triton_reads_the_encoded_arrays_and_the_client_reads_its_response(
    arrays: dict[str, fake_triton.Array], payload_format: PayloadFormat
) -> None:
    body = encode(arrays, payload_format=payload_format)
    request, seen = fake_triton.read_request(body.content, body.content_type)
    assert_same(seen, arrays)
    content, content_type = fake_triton.write_response(request, seen, model="echo")
    assert content_type.startswith(PREFIX)
    response = decode(content, content_type)
    assert_same(response.outputs, arrays)
    assert (response.model_name, response.model_version) == ("echo", "1")
    assert all(array.flags.writeable for array in response.outputs.values())


@settings(max_examples=150)
@given(
    arrays=st.dictionaries(
        st.text("ab", min_size=1),
        st.one_of(
            hnp.arrays(np.float32, SHAPES, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)),
            hnp.arrays(np.uint64, SHAPES),
            hnp.arrays(np.bool_, SHAPES),
            SHAPES.flatmap(texts).map(np.vectorize(lambda item: item.hex().encode(), otypes=[object])),
        ),
        min_size=1,
        max_size=3,
    ),
    name_outputs=st.booleans(),
)
def test_the_json_format_is_json_both_ways(arrays: dict[str, fake_triton.Array], name_outputs: bool) -> None:
    body = encode(arrays, outputs=list(arrays) if name_outputs else None, payload_format="json")
    assert body.content_type == "application/json"
    request, seen = fake_triton.read_request(body.content, body.content_type)
    assert_same(seen, arrays)
    content, content_type = fake_triton.write_response(request, seen, model="echo")
    assert content_type == "application/json"
    assert_same(decode(content, content_type).outputs, arrays)


@pytest.mark.parametrize(
    ("array", "binary"),
    [
        (np.zeros((1, 8), np.float32), False),
        (np.zeros((1, 8), np.float16), True),
        (np.zeros((1, 8), ml_dtypes.bfloat16), True),
        (np.array([b"text"], dtype=object), True),
        (np.array([np.nan], np.float32), True),
        (np.zeros(JSON_LIMIT_BYTES, np.uint8), False),
        (np.zeros(JSON_LIMIT_BYTES + 1, np.uint8), True),
    ],
)
def test_binary_is_chosen_where_json_would_lose_or_be_long(array: fake_triton.Array, binary: bool) -> None:
    assert encode({"x": array}).content_type.startswith(PREFIX) is binary


def test_every_array_without_a_triton_type_is_named_at_once() -> None:
    arrays: dict[str, fake_triton.Array] = {
        "a": np.zeros(1, complex),
        "b": np.array([{}]),
        "c": np.zeros(1),
        "d": np.array(["2020"], "M8[Y]"),
    }
    with pytest.raises(InputError, match="at least one array"):
        encode({})
    with pytest.raises(InputError) as caught:
        encode(arrays)
    assert [problem.field for problem in caught.value.problems] == ["inputs.a", "inputs.b", "inputs.d"]


def test_json_refuses_what_it_cannot_carry_all_at_once() -> None:
    arrays: dict[str, fake_triton.Array] = {
        "half": np.zeros(1, np.float16),
        "nan": np.array([np.nan], np.float32),
        "raw": np.array([b"\xff"], dtype=object),
        "fine": np.zeros(1, np.int8),
    }
    with pytest.raises(InputError) as caught:
        encode(arrays, payload_format="json")
    assert [problem.field for problem in caught.value.problems] == ["inputs.half", "inputs.nan", "inputs.raw"]
    assert all("binary" in problem.advice for problem in caught.value.problems)


def response_header(size: int) -> bytes:
    """A response header that states ``size`` bytes of one FP32 output of shape [2]."""
    output = {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": size}}
    return json.dumps({"model_name": "m", "model_version": "1", "outputs": [output]}).encode()


@pytest.mark.parametrize(
    ("tail", "content_type"),
    [
        (b"1234567", "{prefix}{size}"),
        (b"123456789", "{prefix}{size}"),
        (b"12345678", "{prefix}{beyond}"),
        (b"12345678", "{prefix}-1"),
        (b"12345678", "{prefix}"),
        (b"12345678", "{prefix}{short}"),
        (b"12345678", "application/json"),
    ],
)
def test_a_cut_off_or_wrongly_described_response_is_malformed(tail: bytes, content_type: str) -> None:
    header = response_header(8)
    size = len(header)
    stated = content_type.format(prefix=PREFIX, size=size, beyond=size + 9, short=size - 1)
    with pytest.raises(MalformedResponseError):
        decode(header + tail, stated)


NESTED = b'{"outputs": ' + b"[" * 100_000


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"null", b"<html>", b'{"outputs": [{}]}', b'{"outputs": 3}', NESTED]
)
def test_a_body_that_is_no_inference_response_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedResponseError, match="no inference response"):
        decode(content, "application/json")
