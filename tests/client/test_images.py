"""Images to normalised pixels, held against the arithmetic of NumPy and the geometry of torchvision."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tritonstack.adapters import ImageAdapter
from tritonstack.client.preprocessing import as_png, pixels, rgb
from tritonstack.errors import InputError

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def adapter(**fields: Any) -> ImageAdapter:
    """A pixels adapter."""
    return ImageAdapter.model_validate({"input": "x", "encoding": "pixels", "crop": 4, **fields})


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """The image's file."""
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return buffer.getvalue()


def noise(width: int, height: int) -> Image.Image:
    """Random colours."""
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


@given(
    width=st.integers(1, 90),
    height=st.integers(1, 90),
    crop=st.integers(1, 40),
    more=st.integers(0, 20) | st.none(),
    layout=st.sampled_from(["nchw", "nhwc"]),
    resample=st.sampled_from(["bilinear", "bicubic"]),
)
def test_every_image_becomes_the_square_that_the_model_takes(
    *, width: int, height: int, crop: int, more: int | None, layout: str, resample: str
) -> None:
    resize = None if more is None else crop + more
    one = adapter(crop=crop, resize=resize, layout=layout, resample=resample)
    array = pixels(encoded(noise(width, height)), one)
    assert array.shape == ((3, crop, crop) if layout == "nchw" else (crop, crop, 3))
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array.min() >= 0
    assert array.max() <= np.float32(1.0001)


def test_the_middle_is_cut_out_and_normalised() -> None:
    image = noise(9, 6)
    array = pixels(encoded(image), adapter(resize=6, crop=4, mean=MEAN, std=STD))
    middle = np.asarray(image, dtype=np.float64)[1:5, 2:6]  # (9 - 4) / 2 rounds to 2, as torchvision's CenterCrop
    wanted = (middle / 255 - MEAN) / STD
    np.testing.assert_allclose(array, wanted.transpose(2, 0, 1), atol=2e-6)


def test_layouts_hold_the_same_values() -> None:
    content = encoded(noise(20, 11))
    first, last = (pixels(content, adapter(layout=layout, mean=MEAN)) for layout in ("nchw", "nhwc"))
    np.testing.assert_array_equal(first, last.transpose(2, 0, 1))


@pytest.mark.parametrize(("resample", "way"), [("bilinear", "BILINEAR"), ("bicubic", "BICUBIC")])
def test_the_shorter_side_is_resized_as_the_recipe_says(resample: str, way: str) -> None:
    image = noise(40, 30)
    array = pixels(encoded(image), adapter(crop=8, resize=8, rescale=1.0, resample=resample))
    small = image.resize((10, 8), Image.Resampling[way]).crop((1, 0, 9, 8))
    np.testing.assert_array_equal(array, np.asarray(small, dtype=np.float32).transpose(2, 0, 1))


def test_a_photo_that_lies_on_its_side_is_stood_up() -> None:
    image = Image.new("RGB", (8, 4), "red")
    image.paste("blue", (0, 0, 4, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # EXIF's Orientation: turn by 90° clockwise to see it upright
    upright = rgb(encoded(image, exif=exif))
    assert upright.size == (4, 8)
    assert (upright.getpixel((0, 0)), upright.getpixel((0, 7))) == ((0, 0, 255), (255, 0, 0))


@pytest.mark.parametrize(
    ("mode", "form"), [("L", "JPEG"), ("CMYK", "JPEG"), ("RGBA", "PNG"), ("P", "GIF"), ("1", "PNG")]
)
def test_every_kind_of_image_becomes_rgb(mode: str, form: str) -> None:
    assert rgb(encoded(Image.new(mode, (5, 4)), form)).mode == "RGB"


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


def test_a_line_of_an_image_is_refused_before_it_is_blown_up() -> None:
    with pytest.raises(InputError, match="5000 by 2 pixels"):
        pixels(encoded(noise(5000, 2)), adapter())
