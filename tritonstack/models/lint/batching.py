"""Rules about batches and the dynamic batcher, and about warm-up requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from tritonstack.models.lint.registry import Finding
from tritonstack.models.lint.tensors import BYTES_OF, elements
from tritonstack.models.lint.view import ModelView, RepositoryView, at_field, at_line
from tritonstack.models.model_config import Node, Tensor

# Source: core src/model_config_utils.cc (ValidateModelConfig).


def check_batching(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with batching."""
    limit = model.config.max_batch_size
    if limit < 0:
        yield at_field(model, "max_batch_size", "max-batch-size", f"max_batch_size: {limit}", "0 or more")
    dynamic = model.config.node.node("dynamic_batching")
    if dynamic is not None:
        yield from _dynamic(model, dynamic)


def _dynamic(model: ModelView, dynamic: Node) -> Iterator[Finding]:
    if model.config.max_batch_size == 0:
        yield at_line(model, dynamic.line, "dynamic-batching", "dynamic_batching with max_batch_size 0")
    yield from _preferred(model, dynamic)


def _preferred(model: ModelView, batcher: Node) -> Iterator[Finding]:
    limit = max(model.config.max_batch_size, 0)
    for size in batcher.integers("preferred_batch_size"):
        if not 0 < size <= limit:
            line = batcher.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}" if limit else "none: max_batch_size is 0"
            yield at_line(model, line, "preferred-batch-size", f"preferred_batch_size {size}", allowed)


# Source: core src/backend_model_instance.cc (GenerateWarmupData).


_SOURCES = ("zero_data", "random_data", "input_data_file")


def check_warmup(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """What is wrong with warm-up requests."""
    if model.is_ensemble:
        return
    inputs = {tensor.name: tensor for tensor in model.config.inputs}
    for warmup in model.config.node.nodes("model_warmup"):
        size, limit = warmup.integer("batch_size"), max(1, model.config.max_batch_size)
        if size < 1:
            yield at_line(model, warmup.line, "warmup-skipped", "batch_size: 0 in model_warmup", "1 or more")
            continue
        if size > limit:
            found = f"batch_size: {size} in model_warmup"
            yield at_field(model, "batch_size", "warmup-batch", found, f"1 to {limit}", warmup)
        given = warmup.entries("inputs")
        missing = [name for name, tensor in inputs.items() if name not in given and not tensor.optional]
        if missing:
            yield at_line(model, warmup.line, "warmup-input", f"model_warmup without input {missing[0]}", "every input")
        for name, entry in given.items():
            if name not in inputs:
                allowed = ", ".join(sorted(inputs)) or "no input"
                found = f"model_warmup with input {name}"
                yield at_line(model, warmup.line, "warmup-unknown-input", found, allowed)
            elif isinstance(entry, Node):
                yield from _like_input(model, entry, inputs[name])
            if isinstance(entry, Node):
                yield from _data(model, name, entry)


def _like_input(model: ModelView, entry: Node, tensor: Tensor) -> Iterator[Finding]:
    """Type and shape of a warm-up input against the model's."""
    kind = entry.text("data_type").removeprefix("TYPE_").replace("STRING", "BYTES")
    if kind != tensor.data_type:
        found = f"model_warmup gives {tensor.name} as {kind or 'no type'}"
        yield at_line(model, entry.line, "warmup-input", found, tensor.data_type)
    dims = entry.integers("dims")
    if -1 not in dims and not _fits(dims, tensor.dims):
        found = f"model_warmup gives {tensor.name} dims {list(dims)}"
        yield at_line(
            model, entry.line, "warmup-input", found, f"like {list(tensor.dims)}, without the batch dimension"
        )


def _fits(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
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
    width = BYTES_OF.get(entry.text("data_type").removeprefix("TYPE_"))
    if path is not None and count is not None and width is not None and path.stat().st_size < count * width:
        found = f"warmup/{file} with {path.stat().st_size} bytes"
        yield at_line(model, line, "warmup-file", found, f"{count * width} bytes or more, for {list(dims)}")
