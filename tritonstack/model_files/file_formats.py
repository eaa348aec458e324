"""Files that are not what their name or place claims: pointers, error pages, other formats, downloads that broke off.

Read are beginnings, ends, lists of members and headers: kilobytes, or a few megabytes, whatever the file's size. What a
format is recognised by is in ``file_formats.json``, each with its source.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib.resources
import io
import json
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from tritonstack.model_files.forest_file import ForestError, ForestFormat, forest_format, read_forest
from tritonstack.model_files.protobuf_fields import ProtobufError, outermost_fields
from tritonstack.untrusted.foreign_text import parse_json
from tritonstack.untrusted.tar_reading import BLOCK, DAMAGED, TarFormatError, open_gzip, tar_members
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP, open_zip

HEAD_BYTES = 4096
"""Of a file's beginning, and of its end where a format shows there."""
LARGEST_READ_WHOLE = 16 << 20
"""Bytes of a compressed archive that is unpacked to see whether it is whole; of a larger one its end is read."""
_UNPACKED_BYTES = 1 << 30
_HEADER_BYTES = 100_000_000
"""The most that safetensors takes for a header: safetensors/src/tensor.rs (MAX_HEADER_SIZE)."""
_NETWORK_BYTES = 64 << 20
"""Of an OpenVINO network: its .xml has the layers, and no weights."""


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """What a file is instead of what it claims."""

    found: str  # ``a Git LFS pointer, …``, ``cut off: …``
    allowed: str  # what the file has to be
    advice: str  # what to do; may be empty


@dataclass(frozen=True, kw_only=True)
class _Known:
    """A kind of file, by its first bytes."""

    what: str
    begins: tuple[bytes, ...]
    suffixes: tuple[str, ...] = ()  # of names: those of a format, or, of a stand-in, of files that it may be
    ends: bytes = b""
    whole: str = ""  # the name of a check in ``_WHOLE``
    advice: str = ""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> _Known:
        return cls(
            what=entry["is"],
            begins=tuple(text.encode("latin-1") for text in entry.get("begins", ())),
            suffixes=tuple(entry.get("suffixes", ())),
            ends=entry.get("ends", "").encode("latin-1"),
            whole=entry.get("whole", ""),
            advice=entry.get("advice", ""),
        )


@functools.cache
def _facts() -> Mapping[str, Any]:
    facts: Mapping[str, Any] = json.loads(
        importlib.resources.files(__package__).joinpath("file_formats.json").read_text(encoding="utf-8")
    )
    return facts


@functools.cache
def _kinds(table: str) -> tuple[_Known, ...]:
    return tuple(_Known.of(entry) for entry in _facts()[table])


@functools.cache
def _formats() -> Mapping[str, _Known]:
    return {name: _Known.of(entry) for name, entry in _facts()["formats"].items()}


def loaded_format(backend: str, name: str) -> str:
    """The format of a file that a backend loads, empty where it may have any, or it is not known."""
    rows = (row for row in _facts()["loaded"] if row["backend"] == backend)
    return next((row["format"] for row in rows if fnmatch.fnmatchcase(name, row["files"])), "")


def named_format(name: str) -> str:
    """The format that a file's name claims by its suffix; empty for none that is checked."""
    suffixes = [
        (len(suffix), key) for key, each in _formats().items() for suffix in each.suffixes if name.endswith(suffix)
    ]
    return max(suffixes)[1] if suffixes else ""


def stand_in(path: Path) -> Mismatch | None:
    """What is in a file's place: a pointer of Git LFS, an HTML page, an error; None where it is none of these.

    Raises OSError where the file cannot be read.
    """
    text = _head(path).removeprefix(b"\xef\xbb\xbf").lstrip().replace(b"\r\n", b"\n").lower()
    for each in _kinds("stand_ins"):
        if text.startswith(each.begins) and path.suffix.lower() not in each.suffixes:
            return Mismatch(found=each.what, allowed="the file itself", advice=each.advice)
    return None


def mismatch(path: Path, name: str) -> Mismatch | None:
    """What a file, or the folder of a SavedModel, is instead of the format ``name``; None where it is of that format.

    An empty ``name`` is any format: then only what is in a file's place is found. Raises OSError where the file
    cannot be read.
    """
    if path.is_file() and (replaced := stand_in(path)):
        return replaced
    if not name:
        return None
    wanted = _formats()[name]
    found = _begins_otherwise(path, wanted) if wanted.begins else ""
    if not found and wanted.whole:
        found = _WHOLE[wanted.whole](path)
    if not found and wanted.ends and not _tail(path).rstrip(b"\0 \r\n").endswith(wanted.ends):
        found = f"cut off: it does not end with {wanted.ends.decode('latin-1')}"
    return Mismatch(found=found, allowed=wanted.what, advice=wanted.advice) if found else None


def _begins_otherwise(path: Path, wanted: _Known) -> str:
    """What a file begins as that has none of the beginnings of its format; empty where it has one."""
    head = _head(path)
    if head.startswith(wanted.begins):
        return ""
    if plan := _behind_metadata(head, wanted.begins):
        return plan
    return described(head)


def described(head: bytes) -> str:
    """What a file is that begins so."""
    if not head:
        return "an empty file"
    known = next((each.what for each in _kinds("known") if head.startswith(each.begins)), "")
    if known:
        return known
    if not any(head):
        return "zeros: a file that was never written"
    start = head[:24]
    is_text = all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start)
    return (
        f"text that begins {start.decode().split(chr(10))[0]!r}"
        if is_text
        else f"a file that begins {start[:4].hex(' ')}"
    )


def _behind_metadata(head: bytes, begins: tuple[bytes, ...]) -> str:
    """An engine behind a length and JSON, as Ultralytics writes it (ultralytics/engine/exporter.py, export_engine)."""
    length = int.from_bytes(head[:4], "little")
    if b"ftrt" in begins and head[4:5] == b"{" and 0 < length < _HEADER_BYTES:
        return f"an engine behind {length:,} bytes of Ultralytics' metadata, which TensorRT does not read past"
    return ""


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(HEAD_BYTES)


def _tail(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - HEAD_BYTES))
        return stream.read(HEAD_BYTES)


def _zip(path: Path) -> str:
    """Whether a zip file has its list of members, which is at its end."""
    try:
        with open_zip(path):
            return ""
    except DAMAGED_ZIP as error:
        return f"cut off or damaged: {error}"


def _torchscript(path: Path) -> str:
    """TorchScript has its constants or its code in addition to ``data.pkl``; weights alone have neither."""
    try:
        with open_zip(path) as archive:
            names = archive.namelist()
    except DAMAGED_ZIP as error:
        return f"cut off or damaged: {error}"
    parts = [name.split("/", 1)[-1] for name in names]
    if "constants.pkl" in parts or any(part.startswith("code/") for part in parts):
        return ""
    what = (
        "weights alone, as torch.save writes them" if "data.pkl" in parts else "a zip file without TorchScript's code"
    )
    return "an exported program, as torch.export.save writes it" if "archive_format" in parts else what


def _saved_model(path: Path) -> str:
    """The folder of a SavedModel; as text it is ``saved_model.pbtxt``."""
    graph = path / "saved_model.pb"
    if not path.is_dir():
        return "a file, where a SavedModel is a folder"
    if not graph.is_file():
        return "" if (path / "saved_model.pbtxt").is_file() else "a folder without saved_model.pb"
    for each in sorted(path.rglob("*")):  # variables and assets are as much of it as the graph
        if each.is_file() and (found := stand_in(each)):
            return f"a folder whose {each.relative_to(path)} is {found.found}; {found.advice}"
    return _protobuf(graph, has=2, most=2)  # meta_graphs, beside saved_model_schema_version = 1


def _graphdef(path: Path) -> str:
    return _protobuf(path, has=1, most=5)  # node; library = 2, version = 3, versions = 4, debug_info = 5


def _dali(path: Path) -> str:
    return _protobuf(path, has=5, most=100)  # op, of PipelineDef


def _protobuf(path: Path, *, has: int, most: int) -> str:
    """What is wrong with a protobuf message: cut off, or with other fields than ``has`` and numbers up to ``most``."""
    try:
        numbers = outermost_fields(path)
    except ProtobufError as error:
        other = described(_head(path))
        return f"cut off ({error})" if other.startswith("a file that begins") and "cut off" in str(error) else other
    return "" if has in numbers and max(numbers) <= most else described(_head(path))


def _openvino(path: Path) -> str:
    """The network, and the length of its weights: ``<data … offset="0" size="64"/>`` of each constant."""
    head = _head(path)
    if b"<net" not in head:
        return described(head)
    if b"</net>" not in _tail(path):
        return "cut off: it does not end with </net>"
    with path.open("rb") as stream:
        text = stream.read(_NETWORK_BYTES)
    tags = [dict(_ATTRIBUTE.findall(tag)) for tag in _DATA.findall(text)]
    needed = max(
        (int(tag[b"offset"]) + int(tag[b"size"]) for tag in tags if {b"offset", b"size"} <= tag.keys()), default=0
    )
    weights = path.with_suffix(".bin")
    if not needed:
        return ""
    if not weights.is_file():
        return f"a network without its weights: no {weights.name} beside it"
    if found := stand_in(weights):
        return f"{weights.name} is {found.found}; {found.advice}"
    size = weights.stat().st_size
    return f"{weights.name} is cut off: {size:,} of {needed:,} bytes" if size < needed else ""


_DATA = re.compile(rb"<data\s[^>]*>")
_ATTRIBUTE = re.compile(rb'\b(offset|size)="([0-9]{1,18})"')


_FORESTS: Mapping[ForestFormat, str] = {
    "xgboost_json": "JSON",
    "xgboost_ubj": "Universal Binary JSON, as XGBoost 2.1 and newer write to .model, too",
    "lightgbm": "LightGBM's text",
    "treelite_checkpoint": "a checkpoint of treelite",
}


def _forest(path: Path, wanted: ForestFormat) -> str:
    """Whether a forest's file is of a format, and whole."""
    found = forest_format(path)
    if found != wanted:
        return _FORESTS[found] if found else described(_head(path))
    try:
        read_forest(path)
    except ForestError as error:
        return str(error)
    return ""


def _xgboost_binary(path: Path) -> str:
    """XGBoost's old format has no beginning of its own: only what is known to be another format is none."""
    other = forest_format(path)
    if other:
        return _FORESTS[other]
    head = _head(path)
    return described(head) if head.startswith(_PICKLED) else ""


_PICKLED = (b"\x80\x04\x95", b"\x80\x05\x95")


def _checkpoint(path: Path) -> str:
    """Treelite's checkpoints begin with a version, the oldest otherwise."""
    other, head = forest_format(path), _head(path)
    if other:
        return "" if other == "treelite_checkpoint" else _FORESTS[other]
    return described(head) if any(head.startswith(each.begins) for each in _kinds("known")) else ""


def _safetensors(path: Path) -> str:
    """A length of 8 bytes, a JSON header with every tensor's place, the tensors."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(9)
        length = struct.unpack("<Q", head[:8])[0] if len(head) == 9 else 0
        if head[8:] != b"{" or not 0 < length <= _HEADER_BYTES:
            return described(head)
        if 8 + length > size:
            return f"cut off: {size:,} bytes, and its header has {length:,}"
        stream.seek(8)
        text = stream.read(length)
    try:
        header = parse_json(text)
        ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
        needed = 8 + length + max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return "a file whose header is damaged"
    return f"cut off: {size:,} of {needed:,} bytes" if size < needed else ""


def _gzip(path: Path) -> str:
    """Whether a small gzip file is whole. The end of a larger one does not show."""
    if path.stat().st_size > LARGEST_READ_WHOLE:
        return ""
    try:
        with open_gzip(path, "rb") as plain:
            _read_to_end(plain)
    except DAMAGED as error:
        return f"cut off or damaged: {error or type(error).__name__}"
    return ""


def _tar_gzip(path: Path) -> str:
    """Whether a .tar.gz is one, and whole: unpacked where it is small, else by its beginning and its last bytes.

    A gzip file ends with the length of its content, of which a tar archive's is whole blocks (RFC 1952, 2.3.1). A file
    with an extra field is made of several parts, which may end anywhere.
    """
    try:
        with open_gzip(path, "rb") as plain:
            next(tar_members(plain), None)
    except TarFormatError as error:
        return f"a gzip file of something else than a tar archive ({error})"
    except DAMAGED as error:
        return f"cut off or damaged: {error or type(error).__name__}"
    if path.stat().st_size <= LARGEST_READ_WHOLE:
        return _gzip(path)
    with path.open("rb") as stream:
        has_parts = stream.read(4)[3] & 4
        stream.seek(-4, io.SEEK_END)
        length = int.from_bytes(stream.read(4), "little")
    return "" if has_parts or length % BLOCK == 0 else "cut off: it does not end as a gzip file of a tar archive does"


def _read_to_end(plain: BinaryIO) -> None:
    read = 0
    while read < _UNPACKED_BYTES and (chunk := plain.read(1 << 20)):
        read += len(chunk)


_WHOLE: Mapping[str, Callable[[Path], str]] = {
    "zip": _zip,
    "torchscript": _torchscript,
    "saved_model": _saved_model,
    "graphdef": _graphdef,
    "dali": _dali,
    "openvino": _openvino,
    "xgboost_json": functools.partial(_forest, wanted="xgboost_json"),
    "xgboost_ubj": functools.partial(_forest, wanted="xgboost_ubj"),
    "lightgbm": functools.partial(_forest, wanted="lightgbm"),
    "xgboost_binary": _xgboost_binary,
    "checkpoint": _checkpoint,
    "safetensors": _safetensors,
    "gzip": _gzip,
    "tar_gzip": _tar_gzip,
}
"""Name in ``file_formats.json`` → what is wrong with a file beyond its first bytes; empty for nothing."""
