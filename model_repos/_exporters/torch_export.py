"""Export a PyTorch module to ONNX or TorchScript, and prove the file against the source framework.

An ONNX file is what the recipe describes: names, types, axes, operator set. A TorchScript file is what Triton's pytorch
backend loads. The same model gives the same bytes on every machine.
"""

# mypy: disable-error-code="import-not-found"
# PyTorch, ONNX and ONNX Runtime are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

import inspect
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import onnx
import onnxruntime
import torch
from onnx import helper, version_converter
from onnxruntime.capi import onnxruntime_pybind11_state as native
from torch import nn

from _exporters.cases import Model, batches, cases, compare
from _exporters.script import DTYPES, Arguments, Arrays, ExportError, Graph, Tensor, atomic, say

OWN_OPSET = 18
"""The operator set that PyTorch exports in; ONNX converts to older ones.

TensorRT reads the axes of reductions from the attribute of operator sets up to 17: without it, it reduced all axes
(https://github.com/NVIDIA/TensorRT/issues/3467) and refuses such graphs since 10.0.
"""

EMBED_LIMIT = 2**31 - 2**26
"""Bytes of weights that one file holds: a protobuf message is limited to 2 GiB, the rest is for the graph."""

LARGE_WEIGHT = 2**20
"""Bytes from which an initializer is a weight, whose values the conversion of operators does not read."""
_FIXED_DEVICE = re.compile(r': Device = prim::Constant\[value="([a-z:0-9]+)"\]\(\)(?: # ([^\n]*))?')
_LEFT_OUT = (".debug_pkl", "/.data/serialization_id")
_ALIGNMENT = 64
_HEADER = 30
"""Bytes of a zip entry's header before its name (APPNOTE.TXT 4.3.7)."""
_FAILURES = (native.Fail, native.InvalidArgument, native.RuntimeException, native.NotImplemented, RuntimeError)


class Adapted(nn.Module):  # type: ignore[misc]  # PyTorch's classes have no types here
    """A transformers model with the graph's inputs and outputs, by position.

    Integers of fewer bits are widened to INT64 at the entry: TensorRT before 10 takes only INT32, embeddings and masks
    need INT64.
    """

    def __init__(
        self, model: nn.Module, graph: Graph, *, arguments: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        """Wrap a model.

        Args:
            model: takes keyword arguments, returns an object with attributes.
            graph: the order of inputs and outputs.
            arguments: the graph's input → the model's keyword argument.
            outputs: the graph's output → the attribute of the model's result.
        """
        super().__init__()
        self.model = model
        self._keywords = [arguments[tensor.name] for tensor in graph.inputs]
        self._attributes = [outputs[tensor.name] for tensor in graph.outputs]
        self.eval()

    def forward(self, *tensors: Any) -> Any:
        """Tensors in the graph's order → a tensor, or a tuple of them where the graph has several outputs."""
        widened = [tensor if tensor.is_floating_point() else tensor.to(torch.int64) for tensor in tensors]
        result = self.model(**dict(zip(self._keywords, widened, strict=True)))
        values = tuple(getattr(result, name) for name in self._attributes)
        return values[0] if len(values) == 1 else values


def outputs_of(module: nn.Module, graph: Graph, inputs: Arrays) -> Arrays:
    """Outputs of a module that takes and returns tensors in the graph's order."""
    with torch.inference_mode():
        result = module(*(torch.from_numpy(inputs[tensor.name]) for tensor in graph.inputs))
    values = result if isinstance(result, (tuple, list)) else (result,)
    return {tensor.name: value.numpy() for tensor, value in zip(graph.outputs, values, strict=True)}


# ONNX.


def export_onnx(model: nn.Module, graph: Graph, path: Path, example: Arrays) -> None:
    """Write an ONNX file, with nothing in it about where it was made.

    Args:
        model: takes tensors in the order of the graph's inputs, returns a tensor or a tuple in that of its outputs.
        graph: names, types, axes and operator set of the file.
        path: of the ONNX file; above :data:`EMBED_LIMIT` bytes of weights they go into ``<path>.data``.
        example: inputs by name; every dynamic axis has a size of at least 2 in it.

    Raises:
        ExportError: PyTorch cannot export the model, or the graph differs from the recipe: every difference.
    """
    say(f"exporting to ONNX, operator set {graph.opset}")
    proto = _converted(_program(model, graph, example).model_proto, graph)
    _anonymise_graph(proto)
    problems = [*_differences(proto, graph)]
    if problems:
        raise ExportError("the exported graph differs from the recipe:\n  " + "\n  ".join(problems))
    # The oldest version of the format that has these operators: releases' ONNX Runtimes refuse newer ones.
    proto.ir_version = helper.find_min_ir_version_for(proto.opset_import)
    size = sum(len(one.raw_data) for one in proto.graph.initializer)
    _save(proto, path, external=size > EMBED_LIMIT)
    say(f"{path.name}: {len(proto.graph.node)} operators, {size / 2**20:.1f} MiB of weights")


def _program(model: nn.Module, graph: Graph, example: Arrays) -> Any:
    tensors = tuple(torch.from_numpy(example[tensor.name]) for tensor in graph.inputs)
    words = dict.fromkeys(axis for tensor in graph.inputs for axis in tensor.shape if isinstance(axis, str))
    axes = {word: torch.export.Dim(word, min=1) for word in words}
    shapes = tuple(
        {position: axes[axis] for position, axis in enumerate(tensor.shape) if isinstance(axis, str)}
        for tensor in graph.inputs
    )
    try:
        return torch.onnx.export(
            model,
            tensors,
            input_names=[tensor.name for tensor in graph.inputs],
            output_names=[tensor.name for tensor in graph.outputs],
            opset_version=max(graph.opset, OWN_OPSET),
            dynamo=True,
            dynamic_shapes=(shapes,) if _takes_any_number(model) else shapes,
            external_data=False,
            verbose=False,
        )
    except (torch.onnx.errors.OnnxExporterError, RuntimeError, ValueError) as error:
        raise ExportError(f"PyTorch cannot export the model to ONNX: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """PyTorch's error and the line of the model, without its advice to its own developers."""
    text = str(error.__cause__ or error).strip()
    _, _, place = text.partition("The following call raised this error:\n")
    return "\n".join([text.splitlines()[0], *place.rstrip().splitlines()])


def _takes_any_number(model: nn.Module) -> bool:
    """Whether ``forward`` has the one parameter ``*tensors``, for which PyTorch needs one tuple of shapes."""
    kinds = [parameter.kind for parameter in inspect.signature(model.forward).parameters.values()]
    return kinds == [inspect.Parameter.VAR_POSITIONAL]


def _anonymise_graph(proto: Any) -> None:
    """Remove paths of sources, which differ from machine to machine."""
    del proto.metadata_props[:]
    proto.doc_string = ""
    graph = proto.graph
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""
    for function in proto.functions:
        for part in (function, *function.node, *function.value_info):
            del part.metadata_props[:]
            part.doc_string = ""


def _converted(proto: Any, graph: Graph) -> Any:
    """Convert to the recipe's operator set. PyTorch keeps its own where it cannot convert to a newer one."""
    try:
        if graph.opset < OWN_OPSET:
            weights = _take_weights(proto)
            proto = version_converter.convert_version(proto, graph.opset)
            _put_weights(proto, weights)
            _drop_unknown_zeros(proto, graph.opset)
    except (RuntimeError, version_converter.ConvertError) as error:
        raise ExportError(f"the graph cannot be converted to operator set {graph.opset}: {error}") from error
    found = {one.domain: one.version for one in proto.opset_import}.get("")
    if found != graph.opset:
        raise ExportError(f"PyTorch exports operator set {found}, the recipe has opset {graph.opset}")
    return proto


def _take_weights(proto: Any) -> dict[str, bytes]:
    """Remove the values of large initializers from a graph. Returns them by name.

    The conversion does not read them, and would hold several copies: seven times a model's weights in all.
    """
    large = [one for one in proto.graph.initializer if len(one.raw_data) > LARGE_WEIGHT]
    taken = {one.name: one.raw_data for one in large}
    for one in large:
        one.ClearField("raw_data")
    return taken


def _put_weights(proto: Any, weights: dict[str, bytes]) -> None:
    """Restore the values that :func:`_take_weights` removed, and empty ``weights``."""
    for one in proto.graph.initializer:
        if one.name in weights:
            one.raw_data = weights.pop(one.name)
    if weights:
        raise ExportError(f"the conversion lost the weights {', '.join(weights)}")


def _drop_unknown_zeros(proto: Any, opset: int) -> None:
    """Remove attributes of value 0 that the older operators lack, such as ``noop_with_empty_axes``."""
    for node in proto.graph.node:
        if node.domain == "":
            known = onnx.defs.get_schema(node.op_type, opset).attributes
            kept = [one for one in node.attribute if one.name in known or one.type != one.INT or one.i != 0]
            del node.attribute[:]
            node.attribute.extend(kept)


def _differences(proto: Any, graph: Graph) -> Iterator[str]:
    """Differences from the recipe. Dynamic axes get the recipe's names."""
    for kind, wanted, found in (
        ("input", graph.inputs, proto.graph.input),
        ("output", graph.outputs, proto.graph.output),
    ):
        if [one.name for one in found] != [tensor.name for tensor in wanted]:
            names = ", ".join(one.name for one in found)
            yield f"{kind}s: {names} exported, the recipe has {', '.join(tensor.name for tensor in wanted)}"
            continue
        for tensor, one in zip(wanted, found, strict=True):
            yield from (f"{kind} {tensor.name}: {problem}" for problem in _tensor_differences(tensor, one))


def _tensor_differences(tensor: Tensor, value: Any) -> Iterator[str]:
    described = value.type.tensor_type
    wanted = helper.np_dtype_to_tensor_dtype(DTYPES[tensor.dtype])
    if described.elem_type != wanted:
        found = onnx.TensorProto.DataType.Name(described.elem_type)
        yield f"type {found} exported, the recipe has {tensor.dtype}"
    sizes = [dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?") for dim in described.shape.dim]
    fits = len(sizes) == len(tensor.shape) and all(
        isinstance(size, str) if isinstance(axis, str) else size == axis
        for axis, size in zip(tensor.shape, sizes, strict=True)
    )
    if not fits:
        yield f"shape {sizes} exported, the recipe has {list(tensor.shape)}"
        return
    for axis, dim in zip(tensor.shape, described.shape.dim, strict=True):
        if isinstance(axis, str):
            dim.dim_param = axis


def _save(proto: Any, path: Path, *, external: bool) -> None:
    data = path.with_name(f"{path.name}.data")
    if external:
        path.parent.mkdir(parents=True, exist_ok=True)
        data.unlink(missing_ok=True)  # ONNX appends to it
        onnx.external_data_helper.convert_model_to_external_data(proto, location=data.name)
    with atomic(path) as temporary:
        if external:
            onnx.save_model(proto, temporary)
        else:
            temporary.write_bytes(proto.SerializeToString(deterministic=True))
        try:
            onnx.checker.check_model(str(temporary), full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise ExportError(f"ONNX reports an invalid graph: {error}") from error


# TorchScript.


def export_torchscript(model: nn.Module, graph: Graph, path: Path, example: Arrays) -> None:
    """Trace the module and write a TorchScript file.

    The model is traced, not scripted: transformers' models read their configuration in ways that scripts cannot. A
    trace may have an example's sizes instead of its axes; the proof at two batch sizes finds that.

    Args:
        model: takes tensors in the order of the graph's inputs, returns a tensor or a tuple in that of its outputs.
        graph: the inputs' order; TorchScript keeps neither names nor shapes.
        path: of the TorchScript file.
        example: inputs by name, batch size of at least 2.

    Raises:
        ExportError: the model cannot be traced, or the trace has a fixed device.
    """
    say("tracing to TorchScript")
    tensors = tuple(torch.from_numpy(example[tensor.name]) for tensor in graph.inputs)
    try:
        with torch.inference_mode():
            traced = torch.jit.trace(model, tensors, check_trace=False)
    except (RuntimeError, torch.jit.TracingCheckError) as error:
        raise ExportError(f"PyTorch cannot trace the model: {error}") from error
    _check_devices(traced)
    with atomic(path) as temporary, tempfile.TemporaryDirectory(dir=path.parent) as folder:
        raw = Path(folder) / "model.pt"
        torch.jit.save(traced, str(raw))
        _anonymise_archive(raw, temporary)
    say(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")


def _check_devices(traced: Any) -> None:
    """Refuse a trace with a device in it: tensors made on the CPU inside a model fail with inputs on a GPU."""
    found = {(device, place or "") for device, place in _FIXED_DEVICE.findall(str(traced.inlined_graph))}
    if found:
        places = "; ".join(sorted(f"{device} {place}".strip() for device, place in found))
        raise ExportError(f"the trace makes tensors on a fixed device, which fails on another: {places}")


def _anonymise_archive(raw: Path, path: Path) -> None:
    """Copy a TorchScript file without source locations, which name this machine's paths.

    Each entry begins at a multiple of 64 bytes, as in PyTorch's own files, so that weights can be mapped into memory.
    """
    with zipfile.ZipFile(raw) as source, path.open("wb") as file, zipfile.ZipFile(file, "w") as target:
        for entry in source.infolist():
            if not entry.filename.endswith(_LEFT_OUT):
                with source.open(entry) as content, target.open(_aligned(entry, file), "w") as copy:
                    shutil.copyfileobj(content, copy, 2**20)


def _aligned(entry: zipfile.ZipInfo, file: IO[bytes]) -> zipfile.ZipInfo:
    """The entry with a fixed date, and padding in an extra field ``FB``, as PyTorch writes it."""
    info = zipfile.ZipInfo(entry.filename)
    info.file_size = entry.file_size
    start = file.tell() + _HEADER + len(entry.filename.encode()) + 4
    padding = -start % _ALIGNMENT
    info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
    return info


# The proof.


def prove(path: Path, reference: Model, graph: Graph, *, tolerance: float, **settings: Any) -> float:
    """Compare an ONNX or TorchScript file, on the CPU, with the source framework.

    Args:
        path: of the file, ``.onnx`` or ``.pt``. TorchScript's inputs and outputs are the graph's by position.
        reference: the source framework's model.
        graph: names, types and axes.
        tolerance: the largest absolute difference of a floating-point value. Other values must be equal.
        settings: of :func:`_exporters.cases.cases`.

    Returns:
        The largest difference.

    Raises:
        ExportError: a difference above the tolerance, a wrong shape or type, or NaN: the message names the tensor.
    """
    exported = _loaded_onnx(path, graph) if path.suffix == ".onnx" else _loaded_torchscript(path, graph)
    return compare(exported, cases(graph, reference, **settings), graph, tolerance=tolerance, failures=_FAILURES)


def _loaded_onnx(path: Path, graph: Graph) -> Model:
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except (*_FAILURES, native.InvalidGraph, native.InvalidProtobuf, native.NoSuchFile) as error:
        raise ExportError(f"ONNX Runtime cannot load {path.name}: {error}") from error
    names = [tensor.name for tensor in graph.outputs]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def _loaded_torchscript(path: Path, graph: Graph) -> Model:
    try:
        module = torch.jit.load(str(path), map_location="cpu").eval()
    except (RuntimeError, ValueError) as error:
        raise ExportError(f"PyTorch cannot load {path.name}: {error}") from error
    return partial(outputs_of, module, graph)


def export_proved(
    arguments: Arguments,
    path: str,
    module: nn.Module,
    reference: Model,
    graph: Graph,
    *,
    example: Arrays,
    **inputs: Any,
) -> dict[str, float]:
    """Write ``module`` to ``path`` below the target, ``.onnx`` or ``.pt``, and prove it.

    ``inputs``: the sample, draws and axes of :func:`_exporters.cases.cases`. Returns the report's figures. Raises as
    :func:`export_onnx` or :func:`export_torchscript`, and :func:`prove`.
    """
    options, file = arguments.options, arguments.target / path
    (export_onnx if file.suffix == ".onnx" else export_torchscript)(module, graph, file, example)
    proved = batches(options)
    difference = prove(file, reference, graph, tolerance=options.tolerance, batches=proved, seed=options.seed, **inputs)
    return {"largest_difference": difference, "largest_proved_batch": proved[-1]}
