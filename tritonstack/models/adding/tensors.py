"""A model's tensors before it has a configuration: whether they share a batch axis, as config.pbtxt, as options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from tritonstack.errors import InputError, Problem
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.pbtxt import quoted
from tritonstack.models.recipe import Datatype

DATATYPES: tuple[str, ...] = get_args(Datatype)
DEFAULT_BATCH = 8
"""max_batch_size where the model has a batch axis and nothing states how many rows fit the GPU's memory."""

TENSOR_FORM = "NAME:TYPE:SHAPE with the batch first, such as x:FP32:N,3,224,224 (a letter or -1 for a free length)"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_tensors(option: str, texts: Iterable[str]) -> tuple[GraphTensor, ...]:
    """Tensors as a command's option gives them. Raises :class:`InputError` with every text that is none."""
    found: list[GraphTensor] = []
    problems: list[Problem] = []
    for text in texts:
        name, _, rest = text.partition(":")
        datatype, _, axes = rest.partition(":")
        parts = [part.strip() for part in axes.split(",")] if axes.strip() else []
        lengths = [_length(part) for part in parts]
        if not name or datatype.upper() not in DATATYPES or 0 in lengths or ":" not in rest:
            allowed = f"{TENSOR_FORM}; types {', '.join(DATATYPES)}"
            problems.append(Problem(field=option, found=text, allowed=allowed))
            continue
        symbols = tuple(part if _WORD.fullmatch(part) else "" for part in parts)
        found.append(GraphTensor(name=name, datatype=datatype.upper(), shape=tuple(lengths), symbols=symbols))
    if problems:
        raise InputError(problems)
    return tuple(found)


def _length(text: str) -> int | None:
    """A fixed length; None for a free one; 0 for what is neither."""
    if text == "-1" or _WORD.fullmatch(text):
        return None
    return int(text) if text.isascii() and text.isdecimal() else 0


@dataclass(frozen=True, kw_only=True)
class BatchAxis:
    """Whether the first axis of every tensor can be the batch."""

    possible: bool  # the first axes are free, and those of the inputs do not have different names
    named: bool = False  # the outputs' first axes have the inputs' name too: no need to try it
    why_not: str = ""


def batch_axis(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor]) -> BatchAxis:
    """Whether requests can have a batch dimension: the first axis is free, and the same for all tensors."""
    for tensor in (*inputs, *outputs):
        if tensor.shape is not None and (not tensor.shape or tensor.shape[0] is not None):
            shown = shape_text(tensor)
            return BatchAxis(possible=False, why_not=f"the first axis of {tensor.name} {shown} is fixed")
    if not inputs or any(tensor.shape is None for tensor in inputs):
        return BatchAxis(possible=False, why_not="the shape of an input is unknown")
    names = {tensor.symbols[0] for tensor in inputs if tensor.symbols and tensor.symbols[0]}
    if len(names) > 1:
        return BatchAxis(
            possible=False, why_not=f"the inputs' first axes have different names: {', '.join(sorted(names))}"
        )
    of_outputs = {tensor.symbols[0] if tensor.symbols else "" for tensor in outputs}
    return BatchAxis(possible=True, named=of_outputs <= (names or {""}) and all(each.shape for each in outputs))


def shape_text(tensor: GraphTensor) -> str:
    """``[N, 3, 224]``: the name of a free axis, -1 where it has none."""
    if tensor.shape is None:
        return "of unknown shape"
    symbols = tensor.symbols or ("",) * len(tensor.shape)
    axes = (str(axis) if axis is not None else name or "-1" for axis, name in zip(tensor.shape, symbols, strict=True))
    return f"[{', '.join(axes)}]"


def config_text(
    *,
    head: str,
    max_batch_size: int | None,
    inputs: Sequence[GraphTensor],
    outputs: Sequence[GraphTensor],
    batches: bool,
) -> str:
    """Fields of config.pbtxt: ``head`` as it stands, then batch and tensors; lists without a tensor are left out."""
    lines = [head] if head else []
    if max_batch_size is not None:
        lines.append(f"max_batch_size: {max_batch_size}")
    for field, tensors in (("input", inputs), ("output", outputs)):
        if tensors:
            lines += [f"{field} [", ",\n".join(f"  {_tensor(each, batches=batches)}" for each in tensors), "]"]
    return "\n".join(lines) + "\n"


def _tensor(tensor: GraphTensor, *, batches: bool) -> str:
    axes = tensor.shape or ()
    dims = [-1 if axis is None else axis for axis in (axes[1:] if batches else axes)]
    shape = f"dims: {dims}".replace("[", "[ ").replace("]", " ]") if dims else "dims: [ 1 ]"
    if not dims and batches:
        shape += " reshape { shape: [ ] }"  # one number a row: dims cannot be empty
    kind = "STRING" if tensor.datatype == "BYTES" else tensor.datatype
    return f"{{ name: {quoted(tensor.name)} data_type: TYPE_{kind} {shape} }}"
