"""From a model's file, a folder or an archive to the model folders to be written."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tritonstack.adding.additions import PLAN, SUPPORTED, Addition, AddOptions, folder_name
from tritonstack.adding.forest import forest_addition
from tritonstack.adding.model_file import onnx_addition, torchscript_addition
from tritonstack.adding.repository import repository_additions
from tritonstack.archives.programs import Report
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem
from tritonstack.model_files.file_formats import stand_in
from tritonstack.model_files.forest_file import forest_format
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import ModelConfig, Tensor, read_config
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


TEXT = "Seven small boats sail slowly past the harbour.\n"
TOKENIZER = "tokenizer.json"
NORMALISED = "how pixels are normalised: they are 0 to 1; mean and std of adapters.image in recipe.yaml"
_CHANNELS = 3


def with_adapter(addition: Addition, options: AddOptions) -> Addition:
    """The model folder with the adapter that is asked for, and its sample request; as it is where none is.

    Raises :class:`InputError` where the model has no input that an adapter can fill, or inputs besides that one.
    """
    if options.text is None and options.tokenizer is not None:
        raise _refused("--tokenizer", "no --text", "--text INPUT with it")
    if options.image is None and options.text is None:
        return addition
    if options.image is not None and options.text is not None:
        raise _refused("--image", "--text too", "one adapter, whose sample is recorded")
    config, is_image = read_config(addition.addressed.config), options.image is not None
    option, name = ("--image", options.image) if is_image else ("--text", options.text)
    given = {tensor.name: tensor for tensor in config.inputs}
    if name not in given:
        raise _refused(option, str(name), f"an input: {', '.join(given)}")
    fields = _image(given[name], config) if is_image else _text(given[name], config, options.tokenizer)
    fills = [each for each in (name, fields.get("mask")) if each]
    if others := [each.name for each in config.inputs if not each.optional and each.name not in fills]:
        found = f"{name}, and the model needs {', '.join(others)} too"
        allowed = f"a model whose inputs an adapter fills all: here {', '.join(fills)}"
        raise _refused(option, found, allowed, f"leave {option} out: the sample request then has every input")
    unknown = (*addition.unknown, NORMALISED) if fields["encoding"] == "pixels" else addition.unknown
    return dataclasses.replace(
        addition,
        adapters={"image" if is_image else "text": fields},
        sample_file=("sample/image.png", _picture()) if is_image else ("sample/text.txt", TEXT.encode()),
        client_files={} if options.tokenizer is None else {TOKENIZER: options.tokenizer},
        unknown=unknown,
    )


def _refused(option: str, found: str, allowed: str, advice: str = "") -> InputError:
    return InputError([Problem(field=option, found=found, allowed=allowed, advice=advice)])


def _image(tensor: Tensor, config: ModelConfig) -> dict[str, Any]:
    """The recipe's fields for an input that takes images: pixels of a square, or an encoded file."""
    if tensor.data_type in ("BYTES", "UINT8"):
        return {"input": tensor.name, "encoding": "file-bytes"}
    axes = tensor.shape(config.max_batch_size)[-_CHANNELS:]
    squares = {"nchw": (_CHANNELS, axes[-1], axes[-1]), "nhwc": (axes[0], axes[0], _CHANNELS)} if axes else {}
    layout = next((each for each, square in squares.items() if axes == square and min(axes) > 0), None)
    if layout is None or not tensor.data_type.startswith("FP"):
        found = f"{tensor.name}, {tensor.data_type} {list(tensor.dims)}"
        allowed = "pixels of a square image (FP32, FP16), [3, side, side] or [side, side, 3]; or a file (BYTES, UINT8)"
        raise _refused("--image", found, allowed)
    return {"input": tensor.name, "encoding": "pixels", "crop": axes[1], "layout": layout}


def _picture() -> bytes:
    """A PNG of 256 by 256 pixels with a gradient in each colour."""
    from PIL import Image  # noqa: PLC0415  (only for models of images)

    down, out = Image.linear_gradient("L"), Image.radial_gradient("L")
    buffer = io.BytesIO()
    Image.merge("RGB", (down, down.rotate(90), out)).save(buffer, "PNG")
    return buffer.getvalue()


def _text(tensor: Tensor, config: ModelConfig, tokenizer: Path | None) -> dict[str, Any]:
    """The recipe's fields for an input that takes texts, or the numbers that a tokenizer makes of them."""
    if tensor.data_type == "BYTES":
        if tokenizer is not None:
            raise _refused("--tokenizer", str(tokenizer), "none: the input takes the text itself")
        return {"encoding": "utf8", "input": tensor.name}
    if tokenizer is None or not tokenizer.is_file():
        found = f"{tokenizer}, which is not there" if tokenizer else f"none, and {tensor.name} is {tensor.data_type}"
        allowed = f"{TOKENIZER} of Hugging Face's tokenizers, which makes numbers of a text"
        raise _refused("--tokenizer", found, allowed)
    mask = next((each.name for each in config.inputs if "mask" in each.name.lower() and each is not tensor), None)
    length = tensor.dims[-1] if tensor.dims else -1
    fields = {"encoding": "tokens", "tokenizer": TOKENIZER, "ids": tensor.name}
    fields |= {"mask": mask} if mask else {}
    return fields | ({"length": length} if length > 0 else {})
