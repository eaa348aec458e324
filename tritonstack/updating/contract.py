"""What callers would notice of a model's next version, and its configuration with what users set kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tritonstack.models.model_config import ModelConfig, Tensor, read_config
from tritonstack.models.pbtxt import Field, Message, Scalar, parse, to_text
from tritonstack.models.pbtxt_editing import with_fields


@dataclass(frozen=True, kw_only=True)
class CallerChange:
    """One thing of a model that callers see, before and after; empty where it is not there."""

    what: str  # "input x", "output y", "batch"
    before: str
    after: str
    breaks: bool  # whether requests that are sent today, or programs that read the response, may fail


@dataclass(frozen=True, kw_only=True)
class NextConfig:
    """Text of a next version's ``config.pbtxt``, and what callers notice of it."""

    text: str
    changes: tuple[CallerChange, ...]
    new_inputs: frozenset[str]  # those that a request of before lacks, or has in another type or shape


def next_config(text: str, *, new: ModelConfig, left_out: Collection[str] = ()) -> NextConfig:
    """The configuration of a model whose next version is as ``new`` states.

    A tensor stays as it is written where the new version takes it so: a length that is free there may be a fixed one
    here. ``left_out``: outputs that the earlier version gave, too, and that the configuration does not name.
    """
    old = read_config(text)
    size = old.max_batch_size if new.max_batch_size > 0 else 0
    inputs = _fitted(old.inputs, new.inputs, old=old, new=new, size=size)
    wanted = [each for each in new.outputs if each.name not in left_out]
    outputs = _fitted(old.outputs, wanted, old=old, new=new, size=size)
    fields = {}
    if size != old.max_batch_size:
        fields["max_batch_size"] = f"max_batch_size: {size}"
    for kind, before, after in (("input", old.inputs, inputs), ("output", old.outputs, outputs)):
        if _plain(after) != _plain(before):
            fields[kind] = _tensors_text(kind, after, text)
    changes = tuple(_changes(old, inputs, outputs, size))
    known = {each.name: each for each in old.inputs}
    changed = frozenset(
        each.name
        for each in inputs
        if each.name not in known
        or each.data_type != known[each.name].data_type
        or not _takes(each.shape(size), known[each.name].shape(old.max_batch_size))
    )
    return NextConfig(text=with_fields(text, fields) if fields else text, changes=changes, new_inputs=changed)


def _fitted(
    before: Sequence[Tensor], given: Sequence[Tensor], *, old: ModelConfig, new: ModelConfig, size: int
) -> list[Tensor]:
    """The new version's tensors in the old one's order, each as it was where it may be; new ones at the end."""
    found = {each.name: each for each in given}
    fitted = []
    for tensor in before:
        if tensor.name not in found:
            continue
        other = found.pop(tensor.name)
        same_type = other.data_type == tensor.data_type
        shapes = other.backend_shape(new.max_batch_size), tensor.backend_shape(old.max_batch_size)
        if same_type and _takes(*shapes) and size == old.max_batch_size:
            fitted.append(tensor)
        else:
            fitted.append(replace(_in_batch(other, new, size), optional=tensor.optional))
    return fitted + [_in_batch(each, new, size) for each in found.values()]


def _in_batch(tensor: Tensor, config: ModelConfig, size: int) -> Tensor:
    """A tensor of ``config`` in a configuration of another max_batch_size: without one it has every axis."""
    if config.max_batch_size > 0 and not size:
        return replace(tensor, dims=tensor.backend_shape(config.max_batch_size), reshape=None)
    return tensor


def _takes(shape: Sequence[int], given: Sequence[int]) -> bool:
    """Whether every length that ``given`` allows is one that ``shape`` allows."""
    return len(shape) == len(given) and all(one in (-1, other) for one, other in zip(shape, given, strict=True))


def _plain(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [replace(each, line=0) for each in tensors]


def _changes(
    old: ModelConfig, inputs: Sequence[Tensor], outputs: Sequence[Tensor], size: int
) -> Iterator[CallerChange]:
    for kind, before, after in (("input", old.inputs, inputs), ("output", old.outputs, outputs)):
        is_input = kind == "input"
        old_tensors, new_tensors = {each.name: each for each in before}, {each.name: each for each in after}
        for name in dict.fromkeys([*old_tensors, *new_tensors]):
            was, now = old_tensors.get(name), new_tensors.get(name)
            texts = _tensor_text(was, old.max_batch_size), _tensor_text(now, size)
            if texts[0] == texts[1]:
                continue
            if was is None or now is None:
                breaks = was is not None or (is_input and now is not None and not now.optional)
            else:
                shapes = now.shape(size), was.shape(old.max_batch_size)
                fits = _takes(*shapes) if is_input else _takes(shapes[1], shapes[0])
                breaks = now.data_type != was.data_type or not fits
            yield CallerChange(what=f"{kind} {name}", before=texts[0], after=texts[1], breaks=breaks)
    if size != old.max_batch_size:
        before_text = f"up to {old.max_batch_size} rows a request"
        yield CallerChange(what="batch", before=before_text, after="none", breaks=True)


def _tensor_text(tensor: Tensor | None, size: int) -> str:
    if tensor is None:
        return ""
    return f"{tensor.data_type} {list(tensor.shape(size))}{', optional' if tensor.optional else ''}"


def _tensors_text(kind: str, tensors: Sequence[Tensor], text: str) -> str:
    """The field ``input`` or ``output`` with these tensors; their other fields in the text stay."""
    written = {}
    for each in parse(text).all(kind):
        name = each.value.last("name") if isinstance(each.value, Message) else None
        if isinstance(each.value, Message) and isinstance(name, Scalar):
            written[str(name.value)] = each.value
    fields = [Field(kind, _message(each, written.get(each.name)), 1) for each in tensors]
    return to_text(Message(tuple(fields), 1))


_OF_TENSOR = ("name", "data_type", "dims", "reshape")


def _message(tensor: Tensor, written: Message | None) -> Message:
    data_type = "TYPE_STRING" if tensor.data_type == "BYTES" else f"TYPE_{tensor.data_type}"
    fields = [
        Field("name", Scalar("string", tensor.name, 1), 1),
        Field("data_type", Scalar("word", data_type, 1), 1),
        *(Field("dims", Scalar("integer", length, 1), 1) for length in tensor.dims),
    ]
    if tensor.reshape is not None:
        shape = tuple(Field("shape", Scalar("integer", length, 1), 1) for length in tensor.reshape)
        fields.append(Field("reshape", Message(shape, 1), 1))
    others = [each for each in written.fields if each.name not in _OF_TENSOR] if written is not None else []
    if tensor.optional and written is None:
        others.append(Field("optional", Scalar("word", "true", 1), 1))
    return Message((*fields, *others), 1)
