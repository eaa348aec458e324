"""Input arrays from files (JSON, NumPy's .npy and .npz, images, texts) or from a single image or text."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tritonclient.utils import triton_to_np_dtype

from tritonstack.adapters import Kind
from tritonstack.client.body import Array
from tritonstack.client.manifest import TensorTable, shape_text
from tritonstack.client.preprocessing import to_arrays
from tritonstack.errors import InputError, Problem, collecting, refuse

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
KINDS = ".json, .npy, .npz, or an image or text file where the model's recipe names an adapter for it"


NO_MANIFEST = "give the inputs as .json with datatype and shape, .npy or .npz, or ask for s3:GetObject on the bucket"

Fetch = Callable[[TensorTable, Sequence[str]], Mapping[str, Path]]
"""Fetches client files: tensor table and names of files → name and path of each."""


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


def read_inputs(files: Sequence[InputFile], table: TensorTable | None, *, fetch: Fetch) -> dict[str, Array]:
    """Inputs of all files, not yet checked against the table.

    ``fetch`` gives the client files that the model's adapters name (``ModelClient.client_files``).

    Raises InputError with every file that cannot be read, and every input that two files give.
    """
    inputs: dict[str, Array] = {}
    problems: list[Problem] = []
    for file in files:
        found: dict[str, Array] = {}
        with collecting(problems):
            found = _read(file, table, fetch)
        for name in found.keys() & inputs.keys():
            problem = Problem(
                file=str(file.path), field=f"inputs.{name}", found="given twice", allowed="one file an input"
            )
            problems.append(problem)
        inputs |= found
    refuse(problems)
    return inputs


def _read(file: InputFile, table: TensorTable | None, fetch: Fetch) -> dict[str, Array]:
    try:
        content = file.path.read_bytes()
    except OSError as error:
        raise _refused(file, found=error.strerror or str(error), allowed=f"a file that can be read: {KINDS}") from error
    suffix = file.path.suffix.lower()
    if suffix == ".json":
        if file.input is not None:
            raise _refused(file, found=f"{file.input}=", allowed="a .json file without a name: it names its tensors")
        return inputs_from_json(content, file=str(file.path))
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
    """Inputs that the model's adapter makes of an image or a text."""
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
    """Add the file's name to problems without one."""
    try:
        yield
    except InputError as error:
        problems = [replace(one, file=str(file.path)) if one.file is None else one for one in error.problems]
        raise InputError(problems) from error


def _refused(file: InputFile, *, found: str, allowed: str, advice: str = "") -> InputError:
    return InputError([Problem(file=str(file.path), found=found, allowed=allowed, advice=advice)])


_KINDS = {float: "numbers with fractions", bool: "truth values", str: "texts"}
_TAKEN = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "V": (int, float), "O": (str,)}
"""Kind of NumPy's type (V: BF16) → the types of JSON's values that it takes."""


def inputs_from_json(content: bytes, *, file: str) -> dict[str, Array]:
    """The arrays of a KServe request. ``file``: its name, for messages. Raises InputError with every problem."""
    allowed = '{"inputs": [{"name", "shape", "datatype", "data"}, …]}'
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError([Problem(file=file, found=f"no JSON: {error}", allowed=allowed)]) from error
    tensors = value.get("inputs") if isinstance(value, dict) else None
    if not isinstance(tensors, list) or not tensors or not all(isinstance(each, dict) for each in tensors):
        raise InputError([Problem(file=file, found="JSON that is no KServe request", allowed=allowed)])
    _refuse_more_than_inputs(value, file)
    return _gather([(str(tensor.get("name", index)), tensor) for index, tensor in enumerate(tensors)], file)


def single_input(*, file: str, named: str | None, table: TensorTable | None) -> str:
    """The name of the input that a file without names is for.

    Raises InputError where the user named none, and the model does not have exactly one input.
    """
    if named is not None:
        return named
    if table is not None and len(table.inputs) == 1:
        return table.inputs[0].name
    if table is None:
        found = "an array without a name, and the model's manifest cannot be read"
        allowed = "name=file"
    else:
        found = f"an array without a name, and the model has {len(table.inputs)} inputs"
        allowed = ", ".join(f"{spec.name}=file" for spec in table.inputs)
    raise InputError([Problem(file=file, found=found, allowed=allowed)])


def _refuse_more_than_inputs(request: dict[str, Any], file: str) -> None:
    """Refuse other parts of a KServe request, which would be lost; an ``id`` changes nothing."""
    advice = "name outputs with --output"
    problems = [
        Problem(file=file, field=key, found="a part of the request that is not sent", allowed="inputs", advice=advice)
        for key in request.keys() - {"inputs", "id"}
    ]
    refuse(problems)


def _gather(tensors: list[tuple[str, dict[str, Any]]], file: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    problems = []
    for name, times in Counter(name for name, _ in tensors).items():
        if times > 1:
            problems.append(Problem(file=file, field=f"inputs.{name}", found=f"given {times} times", allowed="once"))
    for name, tensor in tensors:
        try:
            arrays[name] = _kserve(tensor)
        except (ValueError, OverflowError, TypeError, KeyError) as error:
            found = f"no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
            allowed = "name, shape, datatype and as many data as the shape says"
            problems.append(Problem(file=file, field=f"inputs.{name}", found=found, allowed=allowed))
    refuse(problems)
    return arrays


def _kserve(tensor: dict[str, Any]) -> Array:
    missing = [key for key in ("name", "shape", "datatype", "data") if key not in tensor]
    if missing:
        raise KeyError(", ".join(missing))
    shape = tensor["shape"]
    if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
        raise ValueError(f"shape {shape!r}")
    array = _typed(tensor["data"], str(tensor["datatype"]))
    if array.size != math.prod(shape):
        raise ValueError(f"{array.size} data for shape {shape_text(shape)}")
    return array.reshape(shape)


def _typed(nested: Any, datatype: str) -> Array:
    """A nested list as an array of a datatype; what would lose its value on the way is refused with a ValueError."""
    dtype = triton_to_np_dtype(datatype)
    if dtype is None:
        raise ValueError(f"datatype {datatype!r}")
    wanted = np.dtype(dtype)
    # Python's own numbers until they are checked: NumPy would make floats of some lists of large integers.
    array = np.asarray(nested, dtype=object)
    wrong = [each for each in array.ravel() if type(each) not in _TAKEN[wanted.kind]]
    if wrong:
        raise ValueError(f"{_KINDS.get(type(wrong[0]), 'values')} for datatype {datatype}")
    if datatype == "BYTES":
        return np.array([each.encode() for each in array.ravel()], dtype=object).reshape(array.shape)
    try:
        with np.errstate(over="ignore"):
            cast = array.astype(wanted)
        lost = bool((np.isinf(cast.astype(float)) & np.isfinite(array.astype(float))).any())
    except OverflowError:
        lost = True
    if lost:
        raise ValueError(f"numbers out of the range of datatype {datatype}")
    return cast


Image = Path | str | bytes
Text = Path | str


def adapted_inputs(
    table: TensorTable, *, image: Image | None = None, text: Text | None = None, fetch: Fetch
) -> dict[str, Array]:
    """The inputs of an image and a text, a batch of one where the model batches.

    Args:
        table: the model's.
        image: an image file, or its content.
        text: the text itself, or a Path to a file of it.
        fetch: fetches the client files of the adapters.

    Raises:
        InputError: neither is given, the model has no adapter for it, or it is no valid image or text.
        WorkFailedError: a client file cannot be fetched.
    """
    sources: dict[Kind, Path | bytes] = {}
    if image is not None:
        sources["image"] = Path(image) if isinstance(image, str) else image
    if text is not None:
        sources["text"] = text.encode() if isinstance(text, str) else text
    if not sources:
        raise InputError([Problem(field="question", found="neither image nor text", allowed="image=… or text=…")])
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
