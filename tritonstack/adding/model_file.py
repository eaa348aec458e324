"""An ONNX or TorchScript file → a model folder: tensors from the file or from options, the batch axis tried."""

from __future__ import annotations

import ast
import pickletools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tritonstack.adding.additions import (
    SUPPORTED,
    TENSOR_FORM,
    Addition,
    AddOptions,
    TritonModel,
    config_text,
    runs_code,
    same_names,
    why_no_batch,
)
from tritonstack.adding.seeded_request import LONGER
from tritonstack.adding.trial import REPAIRED, Trial, try_model
from tritonstack.archives.programs import Report, has_environment
from tritonstack.archives.proof import PROOF_ENVIRONMENT
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.lint.completion import completed_tensor
from tritonstack.lint.content import wrong_weights
from tritonstack.model_files.file_formats import mismatch
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxError, OnnxGraph, external_data, read_graph
from tritonstack.models.pbtxt import quoted
from tritonstack.models.recipe import RecipeKind
from tritonstack.paths import setup_command
from tritonstack.untrusted.folder_files import unfit, unfit_problem
from tritonstack.untrusted.foreign_text import LARGEST_PROGRAM, parse_program
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP, open_zip, read_member

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
    """max_batch_size, and what of it is not known."""
    why_not = why_no_batch(inputs, outputs)
    if not why_not and trial.batches is False and trial.lengths and trial.lengths.first > 1:
        why_not = f"it takes no request with a first axis of 1, but one of {trial.lengths.first}"
    if not why_not and trial.batches is False:
        why_not = "two rows together are answered otherwise than each by itself"
    if not why_not and trial.batches is None and not same_names(inputs, outputs):
        why_not = "the outputs' first axes are not called like the inputs', and it could not be tried"
    if why_not:
        return 0, f"a batch axis: {why_not}, so max_batch_size is 0"
    return DEFAULT_BATCH, f"how many rows fit the GPU's memory at once: max_batch_size is {DEFAULT_BATCH}"


def _of_trial(trial: Trial) -> Iterator[str]:
    """Findings of a trial that the file does not state and that a user may override."""
    if trial.differs:
        yield f"the values of {', '.join(trial.differs)}: two runs of one request differ, as random operators' do"
    if trial.lengths and trial.lengths.others in LONGER:
        yield f"the least length of free axes: {trial.lengths.others} in the sample, as the model takes no shorter one"


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


ENVIRONMENT = "torch"
_PICKLE_BYTES = 64 << 20
"""Of the record data.pkl, which has the module's structure: its weights are records of their own."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    name: str
    type: str  # as the code states it: ``Tensor``, ``Optional[Tensor]``, ``int``
    optional: bool  # whether it has a default


def torchscript_addition(
    path: Path,
    name: str,
    options: AddOptions,
    *,
    work: Path,
    report: Report,
    announce: Report = lambda _text: None,
) -> Addition:
    """The folder of a TorchScript model. ``announce``: called before its code is run.

    Raises :class:`InputError` with everything that neither the file nor the options state.
    """
    if wrong := mismatch(path, "torchscript"):
        raise InputError(
            [Problem(file=str(path), found=f"no TorchScript: {wrong.found}", allowed=SUPPORTED, advice=wrong.advice)]
        )
    arguments = forward_arguments(path)
    problems = list(_problems(path, arguments, options))
    refuse(problems)
    order = [each.name for each in arguments]
    inputs = sorted(options.inputs, key=lambda tensor: order.index(tensor.name))
    rows = all(tensor.shape and tensor.shape[0] is None for tensor in inputs)
    outputs, unknown = options.outputs, []
    if has_environment(ENVIRONMENT):
        announce(runs_code([path.name]))
    trial = try_model(path, inputs, rows=rows, environment=ENVIRONMENT, work=work, report=report)
    if trial.failure:
        advice = "Are the types and shapes of --input those that the model was traced with?"
        raise WorkFailedError(f"{path.name} does not run with seeded values: {trial.failure}\n{advice}")
    if not outputs:
        outputs = _outputs(trial, rows=rows)
        unknown = ["the outputs' names, types and shapes: tried with seeded values"]
    files, tensors = {"1/model.pt": path}, {"inputs": options.inputs, "outputs": outputs}
    return file_addition(path, name, "pytorch", trial=trial, files=files, unknown=unknown, **tensors)


def forward_arguments(path: Path) -> tuple[Argument, ...]:
    """The arguments of the module's ``forward``, without ``self``. Nothing of the file is run.

    The record ``data.pkl`` begins with the module's class, whose code is below ``code/`` in a part of Python. Raises
    :class:`InputError` where the file is no TorchScript.
    """
    try:
        with open_zip(path) as archive:
            pickle = next(each for each in archive.namelist() if each.count("/") == 1 and each.endswith("/data.pkl"))
            codes = pickletools.genops(read_member(archive, pickle, most=_PICKLE_BYTES))
            module, _, cls = next(str(name) for code, name, _ in codes if code.name == "GLOBAL").rpartition(" ")
            code = f"{pickle.split('/')[0]}/code/{module.replace('.', '/')}.py"
            text = read_member(archive, code, most=LARGEST_PROGRAM)
        classes = [node for node in parse_program(text).body if isinstance(node, ast.ClassDef) and node.name == cls]
        methods = [node for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
        found = methods[0].args
        given = [*found.posonlyargs, *found.args][1:]
        types = [ast.unparse(each.annotation) if each.annotation else "Tensor" for each in given]
    except (*DAMAGED_ZIP, SyntaxError, StopIteration) as error:
        advice = "torch.jit.trace(model, example).save('model.pt'): weights alone (torch.save) cannot be served"
        what = f"no TorchScript: a file without TorchScript's code ({type(error).__name__}: {error})"
        raise InputError([Problem(file=str(path), found=what, allowed=SUPPORTED, advice=advice)]) from error
    without_default = len(given) - len(found.defaults)
    return tuple(
        Argument(name=each.arg, type=kind, optional=index >= without_default)
        for index, (each, kind) in enumerate(zip(given, types, strict=True))
    )


def _problems(path: Path, arguments: Sequence[Argument], options: AddOptions) -> Iterator[Problem]:
    """Arguments that Triton cannot feed, and inputs that the options lack or have in excess, all at once."""
    signature = f"forward({', '.join(f'{each.name}: {each.type}' for each in arguments)})"
    for each in arguments:
        if "Tensor" not in each.type and not each.optional:
            allowed = "arguments that are tensors: Triton's pytorch backend feeds no others"
            yield Problem(file=str(path), field=each.name, found=f"{each.name}: {each.type}", allowed=allowed)
    needed = [each.name for each in arguments if "Tensor" in each.type and not each.optional]
    names = [tensor.name for tensor in options.inputs]
    for name in names:
        if name not in [each.name for each in arguments]:
            yield Problem(field="--input", found=name, allowed=f"arguments of {signature}")
    if missing := [name for name in needed if name not in names]:
        yield Problem(
            file=str(path),
            field=", ".join(missing),
            found=f"{signature}: a TorchScript file states neither types nor shapes of its tensors",
            allowed=f"--input for each: {TENSOR_FORM}",
            advice=f"tritonstack add {path} {' '.join(f'--input {name}:TYPE:SHAPE' for name in missing)}",
        )
    if not options.outputs and not has_environment(ENVIRONMENT):
        yield Problem(
            field="--output",
            found=f"none, and no environment {ENVIRONMENT} to try the model in",
            allowed=f"--output for each: {TENSOR_FORM}",
            advice=f"or {setup_command(ENVIRONMENT)}, which a proof on this machine needs too",
        )


def _outputs(trial: Trial, *, rows: bool) -> tuple[GraphTensor, ...]:
    """Output tensors: an axis is free where its length follows the request."""
    found = []
    others = [answer for answer in trial.answers[1:] if answer is not None]
    for index, tensor in enumerate(trial.outputs):
        same = [each[index]["shape"] for each in others if len(each) > index]
        shape = tuple(
            length if all(len(each) > axis and each[axis] == length for each in same) else None
            for axis, length in enumerate(tensor["shape"])
        )
        symbols = tuple("N" if rows and axis == 0 and length is None else "" for axis, length in enumerate(shape))
        found.append(GraphTensor(name=tensor["name"], datatype=tensor["datatype"], shape=shape, symbols=symbols))
    return tuple(found)
