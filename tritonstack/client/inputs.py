"""Input arrays from files (JSON, CSV, NumPy's .npy and .npz, images, texts), from JSON, and from images or texts."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from tritonstack.adapter_proposals import missing_adapter
from tritonstack.adapters import Adapter, InputKind, TextAdapter
from tritonstack.client.body import Array
from tritonstack.client.kserve_request import inputs_from_json
from tritonstack.client.manifest import TensorTable
from tritonstack.client.preprocessing import Source, to_arrays
from tritonstack.client.records import arrays_from_records, documents, records_from_csv, records_of
from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.untrusted.gzip_reading import is_compressed, suffix_of, uncompressed
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"})
KINDS = ".json, .jsonl, .csv, .npy, .npz, or an image or text file where the model's recipe names an adapter for it"
RECORDS = (
    'a KServe request, {"inputs": [{"name", "shape", "datatype", "data"}, …]}; a record, {input: value, …}; a list of '
    "records, or one a line"
)
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
    files: Sequence[InputFile],
    table: TensorTable | None,
    *,
    data: Sequence[tuple[str, bytes]] = (),
    images: Sequence[Image] = (),
    texts: Sequence[Text] = (),
    fetch: Fetch,
) -> dict[str, Array]:
    """Inputs of all files, of JSON, images and texts, not yet checked against the table.

    Images are a batch in their order, those of ``files`` first; so are texts. ``data``: where JSON is from, as messages
    name it, and the JSON. ``fetch`` gives the client files that the model's adapters name
    (``ModelClient.client_files``).

    Raises InputError with everything that cannot be read, and every input that is given twice.
    """
    readers: list[tuple[str, Callable[[], dict[str, Array]]]] = []
    sources: dict[InputKind, list[Image | Text]] = {"image": [], "text": []}
    for file in files:
        suffix = suffix_of(file.path)
        if suffix in _READERS or file.input is not None:
            readers.append((str(file.path), partial(_read, file, table)))
        else:
            sources["image" if suffix in IMAGE_SUFFIXES else "text"].append(file.path)
    readers += [(place, partial(_from_json, content, table, place)) for place, content in data]
    sources["image"] += images
    sources["text"] += texts
    for kind, given in sources.items():
        if given:
            readers.append((f"--{kind}", partial(_batch_of, kind, given, table, fetch)))
    inputs: dict[str, Array] = {}
    problems: list[Problem] = []
    for place, read in readers:
        found: dict[str, Array] = {}
        with collecting(problems):
            found = read()
        problems += [
            Problem(file=place, field=f"inputs.{name}", found="given twice", allowed="one source an input")
            for name in found.keys() & inputs.keys()
        ]
        inputs |= found
    refuse(problems)
    return inputs


def _read(file: InputFile, table: TensorTable | None) -> dict[str, Array]:
    suffix = suffix_of(file.path)
    if file.input is not None and suffix != ".npy":
        raise _refused(file, found=f"{file.input}=", allowed="a name before .npy only: other files name their inputs")
    try:
        content = file.path.read_bytes()
        if is_compressed(file.path):
            content = uncompressed(content, most=LARGEST_ARRAYS)
    except OSError as error:
        raise _refused(file, found=error.strerror or str(error), allowed=f"a file that can be read: {KINDS}") from error
    except ValueError as error:
        raise _refused(file, found=str(error), allowed="a file that gzip compressed") from error
    return _READERS[suffix](file, content, table)


def _from_json(content: bytes, table: TensorTable | None, place: str) -> dict[str, Array]:
    """The arrays of a KServe request, or of records."""
    try:
        values = documents(content)
    except ValueError as error:
        found = f"Invalid JSON: {error}"
        raise InputError([Problem(file=place, found=found, allowed=RECORDS)]) from error
    named = table is not None and table.input("inputs") is not None
    if len(values) == 1 and isinstance(values[0], dict) and "inputs" in values[0] and not named:
        return inputs_from_json(content, file=place)
    if table is None:
        found = "no KServe request, and the model's manifest cannot be read"
        raise InputError([Problem(file=place, found=found, allowed=NO_MANIFEST)])
    records = records_of(values, table)
    if records is None:
        allowed = f"{RECORDS}; inputs: {'; '.join(map(str, table.inputs))}"
        raise InputError([Problem(file=place, found="neither a request nor records", allowed=allowed)])
    return arrays_from_records(records, table, file=place)


def _from_csv(file: InputFile, content: bytes, table: TensorTable | None) -> dict[str, Array]:
    if table is None:
        raise _refused(file, found="CSV, and the model's manifest cannot be read", allowed=NO_MANIFEST)
    return arrays_from_records(records_from_csv(content, table, file=str(file.path)), table, file=str(file.path))


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


def _json_file(file: InputFile, content: bytes, table: TensorTable | None) -> dict[str, Array]:
    return _from_json(content, table, str(file.path))


_READERS = {
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), _json_file),
    ".csv": _from_csv,
    **dict.fromkeys((".npy", ".npz"), _numpy),
}
"""Suffix → what reads such a file; files of other suffixes are for adapters."""


def adapted_inputs(
    table: TensorTable | None,
    *,
    image: Image | list[Image] | None = None,
    text: Text | list[Text] | None = None,
    fetch: Fetch,
) -> dict[str, Array]:
    """The inputs of images and texts, a batch where the model batches: of one, or of as many as a list has.

    Args:
        table: the model's; None where its manifest cannot be read.
        image: an image file, or its content; or a list of them.
        text: the text itself, a pair of texts, or a Path to a file of it; or a list of them.
        fetch: fetches the client files of the adapters.

    Raises:
        InputError: neither is given, the model has no adapter for it, it is no valid image or text, or there are
            several and the model takes no batches.
        WorkFailedError: a client file cannot be fetched.
    """
    images = image if isinstance(image, list) else [] if image is None else [image]
    texts = text if isinstance(text, list) else [] if text is None else [text]
    if not images and not texts:
        raise InputError([Problem(field="question", found="neither image nor text", allowed="image=… or text=…")])
    arrays = _batch_of("image", images, table, fetch) if images else {}
    return arrays | (_batch_of("text", texts, table, fetch) if texts else {})


def _batch_of(
    kind: InputKind, given: Sequence[Image | Text], table: TensorTable | None, fetch: Fetch
) -> dict[str, Array]:
    """The inputs that the model's adapter makes of images, or of texts."""
    file = next((str(each) for each in given if isinstance(each, Path)), None)
    if table is None:
        raise InputError([Problem(file=file, found="a model whose manifest cannot be read", allowed=NO_MANIFEST)])
    adapter = table.adapters.of(kind)
    if adapter is None:
        raise InputError([missing_adapter(kind, table.inputs, present=table.adapters.present, file=file)])
    if len(given) > 1 and not table.max_batch_size:
        found = f"{len(given)} {kind}s, and the model takes no batches (max_batch_size 0)"
        raise InputError([Problem(field=kind, found=found, allowed=f"one {kind} a request")])
    files = fetch(table, adapter.files)
    rows = _rows(kind, given, adapter, table, files)
    if len({tuple(array.shape for array in row.values()) for row in rows}) > 1:
        rows = _rows(kind, given, _padded(adapter, rows), table, files)
    return {name: np.concatenate([row[name] for row in rows]) if len(rows) > 1 else rows[0][name] for name in rows[0]}


def _rows(
    kind: InputKind, given: Sequence[Image | Text], adapter: Adapter, table: TensorTable, files: Mapping[str, Path]
) -> list[dict[str, Array]]:
    """The inputs of each image or text. Raises InputError: with what is wrong with any of them."""
    rows: list[dict[str, Array]] = []
    problems: list[Problem] = []
    for number, each in enumerate(given, start=1):
        place = kind if len(given) == 1 else f"{kind} {number}"
        text = Path(each) if kind == "image" and isinstance(each, str) else each  # of an image, the file's name
        source: Source = text.encode() if isinstance(text, str) else text
        try:
            rows.append(to_arrays(adapter, source, files, inputs=table.inputs))
        except InputError as error:
            problems += [replace(one, field=one.field or ("" if one.file else place)) for one in error.problems]
    refuse(problems)
    return rows


def _padded(adapter: Adapter, rows: Sequence[Mapping[str, Array]]) -> TextAdapter:
    """The adapter that pads the texts of a batch to the longest. Raises InputError: the mask that needs is missing."""
    if isinstance(adapter, TextAdapter) and adapter.mask is not None:
        longest = max(row[str(adapter.ids)].shape[-1] for row in rows)
        return adapter.model_copy(update={"length": longest, "longest": None})
    sizes = " and ".join(dict.fromkeys(str(next(iter(row.values())).shape[-1]) for row in rows))
    if isinstance(adapter, TextAdapter):
        found = f"texts of {sizes} tokens, and adapters.text has no mask, without which padding would count as text"
        raise InputError([Problem(field="text", found=found, allowed="texts of the same length, or one a request")])
    found = f"files of {sizes} bytes for one UINT8 tensor"
    raise InputError([Problem(field="image", found=found, allowed="files of the same length, or one a request")])


def requested_outputs(table: TensorTable | None, outputs: Sequence[str] | None) -> list[str] | None:
    """The named outputs, else the one that the recipe interprets, else all (None)."""
    if outputs:
        return list(outputs)
    kind = table.answers.kind if table is not None else None
    return [kind.output] if kind is not None else None
