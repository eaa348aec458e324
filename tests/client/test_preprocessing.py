"""Images and texts to input tensors, compared with the arithmetic of NumPy and the geometry of torchvision."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.client.fake_triton import datatype_of
from tests.client.tokenizers_for_tests import WORDS, write_tokenizer
from tritonstack.adapters import ImageAdapter, TextAdapter
from tritonstack.client.images import as_png, pixels, rgb
from tritonstack.client.manifest import TensorSpec
from tritonstack.client.preprocessing import to_arrays
from tritonstack.client.tokenization import text_from, tokens
from tritonstack.errors import InputError, WorkFailedError

PIXELS = ImageAdapter(input="x", encoding="pixels", crop=2)
TOKENS = TextAdapter(encoding="tokens", tokenizer="t.json", ids="ids", mask="mask", length=5)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer") / "t.json")


def jpeg(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "grey").save(buffer, format="JPEG")
    return buffer.getvalue()


def spec(name: str, datatype: str, *shape: int) -> TensorSpec:
    return TensorSpec(name=name, datatype=datatype, shape=shape)


@given(width=st.integers(1, 50), height=st.integers(1, 50))
def test_a_jpeg_for_dali_is_its_bytes_in_a_batch_of_one(width: int, height: int) -> None:
    content = jpeg(width, height)
    adapter = ImageAdapter(input="x", encoding="file-bytes")
    array = to_arrays(adapter, content, {}, inputs=[spec("x", "UINT8", -1, -1)])["x"]
    assert (datatype_of(array), array.shape) == ("UINT8", (1, len(content)))
    assert array.tobytes() == content


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
def test_an_adapter_that_does_not_fit_the_model_is_reported(
    tokenizer: Path, adapter: Any, inputs: list[TensorSpec], found: str
) -> None:
    with pytest.raises(InputError, match=found):
        to_arrays(adapter, jpeg(3, 3) if adapter is PIXELS else b"the", {"t.json": tokenizer}, inputs=inputs)


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def adapter(**fields: Any) -> ImageAdapter:
    return ImageAdapter.model_validate({"input": "x", "encoding": "pixels", "crop": 4, **fields})


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return buffer.getvalue()


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_the_middle_is_cut_out_and_normalised() -> None:
    image = noise(9, 6)
    array = pixels(encoded(image), adapter(resize=6, crop=4, mean=MEAN, std=STD))
    middle = np.asarray(image, dtype=np.float64)[1:5, 2:6]  # (9 - 4) / 2 rounds to 2, as torchvision's CenterCrop
    wanted = (middle / 255 - MEAN) / STD
    np.testing.assert_allclose(array, wanted.transpose(2, 0, 1), atol=2e-6)


@pytest.mark.parametrize(("resample", "way"), [("bilinear", "BILINEAR"), ("bicubic", "BICUBIC")])
def test_the_shorter_side_is_resized_as_in_the_recipe(resample: str, way: str) -> None:
    image = noise(40, 30)
    array = pixels(encoded(image), adapter(crop=8, resize=8, rescale=1.0, resample=resample))
    small = image.resize((10, 8), Image.Resampling[way]).crop((1, 0, 9, 8))
    np.testing.assert_array_equal(array, np.asarray(small, dtype=np.float32).transpose(2, 0, 1))


def test_a_photo_on_its_side_is_turned_upright() -> None:
    image = Image.new("RGB", (8, 4), "red")
    image.paste("blue", (0, 0, 4, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # EXIF's Orientation: turn by 90° clockwise to see it upright
    upright = rgb(encoded(image, exif=exif))
    assert upright.size == (4, 8)
    assert (upright.getpixel((0, 0)), upright.getpixel((0, 7))) == ((0, 0, 255), (255, 0, 0))


def test_16_bit_grey_keeps_its_brightness() -> None:
    values = np.array([[0, 257 * 100, 65535]], dtype=np.uint16)
    assert np.asarray(rgb(encoded(Image.fromarray(values))))[0, :, 0].tolist() == [0, 100, 255]


@pytest.mark.parametrize("cut", [0, 3, 200])
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_what_is_no_whole_image_is_refused(form: str, cut: int) -> None:
    content = encoded(noise(30, 30), form)[:cut]
    with pytest.raises(InputError, match="image"):
        pixels(content, adapter(), file="a.img")
    with pytest.raises(InputError, match=r"a\.img"):
        as_png(content, file="a.img")


def text_adapter(**fields: Any) -> TextAdapter:
    return TextAdapter.model_validate(
        {"encoding": "tokens", "tokenizer": "t.json", "ids": "ids", "mask": "mask", **fields}
    )


def columns(text: str, one: TextAdapter, tokenizer: Path) -> dict[str, list[int]]:
    return {name: array.tolist() for name, array in tokens(text, one, tokenizer).items()}


def test_a_text_gets_as_many_tokens_as_it_has_whatever_is_in_the_tokenizer_s_file(tokenizer: Path) -> None:
    assert columns("the house is wonderful\n", text_adapter(), tokenizer) == {
        "ids": [2, 4, 5, 6, 7, 3],
        "mask": [1, 1, 1, 1, 1, 1],
    }
    assert columns("the house", text_adapter(length=6), tokenizer) == {
        "ids": [2, 4, 5, 3, 0, 0],
        "mask": [1, 1, 1, 1, 0, 0],
    }
    assert columns("the house is wonderful", text_adapter(length=4), tokenizer)["ids"] == [2, 4, 5, 3]


THREE = TextAdapter(encoding="tokens", tokenizer="t.json", ids="ids", mask="mask", types="types")
SPECS = [spec(name, "INT32", -1, -1) for name in ("ids", "mask", "types")]


@pytest.mark.parametrize(
    ("fields", "source", "ids", "types", "padding"),
    [
        ({}, b"the house", [2, 4, 5, 3], [0, 0, 0, 0], 0),
        ({"longest": 3}, b"the house is", [2, 4, 3], [0, 0, 0], 0),
        ({"longest": 9}, b"the", [2, 4, 3], [0, 0, 0], 0),
        ({"pair": True}, ("the", "house"), [2, 4, 3, 5, 3], [0, 0, 0, 1, 1], 0),
        ({"pair": True}, b"the\r\nhouse\nis\n", [2, 4, 3, 5, 6, 3], [0, 0, 0, 1, 1, 1], 0),
        ({"pair": True, "length": 7}, b"the\nhouse\n", [2, 4, 3, 5, 3, 0, 0], [0, 0, 0, 1, 1, 0, 0], 2),
        ({"pair": True, "longest": 5}, ("the", "house is wonderful"), [2, 4, 3, 5, 3], [0, 0, 0, 1, 1], 0),
    ],
)
def test_a_text_or_a_pair_fills_ids_mask_and_token_types(  # noqa: PLR0917  (a row of the table)
    tokenizer: Path, fields: dict[str, Any], source: Any, ids: list[int], types: list[int], padding: int
) -> None:
    mask = [1] * (len(ids) - padding) + [0] * padding
    made = to_arrays(THREE.model_copy(update=fields), source, {"t.json": tokenizer}, inputs=SPECS)
    assert {name: array.tolist() for name, array in made.items()} == {"ids": [ids], "mask": [mask], "types": [types]}
    two = THREE.model_copy(update={**fields, "types": None})
    assert to_arrays(two, source, {"t.json": tokenizer}, inputs=SPECS).keys() == {"ids", "mask"}


@pytest.mark.parametrize(
    ("pair", "source", "found"),
    [
        (False, ("the", "house"), "(?s)two texts.*one text.*`pair: true`"),
        (True, b"the house\n", "(?s)one text.*--text with --text-pair"),
        (True, b"\nthe house\n", "(?s)one text.*first line is the first text"),
    ],
)
def test_a_single_text_for_a_pair_and_the_other_way_round_are_refused(
    tokenizer: Path, pair: bool, source: Any, found: str
) -> None:
    with pytest.raises(InputError, match=found):
        to_arrays(THREE.model_copy(update={"pair": pair}), source, {"t.json": tokenizer}, inputs=SPECS)


def test_a_prefix_comes_first_and_a_mask_only_where_the_model_has_one(tokenizer: Path) -> None:
    assert columns("house", text_adapter(prefix="say: ", mask=None), tokenizer) == {"ids": [2, 8, 9, 5, 3]}


def test_the_pad_token_is_the_recipe_s_else_the_file_s_else_a_usual_one(tmp_path: Path) -> None:
    own = write_tokenizer(tmp_path / "own.json", own_padding="[SEP]")
    assert columns("the", text_adapter(length=4), own)["ids"] == [2, 4, 3, 3]
    assert columns("the", text_adapter(length=4, pad="[UNK]"), own)["ids"] == [2, 4, 3, 1]
    usual = write_tokenizer(tmp_path / "t5.json", pad="<pad>")
    assert columns("the", text_adapter(length=4), usual)["ids"] == [2, 4, 3, 0]
    with pytest.raises(WorkFailedError, match=r"no token \[PAD\] or <pad> to pad with"):
        tokens("the", text_adapter(length=4), write_tokenizer(tmp_path / "none.json", pad="nothing"))
    with pytest.raises(WorkFailedError, match="no token <fill> to pad with"):
        tokens("the", text_adapter(length=4, pad="<fill>"), own)


@given(words=st.lists(st.sampled_from(WORDS[4:9]), min_size=1, max_size=12))
def test_tokens_read_back_as_the_text(tokenizer: Path, words: list[str]) -> None:
    text = " ".join(words)
    assert text_from(tokens(text, text_adapter(length=16), tokenizer)["ids"].tolist(), tokenizer) == text
    with pytest.raises(WorkFailedError, match="they are no tokens"):
        text_from([0, 2**40], tokenizer)
    assert text_from([2, 4, len(WORDS), 999, 5, 3], tokenizer) == "the house", "models have room for more tokens"


def test_a_tokenizer_s_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(WorkFailedError, match=r"t\.json: no tokenizer that can be read"):
        tokens("the", text_adapter(), tmp_path / "t.json")
