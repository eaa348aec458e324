"""A model's tensors before it has a configuration: whether they share a batch axis, as config.pbtxt, as options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import get_args

from tritonstack.errors import InputError, Problem
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.model_config import Tensor
from tritonstack.models.pbtxt import quoted
from tritonstack.models.recipe import Datatype

DATATYPES: tuple[str, ...] = get_args(Datatype)
TENSOR_FORM = "NAME:TYPE:SHAPE with the batch first, such as x:FP32:N,3,224,224 (a letter or -1 for a free length)"
_AXIS = r"\s*(?:-1|[1-9][0-9]*|[A-Za-z_][A-Za-z0-9_]*)\s*"
_TENSOR = re.compile(
    rf"(?P<name>.+):(?P<type>{'|'.join(DATATYPES)}):(?P<axes>(?:{_AXIS}(?:,{_AXIS})*)?)", re.IGNORECASE
)


def parse_tensors(option: str, texts: Iterable[str]) -> tuple[GraphTensor, ...]:
    """Tensors as a command's option gives them. Raises :class:`InputError` with every text that is none."""
    matches = {text: _TENSOR.fullmatch(text) for text in texts}
    allowed = f"{TENSOR_FORM}; types {', '.join(DATATYPES)}"
    if problems := [Problem(field=option, found=text, allowed=allowed) for text, match in matches.items() if not match]:
        raise InputError(problems)
    return tuple(_tensor_of(match) for match in matches.values() if match)


def _tensor_of(match: re.Match[str]) -> GraphTensor:
    axes = [axis.strip() for axis in match["axes"].split(",") if axis.strip()]
    return GraphTensor(
        name=match["name"],
        datatype=match["type"].upper(),
        shape=tuple(int(axis) if axis.isdecimal() else None for axis in axes),
        symbols=tuple(axis if axis[0].isalpha() or axis[0] == "_" else "" for axis in axes),
    )


def why_no_batch(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor]) -> str:
    """Why the first axis cannot be the batch: it is fixed, or not the same for all inputs; empty where it can."""
    for tensor in (*inputs, *outputs):
        if tensor.shape is not None and (not tensor.shape or tensor.shape[0] is not None):
            return f"the first axis of {tensor.name} {shape_text(tensor)} is fixed"
    if not inputs or any(tensor.shape is None for tensor in inputs):
        return "the shape of an input is unknown"
    names = _first_names(inputs) - {""}
    return f"the inputs' first axes have different names: {', '.join(sorted(names))}" if len(names) > 1 else ""


def same_names(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor]) -> bool:
    """Whether the outputs' first axes have the name of the inputs', or none as these: then they are one axis."""
    return _first_names(outputs) <= (_first_names(inputs) - {""} or {""}) and all(each.shape for each in outputs)


def _first_names(tensors: Sequence[GraphTensor]) -> set[str]:
    return {tensor.symbols[0] if tensor.symbols else "" for tensor in tensors}


def shape_text(tensor: GraphTensor) -> str:
    """``[N, 3, 224]``: the name of a free axis, -1 where it has none."""
    if tensor.shape is None:
        return "of unknown shape"
    symbols = tensor.symbols or ("",) * len(tensor.shape)
    axes = (str(axis) if axis is not None else name or "-1" for axis, name in zip(tensor.shape, symbols, strict=True))
    return f"[{', '.join(axes)}]"


def config_text(*, head: str, max_batch_size: int | None, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str:
    """Fields of config.pbtxt: ``head`` as it stands, then batch and tensors; lists without a tensor are left out."""
    lines = [head] if head else []
    if max_batch_size is not None:
        lines.append(f"max_batch_size: {max_batch_size}")
    for field, tensors in (("input", inputs), ("output", outputs)):
        if tensors:
            lines += [f"{field} [", ",\n".join(f"  {_tensor_text(each)}" for each in tensors), "]"]
    return "\n".join(lines) + "\n"


def _tensor_text(tensor: Tensor) -> str:
    kind = "STRING" if tensor.data_type == "BYTES" else tensor.data_type
    reshape = " reshape { shape: [ ] }" if tensor.reshape == () else ""  # one number a row: dims cannot be empty
    dims = ", ".join(map(str, tensor.dims))
    return f"{{ name: {quoted(tensor.name)} data_type: TYPE_{kind} dims: [ {dims} ]{reshape} }}"
