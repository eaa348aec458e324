"""Framework versions that model files need, and those of a Triton release.

Exports are made with one version of PyTorch, DALI and ONNX, and read by the older ones of a release. A file states
its operator set (ONNX), a version and its operators (TorchScript), or its operators alone (DALI). Reported here is what
PyTorch 1.13.1 and DALI 1.23.0 lack: the oldest available versions, those of releases 22.12 and 23.03.
Neither PyTorch nor DALI is needed here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.triton_releases import TritonRelease, minor_version
from tritonstack.untrusted.foreign_text import code_of, parse_program
from tritonstack.untrusted.zip_reading import DAMAGED_ZIP, open_zip, read_member

OLDEST_TORCH, OLDEST_DALI = "PyTorch 1.13.1", "DALI 1.23.0"

_DALI_READS_PAST = frozenset({"preserve_name", "repeat_last"})
"""Arguments that DALI 2.4.0 writes whatever they are, and that 1.23.0 reads past, as it does all that begin with `_`.

Tried: 1.23.0 gives the same pixels for the pipeline of 2.4.0 as for its own.
"""


class FormatError(ValueError):
    """The file is not of the format of its name, or is damaged."""


@dataclass(frozen=True, kw_only=True)
class OnnxLimits:
    """Newest formats that an ONNX Runtime reads."""

    onnxruntime: str  # its version
    is_exact: bool  # whether a release holds that very version, or that or an older one
    opset: int  # the newest operator set
    ir_version: int  # the newest version of the format


@functools.cache
def _facts() -> dict[str, Any]:
    return read_data("model_formats.json")


def onnx_limits(release: TritonRelease) -> OnnxLimits | None:
    """Limits of the ONNX files that a release's ONNX Runtime reads; None where UNVERIFIED."""
    version = release.onnxruntime or _facts()["onnxruntime_at_most"].get(release.version)
    limits = _facts()["onnxruntime"].get(".".join(version.split(".")[:2])) if version else None
    if version is None or limits is None:
        return None
    return OnnxLimits(onnxruntime=version, is_exact=release.onnxruntime is not None, **limits)


def torch_of(release: TritonRelease) -> str | None:
    """The PyTorch that a release's libtorch is of; None where that is UNVERIFIED."""
    version: str | None = _facts()["torch"].get(release.version)
    return version


def dali_of(release: TritonRelease) -> str | None:
    """The DALI of a release; None where that is UNVERIFIED."""
    version: str | None = _facts()["dali"].get(release.version)
    return version


def newest_torchscript() -> int:
    """The newest version of TorchScript's format that the libtorch of every release since 22.12 reads."""
    version: int = _facts()["torchscript_version"]
    return version


def torch_has(torch: str | None, operator: str) -> bool:
    """Whether a PyTorch (``2.5.0a0``) surely has an operator, or an argument of one, that 1.13.1 lacks."""
    since: str | None = _facts()["torch_since"].get(operator)
    return torch is not None and since is not None and minor_version(torch) >= minor_version(since)


_VERSION_BYTES = 32
LARGEST_CODE = 16 << 20
"""Bytes of the code of one TorchScript file, all its modules together."""


def torchscript_version(path: Path) -> int:
    """The version of TorchScript's format that a file is of. Raises :class:`FormatError`.

    Source: pytorch caffe2/serialize/inline_container.cc: the record ``version``, or ``.data/version`` in newer files.
    """
    try:
        with open_zip(path) as archive:
            for name in archive.namelist():
                if name.split("/", 1)[-1] in ("version", ".data/version"):
                    return int(read_member(archive, name, most=_VERSION_BYTES))
    except DAMAGED_ZIP as error:
        raise FormatError(f"no TorchScript: {error}") from error
    raise FormatError("no TorchScript: a zip archive without the record version")


def beyond_torch(path: Path) -> tuple[str, ...]:
    """The operators of a TorchScript file, and arguments of them, that PyTorch 1.13.1 lacks. Raises FormatError."""
    known: Mapping[str, str] = read_data("torch_operators.json")["operators"]
    return tuple(sorted({lack for call in _calls(path) for lack in _lacks(call, known)}))


def _calls(path: Path) -> Iterator[ast.Call]:
    """Every call in a TorchScript file's code, which is written in a part of Python."""
    left = LARGEST_CODE
    try:
        with open_zip(path) as archive:
            for name in archive.namelist():
                if "/code/" in name and name.endswith(".py"):
                    source = read_member(archive, name, most=left)
                    left -= len(source)
                    yield from (node for node in ast.walk(parse_program(source)) if isinstance(node, ast.Call))
    except (*DAMAGED_ZIP, SyntaxError) as error:
        raise FormatError(f"no TorchScript that can be read: {error}") from error


def _lacks(call: ast.Call, known: Mapping[str, str]) -> Iterator[str]:
    """``aten::gelu`` where there is no such operator, ``aten::gelu(approximate)`` where it lacks an argument."""
    match code_of(call.func).split("."):
        case ["torch", name]:
            operator = f"aten::{name}"
        case ["ops", namespace, name]:
            operator = f"{namespace}::{name}"
        case _:
            return
    signature = known.get(operator, known.get(operator.replace("aten::", "prim::")))
    if signature is None:
        yield operator
        return
    arguments = signature.split()
    positions = arguments.index("*") if "*" in arguments else len(arguments)
    if len(call.args) > positions and "..." not in arguments:
        yield f"{operator}({len(call.args)} arguments)"
    yield from (f"{operator}({each.arg})" for each in call.keywords if each.arg and each.arg not in arguments)


def beyond_dali(pipeline: bytes) -> tuple[str, ...]:
    """The operators of a serialised pipeline, and arguments of them, that DALI 1.23.0 lacks. Raises FormatError.

    Field numbers: dali/pipeline/dali.proto: PipelineDef.op = 5; OpDef.name = 1, args = 4; Argument.name = 1.
    """
    known: Mapping[str, str] = read_data("dali_operators.json")["operators"]
    found: set[str] = set()
    operators = [content for number, content in _fields(pipeline) if number == 5]
    if not operators:
        raise FormatError("no DALI pipeline: it has no operator")
    for operator in operators:
        fields = list(_fields(operator))
        name = next((content.decode(errors="replace") for number, content in fields if number == 1), "")
        if name not in known:
            found.add(name)
            continue
        for argument in (content for number, content in fields if number == 4):
            title = next((each.decode(errors="replace") for number, each in _fields(argument) if number == 1), "")
            is_past = title.startswith("_") or title in _DALI_READS_PAST or title == "device"
            if not is_past and title not in known[name].split():
                found.add(f"{name}({title})")
    return tuple(sorted(found))


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of the fields of a protobuf message that hold bytes. Raises FormatError."""
    # Only a DALI pipeline needs it.
    from google.protobuf import empty_pb2, message, unknown_fields  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    holder = empty_pb2.Empty()  # it supports no field of the message
    try:
        holder.ParseFromString(content)
    except message.DecodeError as error:
        raise FormatError("no DALI pipeline, or not all of one") from error
    fields = unknown_fields.UnknownFieldSet(holder)
    return ((field.field_number, field.data) for field in fields if isinstance(field.data, bytes))
