"""Rules about inputs and outputs: types, shapes, formats, reshaping and labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tritonstack.lint.completion import Completion, complete
from tritonstack.lint.registry import Finding
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_config import Node, Tensor
from tritonstack.models.model_view import ModelView

BYTES_OF: Mapping[str, int] = {
    "BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
    "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
}  # fmt: skip
"""Type → bytes; BYTES is not among them, for its elements have no fixed size."""

_IMAGE_FORMATS = ("FORMAT_NHWC", "FORMAT_NCHW")
_IMAGE_AXES = 3


def check_tensors(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check inputs and outputs."""
    if not model.is_readable:
        return
    versions = model.served_versions or ("",)
    done, node = [complete(view, model, version) for version in versions], model.config.node
    for kind, tensors, completed in (
        ("input", model.config.inputs, [each.inputs for each in done]),
        ("output", model.config.outputs, [each.outputs for each in done]),
    ):
        if not tensors:
            yield from _no_tensors(view, model, kind)
        counts = Counter(tensor.name for tensor in tensors)
        for tensor, message in zip(tensors, node.nodes(kind), strict=True):
            what = f"{kind} {tensor.name or '?'}"
            for of_version, is_known in zip(completed, (each.is_known for each in done), strict=True):
                after = next((each for each in of_version if each.name == tensor.name), tensor)
                may_complete = not (view.is_built or is_known)
                if not message.unread:
                    yield from _missing_fields(model, what, tensor, after, may_complete=may_complete)
                yield from _image_format(model, what, message, after)
            yield from _tensor(model, what, tensor, done[-1])
            if tensor.name and counts[tensor.name] > 1:
                yield at_line(model, tensor.line, "tensor-twice", f"{kind} {tensor.name} twice", "each name once")
    yield from _labels(model)


def _no_tensors(view: RepositoryView, model: ModelView, kind: str) -> Iterator[Finding]:
    """No input, or no output: who refuses that, and who loads it."""
    line, allowed = model.config.node.line, f"every {kind} with name, type and dims"
    if view.is_built:
        yield at_line(model, line, "tensor-table", f"no {kind}", allowed)
    elif model.backend == "pytorch":
        yield at_line(model, line, "pytorch-tensors", f"no {kind}", allowed)
    elif not model.is_ensemble:  # of an ensemble the flow between its steps shows what is missing
        yield at_line(model, line, "auto-completed", f"no {kind}", allowed)


def _missing_fields(
    model: ModelView, what: str, tensor: Tensor, after: Tensor, *, may_complete: bool
) -> Iterator[Finding]:
    """A name, type or dims left out: refused, unless the backend completes it (``after``: what it makes of it)."""
    if not tensor.name:
        yield at_line(model, tensor.line, "tensor-name", f"{what} without a name", 'name: "…"')
    untyped = ("", "INVALID")
    fields = (
        ("tensor-type", "data_type", tensor.data_type in untyped, after.data_type not in untyped, "data_type: TYPE_…"),
        ("tensor-dims", "dims", not tensor.dims, bool(after.dims), "dims: [ … ]"),
    )
    for rule, field, is_missing, is_completed, allowed in fields:
        if is_missing:
            completes = tensor.name and (is_completed or may_complete)
            chosen = "auto-completed" if completes else rule
            yield at_line(model, tensor.line, chosen, f"{what} without {field}", allowed)


def _tensor(model: ModelView, what: str, tensor: Tensor, done: Completion) -> Iterator[Finding]:
    known = (*BYTES_OF, "BYTES", "", "INVALID")
    if tensor.data_type not in known:
        yield at_line(model, tensor.line, "tensor-type-unknown", f"{what} with data_type {tensor.data_type}")
    bad = [length for length in tensor.dims if length == 0 or length < -1]
    if bad:
        allowed = "1 or more, or -1 for any length"
        yield at_line(model, tensor.line, "tensor-dims", f"{what} with dims {bad[0]}", allowed)
    if tensor.reshape is not None and tensor.dims and not bad:
        yield from _reshape(model, what, tensor, tensor.reshape, done)


def _image_format(model: ModelView, what: str, message: Node, after: Tensor) -> Iterator[Finding]:
    """The format of an image, which has three dims. ``after``: the tensor as the backend completes it."""
    form = message.text("format")
    if form in _IMAGE_FORMATS and after.dims and len(after.dims) != _IMAGE_AXES:
        found = f"{what} with {form} and {len(after.dims)} dims"
        allowed = "three dims, the batch dimension not among them, or no format"
        yield at_field(model, "format", "tensor-format", found, allowed, message)


def _reshape(
    model: ModelView, what: str, tensor: Tensor, reshape: tuple[int, ...], done: Completion
) -> Iterator[Finding]:
    found = f"{what} with dims {list(tensor.dims)} and reshape {list(reshape)}"
    bad = [length for length in reshape if length == 0 or length < -1]
    if bad:
        yield at_line(model, tensor.line, "tensor-reshape", found, "1 or more, or -1 for any length")
    elif not reshape and done.max_batch_size == 0 and done.is_known:
        allowed = "a shape with one axis at least: without batching an empty one would be no tensor"
        yield at_line(model, tensor.line, "tensor-reshape", found, allowed)
    elif parts(tensor.dims) != parts(reshape):
        allowed = "as many elements, between the same variable dimensions"
        yield at_line(model, tensor.line, "tensor-reshape", found, allowed)


def parts(dims: tuple[int, ...]) -> list[int]:
    """The element counts of the parts that the variable dimensions separate; [1] for an empty shape."""
    counts = [1]
    for length in dims:
        if length == -1:
            counts.append(1)
        else:
            counts[-1] *= length
    return counts


def elements(dims: tuple[int, ...]) -> int | None:
    """Number of elements of a shape; None where a dimension is variable."""
    return None if -1 in dims else math.prod(dims)


def fed_by_triton(model: ModelView) -> set[str]:
    """Tensors of a graph that Triton itself feeds or takes: of batches, of sequences' controls and states."""
    node = model.config.node
    batch = (*node.nodes("batch_input"), *node.nodes("batch_output"))
    names = {name for each in batch for name in each.texts("target_name")}
    sequence = node.node("sequence_batching")
    if sequence is not None:
        names |= {control.text("name") for control in sequence.nodes("control_input")}
        for state in sequence.nodes("state"):
            names |= {state.text("input_name"), state.text("output_name")}
    return names


def _labels(model: ModelView) -> Iterator[Finding]:
    labelled = [each for each in model.config.node.nodes("output") if each.text("label_filename")]
    names = Counter(output.text("name") for output in labelled)
    for output in labelled:
        file, name = output.text("label_filename"), output.text("name")
        if names[name] > 1:
            found = f"label_filename of output {name}, which is there {names[name]} times"
            yield at_field(model, "label_filename", "label-file", found, "one output of each name", output)
        if ".." in PurePosixPath(file).parts or file.startswith("/"):
            allowed = "a file of the model's directory"
            rule = "label-file-outside" if (model.directory / file.lstrip("/")).is_file() else "label-file"
            yield at_field(model, "label_filename", rule, f"label_filename {file}", allowed, output)
        elif file not in model.files:
            yield at_field(model, "label_filename", "label-file", f"no file {file}", "a file that exists", output)


def lengths_fit(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether given lengths are those of wanted dims, of which -1 takes any."""
    return len(given) == len(wanted) and all(b in (-1, a) for a, b in zip(given, wanted, strict=True))
