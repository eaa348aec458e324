"""A TorchScript file → a model folder: arguments from its code, types and shapes from options, outputs by running it.

A file of TorchScript states neither types nor shapes of its tensors; its code has the arguments of ``forward``.
"""

from __future__ import annotations

import ast
import pickletools
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.adding.additions import SUPPORTED, Addition, AddOptions, TritonModel, run_trial
from tritonstack.models.adding.seeded_request import lengths, seeded_tensor
from tritonstack.models.adding.tensors import DEFAULT_BATCH, TENSOR_FORM, batch_axis, config_text
from tritonstack.models.lint.onnx_graph import GraphTensor
from tritonstack.models.pbtxt import quoted
from tritonstack.models.programs import Report, has_environment
from tritonstack.paths import setup_command

ENVIRONMENT = "torch"
TRIAL = Path(__file__).with_name("try_torchscript.py")
"""Runs a module and states what it gives, in the environment ``ENVIRONMENT``."""

ROWS, LONGER = 2, 8
INDEXED = re.compile(r".*__(\d+)$")


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
    if problems:
        raise InputError(problems)
    outputs, batches = options.outputs, None
    unknown: list[str] = []
    if not outputs or options.max_batch_size is None:
        trial = _try(path, arguments, options, work=work, report=report)
        outputs, batches = outputs or trial.outputs, trial.batches
        unknown += [] if options.outputs else ["the outputs' names, types and shapes: tried with seeded values"]
    axis = batch_axis(options.inputs, outputs)
    batches = axis.possible and batches is not False
    size = options.max_batch_size if options.max_batch_size is not None else DEFAULT_BATCH if batches else 0
    if size and not axis.possible:
        raise InputError([Problem(field="--max-batch-size", found=f"{size}: {axis.why_not}", allowed="0")])
    if options.max_batch_size is None:
        unknown.append(
            f"how many rows fit the GPU's memory at once: max_batch_size is {size}"
            if size
            else f"a batch axis: {axis.why_not or 'two rows together are answered otherwise than each by itself'}"
        )
    head = f'# Written by tritonstack add from {path.name}.\nname: {quoted(name)}\nplatform: "pytorch_libtorch"'
    config = config_text(head=head, max_batch_size=size, inputs=options.inputs, outputs=outputs, batches=size > 0)
    return Addition(
        name=name,
        model=name,
        kind="pytorch",
        description=f"The TorchScript model {path.name}.",
        models=(TritonModel(name=name, config=config, files={"1/model.pt": path}),),
        unknown=tuple(unknown),
    )


def forward_arguments(path: Path) -> tuple[Argument, ...]:
    """The arguments of the module's ``forward``, without ``self``. Nothing of the file is run.

    The record ``data.pkl`` begins with the module's class, whose code lies below ``code/`` in a part of Python. Raises
    :class:`InputError` where the file is no TorchScript.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            pickle = next((each for each in names if each.count("/") == 1 and each.endswith("/data.pkl")), None)
            if pickle is None or not any("/code/" in each for each in names):
                raise _no_torchscript(path, "a zip archive without TorchScript's code")
            module, _, cls = _first_class(archive.read(pickle)).rpartition(" ")
            place = f"{pickle.split('/')[0]}/code/{module.replace('.', '/')}.py"
            tree = ast.parse(archive.read(place).decode())
    except (zipfile.BadZipFile, OSError, ValueError, SyntaxError, KeyError) as error:
        raise _no_torchscript(path, str(error)) from error
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == cls:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    return tuple(_arguments(method.args))
    raise _no_torchscript(path, f"no forward in {module}.{cls}")


def _first_class(pickle: bytes) -> str:
    """The first class that a pickle names, as ``module class``; the pickle is read and not run."""
    for opcode, argument, _ in pickletools.genops(pickle):
        if opcode.name == "GLOBAL":
            return str(argument)
    raise ValueError("data.pkl names no class")


def _arguments(found: ast.arguments) -> Iterator[Argument]:
    given = [*found.posonlyargs, *found.args][1:]
    without_default = len(given) - len(found.defaults)
    for index, each in enumerate(given):
        kind = ast.unparse(each.annotation) if each.annotation else "Tensor"
        yield Argument(name=each.arg, type=kind, optional=index >= without_default)


def _no_torchscript(path: Path, found: str) -> InputError:
    advice = "torch.jit.trace(model, example).save('model.pt'): weights alone (torch.save) cannot be served"
    return InputError([Problem(file=str(path), found=f"no TorchScript: {found}", allowed=SUPPORTED, advice=advice)])


def _problems(path: Path, arguments: Sequence[Argument], options: AddOptions) -> Iterator[Problem]:
    """Arguments that Triton cannot feed, and inputs that the options lack or have in excess, all at once."""
    signature = f"forward({', '.join(f'{each.name}: {each.type}' for each in arguments)})"
    for each in arguments:
        if "Tensor" not in each.type and not each.optional:
            allowed = "arguments that are tensors: Triton's pytorch backend feeds no others"
            yield Problem(file=str(path), field=each.name, found=f"{each.name}: {each.type}", allowed=allowed)
    needed = [each.name for each in arguments if "Tensor" in each.type and not each.optional]
    names = [tensor.name for tensor in options.inputs]
    indexed = bool(names) and all(map(INDEXED.fullmatch, names))
    known = [each.name for each in arguments]
    wrong = [] if indexed else [name for name in names if name not in known]
    missing = needed[len(names) :] if indexed else [name for name in needed if name not in names]
    for name in wrong:
        yield Problem(
            field="--input", found=name, allowed=f"arguments of {signature}, or INPUT__0, INPUT__1, … in order"
        )
    if missing:
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


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """What the module gave for seeded values."""

    outputs: tuple[GraphTensor, ...]
    batches: bool | None


def _try(path: Path, arguments: Sequence[Argument], options: AddOptions, *, work: Path, report: Report) -> _Trial:
    """Run the module for one row, for two rows, and for longer free axes: the axes that follow are free.

    Raises :class:`WorkFailedError` where it does not run.
    """
    if not has_environment(ENVIRONMENT):
        return _Trial(outputs=(), batches=None)
    order = [each.name for each in arguments]
    inputs = options.inputs
    if all(tensor.name in order for tensor in inputs):
        inputs = tuple(sorted(inputs, key=lambda tensor: order.index(tensor.name)))
    first_free = all(tensor.shape and tensor.shape[0] is None for tensor in inputs)
    rows = (1, ROWS) if first_free else (0,)
    shapes = [[lengths(tensor.shape or (), rows=count) for tensor in inputs] for count in rows]
    shapes.append([_longer(tensor, shape) for tensor, shape in zip(inputs, shapes[0], strict=True)])
    requests = [
        [seeded_tensor(tensor.name, tensor.datatype, shape) for tensor, shape in zip(inputs, each, strict=True)]
        for each in shapes
    ]
    plan = {"file": str(path.absolute()), "requests": requests}
    found = run_trial(TRIAL, plan, environment=ENVIRONMENT, what=path.name, work=work, report=report)
    if "failure" in found:
        advice = "Are the types and shapes of --input those that the model was traced with?"
        raise WorkFailedError(f"{path.name} does not run with seeded values: {found['failure']}\n{advice}")
    return _Trial(
        outputs=_outputs(found["answers"], rows=first_free), batches=found["batches"] if first_free else False
    )


def _longer(tensor: GraphTensor, shape: Sequence[int]) -> list[int]:
    """The shape of a request with longer free axes, but for the first."""
    axes = tensor.shape or ()
    return [
        length + LONGER if axis is None and index else length
        for index, (axis, length) in enumerate(zip(axes, shape, strict=True))
    ]


def _outputs(answers: Sequence[Sequence[Mapping[str, Any]] | None], *, rows: bool) -> tuple[GraphTensor, ...]:
    """Output tensors: an axis is free where its length follows the request."""
    found = []
    others = [answer for answer in answers[1:] if answer is not None]
    for index, tensor in enumerate(answers[0] or ()):
        same = [each[index]["shape"] for each in others if len(each) > index]
        shape = tuple(
            length if all(len(each) > axis and each[axis] == length for each in same) else None
            for axis, length in enumerate(tensor["shape"])
        )
        symbols = tuple("N" if rows and axis == 0 and length is None else "" for axis, length in enumerate(shape))
        found.append(GraphTensor(name=tensor["name"], datatype=tensor["datatype"], shape=shape, symbols=symbols))
    return tuple(found)
