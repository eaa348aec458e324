"""Files to a model's inputs: JSON, NumPy's .npy and .npz, and images or texts where the model says what they become."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tritonstack.adapters import Kind
from tritonstack.client.adapters import to_arrays
from tritonstack.client.body import Array
from tritonstack.client.json_inputs import inputs_from_json, single_input
from tritonstack.client.tables import TensorTable
from tritonstack.errors import InputError, Problem, WorkFailedError

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
KINDS = ".json, .npy, .npz, or an image or text file where the model's recipe names an adapter for it"


NO_MANIFEST = "give the inputs as .json with datatype and shape, .npy or .npz, or ask for s3:GetObject on the bucket"

Fetch = Callable[[TensorTable, Sequence[str]], Mapping[str, Path]]
"""Gives client files: the model's table and the files' names → name and where the file lies."""


def no_client_files(table: TensorTable, names: Sequence[str]) -> Mapping[str, Path]:
    """For callers whose models name none. Raises WorkFailedError where one does."""
    del table
    if names:
        raise WorkFailedError(f"the model's adapter needs the client file {', '.join(names)}")
    return {}


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


def read_inputs(
    files: Sequence[InputFile], table: TensorTable | None, *, fetch: Fetch = no_client_files
) -> dict[str, Array]:
    """All files' inputs together, not yet held against the table.

    Without a table (a caller who may not read the bucket) datatypes are those of the files, and of JSON's numbers.
    ``fetch`` gives the client files that the model's adapters name (``ModelClient.client_files``).

    Raises:
        InputError: every file that cannot be read, and every input that two files give.
    """
    inputs: dict[str, Array] = {}
    problems: list[Problem] = []
    for file in files:
        try:
            found = _read(file, table, fetch)
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


def _read(file: InputFile, table: TensorTable | None, fetch: Fetch) -> dict[str, Array]:
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
    return _adapted(file, content, table, fetch)


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


def _adapted(file: InputFile, content: bytes, table: TensorTable | None, fetch: Fetch) -> dict[str, Array]:
    """An image or a text as the inputs that the model's adapter makes of it."""
    kind: Kind = "image" if file.path.suffix.lower() in IMAGE_SUFFIXES else "text"
    if table is None:
        found = f"a file of kind {kind}, and the model's manifest cannot be read"
        raise _refused(file, found=found, allowed=".json, .npy, .npz", advice=NO_MANIFEST)
    adapter = table.adapters.of(kind)
    if adapter is None or (file.input is not None and (file.input,) != adapter.inputs):
        have = ", ".join(f"{kind} → {', '.join(one.inputs)}" for kind, one in table.adapters.present.items()) or "none"
        found = f"a file of kind {kind}" + (f" for input {file.input}" if file.input else "")
        raise _refused(file, found=found, allowed=f".json, .npy, .npz, or one of the model's adapters: {have}")
    with _naming(file):
        return to_arrays(adapter, content, fetch(table, adapter.files), inputs=table.inputs)


@contextmanager
def _naming(file: InputFile) -> Iterator[None]:
    """Put the file's name to problems that have none."""
    try:
        yield
    except InputError as error:
        problems = [replace(one, file=str(file.path)) if one.file is None else one for one in error.problems]
        raise InputError(problems) from error


def _refused(file: InputFile, *, found: str, allowed: str, advice: str = "") -> InputError:
    return InputError([Problem(file=str(file.path), found=found, allowed=allowed, advice=advice)])
