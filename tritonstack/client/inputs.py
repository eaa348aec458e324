"""Input arrays from files (JSON, NumPy's .npy and .npz, images, texts) or from a single image or text."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tritonclient.utils import triton_to_np_dtype

from tritonstack.adapters import InputKind
from tritonstack.client.body import Array
from tritonstack.client.manifest import TensorTable, shape_text
from tritonstack.client.preprocessing import Source, to_arrays
from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
KINDS = ".json, .npy, .npz, or an image or text file where the model's recipe names an adapter for it"
NO_MANIFEST = "give the inputs as .json with datatype and shape, .npy or .npz, or ask for s3:GetObject on the bucket"

Fetch = Callable[[TensorTable, Sequence[str]], Mapping[str, Path]]
"""Fetches client files: tensor table and names of files → name and path of each."""
Image = Path | str | bytes
Text = Path | str | tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input file on the command line: ``file``, or ``input=file``."""

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
    files: Sequence[InputFile], table: TensorTable | None, *, text: Text | None = None, fetch: Fetch
) -> dict[str, Array]:
    """Inputs of all files and of a text, not yet checked against the table.

    ``fetch`` gives the client files that the model's adapters name (``ModelClient.client_files``).

    Raises InputError with everything that cannot be read, and every input that is given twice.
    """
    readers = [(str(file.path), partial(_read, file, table, fetch)) for file in files]
    if text is not None:
        readers.append(("--text", partial(adapted_inputs, table, text=text, fetch=fetch)))
    inputs: dict[str, Array] = {}
    problems: list[Problem] = []
    for place, read in readers:
        found: dict[str, Array] = {}
        with collecting(problems):
            found = read()
        problems += [
            Problem(file=place, field=f"inputs.{name}", found="given twice", allowed="one file or text an input")
            for name in found.keys() & inputs.keys()
        ]
        inputs |= found
    refuse(problems)
    return inputs


def _read(file: InputFile, table: TensorTable | None, fetch: Fetch) -> dict[str, Array]:
    suffix = file.path.suffix.lower()
    if file.input is not None and suffix != ".npy":
        raise _refused(file, found=f"{file.input}=", allowed="a name before .npy only: other files name their inputs")
    try:
        content = file.path.read_bytes()
    except OSError as error:
        raise _refused(file, found=error.strerror or str(error), allowed=f"a file that can be read: {KINDS}") from error
    if suffix == ".json":
        return inputs_from_json(content, file=str(file.path))
    if suffix in (".npy", ".npz"):
        return _numpy(file, content, table)
    kind: InputKind = "image" if suffix in IMAGE_SUFFIXES else "text"
    try:
        return adapted_inputs(table, **{kind: file.path}, fetch=fetch)
    except InputError as error:
        raise InputError(replace(each, file=each.file or str(file.path)) for each in error.problems) from error


LARGEST_ARRAYS = 1 << 30
"""Bytes that the arrays of an .npz file unpack to together; a request has at most 25 MB of them
(``tritonstack.aws.sagemaker_rules.MAX_PAYLOAD_BYTES``)."""


def _numpy(file: InputFile, content: bytes, table: TensorTable | None) -> dict[str, Array]:
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.lib.npyio.NpzFile):
            # What a member unpacks to is at most what it states: zipfile stops there.
            entries = loaded.zip.infolist() if loaded.zip is not None else []
            stated = sum(int(entry.file_size) for entry in entries)
            if stated > LARGEST_ARRAYS:
                raise ValueError(f"arrays of {stated:,} bytes together, at most {LARGEST_ARRAYS:,} are read")
            return {name: loaded[name] for name in loaded.files}
    except (*DAMAGED_ZIP, SyntaxError) as error:
        raise _refused(file, found=str(error), allowed="an array that numpy.save or savez wrote, no pickle") from error
    if file.input is not None:
        return {file.input: loaded}
    if table is not None and len(table.inputs) == 1:
        return {table.inputs[0].name: loaded}
    have = "the model's manifest cannot be read" if table is None else f"the model has {len(table.inputs)} inputs"
    allowed = ", ".join(f"{spec.name}=file" for spec in table.inputs) if table is not None else "name=file"
    raise _refused(file, found=f"an array without a name, and {have}", allowed=allowed)


def _refused(file: InputFile, *, found: str, allowed: str) -> InputError:
    return InputError([Problem(file=str(file.path), found=found, allowed=allowed)])


class _Tensor(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    shape: list[Annotated[int, Field(ge=0)]]
    datatype: str
    data: Any


class _Request(BaseModel):
    """A KServe request; other parts than its inputs would be lost, but for an ``id``, which changes nothing."""

    model_config = ConfigDict(extra="forbid")

    id: Any = None
    inputs: list[_Tensor] = Field(min_length=1)


_KINDS = {float: "numbers with fractions", bool: "truth values", str: "texts"}
_TAKEN = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "V": (int, float), "O": (str,)}
"""Kind of NumPy's type (V: BF16) → the types of JSON's values that it takes."""


def inputs_from_json(content: bytes, *, file: str) -> dict[str, Array]:
    """The arrays of a KServe request. ``file``: its name, for messages. Raises InputError with every problem."""
    allowed = (
        'a KServe request, {"inputs": [{"name", "shape", "datatype", "data"}, …]}; outputs are named with --output'
    )
    try:
        request = _Request.model_validate_json(content)
    except ValidationError as error:
        problems = [
            Problem(file=file, location=each["loc"], found=each["msg"], allowed=allowed) for each in error.errors()
        ]
        raise InputError(problems) from error
    arrays: dict[str, Array] = {}
    problems = []
    for tensor in request.inputs:
        wrong = "given twice" if tensor.name in arrays else ""
        try:
            arrays[tensor.name] = _typed(tensor)
        except ValueError as error:
            wrong = str(error)
        if wrong:
            problems.append(Problem(file=file, field=f"inputs.{tensor.name}", found=wrong, allowed=allowed))
    refuse(problems)
    return arrays


def _typed(tensor: _Tensor) -> Array:
    """A tensor's nested list as an array; what would lose its value on the way is refused with a ValueError."""
    datatype = tensor.datatype
    dtype = triton_to_np_dtype(datatype)
    if dtype is None:
        raise ValueError(f"datatype {datatype!r}")
    wanted = np.dtype(dtype)
    # Python's own numbers until they are checked: NumPy would make floats of some lists of large integers.
    array = np.asarray(tensor.data, dtype=object)
    wrong = [each for each in array.ravel() if type(each) not in _TAKEN[wanted.kind]]
    if wrong:
        raise ValueError(f"{_KINDS.get(type(wrong[0]), 'values')} for datatype {datatype}")
    if array.size != math.prod(tensor.shape):
        raise ValueError(f"{array.size} data for shape {shape_text(tensor.shape)}")
    if datatype == "BYTES":
        return np.array([each.encode() for each in array.ravel()], dtype=object).reshape(tensor.shape)
    try:
        with np.errstate(over="ignore"):
            cast = array.astype(wanted)
        lost = bool((np.isinf(cast.astype(float)) & np.isfinite(array.astype(float))).any())
    except OverflowError:
        lost = True
    if lost:
        raise ValueError(f"numbers out of the range of datatype {datatype}")
    return cast.reshape(tensor.shape)


def adapted_inputs(
    table: TensorTable | None, *, image: Image | None = None, text: Text | None = None, fetch: Fetch
) -> dict[str, Array]:
    """The inputs of an image and a text, a batch of one where the model batches.

    Args:
        table: the model's; None where its manifest cannot be read.
        image: an image file, or its content.
        text: the text itself, a pair of texts, or a Path to a file of it.
        fetch: fetches the client files of the adapters.

    Raises:
        InputError: neither is given, the model has no adapter for it, or it is no valid image or text.
        WorkFailedError: a client file cannot be fetched.
    """
    sources: dict[InputKind, Source] = {}
    if image is not None:
        sources["image"] = Path(image) if isinstance(image, str) else image
    if text is not None:
        sources["text"] = text.encode() if isinstance(text, str) else text
    if not sources:
        raise InputError([Problem(field="question", found="neither image nor text", allowed="image=… or text=…")])
    if table is None:
        raise InputError([Problem(found="a model whose manifest cannot be read", allowed=NO_MANIFEST)])
    arrays: dict[str, Array] = {}
    for kind, source in sources.items():
        adapter = table.adapters.of(kind)
        if adapter is None:
            have = " and ".join(table.adapters.present) or "arrays only: the model's recipe has no adapters"
            found = f"{'an image' if kind == 'image' else 'a text'}, and the model's recipe has no adapter for it"
            raise InputError([Problem(field=kind, found=found, allowed=have)])
        files = fetch(table, adapter.files)
        try:
            arrays |= to_arrays(adapter, source, files, inputs=table.inputs)
        except InputError as error:
            problems = [replace(one, field=one.field or ("" if one.file else kind)) for one in error.problems]
            raise InputError(problems) from error
    return arrays


def requested_outputs(table: TensorTable | None, outputs: Sequence[str] | None) -> list[str] | None:
    """The named outputs, else the one that the recipe interprets, else all (None)."""
    if outputs:
        return list(outputs)
    kind = table.answers.kind if table is not None else None
    return [kind.output] if kind is not None else None
