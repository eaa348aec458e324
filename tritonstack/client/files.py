"""Files to a model's inputs: JSON, NumPy's .npy and .npz, and images or texts where the model says what they become."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritonstack.client.body import Array
from tritonstack.client.json_inputs import inputs_from_json, single_input
from tritonstack.client.tables import FileAdapter, TensorTable
from tritonstack.errors import InputError, Problem

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
KINDS = ".json, .npy, .npz, or an image or text file where the model's recipe names an adapter for it"


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """One file as the user named it, and the input that it is for, where that was said (``name=file``)."""

    path: Path
    input: str | None = None

    @classmethod
    def parse(cls, text: str) -> InputFile:
        """Read ``[input=]file``. A file whose own name holds ``=`` is taken as it is if it exists."""
        name, equals, path = text.partition("=")
        if equals and name and "/" not in name and not Path(text).exists():
            return cls(path=Path(path), input=name)
        return cls(path=Path(text))


def read_inputs(files: Sequence[InputFile], table: TensorTable | None) -> dict[str, Array]:
    """All files' inputs together, not yet held against the table.

    Without a table (a caller who may not read the bucket) datatypes are those of the files, and of JSON's numbers.

    Raises:
        InputError: every file that cannot be read, and every input that two files give.
    """
    inputs: dict[str, Array] = {}
    problems: list[Problem] = []
    for file in files:
        try:
            found = _read(file, table)
        except InputError as error:
            problems += error.problems
            continue
        for name in found.keys() & inputs.keys():
            said = Problem(
                file=str(file.path), field=f"inputs.{name}", found="given twice", allowed="one file an input"
            )
            problems.append(said)
        inputs |= found
    if problems:
        raise InputError(problems)
    return inputs


def _read(file: InputFile, table: TensorTable | None) -> dict[str, Array]:
    try:
        content = file.path.read_bytes()
    except OSError as error:
        raise _refused(file, found=error.strerror or str(error), allowed=f"a file that can be read: {KINDS}") from error
    suffix = file.path.suffix.lower()
    if suffix == ".json":
        return inputs_from_json(content, file=str(file.path), named=file.input, table=table)
    if suffix == ".npy":
        array = _numpy(file, lambda: np.load(io.BytesIO(content), allow_pickle=False))
        return {single_input(file=str(file.path), named=file.input, table=table): array}
    if suffix == ".npz":
        return _npz(file, content)
    return _adapted(file, content, table)


def _numpy(file: InputFile, load: Callable[[], Array]) -> Array:
    try:
        return load()
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, KeyError) as error:
        raise _refused(file, found=str(error), allowed="an array that numpy.save or savez wrote, no pickle") from error


def _npz(file: InputFile, content: bytes) -> dict[str, Array]:
    if file.input is not None:
        raise _refused(file, found=f"{file.input}=", allowed="an .npz without a name: it names its arrays itself")
    try:
        archive = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise _refused(file, found=str(error), allowed="an archive that numpy.savez wrote") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise _refused(file, found="one array without a name", allowed="an archive that numpy.savez wrote")
    return {name: _numpy(file, lambda name=name: archive[name]) for name in archive.files}  # type: ignore[misc]


def _adapted(file: InputFile, content: bytes, table: TensorTable | None) -> dict[str, Array]:
    """An image or a text as the one BYTES element that the model's adapter makes of it."""
    kind = "image" if file.path.suffix.lower() in IMAGE_SUFFIXES else "text"
    if table is None:
        advice = "give the inputs as .json with datatype and shape, .npy or .npz, or ask for s3:GetObject on the bucket"
        found = f"a file of kind {kind}, and the model's manifest cannot be read"
        raise _refused(file, found=found, allowed=".json, .npy, .npz", advice=advice)
    adapter = table.adapters.get(kind)
    if adapter is None or (file.input is not None and file.input != adapter.input):
        have = ", ".join(f"{kind} → {adapter.input}" for kind, adapter in table.adapters.items()) or "none"
        found = f"a file of kind {kind}" + (f" for input {file.input}" if file.input else "")
        raise _refused(file, found=found, allowed=f".json, .npy, .npz, or one of the model's adapters: {have}")
    element = np.empty((1, 1) if table.max_batch_size else (1,), dtype=object)
    element[...] = _encoded(file, content, adapter)
    return {adapter.input: element}


def _encoded(file: InputFile, content: bytes, adapter: FileAdapter) -> bytes:
    if adapter.encoding == "png-bytes":
        return _as_png(file, content)
    if adapter.encoding == "utf8":
        try:
            content.decode()
        except UnicodeDecodeError as error:
            raise _refused(file, found=str(error), allowed="text in UTF-8") from error
    return content


def _as_png(file: InputFile, content: bytes) -> bytes:
    """The image as a PNG; a PNG stays as it is."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415  (only for images: it takes a moment to import)

    try:
        with Image.open(io.BytesIO(content)) as image:
            image.load()
            if image.format == "PNG":
                return content
            # CMYK and the like, which PNG does not have; "1", "L", "LA", "P", "I" and RGB(A) stay.
            drawn = image if image.mode in {"1", "L", "LA", "P", "I", "RGB", "RGBA"} else image.convert("RGB")
            buffer = io.BytesIO()
            drawn.save(buffer, format="PNG")
            return buffer.getvalue()
    except UnidentifiedImageError as error:  # its own words name the buffer, not the file
        found = "not an image that can be read"
        raise _refused(file, found=found, allowed="an image of a format that Pillow knows") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _refused(file, found=str(error), allowed="an image that Pillow can read") from error


def _refused(file: InputFile, *, found: str, allowed: str, advice: str = "") -> InputError:
    return InputError([Problem(file=str(file.path), found=found, allowed=allowed, advice=advice)])
