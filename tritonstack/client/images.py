"""Images of requests: checked, decoded within bounds, resized, as pixels or as PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tritonstack.adapters import ImageAdapter
from tritonstack.client.body import Array
from tritonstack.errors import InputError, Problem

if TYPE_CHECKING:
    from PIL.Image import Image, Resampling

MOST_PIXELS = 89_478_485
"""Of an image, as read and as resized: where Pillow warns of a decompression bomb, 256 MiB in RGB."""
_PNG_MODES = frozenset({"1", "L", "LA", "P", "I", "RGB", "RGBA"})


def check_image(content: bytes, *, file: str | None = None) -> None:
    """Check an image that is sent as it is. Raises InputError where it is no image, or truncated."""
    with _opened(content, file) as image:
        image.draft("L", (1, 1))  # a JPEG is then read to its end, but hardly decoded
        image.load()


def as_png(content: bytes, *, file: str | None = None) -> bytes:
    """The image as a PNG; a PNG stays as it is. Raises InputError where it is no image, or truncated."""
    with _opened(content, file) as image:
        image.load()
        if image.format == "PNG":
            return content
        # CMYK and the like, which PNG does not have, become RGB.
        converted = image if image.mode in _PNG_MODES else image.convert("RGB")
        buffer = io.BytesIO()
        converted.save(buffer, format="PNG")
        return buffer.getvalue()


def pixels(content: bytes, adapter: ImageAdapter, *, file: str | None = None) -> Array:
    """Normalised pixels: FP32 [3, crop, crop], or [crop, crop, 3] in layout nhwc.

    Resizing and cropping are those of torchvision's ``Resize`` and ``CenterCrop`` on Pillow images, which the weights
    of its models were measured with (torchvision, ``transforms/functional.py``): the shorter side gets the length,
    the longer one is rounded down, and the middle is cut out. With ``stretch`` both sides get it, as transformers'
    processors with a ``height`` and a ``width`` do.

    Raises InputError where it is no image, or truncated.
    """
    from PIL.Image import Resampling  # noqa: PLC0415

    crop = adapter.crop
    if crop is None:
        raise ValueError(f"encoding {adapter.encoding} makes no pixels")
    upright = rgb(content, file=file)
    resample = Resampling[adapter.resample.upper()]
    side = adapter.resize or crop
    if adapter.stretch:
        resized = upright if upright.size == (side, side) else upright.resize((side, side), resample)
    else:
        resized = _resized(upright, shorter=side, resample=resample, file=file)
    left, top = round((resized.width - crop) / 2), round((resized.height - crop) / 2)
    values = np.asarray(resized.crop((left, top, left + crop, top + crop)), dtype=np.float32)
    # rescaled, less the mean, divided by std: in one multiplication and one subtraction.
    std = np.array(adapter.std)
    scale, shift = adapter.rescale / std, np.array(adapter.mean) / std
    normal = values * scale.astype(np.float32) - shift.astype(np.float32)
    return normal if adapter.layout == "nhwc" else np.ascontiguousarray(normal.transpose(2, 0, 1))


def rgb(content: bytes, *, file: str | None = None) -> Image:
    """The image in 8-bit RGB, upright by its EXIF orientation. Raises InputError where it is no image."""
    from PIL import Image, ImageOps  # noqa: PLC0415

    with _opened(content, file) as image:
        image.load()
        upright = ImageOps.exif_transpose(image)
        if upright.mode == "I" or upright.mode.startswith("I;16"):  # 16-bit grey values, which convert() would clip
            grey = np.asarray(upright).clip(0, 65535) // 257
            upright = Image.fromarray(grey.astype(np.uint8))
        return upright.convert("RGB")


def _resized(image: Image, *, shorter: int, resample: Resampling, file: str | None) -> Image:
    """The image with another shorter side. Raises InputError where the longer one becomes too long by it."""
    width, height = image.size
    size = (shorter, int(shorter * height / width)) if width <= height else (int(shorter * width / height), shorter)
    _refuse_pixels(size, file, f", once its shorter side is {shorter}")
    return image if size == image.size else image.resize(size, resample)


@contextmanager
def _opened(content: bytes, file: str | None) -> Iterator[Image]:
    """The image, with Pillow's errors as InputError."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415

    try:
        with Image.open(io.BytesIO(content)) as image:
            _refuse_pixels(image.size, file)
            yield image
    except UnidentifiedImageError as error:  # its own words name the buffer, not the file
        found, allowed = "not an image that can be read", "an image of a format that Pillow knows"
        raise InputError([Problem(file=file, found=found, allowed=allowed)]) from error
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError) as error:
        raise InputError([Problem(file=file, found=str(error), allowed="an image that Pillow can read")]) from error


def _refuse_pixels(size: tuple[int, int], file: str | None, when: str = "") -> None:
    """Refuse an image before it is decoded, or resized: a file of a kilobyte may state any size."""
    if math.prod(size) > MOST_PIXELS:
        found = f"an image of {size[0]:,} by {size[1]:,} pixels{when}"
        raise InputError([Problem(file=file, found=found, allowed=f"at most {MOST_PIXELS:,} pixels")])
