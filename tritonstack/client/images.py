"""Images to what vision models take: the bytes of a PNG, or normalised pixels."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from tritonstack.adapters import ImageAdapter
from tritonstack.client.body import Array
from tritonstack.errors import InputError, Problem

_RESAMPLE = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
LONGEST = 100
"""How many times the shorter side the longer one may be."""
_PNG_MODES = frozenset({"1", "L", "LA", "P", "I", "RGB", "RGBA"})


def check(content: bytes, *, file: str | None = None) -> None:
    """Look at what is sent as it is. Raises InputError where it is no image, or cut off."""
    with _refusals(file), Image.open(io.BytesIO(content)) as image:
        image.draft("L", (1, 1))  # a JPEG is then read to its end, but hardly decoded
        image.load()


def as_png(content: bytes, *, file: str | None = None) -> bytes:
    """The image as a PNG; a PNG stays as it is. Raises InputError where it is no image, or cut off."""
    with _refusals(file), Image.open(io.BytesIO(content)) as image:
        image.load()
        if image.format == "PNG":
            return content
        # CMYK and the like, which PNG does not have, become RGB.
        drawn = image if image.mode in _PNG_MODES else image.convert("RGB")
        buffer = io.BytesIO()
        drawn.save(buffer, format="PNG")
        return buffer.getvalue()


def pixels(content: bytes, adapter: ImageAdapter, *, file: str | None = None) -> Array:
    """Normalised pixels: FP32 [3, crop, crop], or [crop, crop, 3] in layout nhwc.

    Resizing and cropping are those of torchvision's ``Resize`` and ``CenterCrop`` on Pillow images, which the weights
    of its models were measured with (torchvision, ``transforms/functional.py``): the shorter side gets the length,
    the longer one is rounded down, and the middle is cut out.

    Raises:
        InputError: it is no image, or cut off.
    """
    crop = adapter.crop
    if crop is None:
        raise ValueError(f"encoding {adapter.encoding} makes no pixels")
    upright = rgb(content, file=file)
    if max(upright.size) > LONGEST * min(upright.size):  # resized, it would be that much larger than what is cut out
        found = f"an image of {upright.width} by {upright.height} pixels"
        allowed = f"one side at most {LONGEST} times the other"
        raise InputError([Problem(file=file, found=found, allowed=allowed)])
    resized = _resized(upright, shorter=adapter.resize or crop, resample=_RESAMPLE[adapter.resample])
    left, top = round((resized.width - crop) / 2), round((resized.height - crop) / 2)
    values = np.asarray(resized.crop((left, top, left + crop, top + crop)), dtype=np.float32)
    # rescaled, less the mean, divided by std: in one multiplication and one subtraction.
    std = np.array(adapter.std)
    scale, shift = adapter.rescale / std, np.array(adapter.mean) / std
    normal = values * scale.astype(np.float32) - shift.astype(np.float32)
    return normal if adapter.layout == "nhwc" else np.ascontiguousarray(normal.transpose(2, 0, 1))


def rgb(content: bytes, *, file: str | None = None) -> Image.Image:
    """The image upright, as its EXIF orientation says, in 8-bit RGB. Raises InputError where it is no image."""
    with _refusals(file), Image.open(io.BytesIO(content)) as image:
        image.load()
        upright = ImageOps.exif_transpose(image)
        if upright.mode == "I" or upright.mode.startswith("I;16"):  # 16-bit grey values, which convert() would clip
            grey = np.asarray(upright, dtype=np.int64).clip(0, 65535) // 257
            upright = Image.fromarray(grey.astype(np.uint8))
        return upright.convert("RGB")


def _resized(image: Image.Image, *, shorter: int, resample: Image.Resampling) -> Image.Image:
    width, height = image.size
    size = (shorter, int(shorter * height / width)) if width <= height else (int(shorter * width / height), shorter)
    return image if size == image.size else image.resize(size, resample)


@contextmanager
def _refusals(file: str | None) -> Iterator[None]:
    """Pillow's errors in our words."""
    try:
        yield
    except UnidentifiedImageError as error:  # its own words name the buffer, not the file
        found, allowed = "not an image that can be read", "an image of a format that Pillow knows"
        raise InputError([Problem(file=file, found=found, allowed=allowed)]) from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError([Problem(file=file, found=str(error), allowed="an image that Pillow can read")]) from error
