"""A TorchScript file → a model folder: arguments from its code, types and shapes from options, outputs by running it.

A file of TorchScript states neither types nor shapes of its tensors; its code has the arguments of ``forward``.
"""

from __future__ import annotations

import ast
import pickletools
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.models.adding.additions import SUPPORTED, Addition, AddOptions
from tritonstack.models.adding.tensors import TENSOR_FORM
from tritonstack.models.adding.trial import Trial, file_addition, try_model
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.programs import Report, has_environment
from tritonstack.paths import setup_command

ENVIRONMENT = "torch"


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of ``forward``."""

    name: str
    type: str  # as the code states it: ``Tensor``, ``Optional[Tensor]``, ``int``
    optional: bool  # whether it has a default


def torchscript_addition(path: Path, name: str, options: AddOptions, *, work: Path, report: Report) -> Addition:
    """The folder of a TorchScript model.

    Raises :class:`InputError` with everything that neither the file nor the options state.
    """
    arguments = forward_arguments(path)
    problems = list(_problems(path, arguments, options))
    refuse(problems)
    order = [each.name for each in arguments]
    inputs = sorted(options.inputs, key=lambda tensor: order.index(tensor.name))
    rows = all(tensor.shape and tensor.shape[0] is None for tensor in inputs)
    outputs, unknown = options.outputs, []
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

    The record ``data.pkl`` begins with the module's class, whose code lies below ``code/`` in a part of Python. Raises
    :class:`InputError` where the file is no TorchScript.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            pickle = next(each for each in archive.namelist() if each.count("/") == 1 and each.endswith("/data.pkl"))
            codes = pickletools.genops(archive.read(pickle))
            module, _, cls = next(str(name) for code, name, _ in codes if code.name == "GLOBAL").rpartition(" ")
            text = archive.read(f"{pickle.split('/')[0]}/code/{module.replace('.', '/')}.py").decode()
        classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == cls]
        methods = [node for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
        found = methods[0].args
    except (zipfile.BadZipFile, OSError, ValueError, SyntaxError, LookupError, StopIteration) as error:
        advice = "torch.jit.trace(model, example).save('model.pt'): weights alone (torch.save) cannot be served"
        what = f"no TorchScript: a file without TorchScript's code ({type(error).__name__}: {error})"
        raise InputError([Problem(file=str(path), found=what, allowed=SUPPORTED, advice=advice)]) from error
    given = [*found.posonlyargs, *found.args][1:]
    without_default = len(given) - len(found.defaults)
    return tuple(
        Argument(
            name=each.arg,
            type=ast.unparse(each.annotation) if each.annotation else "Tensor",
            optional=index >= without_default,
        )
        for index, each in enumerate(given)
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
