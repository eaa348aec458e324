"""Files to arrays of the model's own datatypes and ranks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.client.fake_triton import datatype_of
from tests.client.tokenizers_for_tests import write_tokenizer
from tritonstack.adapters import ImageAdapter, TextAdapter
from tritonstack.client.manifest import TensorSpec
from tritonstack.client.preprocessing import to_arrays
from tritonstack.errors import InputError
from tritonstack.models.manifest import TensorEntry

PIXELS = ImageAdapter(input="x", encoding="pixels", crop=2)
TOKENS = TextAdapter(encoding="tokens", tokenizer="t.json", ids="ids", mask="mask", length=5)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer's file."""
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer") / "t.json")


def jpeg(width: int, height: int) -> bytes:
    """A grey JPEG."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "grey").save(buffer, format="JPEG")
    return buffer.getvalue()


def spec(name: str, datatype: str, *shape: int) -> TensorSpec:
    """An input."""
    return TensorSpec(name=name, datatype=datatype, shape=shape)


@given(width=st.integers(1, 50), height=st.integers(1, 50))
def test_a_jpeg_for_dali_is_its_bytes_in_a_batch_of_one(width: int, height: int) -> None:
    content = jpeg(width, height)
    adapter = ImageAdapter(input="x", encoding="file-bytes")
    array = to_arrays(adapter, content, {}, inputs=[spec("x", "UINT8", -1, -1)])["x"]
    assert (datatype_of(array), array.shape) == ("UINT8", (1, len(content)))
    assert array.tobytes() == content


@pytest.mark.parametrize(
    ("datatype", "shape", "wanted"),
    [("FP32", (-1, 3, 2, 2), (1, 3, 2, 2)), ("FP16", (3, 2, 2), (3, 2, 2)), ("FP32", (1, 3, 2, 2), (1, 3, 2, 2))],
)
def test_pixels_have_the_type_and_the_rank_of_the_input(
    datatype: str, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    array = to_arrays(PIXELS, jpeg(5, 4), {}, inputs=[spec("x", datatype, *shape)])["x"]
    assert (datatype_of(array), array.shape) == (datatype, wanted)


@pytest.mark.parametrize("datatype", ["INT32", "INT64"])
def test_tokens_have_the_integer_type_of_the_input(tokenizer: Path, datatype: str) -> None:
    inputs = [TensorEntry(name=name, datatype=datatype, shape=(-1, 5)) for name in ("ids", "mask")]
    arrays = to_arrays(TOKENS, b"the house", {"t.json": tokenizer}, inputs=inputs)
    assert {name: (datatype_of(array), array.tolist()) for name, array in arrays.items()} == {
        "ids": (datatype, [[2, 4, 5, 3, 0]]),
        "mask": (datatype, [[1, 1, 1, 1, 0]]),
    }


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    inputs = [spec("x", "FP32", -1, 3, 2, 2)]
    for content, found in ((None, "No such file"), (b"junk", "not an image")):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError, match=found) as caught:
            to_arrays(PIXELS, path, {}, inputs=inputs)
        assert [problem.file for problem in caught.value.problems] == [str(path)]


@pytest.mark.parametrize(
    ("adapter", "inputs", "found"),
    [
        (PIXELS, [spec("y", "FP32", -1, 3, 2, 2)], "an adapter for x"),
        (PIXELS, [spec("x", "BYTES", -1, 1)], "an adapter that makes FP16 or FP32 or FP64 for input x"),
        (TOKENS, [spec("ids", "FP32", -1, 5), spec("mask", "INT32", -1, 5)], "for input ids"),
        (TOKENS, [spec("ids", "INT32", -1, 5)], "an adapter for mask"),
        (
            TextAdapter(encoding="utf8", input="t"),
            [spec("t", "INT8", -1, 1)],
            "an adapter that makes BYTES for input t",
        ),
    ],
)
def test_an_adapter_that_does_not_fit_the_model_is_said_so(
    tokenizer: Path, adapter: Any, inputs: list[TensorSpec], found: str
) -> None:
    with pytest.raises(InputError, match=found):
        to_arrays(adapter, jpeg(3, 3) if adapter is PIXELS else b"the", {"t.json": tokenizer}, inputs=inputs)
