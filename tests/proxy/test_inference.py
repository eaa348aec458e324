"""Inference requests and responses pass unchanged but for the model's name; Content-Encoding both ways."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from tritonclient.http import InferResult

from tests.client.fake_triton import write_response
from tritonstack.client.body import BINARY_PREFIX, JSON_TYPE
from tritonstack.client.errors import MalformedResponseError
from tritonstack.client.invocation import RawResponse
from tritonstack.proxy.errors import HttpError
from tritonstack.proxy.server import kserve_answer, request_body

NAMES = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=8)
ARRAYS = npst.arrays(
    dtype=st.sampled_from([np.float32, np.float64, np.int8, np.int64, np.uint16, np.bool_]),
    shape=npst.array_shapes(max_dims=3, max_side=4),
)


def raw_response(content: bytes, content_type: str) -> RawResponse:
    return RawResponse(content=content, content_type=content_type, variant="g4dn-xlarge", milliseconds=1.0, attempts=1)


@given(
    arrays=st.dictionaries(NAMES, ARRAYS, min_size=1, max_size=3),
    model=NAMES,
    request_id=st.none() | NAMES,
    binary=st.booleans(),
    data=st.data(),
)
def test_tritonclient_reads_every_response_under_the_name_that_it_requested(
    *, arrays: dict[str, Any], model: str, request_id: str | None, binary: bool, data: st.DataObject
) -> None:
    if not binary:
        arrays = {name: np.nan_to_num(array, posinf=1, neginf=-1) for name, array in arrays.items()}
    chosen = data.draw(st.lists(st.sampled_from(sorted(arrays)), unique=True, min_size=1))
    request = {"outputs": [{"name": name, "parameters": {"binary_data": binary}} for name in chosen]}
    content, content_type = write_response(request, arrays, model='a"b.0123456789abcdef.tar.gz')
    if request_id is not None:  # where Triton has it: first
        header = json.dumps({"id": request_id}).encode()[:-1] + b", "
        size = int(content_type.removeprefix(BINARY_PREFIX)) + len(header) - 1 if binary else None
        content = header + content[1:]
        content_type = f"{BINARY_PREFIX}{size}" if binary else content_type
    http, version = kserve_answer(raw_response(content, content_type), model=model)
    assert version == "1"
    result = InferResult.from_response_body(
        http.body,
        header_length=http.headers.get(b"inference-header-content-length", b"").decode() or None,
    )
    response = result.get_response()
    assert (response["model_name"], response["model_version"]) == (model, "1")
    assert response.get("id") == request_id
    for name in chosen:
        np.testing.assert_array_equal(result.as_numpy(name), arrays[name])
    assert http.headers[b"content-type"] == (b"application/octet-stream" if binary else JSON_TYPE.encode())


@pytest.mark.parametrize("length", [b"-1", b"5", b"1.0", b"", b"0x1", b"\xb2", b"9" * 5000])
def test_a_length_that_does_not_fit_the_body_is_refused(length: bytes) -> None:
    with pytest.raises(HttpError, match="0 to the body's 4 bytes"):
        request_body({b"inference-header-content-length": length}, b"{}ab")


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"<html>", "text/html"),
        (b'{"error": "x"}', JSON_TYPE),
        (b"{}", f"{BINARY_PREFIX}3"),
        (b"{}", f"{BINARY_PREFIX}0"),
        (b"\xff\xfe", JSON_TYPE),
    ],
)
def test_what_is_no_inference_response_is_not_passed_on(content: bytes, content_type: str) -> None:
    with pytest.raises(MalformedResponseError):
        kserve_answer(raw_response(content, content_type), model="m")
