"""From a model's file, a folder or an archive to the model folders to be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonstack.adding.additions import PLAN, SUPPORTED, Addition, AddOptions, folder_name
from tritonstack.adding.conversions import refusal
from tritonstack.adding.exported_folder import exported_addition, graph_files
from tritonstack.adding.forest import forest_addition
from tritonstack.adding.model_file import onnx_addition
from tritonstack.adding.repository import repository_additions
from tritonstack.adding.torchscript_model import torchscript_addition
from tritonstack.archives.programs import Report
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem
from tritonstack.lint import ServingTarget
from tritonstack.model_files.file_formats import mismatch, named_format, stand_in
from tritonstack.model_files.forest_file import forest_format
from tritonstack.model_files.framework_files import framework_model
from tritonstack.models.manifest import Places
from tritonstack.untrusted.unpacking import UnsafeArchiveError, unpack

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_PLANS = (b"ftrt", b"ptrt")
_TORCH = (".pt", ".pth")


@contextmanager
def read_source(
    path: Path,
    options: AddOptions,
    *,
    places: Places,
    report: Report,
    target: ServingTarget | None = None,
    announce: Report = lambda _text: None,
) -> Iterator[tuple[Addition, ...]]:
    """The model folders that a file, a folder or an archive gives; what was unpacked for them lasts for the block.

    ``target``: where it shall be served. ``announce``: called with what code of the model is run, before it is. Raises
    :class:`InputError` with everything that Triton cannot serve, or that options have to state.
    """
    if path.is_dir():
        if graph_files(path):
            with partial_folder(places.archives, name=".add") as work:
                yield (exported_addition(path, options, work=work, report=report),)
            return
        _refuse_framework(path, options)
        yield repository_additions(path, options, given=path, name=path.resolve().name, target=target)
        return
    if not path.is_file():
        raise InputError([Problem(file=str(path), found="no such file or folder", allowed=SUPPORTED)])
    _refuse_stand_in(path)
    _refuse_framework(path, options)
    with path.open("rb") as stream:
        begins = stream.read(len(_ZIP))
    with partial_folder(places.archives, name=".add") as work:
        if begins.startswith(_GZIP):
            name = path.name.removesuffix(".gz").removesuffix(".tgz").removesuffix(".tar")
            folder = _unpacked(path, work / "unpacked", report=report)
            yield repository_additions(folder, options, given=path, name=name, target=target)
            return
        _refuse_other(path, begins)
        name = folder_name(options.name or path.stem, given=options.name is not None, source=path)
        if forest_format(path):
            yield (forest_addition(path, name, options),)
        elif begins == _ZIP or path.suffix.lower() in _TORCH:
            yield (torchscript_addition(path, name, options, work=work, report=report, announce=announce),)
        else:
            yield (onnx_addition(path, name, options, work=work, report=report),)


def _unpacked(archive: Path, folder: Path, *, report: Report) -> Path:
    """The content of an archive, which may be anybody's, in a new folder."""
    report(f"unpacking {archive.name}")
    try:
        unpack(archive, folder)
    except UnsafeArchiveError as error:
        allowed = "a .tar.gz with a Triton model repository, as SageMaker takes it"
        raise InputError([Problem(file=str(archive), found=str(error), allowed=allowed)]) from error
    return folder


def _refuse_stand_in(path: Path) -> None:
    """Refuse a Git LFS pointer, a page or an error in the file's place, and an empty file."""
    wrong = stand_in(path)
    if wrong is not None:
        raise InputError([Problem(file=str(path), found=wrong.found, allowed=SUPPORTED, advice=wrong.advice)])
    if not path.stat().st_size:
        raise InputError([Problem(file=str(path), found="an empty file", allowed=SUPPORTED)])


def _refuse_framework(path: Path, options: AddOptions) -> None:
    """Refuse a model of a training framework with the command that converts it."""
    model = framework_model(path)
    if model is not None:
        name = options.name or re.sub(r"[^a-z0-9]+", "-", path.resolve().stem.lower()).strip("-") or "model"
        raise InputError([refusal(model, name=name)])


def _refuse_other(path: Path, begins: bytes) -> None:
    """Refuse plans, and files that are not of the format that their name claims."""
    claimed, suffix = named_format(path.name), path.suffix.lower()
    advice = ""
    if suffix in (".plan", ".engine") or begins in _PLANS:
        found, advice = PLAN
    elif claimed and claimed != "zip" and (wrong := mismatch(path, claimed)):
        found, advice = f"a {suffix} file that is {wrong.found}", wrong.advice
    elif suffix == ".model" and not forest_format(path):
        found = "a .model file, XGBoost's old binary format if it is one"
        advice = "save it again with the XGBoost that wrote it: Booster(model_file=…).save_model('model.json')"
    else:
        return
    raise InputError([Problem(file=str(path), found=found, allowed=SUPPORTED, advice=advice)])
