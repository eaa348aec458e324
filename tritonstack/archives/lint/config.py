"""Rules about one config.pbtxt, as Triton's core checks it when a model is loaded.

Source: triton-inference-server/core src/model_config_utils.cc (ValidateModelConfig, ValidateInstanceGroup,
ValidateModelInput, ValidateModelOutput).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from tritonstack.archives.lint.finding import Finding
from tritonstack.archives.lint.view import ModelView
from tritonstack.archives.model_config import Node, Tensor

_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY/"


def check_config(model: ModelView, *, backends: Collection[str] | None) -> Iterator[Finding]:
    """Every finding about one configuration. ``backends``: those of the release, or None where no release is given."""
    for complaint in model.config.complaints:
        found = f"{complaint.path}: {complaint.found}" if complaint.path else complaint.found
        yield Finding(file=model.file, line=complaint.line, rule="config", found=found, allowed=complaint.allowed)
    if not model.config.node.scalars and not model.config.node.messages:
        if not model.config.complaints:
            allowed = "a model's configuration: backend, max_batch_size, input and output"
            yield Finding(file=model.file, rule="config-empty", found="an empty file", allowed=allowed)
        return
    yield from _backend(model, backends)
    yield from _tensors(model)
    yield from _scheduling(model)
    yield from _instances(model)
    yield from _warmup(model)
    yield from _execution_environment(model)
    yield from _label_files(model)


def _at(model: ModelView, line: int, rule: str, found: str, allowed: str, *, warning: bool = False) -> Finding:
    return Finding(
        file=model.file,
        line=line,
        rule=rule,
        level="warning" if warning else "error",
        found=found,
        allowed=allowed,
    )


def _backend(model: ModelView, backends: Collection[str] | None) -> Iterator[Finding]:
    config, node = model.config, model.config.node
    line = node.line_of("platform" if node.has("platform") else "backend")
    if not config.backend:
        yield _at(model, node.line, "backend-missing", "neither backend nor platform", 'backend: "…" or platform: "…"')
    elif backends is not None and not config.is_ensemble and config.backend not in backends:
        allowed = ", ".join(sorted(backends))
        yield _at(model, line, "backend-not-in-release", f"backend {config.backend}", allowed)
    yield from _pair(model, line)
    if config.steps and not config.is_ensemble:
        found = f'platform: "{node.text("platform")}" with ensemble_scheduling'
        where = node.line_of("ensemble_scheduling")
        yield _at(model, where, "ensemble-platform", found, 'platform: "ensemble", written so')
    if config.is_ensemble and not config.steps:
        yield _at(
            model, line, "ensemble-without-steps", "an ensemble without steps", "ensemble_scheduling { step [ … ] }"
        )
    for field in ("instance_group", "optimization", "model_warmup") if config.is_ensemble else ():
        if node.has(field):
            yield _at(model, node.line_of(field), "ensemble-field", f"{field} in an ensemble", f"no {field}")


def _pair(model: ModelView, line: int) -> Iterator[Finding]:
    """``platform`` and ``backend`` together, and platforms that Triton does not know."""
    config = model.config
    platform, backend = config.node.text("platform"), config.node.text("backend")
    if platform and not backend and not config.platform_backend:
        yield _at(model, line, "platform-unknown", f'platform: "{platform}"', 'backend: "…" instead')
    elif config.platform_backend and backend and backend != config.platform_backend:
        found = f'platform: "{platform}" with backend: "{backend}"'
        allowed = "no backend" if config.is_ensemble else f'backend: "{config.platform_backend}", or one of the two'
        yield _at(model, line, "backend-platform-pair", found, allowed)
    transaction = config.node.node("model_transaction_policy")
    if transaction is not None and transaction.flag("decoupled"):
        allowed = "false: SageMaker's front end takes exactly one response to a request"
        yield _at(model, transaction.line, "decoupled", "decoupled: true", allowed)


def _tensors(model: ModelView) -> Iterator[Finding]:
    config, node = model.config, model.config.node
    if config.max_batch_size < 0:
        line = node.line_of("max_batch_size")
        yield _at(model, line, "max-batch-size", f"max_batch_size: {config.max_batch_size}", "0 or more")
    for kind, tensors in (("input", config.inputs), ("output", config.outputs)):
        if not tensors:
            yield _at(model, node.line, "tensor-table", f"no {kind}", f"every {kind} with name, type and dims")
        counts = Counter(tensor.name for tensor in tensors)
        for tensor in tensors:
            yield from _tensor(model, kind, tensor, twice=counts[tensor.name] > 1)


def _tensor(model: ModelView, kind: str, tensor: Tensor, *, twice: bool) -> Iterator[Finding]:
    what = f"{kind} {tensor.name or '?'}"
    if not tensor.name:
        yield _at(model, tensor.line, "tensor-name", f"{kind} without a name", 'name: "…"')
    elif twice:
        yield _at(model, tensor.line, "tensor-name", f"{what} twice", "each name once")
    if tensor.data_type in ("", "INVALID"):
        yield _at(model, tensor.line, "tensor-type", f"{what} without a data_type", "data_type: TYPE_…")
    if not tensor.dims:
        yield _at(model, tensor.line, "tensor-dims", f"{what} without dims", "dims: [ … ]")
    bad = [length for length in tensor.dims if length == 0 or length < -1]
    if bad:
        yield _at(model, tensor.line, "tensor-dims", f"{what} with dims {bad[0]}", "1 or more, or -1 for any length")
    if tensor.reshape is not None and not bad and _parts(tensor.dims) != _parts(tensor.reshape):
        found = f"{what} with dims {list(tensor.dims)} and reshape {list(tensor.reshape)}"
        yield _at(model, tensor.line, "tensor-reshape", found, "as many elements, between the same variable dimensions")


def _parts(dims: tuple[int, ...]) -> list[int]:
    """The element counts of the parts that the variable dimensions separate; [1] for an empty shape."""
    counts = [1]
    for length in dims:
        if length == -1:
            counts.append(1)
        else:
            counts[-1] *= length
    return counts


def _scheduling(model: ModelView) -> Iterator[Finding]:
    batching = model.config.node.node("dynamic_batching")
    if batching is None:
        return
    limit = model.config.max_batch_size
    if limit == 0:
        found, allowed = "dynamic_batching with max_batch_size 0", "max_batch_size: 1 or more"
        yield _at(model, batching.line, "dynamic-batching", found, allowed, warning=True)
    for size in batching.integers("preferred_batch_size"):
        if not 0 < size <= max(limit, 0):
            line = batching.line_of("preferred_batch_size")
            allowed = f"1 to max_batch_size, {limit}"
            yield _at(model, line, "preferred-batch-size", f"preferred_batch_size {size}", allowed)
    levels, default = batching.integer("priority_levels"), batching.integer("default_priority_level")
    if levels and not 1 <= default <= levels:
        found = f"default_priority_level {default}"
        yield _at(model, batching.line, "priority-level", found, f"1 to priority_levels, {levels}")


def _instances(model: ModelView) -> Iterator[Finding]:
    for group in model.config.node.nodes("instance_group"):
        kind = group.text("kind")
        if group.integer("count") < 0:
            yield _at(model, group.line_of("count"), "instance-count", f"count: {group.integer('count')}", "1 or more")
        if kind in ("KIND_CPU", "KIND_MODEL") and group.integers("gpus"):
            yield _at(model, group.line_of("gpus"), "instance-gpus", f"gpus with {kind}", "gpus with KIND_GPU only")
        beyond = [gpu for gpu in group.integers("gpus") if gpu != 0]
        if beyond:
            found = f"gpus: [ {beyond[0]} ]"
            allowed = "0: multi-model endpoints run on types with one GPU"
            yield _at(model, group.line_of("gpus"), "instance-gpus", found, allowed, warning=True)


def _warmup(model: ModelView) -> Iterator[Finding]:
    inputs = {tensor.name: tensor for tensor in model.config.inputs}
    for warmup in model.config.node.nodes("model_warmup"):
        if warmup.integer("batch_size") < 1:
            yield _at(model, warmup.line, "warmup-batch", "batch_size: 0 in model_warmup", "1 or more")
        given = warmup.entries("inputs")
        missing = [name for name, tensor in inputs.items() if name not in given and not tensor.optional]
        if missing:
            yield _at(model, warmup.line, "warmup-input", f"model_warmup without input {missing[0]}", "every input")
        for name, entry in given.items():
            if name not in inputs:
                found = f"model_warmup with input {name}"
                yield _at(model, warmup.line, "warmup-input", found, ", ".join(sorted(inputs)) or "no input")
            elif isinstance(entry, Node):
                yield from _warmup_input(model, entry, inputs[name])


def _warmup_input(model: ModelView, entry: Node, tensor: Tensor) -> Iterator[Finding]:
    kind = entry.text("data_type").removeprefix("TYPE_").replace("STRING", "BYTES")
    if kind != tensor.data_type:
        found = f"model_warmup gives {tensor.name} as {kind or 'no type'}"
        yield _at(model, entry.line, "warmup-input", found, tensor.data_type)
    file = entry.text("input_data_file")
    if file and f"warmup/{file}" not in model.files:
        yield _at(
            model, entry.line_of("input_data_file"), "warmup-file", f"no file warmup/{file}", "a file that exists"
        )


def _execution_environment(model: ModelView) -> Iterator[Finding]:
    entry = model.config.node.entries("parameters").get("EXECUTION_ENV_PATH")
    if not isinstance(entry, Node):
        return
    path = entry.text("string_value")
    inside = path.removeprefix(_MODEL_DIRECTORY)
    if inside == path or ".." in PurePosixPath(inside).parts:
        allowed = f"a path below {_MODEL_DIRECTORY}: nothing else of the archive's is at a known place"
        yield _at(model, entry.line, "execution-environment", f"EXECUTION_ENV_PATH {path}", allowed)
    elif not any(file == inside or file.startswith(f"{inside}/") for file in model.files):
        found = f"EXECUTION_ENV_PATH {path}, which is not in the archive"
        yield _at(model, entry.line, "execution-environment", found, "a file or folder of the model's directory")


def _label_files(model: ModelView) -> Iterator[Finding]:
    for output in model.config.node.nodes("output"):
        file = output.text("label_filename")
        if file and file not in model.files:
            yield _at(model, output.line_of("label_filename"), "label-file", f"no file {file}", "a file that exists")
