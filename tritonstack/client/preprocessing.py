"""Images and texts to input tensors, as a model's adapters describe.

Pillow and Hugging Face's ``tokenizers`` are imported only where an image or a text is processed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from tritonstack.adapters import Adapter, ImageAdapter, ModelInput, TextAdapter
from tritonstack.client.body import Array
from tritonstack.client.images import as_png, check_image, pixels
from tritonstack.client.tokenization import tokens
from tritonstack.errors import InputError, Problem

Source = Path | bytes | tuple[str, str]
"""A file, its content, or a pair of texts."""


def to_arrays(
    adapter: Adapter, source: Source, files: Mapping[str, Path], *, inputs: Sequence[ModelInput]
) -> dict[str, Array]:
    """The inputs that an adapter makes of a file, a batch of one where the model batches.

    Args:
        adapter: of the model's recipe or manifest.
        source: a file, its content, or a pair of texts.
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
    if isinstance(adapter, ImageAdapter):
        arrays = {adapter.input: _image(_content(source), adapter, by_name[adapter.input], file)}
    else:
        arrays = _text(source, adapter, by_name, files, file)
    return {
        name: array[None] if len(by_name[name].shape) == array.ndim + 1 else array for name, array in arrays.items()
    }


def _content(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, tuple):
        raise InputError([Problem(found="a pair of texts", allowed="an image, for this adapter")])
    try:
        return source.read_bytes()
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError([Problem(file=str(source), found=found, allowed="a file that can be read")]) from error


def _expect(wanted: ModelInput, datatypes: Sequence[str], file: str | None) -> None:
    if wanted.datatype not in datatypes:
        found = f"an adapter that makes {' or '.join(datatypes)} for input {wanted.name}"
        advice = "fix the recipe: its adapter and config.pbtxt do not fit together"
        raise InputError([Problem(file=file, found=found, allowed=wanted.datatype, advice=advice)])


def _dtype(wanted: ModelInput) -> np.dtype[np.generic]:
    dtype: np.dtype[np.generic] = np.dtype(triton_to_np_dtype(wanted.datatype))
    return dtype


def _bytes_element(content: bytes) -> Array:
    element = np.empty(1, dtype=object)
    element[0] = content
    return element


def _image(content: bytes, adapter: ImageAdapter, wanted: ModelInput, file: str | None) -> Array:
    if adapter.encoding == "pixels":
        _expect(wanted, ("FP16", "FP32", "FP64"), file)
        return pixels(content, adapter, file=file).astype(_dtype(wanted), copy=False)
    _expect(wanted, ("BYTES", "UINT8"), file)
    if adapter.encoding == "png-bytes":
        content = as_png(content, file=file)
    else:
        check_image(content, file=file)
    return np.frombuffer(content, np.uint8) if wanted.datatype == "UINT8" else _bytes_element(content)


def _text(
    source: Source, adapter: TextAdapter, inputs: Mapping[str, ModelInput], files: Mapping[str, Path], file: str | None
) -> dict[str, Array]:
    text, second = _texts(source, adapter, file)
    if adapter.encoding == "utf8":
        (name,) = adapter.inputs
        _expect(inputs[name], ("BYTES",), file)
        return {name: _bytes_element(text.encode())}
    for name in adapter.inputs:
        _expect(inputs[name], ("INT32", "INT64", "UINT32", "UINT64"), file)
    found = tokens(text, adapter, files[str(adapter.tokenizer)], second=second, file=file)
    return {name: array.astype(_dtype(inputs[name])) for name, array in found.items()}


def _texts(source: Source, adapter: TextAdapter, file: str | None) -> tuple[str, str | None]:
    """The text, and the second one of a pair: in a file the first line is the first text, the rest the second."""
    if isinstance(source, tuple):
        if not adapter.pair:
            advice = "where the model takes pairs, write `pair: true` into adapters.text of its recipe.yaml"
            raise InputError([Problem(found="two texts", allowed="one text", advice=advice)])
        return source
    try:
        text = _content(source).decode()
    except UnicodeDecodeError as error:
        raise InputError([Problem(file=file, found=str(error), allowed="text in UTF-8")]) from error
    if not adapter.pair:
        return text, None
    first, _, second = text.replace("\r\n", "\n").partition("\n")
    if not first.strip() or not second.strip():
        allowed = "a pair: --text with --text-pair, text=(first, second), or a file whose first line is the first text"
        raise InputError([Problem(file=file, found="one text", allowed=allowed)])
    return first, second
