"""PNG bytes → grey values, with the standard library and NumPy: Triton's image has no Pillow.

Read: 8 bits a channel; grey, grey with alpha, RGB, RGBA and palette; not interlaced. The rest is refused by name.
A single colour that grey or RGB images declare transparent is drawn as it is.
Source of the format: PNG specification, https://www.w3.org/TR/png-3/ (chunks 5.3, filters 9.2).
"""

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXEL_LIMIT = 4_000_000
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Colour type → channels: grey, RGB, palette index, grey and alpha, RGBA."""


class PngError(ValueError):
    """The bytes are no PNG that this module reads; the message says what stands in the way."""


def read_grey(data: bytes) -> np.ndarray:
    """The image as FP32 [height, width], 0 black … 255 white. Alpha is laid over black. Raises :class:`PngError`."""
    header, palette, packed = _chunks(data)
    width, height, depth, colour, _compression, _filter, interlace = header
    if colour not in CHANNELS or depth != 8 or interlace:
        raise PngError(
            f"a PNG of colour type {colour}, {depth} bits a channel, interlace {interlace}; "
            "8 bits a channel and no interlacing can be read"
        )
    if not 0 < width * height <= PIXEL_LIMIT:
        raise PngError(f"{width} by {height} pixels; up to {PIXEL_LIMIT} can be read")
    pixels = _unfilter(_inflate(packed, height * (1 + width * CHANNELS[colour])), width, height, CHANNELS[colour])
    if colour == 3:
        if palette is None or int(pixels.max()) >= len(palette):
            raise PngError("a palette image whose palette is missing or too short")
        pixels = palette[pixels[..., 0]]
    return _luminance(pixels.astype(np.float32))


def area_average(image: np.ndarray, size: int) -> np.ndarray:
    """The image as [size, size]; each value is the mean of the area that it covers."""
    height, width = image.shape
    return _shares(height, size) @ image @ _shares(width, size).T


def _chunks(data: bytes):
    """(IHDR's fields, palette as uint8 [n, 4] or None, the compressed data), each chunk's checksum compared."""
    if not data.startswith(SIGNATURE):
        raise PngError("no PNG: it does not begin with PNG's signature")
    header, palette, packed, position = None, None, [], len(SIGNATURE)
    while True:
        if position + 12 > len(data):
            raise PngError("the PNG ends before its end chunk")
        length, kind = struct.unpack_from(">I4s", data, position)
        content = data[position + 8 : position + 8 + length]
        checksum = data[position + 8 + length : position + 12 + length]
        if len(checksum) != 4 or zlib.crc32(kind + content) != int.from_bytes(checksum, "big"):
            raise PngError(f"chunk {kind!r} is damaged")
        position += 12 + length
        if kind == b"IHDR" and length == 13:
            header = struct.unpack(">IIBBBBB", content)
        elif kind == b"PLTE" and length % 3 == 0:
            colours = np.frombuffer(content, np.uint8).reshape(-1, 3)
            palette = np.pad(colours, ((0, 0), (0, 1)), constant_values=255)
        elif kind == b"tRNS" and palette is not None:
            palette[: min(length, len(palette)), 3] = np.frombuffer(content, np.uint8)[: len(palette)]
        elif kind == b"IDAT":
            packed.append(content)
        elif kind == b"IEND":
            break
    if header is None:
        raise PngError("a PNG without its header chunk")
    return header, palette, b"".join(packed)


def _inflate(packed: bytes, size: int) -> np.ndarray:
    """Exactly ``size`` bytes; never more memory than that, whatever the stream claims."""
    try:
        rows = zlib.decompressobj().decompress(packed, size)
    except zlib.error as error:
        raise PngError(f"the PNG's data is damaged: {error}") from None
    if len(rows) != size:
        raise PngError(f"the PNG's data has {len(rows)} bytes, {size} are needed")
    return np.frombuffer(rows, np.uint8)


def _unfilter(rows: np.ndarray, width: int, height: int, channels: int) -> np.ndarray:
    """Undo PNG's row filters: uint8 [height, width, channels].

    A value depends on its left, upper and upper left neighbour, so all values of one anti-diagonal are worked out at
    once. The image has a border of zeros above and to the left; in flat order, neighbours on an anti-diagonal are
    ``width`` positions apart.
    """
    rows = rows.reshape(height, 1 + width * channels)
    kinds = rows[:, 0].astype(np.int16)
    if kinds.max() > 4:
        raise PngError(f"an unknown row filter {kinds.max()}")
    raw = rows[:, 1:].reshape(height, width, channels)
    line = width + 1
    flat = np.zeros(((height + 1) * line, channels), np.int16)
    flat.reshape(height + 1, line, channels)[1:, 1:] = raw
    for diagonal in range(width + height - 1):
        first, last = max(0, diagonal - width + 1), min(diagonal, height - 1)
        start = (first + 1) * line + diagonal - first + 1
        stop = start + (last - first) * width + 1
        left, up, corner = (flat[start - back : stop - back : width] for back in (1, line, line + 1))
        guess = _predict(kinds[first : last + 1, None], left, up, corner)
        flat[start:stop:width] = (flat[start:stop:width] + guess) & 255
    return flat.reshape(height + 1, line, channels)[1:, 1:].astype(np.uint8)


def _predict(kinds: np.ndarray, left: np.ndarray, up: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """What each row's filter (0 none, 1 left, 2 up, 3 average, 4 Paeth) foretells of a value."""
    estimate = left + up - corner
    to_left, to_up, to_corner = (abs(estimate - neighbour) for neighbour in (left, up, corner))
    paeth = np.where((to_left <= to_up) & (to_left <= to_corner), left, np.where(to_up <= to_corner, up, corner))
    return np.choose(kinds, [np.zeros_like(left), left, up, (left + up) >> 1, paeth])


def _luminance(pixels: np.ndarray) -> np.ndarray:
    """Grey values of FP32 [height, width, 1 to 4]; colours weighted as ITU-R BT.601 does."""
    channels = pixels.shape[2]
    grey = pixels[..., :3] @ np.array([0.299, 0.587, 0.114], np.float32) if channels >= 3 else pixels[..., 0]
    return grey * (pixels[..., -1] / 255) if channels in (2, 4) else grey


def _shares(length: int, size: int) -> np.ndarray:
    """FP32 [size, length]: how much of the mean over area i each of ``length`` pixels makes up."""
    edges = np.linspace(0, length, size + 1)
    pixel = np.arange(length)
    overlap = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return (np.clip(overlap, 0, None) * size / length).astype(np.float32)
