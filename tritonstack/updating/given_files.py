"""The files of a model's next version, read as ``tritonstack add`` reads them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tritonstack.adding.additions import SUPPORTED, TENSOR_FORM, Addition, AddOptions
from tritonstack.adding.exported_folder import graph_files
from tritonstack.adding.python_packages import REQUIREMENTS, STATED
from tritonstack.adding.sources import read_source
from tritonstack.adding.torchscript_model import ENVIRONMENT
from tritonstack.archives.programs import Report, has_environment
from tritonstack.disk import link_or_copy, partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError, listing, refuse
from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.model_files.torchscript_file import TorchScriptError, forward_arguments
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import EXECUTION_ENV_PATH, ConfigFile, ModelConfig, read_config
from tritonstack.models.model_view import view_model
from tritonstack.models.pbtxt import Message, Scalar, quoted, to_text
from tritonstack.models.source_files import CONFIG, model_directories
from tritonstack.models.tensorrt_models import TENSORRT
from tritonstack.paths import write_text
from tritonstack.untrusted.folder_files import text_inside
from tritonstack.updating.model_copy import ModelCopy, newest_version

Kind = Literal["file", "program", "folder"]
"""What a next version is given as: a graph, by itself or as optimum exports it, or a forest, which state no
configuration; a Python program, or a model folder without a configuration; model folders with theirs, or an archive of
such."""


@dataclass(frozen=True, kw_only=True)
class GivenFiles:
    """What ``add`` makes of the new files."""

    addition: Addition
    kind: Kind


@contextmanager
def read_given(
    work: ModelCopy, source: Path | None, *, places: Places, report: Report, announce: Report
) -> Iterator[GivenFiles | None]:
    """The new files, or the folder's own, as ``add`` reads them; None where those need no look."""
    view = work.view
    path = source or work.directory / newest_version(view) / (view.model_file or CONFIG)
    if source is None and not (view.backend in _looked_at(work) and path.is_file()):
        yield None
        return
    is_file = bool(graph_files(path)) if path.is_dir() else not path.name.endswith((".gz", ".tgz"))
    with partial_folder(places.archives, name=".update") as folder, ExitStack() as held:
        completed = _completed_source(path, work, folder)
        kind: Kind = "program" if completed != path else "file" if is_file else "folder"

        def read(inputs: tuple[GraphTensor, ...]) -> tuple[Addition, ...]:
            options = AddOptions(
                name=work.folder.name if kind == "file" else None,
                inputs=inputs,
                outputs=work.options.outputs,
                packages=work.options.packages,
            )
            opened = read_source(completed, options, places=places, report=report, announce=announce)
            return held.enter_context(opened)

        names: dict[str, str] = {}
        is_torchscript = kind == "file" and view.backend == "pytorch" and path.suffix.lower() in (".pt", ".pth")
        if is_torchscript and not work.options.inputs:
            today, names = _stated_inputs(view.config, path)
            found = _read_torchscript(read, today)
        else:
            found = read(work.options.inputs)
        if len(found) > 1:
            several = listing(each.model for each in found)
            problem = Problem(file=str(source), found=f"several models: {several}", allowed="one, or one ensemble")
            raise InputError([problem])
        addition = _renamed(found[0], names)
        _refuse_other_kind(work, addition, path)
        yield GivenFiles(addition=addition, kind=kind)


def _looked_at(work: ModelCopy) -> set[str]:
    """Backends whose models are read again where the folder's own files are the new ones."""
    backends = {"onnxruntime"}
    if has_environment(ENVIRONMENT):
        backends.add("pytorch")
    if work.options.packages:
        backends.add("python")
    return backends


def _read_torchscript(
    read: Callable[[tuple[GraphTensor, ...]], tuple[Addition, ...]], today: tuple[GraphTensor, ...]
) -> tuple[Addition, ...]:
    """A TorchScript file with the inputs of today; where it does not take them, with those of its trace."""
    try:
        return read(today)
    except WorkFailedError as error:
        failure = error
    try:
        return read(())
    except InputError:  # a script has no trace
        raise WorkFailedError(f"{failure}\nState the inputs of the new version: {_INPUT}") from failure


_INPUT = f"--input {TENSOR_FORM}"
_BY_POSITION = re.compile(r".*__([0-9]+)")
"""Names of inputs that Triton's PyTorch backend takes by their position."""


def _stated_inputs(old: ModelConfig, path: Path) -> tuple[tuple[GraphTensor, ...], dict[str, str]]:
    """The inputs of a TorchScript file as the configuration states them, and argument → the name that it has there."""
    try:
        arguments = [each.name for each in forward_arguments(path)]
    except TorchScriptError as error:
        raise InputError([Problem(file=str(path), found=f"no TorchScript: {error}", allowed=SUPPORTED)]) from error
    size = old.max_batch_size
    names: dict[str, str] = {}
    inputs = []
    for each in old.inputs:
        place, name = _BY_POSITION.fullmatch(each.name), each.name
        if name not in arguments and place is not None and int(place[1]) < len(arguments):
            name = arguments[int(place[1])]
            names[name] = each.name
        shape = tuple(None if axis == -1 else axis for axis in each.backend_shape(size))
        symbols = tuple("N" if size and not at else "" for at, _ in enumerate(shape))
        inputs.append(GraphTensor(name=name, datatype=each.data_type, shape=shape, symbols=symbols))
    return tuple(inputs), names


def _renamed(addition: Addition, names: Mapping[str, str]) -> Addition:
    """The model with its inputs called as before."""
    config = addition.models[0].config
    for argument, name in names.items():
        config = config.replace(f"{{ name: {quoted(argument)} ", f"{{ name: {quoted(name)} ")
    return replace(addition, models=(replace(addition.models[0], config=config), *addition.models[1:]))


def _completed_source(path: Path, work: ModelCopy, folder: Path) -> Path:
    """A Python program alone, or a folder without a configuration, completed by the other files of the old folder."""
    is_program = path.is_file() and path.suffix == ".py"
    has_versions = path.is_dir() and any(each.name.isdecimal() for each in path.iterdir())
    lacks_config = has_versions and not (path / CONFIG).exists()
    if not is_program and not lacks_config:
        return path
    copy = folder / work.member
    view = work.view
    if is_program:
        shutil.copytree(work.directory, copy, symlinks=True, copy_function=link_or_copy)
        program = copy / newest_version(view) / (view.model_file or "model.py")
        program.unlink(missing_ok=True)
        shutil.copy(path, program)
        stated = [path.parent / name for name in STATED if (path.parent / name).is_file()]
        for file in stated[:1]:
            shutil.copy(file, copy / file.name)
    else:
        shutil.copytree(path, copy, symlinks=True, copy_function=link_or_copy)
    part = work.recipe.environment_of(work.member, addressed=work.addressed)
    if part is not None and not any((copy / name).is_file() for name in STATED):
        link_or_copy(work.folder / part.requirements, copy / REQUIREMENTS)
    config = text_inside(work.directory / CONFIG, work.folder)
    (copy / CONFIG).unlink(missing_ok=True)
    write_text(copy / CONFIG, config if part is None else _without_environment(config))
    return copy


def _without_environment(text: str) -> str:
    """A configuration that names no execution environment: a build's, which the folder does not hold."""
    message = ConfigFile(file=CONFIG, text=text).parsed()
    kept = []
    for each in message.fields:
        key = each.value.last("key") if each.name == "parameters" and isinstance(each.value, Message) else None
        if not (isinstance(key, Scalar) and key.value == EXECUTION_ENV_PATH):
            kept.append(each)
    return to_text(Message(tuple(kept), 1))


def _refuse_other_kind(work: ModelCopy, addition: Addition, source: Path) -> None:
    """Refuse a file that another backend serves: the configuration that is kept is of the one that serves it now."""
    old, new = work.view, read_config(addition.addressed.config)
    serves = {new.backend} | ({TENSORRT} if new.backend == "onnxruntime" else set())
    problems = []
    if old.backend not in serves or (new.backend == "fil" and old.config.forest_type != new.forest_type):
        same = [
            path.name
            for path in model_directories(work.folder)
            if view_model(path, (), root=work.folder).backend == new.backend
        ]
        kinds = [old.backend, new.backend]
        if new.backend == "fil" and old.backend == "fil":
            kinds = [old.config.forest_type, new.forest_type]
        folder = work.folder.name
        advice = "\n           ".join(f"tritonstack update {folder}/{each} {source}" for each in same) or (
            f"tritonstack remove {folder}\n           tritonstack add {source} --name {folder}"
        )
        found, allowed = f"a model of {kinds[1]}", f"{work.member} is one of {kinds[0]}"
        problems.append(Problem(file=str(source), found=found, allowed=allowed, advice=advice))
    if len(addition.models) > 1 and addition.model != work.addressed:
        found, allowed = f"the models of {addition.model}", f"the models of {work.addressed}, with it"
        problems.append(Problem(file=str(source), found=found, allowed=allowed))
    refuse(problems)
