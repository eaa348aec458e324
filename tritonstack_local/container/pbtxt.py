"""Edits of ``config.pbtxt``: instance groups without GPUs, another value of a parameter; the rest says the same.

Source of the fields' meaning: ``model_config.proto`` of triton-inference-server/common (ModelInstanceGroup).
"""

from __future__ import annotations

from dataclasses import replace

from tritonstack.errors import WorkFailedError
from tritonstack.models.pbtxt import Message, PbtxtError, Scalar, parse, quoted, to_text

_ON_GPU = ("KIND_GPU", 1)
_AUTOMATIC = ("KIND_AUTO", 0, None)


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
    fields = tuple(
        replace(field, value=_on_cpu(field.value))
        if field.name == "instance_group" and isinstance(field.value, Message)
        else field
        for field in config.fields
    )
    platform = config.last("platform")
    is_ensemble = isinstance(platform, Scalar) and platform.value == "ensemble"
    if not config.all("instance_group") and not is_ensemble and not config.all("ensemble_scheduling"):
        fields += parse("instance_group { count: 1 kind: KIND_CPU }").fields
    return text if fields == config.fields else to_text(replace(config, fields=fields))


def _on_cpu(group: Message) -> Message:
    kind = group.last("kind")
    value = kind.value if isinstance(kind, Scalar) else None
    if value not in (*_ON_GPU, *_AUTOMATIC):
        return group
    gone = ("gpus", "kind") if value in _ON_GPU else ("gpus",)
    fields = [field for field in group.fields if field.name not in gone]
    fields += parse("kind: KIND_CPU").fields if value in _ON_GPU else ()
    fields += () if group.all("count") else parse("count: 1").fields
    return replace(group, fields=tuple(fields))


def string_parameter(text: str, key: str, *, file: str = "config.pbtxt") -> str | None:
    """The ``string_value`` of a parameter; None without one. Raises :class:`ConfigSyntaxError`."""
    for entry in _parsed(text, file).all("parameters"):
        named = entry.value.last("key") if isinstance(entry.value, Message) else None
        value = entry.value.last("value") if isinstance(entry.value, Message) else None
        string = value.last("string_value") if isinstance(value, Message) else None
        if isinstance(named, Scalar) and named.value == key and isinstance(string, Scalar):
            return str(string.value)
    return None


def with_parameter(text: str, key: str, value: str) -> str:
    """The configuration with another ``string_value`` of a parameter, which stands last."""
    config = parse(text)
    others = tuple(
        field
        for field in config.fields
        if field.name != "parameters"
        or not isinstance(field.value, Message)
        or not isinstance(named := field.value.last("key"), Scalar)
        or named.value != key
    )
    entry = parse(f"parameters {{ key: {quoted(key)} value {{ string_value: {quoted(value)} }} }}")
    return to_text(replace(config, fields=others + entry.fields))


def _parsed(text: str, file: str) -> Message:
    try:
        return parse(text)
    except PbtxtError as error:
        raise ConfigSyntaxError(f"{file}: {error}") from error
