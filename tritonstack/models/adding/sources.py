"""What a user gives: an ONNX file, a TorchScript file, a folder or an archive → the model folders to be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem
from tritonstack.models.adding.additions import PLAN, SUPPORTED, Addition, AddOptions, folder_name
from tritonstack.models.adding.onnx_file import onnx_addition
from tritonstack.models.adding.repository import repository_additions
from tritonstack.models.adding.torchscript_file import torchscript_addition
from tritonstack.models.manifest import Places
from tritonstack.models.programs import Report
from tritonstack.unpacking import UnsafeArchiveError, unpack

_GZIP, _ZIP, _PICKLE = b"\x1f\x8b", b"PK\x03\x04", b"\x80"
_OTHER_FORMATS = {
    ".plan": PLAN,
    ".engine": PLAN,
    ".safetensors": (
        "weights without their computation",
        "export the model to ONNX: torch.onnx.export, or optimum-cli export onnx",
    ),
    ".h5": ("a Keras file", "export it to ONNX: tf2onnx"),
    ".keras": ("a Keras file", "export it to ONNX: model.export('model.onnx', format='onnx')"),
    ".pb": ("a TensorFlow graph", "export it to ONNX (tf2onnx), or give the Triton model folder that it lies in"),
    ".tflite": ("a TensorFlow Lite file", "export it to ONNX: tf2onnx --tflite"),
    ".pt2": (
        "an exported program of PyTorch, which no Triton backend of the catalogue loads",
        "export it to ONNX: torch.onnx.export(…).save('model.onnx')",
    ),
}
"""Suffix → what such a file is, and what to make of it."""


@contextmanager
def read_source(path: Path, options: AddOptions, *, places: Places, report: Report) -> Iterator[tuple[Addition, ...]]:
    """The model folders that a file, a folder or an archive gives; what was unpacked for them lasts for the block.

    Raises :class:`InputError` with everything that Triton cannot serve, or that options have to state.
    """
    if path.is_dir():
        yield repository_additions(path, options, given=path, name=path.resolve().name)
        return
    if not path.is_file():
        raise InputError([Problem(file=str(path), found="no such file or folder", allowed=SUPPORTED)])
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
        make = torchscript_addition if begins == _ZIP else onnx_addition
        yield (make(path, name, options, work=work, report=report),)


def _unpacked(archive: Path, folder: Path, *, report: Report) -> Path:
    """The content of an archive, which may be anybody's, in a new folder."""
    report(f"unpacking {archive.name}")
    try:
        unpack(archive, folder)
    except UnsafeArchiveError as error:
        allowed = "a .tar.gz with a Triton model repository, as SageMaker takes it"
        raise InputError([Problem(file=str(archive), found=str(error), allowed=allowed)]) from error
    return folder


def _refuse_other(path: Path, begins: bytes) -> None:
    """Refuse files of formats that Triton does not serve as they are, with what to make of them."""
    found, advice = _OTHER_FORMATS.get(path.suffix.lower(), ("", ""))
    if not found and begins.startswith(_PICKLE):
        found = "a pickled Python object, which no Triton backend loads"
        advice = "convert it to ONNX: skl2onnx.to_onnx(model, X, options={'zipmap': False}), onnxmltools for others"
    if found:
        raise InputError([Problem(file=str(path), found=found, allowed=SUPPORTED, advice=advice)])
