"""A TorchScript file → a model folder: inputs from its trace or from options, outputs and the batch axis tried."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tritonstack.adding.additions import (
    SUPPORTED,
    TENSOR_FORM,
    Addition,
    AddOptions,
    input_text,
    runs_code,
    shape_text,
)
from tritonstack.adding.model_file import file_addition
from tritonstack.adding.trial import Trial, try_model
from tritonstack.archives.programs import Report, has_environment
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.model_files.file_formats import mismatch
from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.model_files.torchscript_file import Argument, TorchScriptError, forward_arguments, traced_inputs
from tritonstack.paths import setup_command

ENVIRONMENT = "torch"


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
    try:
        arguments = forward_arguments(path)
    except TorchScriptError as error:
        raise InputError([Problem(file=str(path), found=f"no TorchScript: {error}", allowed=SUPPORTED)]) from error
    # Of a traced file what --input does not name is taken as the trace has it.
    traced = {each.name: each for each in traced_inputs(path, arguments)}
    refuse(list(_problems(path, arguments, options, known=traced)))
    given = {each.name: each for each in options.inputs}
    names = [each.name for each in arguments if each.name in given | traced]
    inputs = [given.get(name) or _first_axis_free(traced[name]) for name in names]
    taken = [each.name for each in inputs if each.name not in given]
    if has_environment(ENVIRONMENT):
        announce(runs_code([path.name]))
    trial = _tried(path, inputs, work=work, report=report)
    if taken and (trial.failure or trial.batches is False):
        # The trace may hold for its own shapes alone.
        inputs = [traced[each.name] if each.name in taken else each for each in inputs]
        trial = _tried(path, inputs, work=work, report=report)
    if trial.failure:
        advice = "Are the types and shapes of --input those that the model was traced with?"
        raise WorkFailedError(f"{path.name} does not run with seeded values: {trial.failure}\n{advice}")
    rows = _has_rows(inputs)
    outputs, unknown = options.outputs, []
    if taken:
        shapes = ", ".join(f"{name} {shape_text(traced[name])}" for name in taken)
        free = " ".join(f"--input {input_text(_first_axis_free(traced[name]))}" for name in taken)
        unknown.append(
            f"the file does not state which axes may have other lengths: shapes are those of the file's trace, {shapes}"
            f"{', the first axis as the batch' if rows else ''}; to free others write letters in: {free}"
        )
    if not outputs:
        outputs = _outputs(trial, rows=rows)
        unknown.append("the file does not state the outputs: names, types and shapes are recorded from a trial run")
    files, tensors = {"1/model.pt": path}, {"inputs": inputs, "outputs": outputs}
    return file_addition(path, name, "pytorch", trial=trial, files=files, unknown=unknown, **tensors)


def _tried(path: Path, inputs: Sequence[GraphTensor], *, work: Path, report: Report) -> Trial:
    return try_model(path, inputs, rows=_has_rows(inputs), environment=ENVIRONMENT, work=work, report=report)


def _has_rows(inputs: Sequence[GraphTensor]) -> bool:
    return all(tensor.shape and tensor.shape[0] is None for tensor in inputs)


def _first_axis_free(tensor: GraphTensor) -> GraphTensor:
    """An input of a trace with its first axis as the batch, which a trial then shows."""
    shape = tensor.shape or ()
    symbols = tuple("N" if index == 0 else "" for index in range(len(shape)))
    return replace(tensor, shape=(None, *shape[1:]) if shape else shape, symbols=symbols)


def _problems(
    path: Path, arguments: Sequence[Argument], options: AddOptions, *, known: Collection[str]
) -> Iterator[Problem]:
    """Arguments that Triton cannot feed, and inputs that the options lack or have in excess, all at once.

    ``known``: those that the file's trace has.
    """
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
    if missing := [name for name in needed if name not in names and name not in known]:
        yield Problem(
            file=str(path),
            field=", ".join(missing),
            found=f"{signature}, and no trace in the file: it was scripted, or an older PyTorch traced it",
            allowed=f"--input for each: {TENSOR_FORM}",
            advice=_command(path, options, missing),
        )
    if not options.outputs and not has_environment(ENVIRONMENT):
        yield Problem(
            field="--output",
            found=f"none, and no environment {ENVIRONMENT} to try the model in",
            allowed=f"--output for each: {TENSOR_FORM}",
            advice=f"or {setup_command(ENVIRONMENT)}, which a proof on this machine needs too",
        )


def _command(path: Path, options: AddOptions, missing: Sequence[str]) -> str:
    """The whole command: what was given, and each missing input by its name in ``forward``."""
    words = ["tritonstack", "add", str(path), *(["--name", options.name] if options.name else [])]
    for option, tensors in (("--input", options.inputs), ("--output", options.outputs)):
        words += [word for each in tensors for word in (option, input_text(each))]
    return shlex.join([*words, *(word for name in missing for word in ("--input", f"{name}:TYPE:SHAPE"))])


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
