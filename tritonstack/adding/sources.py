"""From a model's file, a folder or an archive to the model folders to be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonstack.adding.additions import PLAN, SUPPORTED, Addition, AddOptions, folder_name
from tritonstack.adding.forest import forest_addition
from tritonstack.adding.model_file import onnx_addition
from tritonstack.adding.repository import repository_additions
from tritonstack.adding.torchscript_model import torchscript_addition
from tritonstack.archives.programs import Report
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem
from tritonstack.model_files.file_formats import stand_in
from tritonstack.model_files.forest_file import forest_format
from tritonstack.models.manifest import Places
from tritonstack.untrusted.unpacking import UnsafeArchiveError, unpack

_GZIP, _ZIP, _PICKLE = b"\x1f\x8b", b"PK\x03\x04", b"\x80"
_TORCH = (".pt", ".pth")
_TO_ONNX = {
    ".safetensors": "torch.onnx.export, or optimum-cli export onnx",
    ".pt2": "torch.onnx.export(…).save('model.onnx')",
    ".h5": "tf2onnx",
    ".keras": "model.export('model.onnx', format='onnx')",
    ".pb": "tf2onnx; or give the Triton model folder that it lies in",
    ".tflite": "tf2onnx --tflite",
}
"""Suffix of a file that no Triton backend loads by itself → what makes an ONNX file of it."""


@contextmanager
def read_source(
    path: Path, options: AddOptions, *, places: Places, report: Report, announce: Report = lambda _text: None
) -> Iterator[tuple[Addition, ...]]:
    """The model folders that a file, a folder or an archive gives; what was unpacked for them lasts for the block.

    ``announce``: called with what code of the model is run, before it is. Raises
    :class:`InputError` with everything that Triton cannot serve, or that options have to state.
    """
    if path.is_dir():
        yield repository_additions(path, options, given=path, name=path.resolve().name)
        return
    if not path.is_file():
        raise InputError([Problem(file=str(path), found="no such file or folder", allowed=SUPPORTED)])
    _refuse_stand_in(path)
    with path.open("rb") as stream:
        begins = stream.read(len(_ZIP))
    with partial_folder(places.archives, name=".add") as work:
        if begins.startswith(_GZIP):
            name = path.name.removesuffix(".gz").removesuffix(".tgz").removesuffix(".tar")
            folder = _unpacked(path, work / "unpacked", report=report)
            yield repository_additions(folder, options, given=path, name=name)
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


def _refuse_other(path: Path, begins: bytes) -> None:
    """Refuse files of formats that Triton does not serve as they are, with what to make of them."""
    suffix = path.suffix.lower()
    if suffix in (".plan", ".engine"):
        found, advice = PLAN
    elif suffix in _TO_ONNX:
        found, advice = f"a {suffix} file, which no backend loads by itself", f"export it to ONNX: {_TO_ONNX[suffix]}"
    elif suffix == ".model" and not forest_format(path):
        found = "a .model file, XGBoost's old binary format if it is one"
        advice = "save it again with the XGBoost that wrote it: Booster(model_file=…).save_model('model.json')"
    elif begins.startswith(_PICKLE):
        found = "a pickled Python object, which no Triton backend loads"
        advice = "convert it to ONNX: skl2onnx.to_onnx(model, X, options={'zipmap': False}), onnxmltools for others"
    else:
        return
    raise InputError([Problem(file=str(path), found=found, allowed=SUPPORTED, advice=advice)])
