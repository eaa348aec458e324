"""Adapters that a user asks for: the recipe's entry, and an image or a text as the sample request."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem
from tritonstack.models.adding.additions import Addition
from tritonstack.models.model_config import ModelConfig, Tensor, read_config

TEXT = "Seven small boats sail slowly past the harbour.\n"
TOKENIZER = "tokenizer.json"
_CHANNELS = 3


@dataclass(frozen=True, kw_only=True)
class AdapterOptions:
    """The inputs that images or texts become."""

    image: str | None = None
    text: str | None = None
    tokenizer: Path | None = None  # of Hugging Face's tokenizers; without it a text is sent as it is


def with_adapter(addition: Addition, options: AdapterOptions) -> Addition:
    """The model folder with the adapter that is asked for, and its sample request; as it is where none is.

    Raises :class:`InputError` where the model has no input that an adapter can fill, or others beside it.
    """
    if options.image is None and options.text is None:
        if options.tokenizer is not None:
            raise InputError([Problem(field="--tokenizer", found="no --text", allowed="--text INPUT beside it")])
        return addition
    if options.image is not None and options.text is not None:
        raise InputError(
            [Problem(field="--image", found="--text too", allowed="one adapter, whose sample is recorded")]
        )
    config = read_config(addition.addressed.config)
    option, name = ("--image", options.image) if options.image is not None else ("--text", options.text)
    given = {tensor.name: tensor for tensor in config.inputs}
    tensor = given.get(name or "")
    if tensor is None:
        raise InputError([Problem(field=option, found=str(name), allowed=f"an input: {', '.join(given)}")])
    made = _image(tensor, config) if options.image is not None else _text(tensor, config, options.tokenizer)
    others = [each.name for each in config.inputs if not each.optional and each.name not in made.fills]
    if others:
        found = f"{name}, and the model needs {', '.join(others)} too"
        allowed = f"a model whose inputs an adapter fills all: here {', '.join(made.fills)}"
        advice = f"leave {option} out: the sample request then has every input"
        raise InputError([Problem(field=option, found=found, allowed=allowed, advice=advice)])
    return dataclasses.replace(
        addition,
        adapters={made.kind: made.fields},
        sample_file=(made.file, made.content),
        client_files={} if options.tokenizer is None else {TOKENIZER: options.tokenizer},
        unknown=(*addition.unknown, *made.unknown),
    )


@dataclass(frozen=True, kw_only=True)
class _Adapter:
    """An adapter as the recipe has it, and a request for it."""

    kind: str
    fields: dict[str, Any]
    fills: Sequence[str]  # the inputs that it makes
    file: str
    content: bytes
    unknown: tuple[str, ...] = ()


def _image(tensor: Tensor, config: ModelConfig) -> _Adapter:
    fields: dict[str, Any] = {"input": tensor.name, "encoding": "file-bytes"}
    unknown: tuple[str, ...] = ()
    if tensor.data_type.startswith("FP"):
        axes = tensor.shape(config.max_batch_size)[-_CHANNELS:]
        sides = {"nchw": axes[1:], "nhwc": axes[:2]} if len(axes) == _CHANNELS else {}
        channels = {"nchw": axes[0], "nhwc": axes[-1]} if sides else {}
        layout = next((each for each, count in channels.items() if count == _CHANNELS), None)
        height, width = sides[layout] if layout else (0, -1)
        if height != width or height < 1:
            found = f"{tensor.name}, {tensor.data_type} {list(tensor.dims)}"
            allowed = "pixels of a square image, [3, side, side] or [side, side, 3], or an encoded file (BYTES, UINT8)"
            raise InputError([Problem(field="--image", found=found, allowed=allowed)])
        fields = {"input": tensor.name, "encoding": "pixels", "crop": height, "layout": layout}
        unknown = ("how pixels are normalised: they are 0 to 1; mean and std of adapters.image in recipe.yaml",)
    elif tensor.data_type not in ("BYTES", "UINT8"):
        found = f"{tensor.name}, {tensor.data_type}"
        raise InputError([Problem(field="--image", found=found, allowed="an input of FP32, FP16, BYTES or UINT8")])
    return _Adapter(
        kind="image", fields=fields, fills=(tensor.name,), file="sample/image.png", content=_picture(), unknown=unknown
    )


def _picture() -> bytes:
    """A PNG of 256 by 256 pixels with a gradient in each colour."""
    from PIL import Image  # noqa: PLC0415  (only for models of images)

    down, out = Image.linear_gradient("L"), Image.radial_gradient("L")
    buffer = io.BytesIO()
    Image.merge("RGB", (down, down.rotate(90), out)).save(buffer, "PNG")
    return buffer.getvalue()


def _text(tensor: Tensor, config: ModelConfig, tokenizer: Path | None) -> _Adapter:
    if tensor.data_type == "BYTES":
        if tokenizer is not None:
            allowed = "none: the input takes the text itself"
            raise InputError([Problem(field="--tokenizer", found=str(tokenizer), allowed=allowed)])
        fields: dict[str, Any] = {"encoding": "utf8", "input": tensor.name}
        return _Adapter(kind="text", fields=fields, fills=(tensor.name,), file="sample/text.txt", content=TEXT.encode())
    if tokenizer is None or not tokenizer.is_file():
        found = f"{tokenizer}, which is not there" if tokenizer else f"none, and {tensor.name} is {tensor.data_type}"
        allowed = f"{TOKENIZER} of Hugging Face's tokenizers, which makes numbers of a text"
        raise InputError([Problem(field="--tokenizer", found=found, allowed=allowed)])
    mask = next((each.name for each in config.inputs if "mask" in each.name.lower() and each is not tensor), None)
    length = tensor.dims[-1] if tensor.dims else -1
    fields = {"encoding": "tokens", "tokenizer": TOKENIZER, "ids": tensor.name}
    fields |= {"mask": mask} if mask else {}
    fields |= {"length": length} if length > 0 else {}
    fills = [tensor.name, *([mask] if mask else [])]
    return _Adapter(kind="text", fields=fields, fills=fills, file="sample/text.txt", content=TEXT.encode())
