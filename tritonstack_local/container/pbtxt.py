"""Edits of ``config.pbtxt``: instance groups without GPUs, another value of a parameter; every other byte as it was.

Source of the fields' meaning: ``model_config.proto`` of triton-inference-server/common (ModelInstanceGroup).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tritonstack.errors import WorkFailedError
from tritonstack.models.pbtxt import Field, Message, PbtxtError, Scalar, parse

_ON_GPU = ("KIND_GPU", 1)
_AUTOMATIC = ("KIND_AUTO", 0)
_KIND_CPU = "KIND_CPU"

_Edit = tuple[int, int, str]
"""Start, end and replacement."""


class ConfigSyntaxError(WorkFailedError):
    """A ``config.pbtxt`` that is not protobuf text; the message names the file and the line."""


def without_gpus(text: str, *, file: str = "config.pbtxt") -> str:
    """The configuration with its instances on the CPU, as many as it has on one GPU.

    ``kind: KIND_GPU`` becomes ``KIND_CPU``, and ``gpus`` goes. Without a count Triton makes one instance on each
    GPU but two on a CPU, so ``count: 1`` is written. A group that is on the CPU stays, and so does
    ``KIND_MODEL``, which leaves the device to the backend. ``file``: for the error.

    Raises ConfigSyntaxError: the text cannot be read.
    """
    config = _parsed(text, file)
    groups = config.all("instance_group")
    edits = {edit for group in groups if isinstance(group.value, Message) for edit in _group_edits(group.value, text)}
    platform = config.last("platform")
    is_ensemble = isinstance(platform, Scalar) and platform.value == "ensemble"
    if not groups and not is_ensemble and not config.all("ensemble_scheduling"):
        edits.add((len(text), len(text), f"\ninstance_group [ {{ count: 1 kind: {_KIND_CPU} }} ]\n"))
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


@dataclass(frozen=True, kw_only=True)
class StringParameter:
    """A parameter with a text for its value, and where that text stands in the file, quotes included."""

    key: str
    value: str
    start: int
    end: int


def string_parameters(text: str, *, file: str = "config.pbtxt") -> tuple[StringParameter, ...]:
    """The parameters of a configuration that have a ``string_value``. Raises :class:`ConfigSyntaxError`."""
    found = []
    for entry in _parsed(text, file).all("parameters"):
        key = entry.value.last("key") if isinstance(entry.value, Message) else None
        value = entry.value.last("value") if isinstance(entry.value, Message) else None
        string = value.last("string_value") if isinstance(value, Message) else None
        if isinstance(key, Scalar) and isinstance(string, Scalar):
            place = {"start": string.start, "end": string.end}
            found.append(StringParameter(key=str(key.value), value=str(string.value), **place))
    return tuple(found)


def with_value(text: str, parameter: StringParameter, value: str) -> str:
    """The configuration with another value of a parameter. ``value`` has neither quotes nor backslashes."""
    return f'{text[: parameter.start]}"{value}"{text[parameter.end :]}'


def _parsed(text: str, file: str) -> Message:
    try:
        return parse(text)
    except PbtxtError as error:
        raise ConfigSyntaxError(f"{file}: {error}") from error


def _group_edits(group: Message, text: str) -> Iterator[_Edit]:
    """The edits of one instance group."""
    kind = group.last("kind")
    value = kind.value if isinstance(kind, Scalar) else None
    if kind is not None and value not in (*_ON_GPU, *_AUTOMATIC):
        return
    if value in _ON_GPU and kind is not None:
        yield kind.start, kind.end, _KIND_CPU
    if not group.all("count"):
        inside = group.start + 1
        yield inside, inside, " count: 1" + ("" if text[inside] in " \t\r\n}>" else " ")
    for gpus in group.all("gpus"):
        yield gpus.start, _with_separator(gpus, text), ""


def _with_separator(field: Field, text: str) -> int:
    """The end of a field and of the separator after it: what follows must not begin with a comma."""
    separator = re.match(r"\s*[,;]", text[field.end :])
    return field.end + (separator.end() if separator else 0)
