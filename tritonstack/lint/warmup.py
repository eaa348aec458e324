"""Rules about warm-up requests: their inputs, against the model's, and the files that they read.

Source: core src/backend_model_instance.cc (GenerateWarmupData).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tritonstack.lint.completion import complete
from tritonstack.lint.registry import Finding
from tritonstack.lint.tensors import BYTES_OF, elements, lengths_fit
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.models.model_config import Node, Tensor
from tritonstack.models.model_view import ModelView

_SOURCES = ("zero_data", "random_data", "input_data_file")
_ASKS_FOR_AN_INPUT = ("python", "onnxruntime")
"""Backends that read the batch's size from the first input: python_backend src/python_be.cc, onnxruntime_backend
src/onnxruntime.cc (ProcessRequests)."""


def check_warmup(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check warm-up requests."""
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


def _data(model: ModelView, name: str, entry: Node) -> Iterator[Finding]:
    """Check the source of the values: Triton refuses some, whatever the model's inputs are."""
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
