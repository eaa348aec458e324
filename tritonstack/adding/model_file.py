"""An ONNX file → a model folder; the parts that folders of TorchScript files share: tensors, the batch axis tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from tritonstack.adding.additions import (
    SUPPORTED,
    Addition,
    AddOptions,
    TritonModel,
    config_text,
    same_names,
    why_no_batch,
)
from tritonstack.adding.seeded_request import LONGER
from tritonstack.adding.trial import REPAIRED, Trial, try_model
from tritonstack.archives.programs import Report, has_environment
from tritonstack.archives.proof import PROOF_ENVIRONMENT
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.lint.completion import completed_tensor
from tritonstack.lint.content import wrong_weights
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxError, OnnxGraph, external_data, read_graph
from tritonstack.models.pbtxt import quoted
from tritonstack.models.recipe import RecipeKind
from tritonstack.paths import setup_command
from tritonstack.untrusted.folder_files import unfit, unfit_problem

DEFAULT_BATCH = 8
"""max_batch_size where the model has a batch axis and nothing states how many rows fit the GPU's memory."""

FORMATS: Mapping[RecipeKind, tuple[str, str]] = {
    "onnx": ("ONNX", "onnxruntime_onnx"),
    "pytorch": ("TorchScript", "pytorch_libtorch"),
}
"""Kind → the format of its file, and Triton's platform."""


def file_addition(
    path: Path,
    name: str,
    kind: RecipeKind,
    *,
    trial: Trial,
    inputs: Sequence[GraphTensor],
    outputs: Sequence[GraphTensor],
    files: Mapping[str, Path],
    unknown: Sequence[str],
) -> Addition:
    """The folder of the model; ``unknown``: what the file does not state besides the batch."""
    size, of_batch = _batch_size(inputs, outputs, trial)
    what, platform = FORMATS[kind]
    head = f'# Written by tritonstack add from {path.name}.\nname: {quoted(name)}\nplatform: "{platform}"'
    taken, given = ([completed_tensor(each, size) for each in tensors] for tensors in (inputs, outputs))
    config = config_text(head=head, max_batch_size=size, inputs=taken, outputs=given)
    return Addition(
        name=name,
        model=name,
        kind=kind,
        description=f"The {what} model {path.name}.",
        models=(TritonModel(name=name, config=config, files=files),),
        unknown=(of_batch, *unknown, *_of_trial(trial)),
        values=trial.values,
        lengths=trial.lengths,
    )


def _batch_size(inputs: Sequence[GraphTensor], outputs: Sequence[GraphTensor], trial: Trial) -> tuple[int, str]:
    """max_batch_size, and what of it a user should check."""
    why_not = why_no_batch(inputs, outputs)
    if not why_not and trial.batches is False and trial.lengths and trial.lengths.first > 1:
        why_not = f"it takes no request with a first axis of 1, but one of {trial.lengths.first}"
    if not why_not and trial.batches is False:
        why_not = "two rows in one request get other responses than each alone"
    if not why_not and trial.batches is None and not same_names(inputs, outputs):
        why_not = "the outputs' first axes are not called like the inputs', and it could not be tried"
    if why_not:
        return 0, f"no batch axis ({why_not}): max_batch_size is 0"
    return (
        DEFAULT_BATCH,
        f"the file does not state how many rows fit the GPU's memory: max_batch_size is {DEFAULT_BATCH}",
    )


def _of_trial(trial: Trial) -> Iterator[str]:
    """Findings of a trial that the file does not state and that a user may override."""
    if trial.differs:
        yield (
            f"two runs of one request gave other values of {', '.join(trial.differs)}, as random operators do: the "
            "recorded response leaves them out"
        )
    if trial.lengths and trial.lengths.others in LONGER:
        yield f"the model takes no free axis shorter than {trial.lengths.others}: the sample has that length"


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
        graph, beside = read_graph(path), external_data(path)
    except OnnxError as error:
        raise InputError([Problem(file=str(path), found=f"no ONNX model: {error}", allowed=SUPPORTED)]) from error
    given = [("--input", each.name) for each in options.inputs] + [("--output", each.name) for each in options.outputs]
    needless = [Problem(field=of, found=it, allowed=f"no {of}: an ONNX graph states its tensors") for of, it in given]
    refuse([*_not_tensors(path, graph), *_wrong_weights(path, beside), *needless])
    has_rows = all(tensor.shape is None or tensor.shape for tensor in graph.outputs)
    rows = has_rows and not why_no_batch(graph.inputs, ())
    # Of a graph that does not run the recording of its response reports why.
    trial = try_model(
        path,
        graph.inputs,
        rows=rows,
        environment=PROOF_ENVIRONMENT,
        work=work,
        report=report,
        beside=[path.parent / each for each in beside],
    )
    outputs = tuple(_corrected(each, trial) for each in graph.outputs)
    if shapeless := [tensor.name for tensor in (*graph.inputs, *outputs) if tensor.shape is None]:
        raise InputError([_without_shape(path, name) for name in shapeless])
    unknown = []
    if trial.repaired:
        wrong = ", ".join(f"`{each}`" for each in trial.repaired)
        unknown = [
            f"the graph states no shape, or a wrong one, of {wrong}: recorded from a trial run in the folder's copy"
        ]
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


def _wrong_weights(path: Path, needed: Mapping[str, int]) -> Iterator[Problem]:
    """Files of external data that are missing, cut off, or lie elsewhere than below the graph's folder."""
    for name, size in needed.items():
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\\" in name:
            advice = "save it again: onnx.save_model(…, save_as_external_data=True, location='weights.bin')"
            found = f"weights in {name!r}, outside the graph's folder"
            yield Problem(file=str(path), found=found, allowed="files next to the graph", advice=advice)
        elif reason := unfit(path.parent / name, path.parent):
            yield unfit_problem(path.parent / name, path.parent, reason)
        elif wrong := wrong_weights(path, name, size, root=path.parent):
            yield Problem(file=str(path), found=wrong.found, allowed=wrong.allowed, advice=wrong.advice)


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
