"""Rules about inputs and outputs, batches and the dynamic batcher, and warm-up requests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

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
    """What is wrong with inputs and outputs."""
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
    """How many elements a shape has; None where a dimension is variable."""
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
            found = f"label_filename of output {name}, which stands {names[name]} times"
            yield at_field(model, "label_filename", "label-file", found, "one output of each name", output)
        if ".." in PurePosixPath(file).parts or file.startswith("/"):
            allowed = "a file of the model's directory"
            rule = "label-file-outside" if (model.directory / file.lstrip("/")).is_file() else "label-file"
            yield at_field(model, "label_filename", rule, f"label_filename {file}", allowed, output)
        elif file not in model.files:
            yield at_field(model, "label_filename", "label-file", f"no file {file}", "a file that exists", output)


# Source: core src/model_config_utils.cc (ValidateModelConfig).


def check_batching(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with batching."""
    if model.config.max_batch_size < 0:
        found = f"max_batch_size: {model.config.max_batch_size}"
        yield at_field(model, "max_batch_size", "max-batch-size", found, "0 or more")
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is None:
        return
    done, limit = complete(view, model), model.config.max_batch_size
    if done.max_batch_size == 0 and done.is_known:
        yield at_line(model, dynamic.line, "dynamic-batching", "dynamic_batching with max_batch_size 0")
    for size in dynamic.integers("preferred_batch_size"):
        if not 0 < size <= limit:  # Triton compares it before the backend completes anything
            line = dynamic.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}" if limit > 0 else "none: max_batch_size is 0"
            yield at_line(model, line, "preferred-batch-size", f"preferred_batch_size {size}", allowed)


# Source: core src/backend_model_instance.cc (GenerateWarmupData).


_SOURCES = ("zero_data", "random_data", "input_data_file")
_ASKS_FOR_AN_INPUT = ("python", "onnxruntime")
"""Backends that read the batch's size from the first input: python_backend src/python_be.cc, onnxruntime_backend
src/onnxruntime.cc (ProcessRequests)."""


def check_warmup(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with warm-up requests."""
    if model.is_ensemble:
        return
    done = complete(view, model)
    inputs = {tensor.name: tensor for tensor in done.inputs}
    for warmup in model.config.node.nodes("model_warmup"):
        size, limit = warmup.integer("batch_size"), max(1, done.max_batch_size)
        if size < 1:
            yield at_line(model, warmup.line, "warmup-skipped", "batch_size: 0 in model_warmup", "1 or more")
            continue
        if size > limit and done.is_known:
            found = f"batch_size: {size} in model_warmup"
            yield at_field(model, "batch_size", "warmup-batch", found, f"1 to {limit}", warmup)
        # An entry without a value has an empty one.
        entries = warmup.entries("inputs")
        given = {name: entry if isinstance(entry, Node) else Node(warmup.line) for name, entry in entries.items()}
        required = [name for name, tensor in inputs.items() if not tensor.optional]
        missing = [name for name in required if name not in given]
        # Triton counts them (core src/infer_request.cc, Normalize): an optional input makes up for one that is missing.
        if missing and len(given.keys() & inputs.keys()) < len(required):
            yield at_line(model, warmup.line, "warmup-input", f"model_warmup without input {missing[0]}", "every input")
        elif not given and done.max_batch_size > 0 and model.backend in _ASKS_FOR_AN_INPUT:
            yield at_line(model, warmup.line, "warmup-input", "model_warmup without any input", "one input or more")
        for name, entry in given.items():
            if name not in inputs and done.is_known:
                allowed = ", ".join(sorted(inputs)) or "no input"
                found = f"model_warmup with input {name}"
                yield at_line(model, warmup.line, "warmup-unknown-input", found, allowed)
            elif name in inputs:
                yield from _like_input(model, entry, inputs[name])
            yield from _data(model, name, entry)


def _like_input(model: ModelView, entry: Node, tensor: Tensor) -> Iterator[Finding]:
    """Type and shape of a warm-up input against the model's."""
    kind = entry.text("data_type").removeprefix("TYPE_").replace("STRING", "BYTES")
    if kind != tensor.data_type:
        found = f"model_warmup gives {tensor.name} as {kind or 'no type'}"
        yield at_line(model, entry.line, "warmup-input", found, tensor.data_type)
    dims = entry.integers("dims")
    if -1 not in dims and not lengths_fit(dims, tensor.dims):
        found = f"model_warmup gives {tensor.name} dims {list(dims)}"
        yield at_line(
            model, entry.line, "warmup-input", found, f"like {list(tensor.dims)}, without the batch dimension"
        )


def lengths_fit(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether given lengths are those of wanted dims, of which -1 takes any."""
    return len(given) == len(wanted) and all(b in (-1, a) for a, b in zip(given, wanted, strict=True))


def _data(model: ModelView, name: str, entry: Node) -> Iterator[Finding]:
    """Where the values come from: what Triton refuses, whatever the model's inputs are."""
    dims = entry.integers("dims")
    if -1 in dims:
        found = f"model_warmup gives {name} dims {list(dims)}"
        yield at_line(model, entry.line, "warmup-input", found, "a length for every dimension")
    if not any(entry.has(source) for source in _SOURCES):
        yield at_line(model, entry.line, "warmup-input", f"model_warmup gives {name} no values", " or ".join(_SOURCES))
    file = entry.text("input_data_file")
    if not file:
        return
    line = entry.line_of("input_data_file")
    if ".." in PurePosixPath(file).parts or f"warmup/{file}" not in model.files:
        yield at_line(model, line, "warmup-file", f"no file warmup/{file}", "a file that exists")
        return
    path, count = model.on_disk(f"warmup/{file}"), elements(dims)
    if path is not None and count is not None and entry.text("data_type") == "TYPE_STRING":
        yield from _strings(model, line, path, count)
        return
    width = BYTES_OF.get(entry.text("data_type").removeprefix("TYPE_"))
    if path is not None and count is not None and width is not None and path.stat().st_size < count * width:
        found = f"warmup/{file} with {path.stat().st_size} bytes"
        yield at_line(model, line, "warmup-file", found, f"{count * width} bytes or more, for {list(dims)}")


_LENGTH_BYTES = 4


def _strings(model: ModelView, line: int, path: Path, count: int) -> Iterator[Finding]:
    """A warm-up's file of strings: before each its length in 4 bytes, and as many as the shape has, batch or not.

    Source: core src/infer_request.cc (ValidateBytesInputs).
    """
    size, place, strings = path.stat().st_size, 0, 0
    with path.open("rb") as stream:
        while strings <= count and place + _LENGTH_BYTES <= size:
            stream.seek(place)
            place += _LENGTH_BYTES + int.from_bytes(stream.read(_LENGTH_BYTES), "little")
            strings += 1
    if place == size and strings == count:
        return
    said = "text without its length" if place > size else f"{strings} strings"
    said += f" and {size - place:,} bytes more" if place < size else ""
    found = f"warmup/{path.name} of {size:,} bytes with {said}"
    allowed = f"{count} in all, each after its length in 4 bytes, the lowest byte first"
    advice = f"write it with struct.pack('<I', len(text)) + text for each of the {count}"
    yield at_line(model, line, "warmup-file", found, allowed, advice)
