"""Adapters that a model's inputs suggest: for ``add``, and as the lines of recipe.yaml that a request lacks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import yaml

from tritonstack.adapters import InputKind, ModelInput
from tritonstack.errors import Problem

TOKENIZER = "tokenizer.json"
ROLES = {"mask": ("mask",), "types": ("type", "segment")}
"""Field of an adapter for tokens → what the name of its input contains: attention_mask; token_type_ids, segment_ids."""
IMAGE_INPUTS = "pixels of a square image (FP32, FP16), [3, side, side] or [side, side, 3]; or a file (BYTES, UINT8)"
TEXT_INPUTS = "a text (BYTES), or the numbers of its tokens (INT32, INT64)"
_CHANNELS = 3
_NORMALISING = """\
    # as the model was trained, for instance with ImageNet's:
    # mean: [0.485, 0.456, 0.406]
    # std: [0.229, 0.224, 0.225]
"""


def image_fields(tensor: ModelInput) -> dict[str, Any] | None:
    """Fields of an image adapter for an input: pixels of a square, or an encoded file; None where it takes neither."""
    if tensor.datatype in ("BYTES", "UINT8"):
        return {"input": tensor.name, "encoding": "file-bytes"}
    axes = tensor.shape[-_CHANNELS:]
    squares = {"nchw": (_CHANNELS, axes[-1], axes[-1]), "nhwc": (axes[0], axes[0], _CHANNELS)} if axes else {}
    layout = next((each for each, square in squares.items() if axes == square and min(axes) > 0), None)
    if layout is None or not tensor.datatype.startswith("FP"):
        return None
    return {"input": tensor.name, "encoding": "pixels", "crop": axes[1], "layout": layout}


def token_fields(ids: ModelInput, names: Collection[str]) -> dict[str, Any]:
    """Fields of a text adapter whose tokens' numbers are for ``ids``. ``names``: of the model's inputs."""
    fields: dict[str, Any] = {"encoding": "tokens", "tokenizer": TOKENIZER, "ids": ids.name}
    for role, words in ROLES.items():
        free = [name for name in names if name not in fields.values()]
        if named := next((name for name in free if any(word in name.lower() for word in words)), None):
            fields[role] = named
    if ids.shape and ids.shape[-1] > 0:
        fields["length"] = ids.shape[-1]
    return fields


def text_fields(inputs: Sequence[ModelInput]) -> dict[str, Any] | None:
    """Fields of a text adapter for a model; None where no input takes a text or tokens."""
    if texts := [each for each in inputs if each.datatype == "BYTES"]:
        return {"encoding": "utf8", "input": texts[0].name}
    other = [word for words in ROLES.values() for word in words]
    numbers = [each for each in inputs if each.datatype in ("INT32", "INT64")]
    ids = [each for each in numbers if not any(word in each.name.lower() for word in other)]
    return token_fields(ids[0], [each.name for each in inputs]) if ids else None


def missing_adapter(
    kind: InputKind, inputs: Sequence[ModelInput], *, present: Collection[str], file: str | None = None
) -> Problem:
    """The refusal of an image or a text for a model without an adapter for it, with the lines that recipe.yaml lacks.

    ``present``: the kinds that it has an adapter for.
    """
    pictures = (image_fields(each) for each in inputs)
    fields = next(filter(None, pictures), None) if kind == "image" else text_fields(inputs)
    have = " and ".join(present) or "arrays only: the model's recipe has no adapters"
    a_kind = "an image" if kind == "image" else "a text"
    if fields is None:
        listed = "; ".join(f"{each.name} {each.datatype} {list(each.shape)}" for each in inputs)
        found = f"{a_kind}, for which the model has no input: {listed}"
        return Problem(file=file, field=kind, found=found, allowed=IMAGE_INPUTS if kind == "image" else TEXT_INPUTS)
    return Problem(
        file=file,
        field=kind,
        found=f"{a_kind}, and the model's recipe has no adapter for it",
        allowed=have,
        advice=f"add these lines to model_repos/<model>/recipe.yaml, deploy, then the same request again:\n"
        f"{adapter_lines(kind, fields, below=bool(present))}",
    )


def adapter_lines(kind: InputKind, fields: dict[str, Any], *, below: bool) -> str:
    """An adapter as lines of recipe.yaml. ``below``: without the line ``adapters:``, which is there already."""
    text = yaml.safe_dump({"adapters": {kind: fields}}, sort_keys=False, default_flow_style=False)
    if fields["encoding"] == "pixels":
        text += _NORMALISING
    if fields["encoding"] == "tokens":
        line = f"tokenizer: {TOKENIZER}"
        text = text.replace(line, f"{line}    # of Hugging Face, put beside recipe.yaml")
    return text.removeprefix("adapters:\n") if below else text
