"""Rules on a configuration against its ONNX file or a recipe's declared graph, and on operators that images lack.

Source: onnxruntime_backend src/onnxruntime.cc (ModelState::AutoCompleteConfig, ModelInstanceState::ValidateInputs,
ValidateOutputs, ValidateBooleanSequenceControl, ValidateTypedSequenceControl), src/onnxruntime_utils.cc
(CompareDimsSupported, InputOutputInitializerInfos). Of operators: onnxruntime
onnxruntime/core/providers/cpu/nn/string_normalizer.cc (the locale, opened to change case or to compare without it),
core/graph/graph.cc (“is not a registered function/op”); onnxruntime_backend src/onnxruntime.cc (ModelState::ModelState:
model_operations, op_library_filename).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tritonstack.lint.completion import Completion, completed_from_graph, graph_path, promised_graph
from tritonstack.lint.registry import Finding
from tritonstack.lint.tensors import fed_by_triton
from tritonstack.lint.view import RepositoryView, at_field, at_line
from tritonstack.model_files.onnx_graph import (
    GraphNode,
    GraphTensor,
    OnnxError,
    OnnxGraph,
    function_names,
    graph_nodes,
    read_graph,
)
from tritonstack.models.model_config import Node, Tensor
from tritonstack.models.model_view import ModelView

_BACKENDS = ("onnxruntime", "tensorrt")
_NOT_IN_TRITON = ("BF16",)
"""Types that the backend has no name for: onnxruntime_utils.cc (OnnxDataTypeToModelConfigDataType)."""


def check_graph(view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Check a configuration against its graph: the file's where it exists, else the recipe's."""
    if model.backend not in _BACKENDS or not model.is_readable:
        return
    paths = [path for version in model.served_versions if (path := graph_path(model, version))]
    for path in paths:
        try:
            graph = read_graph(path)
        except OnnxError:  # reported by onnx-unreadable
            continue
        yield from _compare(model, graph, str(path.relative_to(model.directory)))
    promised = None if paths else promised_graph(view, model)
    if promised is not None:
        yield from _compare(model, promised, "the graph of recipe.yaml")


def _compare(model: ModelView, graph: OnnxGraph, where: str) -> Iterator[Finding]:
    done = completed_from_graph(model, graph)
    if model.backend == "onnxruntime":
        yield from _only_tensors(model, graph, where)
        if done.refusal:
            allowed = "max_batch_size: 0, or every input and output in the configuration"
            yield at_field(model, "max_batch_size", "onnx-batch", f"{where}: {done.refusal}", allowed)
            return
    given = {each.name: each for each in (*graph.inputs, *graph.overridable)}
    yield from _tensors(model, done, "input", done.inputs, given, where)
    yield from _tensors(model, done, "output", done.outputs, {each.name: each for each in graph.outputs}, where)
    named = {tensor.name for tensor in done.inputs} | fed_by_triton(model)
    missing = [each.name for each in graph.inputs if each.name not in named]
    if missing and done.inputs and not model.config.node.has("batch_input"):
        found = f"input {missing[0]} of {where}, which the configuration lacks"
        yield at_line(model, model.config.node.line_of("input"), "onnx-tensor", found, "every input of the graph")
    if model.backend == "onnxruntime":
        yield from _optional(model, done, graph, where)
        yield from _fed(model, done, graph, where)


def _only_tensors(model: ModelView, graph: OnnxGraph, where: str) -> Iterator[Finding]:
    """Inputs and outputs that are no tensors: the backend refuses them even where the configuration leaves them out."""
    for each in (*graph.inputs, *graph.outputs):
        if each.kind != "tensor":
            found = f"{each.name} of {where} is a {each.kind}"
            advice = "skl2onnx makes tensors alone with options={'zipmap': False}" if each.kind == "sequence" else ""
            yield at_line(model, 0, "onnx-type", found, "graphs of tensors alone", advice)


def _tensors(  # noqa: PLR0917  (what is compared with what)
    model: ModelView,
    done: Completion,
    kind: str,
    tensors: Sequence[Tensor],
    known: Mapping[str, GraphTensor],
    where: str,
) -> Iterator[Finding]:
    for tensor in tensors:
        in_graph = known.get(tensor.name)
        if in_graph is None:
            if tensor.name not in fed_by_triton(model):
                found, allowed = f"{kind} {tensor.name}, which {where} lacks", ", ".join(sorted(known)) or f"no {kind}"
                yield at_line(model, tensor.line, "onnx-tensor", found, allowed)
            continue
        if in_graph.kind != "tensor":
            continue
        # TensorRT may make INT32 of INT64.
        narrows = model.backend == "tensorrt" and (tensor.data_type, in_graph.datatype) == ("INT32", "INT64")
        if model.backend == "onnxruntime" and in_graph.datatype in ("", *_NOT_IN_TRITON):
            found = f"{kind} {tensor.name} of {where} is of a type that the backend has no name for"
            yield at_line(model, tensor.line, "onnx-type", found, "a graph that casts it to FP32 or FP16")
        elif in_graph.datatype not in ("", tensor.data_type) and not narrows:
            found = f"{kind} {tensor.name} as {tensor.data_type or 'of no type'}"
            yield at_line(model, tensor.line, "onnx-type", found, f"{in_graph.datatype}, as in {where}")
        if in_graph.shape is not None and (tensor.dims or tensor.reshape is not None):
            yield from _shape(model, done, kind, tensor, in_graph.shape, where)


def _shape(  # noqa: PLR0917  (as above)
    model: ModelView, done: Completion, kind: str, tensor: Tensor, axes: tuple[int | None, ...], where: str
) -> Iterator[Finding]:
    dims = tensor.dims if tensor.reshape is None else tensor.reshape
    what = f"{kind} {tensor.name}"
    is_plan = model.backend == "tensorrt"
    batches = done.max_batch_size > 0
    if not axes and not is_plan:  # the backend looks at the lengths alone, batch or not
        if any(length != 1 for length in dims):
            yield at_line(model, tensor.line, "onnx-shape", f"{what} with {list(dims)}", f"dims: [ 1 ], as in {where}")
        return
    if batches and (not axes or axes[0] is not None):
        found = f"{what} with max_batch_size {done.max_batch_size}"
        shown = [-1 if axis is None else axis for axis in axes]
        allowed = f"max_batch_size: 0, for {where} has {shown} without a free first axis"
        yield at_line(model, tensor.line, "onnx-batch", found, allowed)
        return
    node = model.config.node
    is_split = kind == "output" and any(tensor.name in each.texts("target_name") for each in node.nodes("batch_output"))
    ragged = {each.text("name") for each in node.nodes("input") if each.flag("allow_ragged_batch")}
    if tensor.name in ragged and not is_plan:
        if axes != (None,):
            found = f"{what} with allow_ragged_batch"
            yield at_line(model, tensor.line, "onnx-shape", found, f"a graph that takes [-1]; {where} does not")
    elif not is_split and not _fits(dims, axes[1:] if batches else axes, exact=kind == "output" and not is_plan):
        found = f"{what} with {list(dims)} behind the batch dimension" if batches else f"{what} with {list(dims)}"
        found += "" if batches or model.config.max_batch_size else ", without batching"
        lengths = [-1 if axis is None else axis for axis in (axes[1:] if batches else axes)]
        # A tensor of one number per request needs a reshape.
        fields = f"dims: {lengths}" if lengths else "dims: [ 1 ] reshape { shape: [ ] }"
        yield at_line(model, tensor.line, "onnx-shape", found, f"{fields}, as in {where}")


def _fits(dims: Sequence[int], axes: Sequence[int | None], *, exact: bool) -> bool:
    """Whether the backend takes these dims for the graph's axes.

    A length that the graph fixes is the same in ``dims``. One that it leaves free may be fixed for an input, and is -1
    for an output (``exact``).
    """
    return len(dims) == len(axes) and all(
        (axis is None and (not exact or length == -1)) or axis == length
        for length, axis in zip(dims, axes, strict=True)
    )


def _optional(model: ModelView, done: Completion, graph: OnnxGraph, where: str) -> Iterator[Finding]:
    """Inputs that a request may leave out: the graph has a value for them, and does not batch."""
    has_value = {each.name for each in graph.overridable}
    required = {each.name for each in graph.inputs}
    for tensor in done.inputs:
        if tensor.optional and done.max_batch_size > 0:
            allowed = "max_batch_size: 0, or no optional"
            yield at_line(model, tensor.line, "onnx-tensor", f"optional input {tensor.name} in a batch", allowed)
        elif tensor.optional and tensor.name in required:
            allowed = f"no optional: {where} has no value for it"
            yield at_line(model, tensor.line, "onnx-tensor", f"optional input {tensor.name}", allowed)
        elif not tensor.optional and tensor.name in has_value:
            allowed = f"optional: true, for {where} has a value for it"
            yield at_line(model, tensor.line, "onnx-tensor", f"input {tensor.name}, not optional", allowed)


def _fed(model: ModelView, done: Completion, graph: OnnxGraph, where: str) -> Iterator[Finding]:
    """Inputs that Triton itself fills: of a sequence batcher's controls, its states, and of a batch."""
    node, known = model.config.node, {each.name: each for each in graph.inputs}
    batching, controls = node.node("sequence_batching"), _controls(node)
    for name, kind in controls.items():
        line, in_graph = node.line_of("sequence_batching"), known.get(name)
        if in_graph is None:
            found, allowed = f"control input {name}, which {where} lacks", ", ".join(sorted(known)) or "no input"
            yield at_line(model, line, "onnx-tensor", found, allowed)
            continue
        axes = in_graph.shape
        if axes is not None and (axes[1:] if done.max_batch_size > 0 else axes) != (1,):
            found = f"control input {name}, which is not of shape [1] in {where}"
            yield at_line(model, line, "onnx-shape", found, "one number for each request")
        if in_graph.datatype not in ("", kind):
            found, allowed = f"control input {name} as {kind or 'of no type'}", f"{in_graph.datatype}, as in {where}"
            yield at_line(model, line, "onnx-type", found, allowed)
    others = [name for each in node.nodes("batch_input") for name in each.texts("target_name")]
    others += [state.text("input_name") for state in batching.nodes("state")] if batching else []
    lacking = [name for name in others if name not in known]
    # The backend counts inputs, and compares no names of these.
    count = sum(not tensor.optional for tensor in done.inputs) + len(controls) + len(others)
    if lacking and count != len(known):
        found = f"input {lacking[0]} of a batch or state, which {where} lacks"
        yield at_line(model, node.line, "onnx-tensor", found, ", ".join(sorted(known)) or "no input")


def _controls(node: Node) -> Mapping[str, str]:
    """The inputs of a graph that the sequence batcher's controls fill: name → type."""
    batching, found = node.node("sequence_batching"), dict[str, str]()
    kinds = (("int32_false_true", "INT32"), ("fp32_false_true", "FP32"), ("bool_false_true", "BOOL"))
    for message in batching.nodes("control_input") if batching else ():
        for control in message.nodes("control"):
            by_values = next((kind for field, kind in kinds if control.has(field)), "")
            kind = by_values or control.text("data_type").removeprefix("TYPE_")
            found[message.text("name")] = "BYTES" if kind == "STRING" else kind
    return found


LOCALES = ("", "C", "POSIX", "C.UTF-8", "C.utf8")
"""Those of Ubuntu's base image, on which Triton's are built; empty: the environment's, which sets none."""
ORT_LOCALE = "en_US.UTF-8"
"""ONNX Runtime's own where the node states none: string_normalizer.cc."""

DOMAINS = frozenset({
    "", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft",
    "com.microsoft.nchwc", "com.microsoft.internal.nhwc", "com.ms.internal.nhwc", "com.microsoft.experimental",
    "com.microsoft.dml", "org.pytorch.aten", "trt.plugins",
})  # fmt: skip
"""Domains of ONNX Runtime and its execution providers: onnxruntime include/onnxruntime/core/graph/constants.h."""


def check_operators(_view: RepositoryView, model: ModelView) -> Iterator[Finding]:
    """Operators that ONNX Runtime refuses in Triton's images, each kind once."""
    path = graph_path(model) if model.backend == "onnxruntime" and model.is_readable else None
    if path is None:
        return
    try:
        nodes = [*graph_nodes(path, attributes_of=("StringNormalizer",))]
        functions = function_names(path)
    except OnnxError:
        return  # onnx-unreadable
    yield from _locales(path, nodes)
    libraries = model.config.node.node("model_operations")
    if libraries is not None and libraries.has("op_library_filename"):
        return
    foreign = {(node.domain, node.operator) for node in nodes if node.domain not in DOMAINS} - functions
    for domain in sorted({domain for domain, _ in foreign}):
        names = ", ".join(sorted(operator for of, operator in foreign if of == domain))
        yield Finding(file=path, rule="onnx-custom-domain", found=f"operators of domain {domain}: {names}")


def _locales(path: Path, nodes: list[GraphNode]) -> Iterator[Finding]:
    wanted = {
        str(node.attributes.get("locale", ORT_LOCALE)): "locale" in node.attributes
        for node in nodes
        if node.operator == "StringNormalizer" and node.domain in ("", "ai.onnx") and _needs_locale(node)
    }
    for locale, is_stated in wanted.items():
        if locale not in LOCALES:
            how = f"with locale {locale}" if is_stated else f"without a locale, which is then {locale}"
            found = f"StringNormalizer {how}"
            yield Finding(file=path, rule="onnx-locale", found=found)


def _needs_locale(node: GraphNode) -> bool:
    given = node.attributes
    changes_case = given.get("case_change_action", "NONE") != "NONE"
    return changes_case or (not given.get("is_case_sensitive", 0) and bool(given.get("stopwords")))
