"""The adapter of an added model: which inputs an image or a text fills, and a file as the sample request."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonstack.adapter_proposals import IMAGE_INPUTS, TOKENIZER, image_fields, token_fields
from tritonstack.adding.additions import Addition, AddOptions
from tritonstack.errors import InputError, Problem
from tritonstack.models.manifest import tensor_entry
from tritonstack.models.model_config import ModelConfig, Tensor, read_config

TEXT = "Seven small boats sail slowly past the harbour.\n"
PAIR = f"What do seven small boats do?\n{TEXT}"
"""The first text is a line, the second the rest."""
NORMALISED = (
    "the file does not state how pixels are normalised: they are 0 to 1; set mean and std of adapters.image in "
    "recipe.yaml"
)


def with_adapter(addition: Addition, options: AddOptions) -> Addition:
    """The model folder with the adapter that the options name, and its sample request; as it is where none is.

    Raises :class:`InputError` where the model has no input that an adapter can fill, or inputs besides that one.
    """
    if options.image is None and options.text is None:
        of_text = {"--tokenizer": options.tokenizer is not None, "--text-pairs": options.text_pairs}
        if (option := next((each for each, is_given in of_text.items() if is_given), None)) and not addition.adapters:
            raise _refused(option, "no --text", "--text INPUT with it")
        return addition
    if options.image is not None and options.text is not None:
        raise _refused("--image", "--text too", "one adapter, whose sample is recorded")
    config, is_image = read_config(addition.addressed.config), options.image is not None
    option, name = ("--image", options.image) if is_image else ("--text", options.text)
    given = {tensor.name: tensor for tensor in config.inputs}
    if name not in given:
        raise _refused(option, str(name), f"an input: {', '.join(given)}")
    fields = _image(given[name], config) if is_image else _text(given[name], config, options)
    fills = [each for each in (name, fields.get("mask"), fields.get("types")) if each]
    if others := [each.name for each in config.inputs if not each.optional and each.name not in fills]:
        found = f"{name}, and the model needs {', '.join(others)} too"
        allowed = f"a model whose inputs an adapter fills all: here {', '.join(fills)}"
        raise _refused(option, found, allowed, f"leave {option} out: the sample request then has every input")
    if fields["encoding"] == "pixels":
        addition = dataclasses.replace(addition, unknown=(*addition.unknown, NORMALISED))
    return with_fields(addition, fields, is_image=is_image, tokenizer=options.tokenizer)


def with_fields(
    addition: Addition, fields: Mapping[str, Any], *, is_image: bool, tokenizer: Path | None = None
) -> Addition:
    """The model folder with an adapter of these fields, and a picture or a text as its sample request."""
    return dataclasses.replace(
        addition,
        adapters={"image" if is_image else "text": fields},
        sample_file=("sample/image.png", _picture()) if is_image else ("sample/text.txt", _sample(fields).encode()),
        client_files={
            **addition.client_files,
            **({} if tokenizer is None else {TOKENIZER: tokenizer}),
        },
    )


def _refused(option: str, found: str, allowed: str, advice: str = "") -> InputError:
    return InputError([Problem(field=option, found=found, allowed=allowed, advice=advice)])


def _image(tensor: Tensor, config: ModelConfig) -> dict[str, Any]:
    """The recipe's fields for an input that takes images: pixels of a square, or an encoded file."""
    fields = image_fields(tensor_entry(tensor, config.max_batch_size))
    if fields is None:
        raise _refused("--image", f"{tensor.name}, {tensor.data_type} {list(tensor.dims)}", IMAGE_INPUTS)
    return fields


def _picture() -> bytes:
    """A PNG of 256 by 256 pixels with a gradient in each colour."""
    from PIL import Image  # noqa: PLC0415  (only for models of images)

    down, out = Image.linear_gradient("L"), Image.radial_gradient("L")
    buffer = io.BytesIO()
    Image.merge("RGB", (down, down.rotate(90), out)).save(buffer, "PNG")
    return buffer.getvalue()


def _sample(fields: Mapping[str, Any]) -> str:
    return PAIR if fields.get("pair") else TEXT


def _text(tensor: Tensor, config: ModelConfig, options: AddOptions) -> dict[str, Any]:
    """The recipe's fields for an input that takes texts, or the numbers that a tokenizer makes of them."""
    tokenizer = options.tokenizer
    if tensor.data_type == "BYTES":
        if tokenizer is not None:
            raise _refused("--tokenizer", str(tokenizer), "none: the input takes the text itself")
        if options.text_pairs:
            raise _refused("--text-pairs", f"{tensor.name}, which takes one text", "an input for the numbers of tokens")
        return {"encoding": "utf8", "input": tensor.name}
    if tokenizer is None or not tokenizer.is_file():
        found = f"{tokenizer}, which is not there" if tokenizer else f"none, and {tensor.name} is {tensor.data_type}"
        allowed = f"{TOKENIZER} of Hugging Face's tokenizers, which makes numbers of a text"
        raise _refused("--tokenizer", found, allowed)
    fields = token_fields(tensor_entry(tensor, config.max_batch_size), [each.name for each in config.inputs])
    if options.text_pairs:
        fields["pair"] = True
    if "length" in fields or not options.longest_text:
        return fields
    return fields | {"longest": options.longest_text}
