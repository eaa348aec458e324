"""Images and texts to input tensors, as a model's adapters describe.

Pillow and Hugging Face's ``tokenizers`` are imported only where an image or a text is processed.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from tritonstack.adapters import Adapter, ImageAdapter, TextAdapter
from tritonstack.client.body import Array
from tritonstack.errors import InputError, Problem, WorkFailedError

if TYPE_CHECKING:
    from PIL.Image import Image, Resampling
    from tokenizers import Tokenizer

PADS = ("[PAD]", "<pad>")
"""Padding tokens of BERT's, and of RoBERTa's and T5's tokenizers."""
MOST_PIXELS = 89_478_485
"""Of an image, as read and as resized: where Pillow warns of a decompression bomb, 256 MiB in RGB."""
_PNG_MODES = frozenset({"1", "L", "LA", "P", "I", "RGB", "RGBA"})


class Input(Protocol):
    """An input of a model, with its batch dimension: a manifest's tensor entry, or a tensor table's."""

    @property
    def name(self) -> str: ...
    @property
    def datatype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def to_arrays(
    adapter: Adapter, source: Path | bytes, files: Mapping[str, Path], *, inputs: Sequence[Input]
) -> dict[str, Array]:
    """The inputs that an adapter makes of a file, a batch of one where the model batches.

    Args:
        adapter: of the model's recipe or manifest.
        source: a file, or its content.
        files: paths of the client files that the adapter names (``adapter.files``).
        inputs: the model's inputs, which give datatypes and whether there is a batch dimension.

    Raises:
        InputError: the file cannot be read, is no image or no text, or the model has no such inputs.
        WorkFailedError: a client file is invalid.
    """
    file = str(source) if isinstance(source, Path) else None
    by_name = {one.name: one for one in inputs}
    missing = [name for name in adapter.inputs if name not in by_name]
    if missing:
        allowed = ", ".join(by_name) or "none"
        raise InputError([Problem(file=file, found=f"an adapter for {', '.join(missing)}", allowed=allowed)])
    content = _content(source)
    if isinstance(adapter, ImageAdapter):
        arrays = {adapter.input: _image(content, adapter, by_name[adapter.input], file)}
    else:
        arrays = _text(content, adapter, by_name, files, file)
    return {
        name: array[None] if len(by_name[name].shape) == array.ndim + 1 else array for name, array in arrays.items()
    }


def _content(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError([Problem(file=str(source), found=found, allowed="a file that can be read")]) from error


def _expect(wanted: Input, datatypes: Sequence[str], file: str | None) -> None:
    if wanted.datatype not in datatypes:
        found = f"an adapter that makes {' or '.join(datatypes)} for input {wanted.name}"
        advice = "fix the recipe: its adapter and config.pbtxt do not fit together"
        raise InputError([Problem(file=file, found=found, allowed=wanted.datatype, advice=advice)])


def _dtype(wanted: Input) -> np.dtype[np.generic]:
    dtype: np.dtype[np.generic] = np.dtype(triton_to_np_dtype(wanted.datatype))
    return dtype


def _bytes_element(content: bytes) -> Array:
    element = np.empty(1, dtype=object)
    element[0] = content
    return element


# Images.


def _image(content: bytes, adapter: ImageAdapter, wanted: Input, file: str | None) -> Array:
    if adapter.encoding == "pixels":
        _expect(wanted, ("FP16", "FP32", "FP64"), file)
        return pixels(content, adapter, file=file).astype(_dtype(wanted), copy=False)
    _expect(wanted, ("BYTES", "UINT8"), file)
    if adapter.encoding == "png-bytes":
        content = as_png(content, file=file)
    else:
        check_image(content, file=file)
    return np.frombuffer(content, np.uint8) if wanted.datatype == "UINT8" else _bytes_element(content)


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
    the longer one is rounded down, and the middle is cut out.

    Raises InputError where it is no image, or truncated.
    """
    from PIL.Image import Resampling  # noqa: PLC0415

    crop = adapter.crop
    if crop is None:
        raise ValueError(f"encoding {adapter.encoding} makes no pixels")
    upright = rgb(content, file=file)
    resample = Resampling[adapter.resample.upper()]
    resized = _resized(upright, shorter=adapter.resize or crop, resample=resample, file=file)
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


# Texts.


def _text(
    content: bytes, adapter: TextAdapter, inputs: Mapping[str, Input], files: Mapping[str, Path], file: str | None
) -> dict[str, Array]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise InputError([Problem(file=file, found=str(error), allowed="text in UTF-8")]) from error
    if adapter.encoding == "utf8":
        (name,) = adapter.inputs
        _expect(inputs[name], ("BYTES",), file)
        return {name: _bytes_element(content)}
    for name in adapter.inputs:
        _expect(inputs[name], ("INT32", "INT64", "UINT32", "UINT64"), file)
    found = tokens(text, adapter, files[str(adapter.tokenizer)], file=file)
    return {name: array.astype(_dtype(inputs[name])) for name, array in found.items()}


def tokens(text: str, adapter: TextAdapter, tokenizer: Path, *, file: str | None = None) -> dict[str, Array]:
    """The inputs of the adapter, INT64 [tokens] each; ``adapter.length`` tokens where that is set.

    Line ends at the end of the text are removed.

    Raises:
        InputError: the text has no tokens.
        WorkFailedError: the tokenizer's file is invalid, or has no token to pad with.
    """
    tool = _loaded(tokenizer, tokenizer.stat().st_mtime_ns, adapter.length, adapter.pad)
    encoding = tool.encode(adapter.prefix + text.rstrip("\r\n"))
    if not any(encoding.attention_mask):
        raise InputError([Problem(file=file, found="an empty text", allowed="at least one token")])
    columns = {adapter.ids: encoding.ids, adapter.mask: encoding.attention_mask}
    return {name: np.array(column, dtype=np.int64) for name, column in columns.items() if name is not None}


def text_from(ids: Sequence[int], tokenizer: Path) -> str:
    """The text of token ids, without special tokens such as padding and end of text.

    An id above the tokenizer's last is left out: models have room for more tokens than their tokenizers make (T5 has
    32,128 for 32,100), and what untrained weights choose there stands for nothing.

    Raises WorkFailedError where the tokenizer's file is invalid, or an id is below 0 or above 32 bits.
    """
    tool = _loaded(tokenizer, tokenizer.stat().st_mtime_ns, None, None)
    try:
        return str(tool.decode(list(ids), skip_special_tokens=True))
    except OverflowError as error:
        raise WorkFailedError(f"the response has numbers from {min(ids)} to {max(ids)}: they are no tokens") from error


@functools.lru_cache(maxsize=16)
def _loaded(path: Path, changed_ns: int, length: int | None, pad: str | None) -> Tokenizer:
    """A tokenizer that is set up once and never changed after, so that threads may share it."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    del changed_ns  # part of the key: a file that has changed is read again
    try:
        tool = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception for every fault of a file
        raise WorkFailedError(f"{path}: no tokenizer that can be read: {error}") from error
    padding = tool.padding
    tool.no_padding()
    tool.no_truncation()
    if length is None:
        return tool
    if pad is None and padding is not None:
        number, token = padding["pad_id"], padding["pad_token"]
    else:
        number, token = _pad(tool, [pad] if pad else PADS, path)
    tool.enable_truncation(max_length=length)
    tool.enable_padding(length=length, pad_id=number, pad_token=token)
    return tool


def _pad(tool: Tokenizer, names: Sequence[str], path: Path) -> tuple[int, str]:
    for name in names:
        number = tool.token_to_id(name)
        if number is not None:
            return number, name
    raise WorkFailedError(f"{path}: no token {' or '.join(names)} to pad with; name one in the recipe's adapter: pad")
