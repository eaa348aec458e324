"""The ensemble's PNG reader against Pillow, and against what is no PNG."""

from __future__ import annotations

import importlib.util
import io
import struct
import types
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tritonstack.paths import REPOSITORY

Array = np.ndarray[Any, Any]
FILE = REPOSITORY / "model_repos/digits-ensemble/digits-decode/1/png.py"


def _load() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("digits_decode_png", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


png = _load()


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _png(pixels: Array, filters: list[int], colour: int, *, depth: int = 8, interlace: int = 0) -> bytes:
    """A PNG of uint8 [height, width, channels] with the given row filters, written down as the specification has it."""
    height, width, channels = pixels.shape
    rows = pixels.reshape(height, -1).astype(int)
    packed = bytearray()
    for y, kind in enumerate(filters):
        packed.append(kind)
        for x in range(width * channels):
            left = rows[y, x - channels] if x >= channels else 0
            up = rows[y - 1, x] if y else 0
            corner = rows[y - 1, x - channels] if y and x >= channels else 0
            nearest = min((left, up, corner), key=lambda value, at=left + up - corner: abs(at - value))  # type: ignore[misc]
            packed.append((rows[y, x] - (0, left, up, (left + up) // 2, nearest)[kind]) % 256)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = zlib.compress(bytes(packed))
    half = len(data) // 2
    chunks = [
        _chunk(b"IHDR", header),
        _chunk(b"tEXt", b"a\0b"),
        _chunk(b"IDAT", data[:half]),
        _chunk(b"IDAT", data[half:]),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + _chunk(b"IEND", b"")


@settings(max_examples=60)
@given(
    data=st.data(), width=st.integers(1, 9), height=st.integers(1, 9), kind=st.sampled_from(["L", "LA", "RGB", "RGBA"])
)
def test_every_filter_of_every_row_is_undone(data: st.DataObject, width: int, height: int, kind: str) -> None:
    channels = len(kind)
    content = data.draw(st.binary(min_size=width * height * channels, max_size=width * height * channels))
    pixels = np.frombuffer(content, np.uint8).reshape(height, width, channels)
    filters = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    image = _png(pixels, filters, {"L": 0, "LA": 4, "RGB": 2, "RGBA": 6}[kind])

    theirs = np.asarray(Image.open(io.BytesIO(image)).convert("RGBA")).astype(float)
    expected = (theirs[..., :3] @ [0.299, 0.587, 0.114]) * theirs[..., 3] / 255
    np.testing.assert_allclose(png.read_grey(image), expected, atol=1e-3)


GREY = np.zeros((2, 2, 1), np.uint8)
GOOD = _png(GREY, [0, 0], 0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xd8\xff\xe0 a JPEG", "no PNG"),
        (b"", "no PNG"),
        (GOOD[:-5], "damaged|ends before"),
        (_png(GREY, [0, 0], 0, depth=16), "16 bits"),
        (_png(GREY, [0, 0], 2), "bytes, 14 are needed"),
        (b"\x89PNG\r\n\x1a\n" + _chunk(b"IEND", b""), "without its header"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(png.PngError, match=message):
        png.read_grey(data)


def test_area_average_of_whole_blocks_is_their_mean() -> None:
    blocks = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_allclose(png.area_average(np.kron(blocks, np.ones((16, 16), np.float32)), 8), blocks, rtol=1e-6)
