"""An ONNX file → a model folder: configuration from the graph, the batch axis tried with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from tritonstack.errors import InputError, Problem
from tritonstack.models.adding.additions import SUPPORTED, Addition, AddOptions, TritonModel, run_trial
from tritonstack.models.adding.seeded_request import lengths, seeded_tensor
from tritonstack.models.adding.tensors import (
    DEFAULT_BATCH,
    batch_axis,
    config_text,
)
from tritonstack.models.lint.onnx_graph import GraphTensor, OnnxError, OnnxGraph, external_files, read_graph
from tritonstack.models.pbtxt import quoted
from tritonstack.models.programs import Report, has_environment
from tritonstack.models.sample import PROOF_ENVIRONMENT
from tritonstack.paths import setup_command

TRIAL = Path(__file__).with_name("try_onnx.py")
REPAIRED = "repaired.onnx"
ROWS = 2
"""Rows of the request that shows whether the first axis is a batch: each is answered by itself, and both together."""

NO_TYPE = "a graph whose inputs and outputs are tensors of a type that Triton has a name for"


def onnx_addition(path: Path, name: str, options: AddOptions, *, work: Path, report: Report) -> Addition:
    """The folder of an ONNX model; ``work`` keeps what is made for it.

    Raises :class:`InputError` with everything that Triton cannot serve of it.
    """
    try:
        graph, beside = read_graph(path), external_files(path)
    except OnnxError as error:
        raise InputError([Problem(file=str(path), found=f"no ONNX model: {error}", allowed=SUPPORTED)]) from error
    problems = [*_not_tensors(path, graph), *_wrong_weights(path, beside), *_wrong_options(options)]
    if problems:
        raise InputError(problems)
    trial = _try(path, graph.inputs, graph.outputs, work=work, report=report)
    outputs = tuple(map(trial.corrected, graph.outputs))
    if shapeless := [tensor.name for tensor in (*graph.inputs, *outputs) if tensor.shape is None]:
        raise InputError([_without_shape(path, name) for name in shapeless])
    axis = batch_axis(graph.inputs, outputs)
    batches = axis.possible and (axis.named if trial.batches is None else trial.batches)
    why_not = axis.why_not or (_UNTRIED if trial.batches is None else _MIXED)
    size = _max_batch_size(path, options, batches=batches, why_not=why_not)
    unknown: list[str] = []
    if size and options.max_batch_size is None:
        unknown.append(f"how many rows fit the GPU's memory at once: max_batch_size is {size}")
    elif not size and not batches:
        unknown.append(f"a batch axis: {why_not}, so max_batch_size is 0")
    if trial.repaired:
        wrong = ", ".join(trial.repaired)
        unknown.append(f"the shape of {wrong}: the file declares another one, or none; the copy in the folder has it")
    head = f'# Written by tritonstack add from {path.name}.\nname: {quoted(name)}\nplatform: "onnxruntime_onnx"'
    config = config_text(head=head, max_batch_size=size, inputs=graph.inputs, outputs=outputs, batches=size > 0)
    model = work / REPAIRED if trial.repaired else path
    files = {"1/model.onnx": model} | {f"1/{PurePosixPath(each)}": path.parent / each for each in beside}
    return Addition(
        name=name,
        model=name,
        kind="onnx",
        description=f"The ONNX model {path.name}.",
        models=(TritonModel(name=name, config=config, files=files),),
        unknown=tuple(unknown),
        values=trial.values,
    )


_UNTRIED = "the outputs' first axes are not called like the inputs', and it could not be tried"
_MIXED = "two rows together are answered otherwise than each by itself"


def _not_tensors(path: Path, graph: OnnxGraph) -> Iterator[Problem]:
    """Inputs and outputs that Triton has no type for, and a graph without one."""
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        if not tensors:
            yield Problem(file=str(path), found=f"a graph without {kind}s", allowed=f"a graph with an {kind}")
        for tensor in tensors:
            if tensor.kind != "tensor":
                yield Problem(
                    file=str(path),
                    field=tensor.name,
                    found=f"{kind} {tensor.name} is a {tensor.kind}, which Triton has no type for",
                    allowed=NO_TYPE,
                    advice="convert it with zipmap off: skl2onnx.to_onnx(model, X, options={'zipmap': False}), "
                    "onnxmltools.convert_lightgbm(…, zipmap=False)"
                    if kind == "output" and tensor.kind == "sequence"
                    else "",
                )
            elif tensor.datatype in ("", "BF16"):
                said = tensor.datatype or "a type without a name in KServe"
                yield Problem(
                    file=str(path),
                    field=tensor.name,
                    found=f"{kind} {tensor.name} is {said}, which Triton's onnxruntime backend does not take",
                    allowed=NO_TYPE,
                    advice="export it with a Cast to FP32 or FP16 there",
                )


def _wrong_weights(path: Path, names: Sequence[str]) -> Iterator[Problem]:
    """Files of external data that are missing, or lie elsewhere than below the graph's folder."""
    for name in names:
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\\" in name:
            advice = "save it again: onnx.save_model(…, save_as_external_data=True, location='weights.bin')"
            found = f"weights in {name}, outside the graph's folder"
            yield Problem(file=str(path), found=found, allowed="files beside the graph", advice=advice)
        elif not (path.parent / name).is_file():
            found, allowed = f"weights in {name}, which is not there", f"the file {path.parent / name}"
            yield Problem(file=str(path), found=found, allowed=allowed, advice="copy it beside the graph")


def _wrong_options(options: AddOptions) -> Iterator[Problem]:
    for option, tensors in (("--input", options.inputs), ("--output", options.outputs)):
        for tensor in tensors:
            yield Problem(field=option, found=tensor.name, allowed=f"no {option}: an ONNX graph states its tensors")


def _without_shape(path: Path, name: str) -> Problem:
    """A tensor without a shape, which Triton's backend takes for a scalar."""
    if has_environment(PROOF_ENVIRONMENT):
        advice = "onnx.shape_inference.infer_shapes, or state the shape when it is exported"
    else:
        advice = f"{setup_command(PROOF_ENVIRONMENT)}, so that its shape can be tried"
    found = f"{name}, whose shape the graph does not state"
    return Problem(file=str(path), field=name, found=found, allowed="a shape for every tensor", advice=advice)


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """What ONNX Runtime made of a graph; all empty where it was not tried."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)  # output → shape of one row
    batches: bool | None = None
    repaired: Sequence[str] = ()  # outputs that declare another first axis than they have
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # input → values that the graph's encoders know

    def corrected(self, tensor: GraphTensor) -> GraphTensor:
        """An output of unknown shape with as many free axes as it had; a repaired one with a free first axis."""
        if tensor.shape is None and tensor.name in self.shapes:
            return replace(tensor, shape=tuple(None for _ in self.shapes[tensor.name]), symbols=())
        if tensor.shape is not None and tensor.name in self.repaired:
            return replace(tensor, shape=(None, *tensor.shape[1:]), symbols=("",) * len(tensor.shape))
        return tensor


def _try(
    path: Path, inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor], *, work: Path, report: Report
) -> _Trial:
    """Run the graph once for each of two rows, and once for both: its outputs may declare a fixed axis and be wrong."""
    if not has_environment(PROOF_ENVIRONMENT):
        return _Trial()
    has_rows = all(tensor.shape is None or tensor.shape for tensor in outputs)
    rows = ROWS if has_rows and batch_axis(inputs, ()).possible else 0
    request = [seeded_tensor(each.name, each.datatype, lengths(each.shape or (), rows=rows)) for each in inputs]
    plan = {"file": str(path.absolute()), "request": request, "rows": rows, "repaired": str(work / REPAIRED)}
    result = run_trial(TRIAL, plan, environment=PROOF_ENVIRONMENT, what=path.name, work=work, report=report)
    return _Trial() if "failure" in result else _Trial(**result)  # the recording of its response reports why


def _max_batch_size(path: Path, options: AddOptions, *, batches: bool, why_not: str) -> int:
    given = options.max_batch_size
    if given and not batches:
        advice = "export it with a dynamic first axis for every input and output, or leave the option out"
        problem = Problem(
            file=str(path), field="--max-batch-size", found=f"{given}: {why_not}", allowed="0", advice=advice
        )
        raise InputError([problem])
    return given if given is not None else DEFAULT_BATCH if batches else 0
