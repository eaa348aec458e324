"""An ONNX file → a model folder: configuration from the graph, the batch axis tried with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tritonstack.errors import InputError, Problem, refuse
from tritonstack.models.adding.additions import SUPPORTED, Addition, AddOptions
from tritonstack.models.adding.tensors import why_no_batch
from tritonstack.models.adding.trial import REPAIRED, Trial, file_addition, try_model
from tritonstack.models.lint.onnx_graph import GraphTensor, OnnxError, OnnxGraph, external_files, read_graph
from tritonstack.models.programs import Report, has_environment
from tritonstack.models.sample import PROOF_ENVIRONMENT
from tritonstack.paths import setup_command

NO_TYPE = "a graph whose inputs and outputs are tensors of a type that Triton has a name for"
ZIPMAP = (
    "convert it with zipmap off: skl2onnx.to_onnx(model, X, options={'zipmap': False}), "
    "onnxmltools.convert_lightgbm(…, zipmap=False)"
)


def onnx_addition(path: Path, name: str, options: AddOptions, *, work: Path, report: Report) -> Addition:
    """The folder of an ONNX model; ``work`` keeps what is made for it.

    Raises :class:`InputError` with everything that Triton cannot serve of it.
    """
    try:
        graph, beside = read_graph(path), external_files(path)
    except OnnxError as error:
        raise InputError([Problem(file=str(path), found=f"no ONNX model: {error}", allowed=SUPPORTED)]) from error
    problems = [*_not_tensors(path, graph), *_wrong_weights(path, beside), *_wrong_options(options)]
    refuse(problems)
    has_rows = all(tensor.shape is None or tensor.shape for tensor in graph.outputs)
    rows = has_rows and not why_no_batch(graph.inputs, ())
    # Of a graph that does not run the recording of its response reports why.
    trial = try_model(path, graph.inputs, rows=rows, environment=PROOF_ENVIRONMENT, work=work, report=report)
    outputs = tuple(_corrected(each, trial) for each in graph.outputs)
    if shapeless := [tensor.name for tensor in (*graph.inputs, *outputs) if tensor.shape is None]:
        raise InputError([_without_shape(path, name) for name in shapeless])
    unknown = []
    if trial.repaired:
        wrong = ", ".join(trial.repaired)
        unknown = [f"the shape of {wrong}: the file declares another one, or none; the copy in the folder has it"]
    files = {"1/model.onnx": work / REPAIRED if trial.repaired else path}
    files |= {f"1/{PurePosixPath(each)}": path.parent / each for each in beside}
    tensors = {"inputs": graph.inputs, "outputs": outputs}
    return file_addition(path, name, "onnx", trial=trial, files=files, unknown=unknown, **tensors)


def _not_tensors(path: Path, graph: OnnxGraph) -> Iterator[Problem]:
    """Inputs and outputs that Triton has no type for, and a graph without one."""
    for kind, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        if not tensors:
            yield Problem(file=str(path), found=f"a graph without {kind}s", allowed=f"a graph with an {kind}")
        for tensor in tensors:
            if tensor.kind != "tensor":
                what = f"a {tensor.kind}, which Triton has no type for"
                advice = ZIPMAP if (kind, tensor.kind) == ("output", "sequence") else ""
            elif tensor.datatype in ("", "BF16"):
                what = (
                    f"{tensor.datatype or 'of a type without a name in KServe'}, which Triton's backend does not take"
                )
                advice = "export it with a Cast to FP32 or FP16 there"
            else:
                continue
            found = f"{kind} {tensor.name} is {what}"
            yield Problem(file=str(path), field=tensor.name, found=found, allowed=NO_TYPE, advice=advice)


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


def _corrected(tensor: GraphTensor, trial: Trial) -> GraphTensor:
    """An output of unknown shape with as many free axes as it had; a repaired one with a free first axis."""
    had = next((each["shape"] for each in trial.outputs if each["name"] == tensor.name), None)
    if tensor.shape is None and had is not None:
        return replace(tensor, shape=(None,) * len(had), symbols=())
    if tensor.shape is not None and tensor.name in trial.repaired:
        return replace(tensor, shape=(None, *tensor.shape[1:]), symbols=("",) * len(tensor.shape))
    return tensor
