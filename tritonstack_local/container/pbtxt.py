"""Edits of ``config.pbtxt``: instance groups without GPUs, another value of a parameter; every other byte as it was.

Protobuf's text format is read as tokens with their places, so that comments, order and layout survive.
Source of the fields' meaning: ``model_config.proto`` of triton-inference-server/common (ModelInstanceGroup).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tritonstack.errors import WorkFailedError

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<word>[A-Za-z0-9_.+-]+)
      | (?P<mark>[{}\[\]<>:,;/])""",
    re.VERBOSE | re.DOTALL,
)
_OPEN = {"{": "}", "<": ">", "[": "]"}
_KIND_GPU = ("KIND_GPU", "1")
_KIND_AUTO = ("KIND_AUTO", "0")
_KIND_CPU = "KIND_CPU"


class ConfigSyntaxError(WorkFailedError):
    """A ``config.pbtxt`` that is not protobuf text; the message names the file and the line."""


@dataclass(frozen=True)
class Token:
    """A token and its place in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a message: its name and the tokens of its value (``{``, …, ``}`` or ``[``, …, ``]`` included)."""

    name: str
    start: int
    value: tuple[Token, ...]

    @property
    def end(self) -> int:
        """Where the value ends."""
        return self.value[-1].end

    def messages(self) -> Iterator[tuple[Token, ...]]:
        """The tokens of each message of the value, brackets included: one message, or those of a list."""
        if self.value[0].text in ("{", "<"):
            yield self.value
        elif self.value[0].text == "[":
            at = 1
            while at < len(self.value) - 1:
                end = _closing(self.value, at)
                if self.value[at].text in ("{", "<"):
                    yield self.value[at : end + 1]
                at = end + 1


def without_gpus(text: str, *, file: str = "config.pbtxt") -> str:
    """The configuration with its instances on the CPU, as many as it has on one GPU.

    ``kind: KIND_GPU`` becomes ``KIND_CPU``, and ``gpus`` goes. Without a count Triton makes one instance on each
    GPU but two on a CPU, so ``count: 1`` is written. A group that is on the CPU stays, and so does
    ``KIND_MODEL``, which leaves the device to the backend.

    Args:
        text: the configuration.
        file: its name, for the error.

    Raises:
        ConfigSyntaxError: the text cannot be read.
    """
    edits: list[tuple[int, int, str]] = []
    with _said_of(file, text):
        top = tuple(fields(tuple(tokens(text))))
        for field in top:
            if field.name == "instance_group":
                for group in field.messages():
                    edits += _edits_of_group(group, text)
    if not any(field.name == "instance_group" for field in top) and not _is_ensemble(top):
        edits.append((len(text), len(text), f"\ninstance_group [ {{ count: 1 kind: {_KIND_CPU} }} ]\n"))
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
    """The parameters of a configuration that have a ``string_value``.

    Raises:
        ConfigSyntaxError: the text cannot be read.
    """
    with _said_of(file, text):
        top = fields(tuple(tokens(text)))
        entries = [entry for field in top if field.name == "parameters" for entry in field.messages()]
        return tuple(found for entry in entries if (found := _string_parameter(entry)))


def with_value(text: str, parameter: StringParameter, value: str) -> str:
    """The configuration with another value of a parameter. ``value`` has neither quotes nor backslashes."""
    return f'{text[: parameter.start]}"{value}"{text[parameter.end :]}'


def _string_parameter(entry: tuple[Token, ...]) -> StringParameter | None:
    found = {field.name: field for field in fields(entry[1:-1])}
    if "key" not in found or "value" not in found:
        return None
    for message in found["value"].messages():
        for field in fields(message[1:-1]):
            if field.name == "string_value":
                first = field.value[0]
                key, value = _text_of(found["key"].value), _text_of(field.value)
                return StringParameter(key=key, value=value, start=first.start, end=field.end)
    return None


def _text_of(value: tuple[Token, ...]) -> str:
    """What a string spells, or several in a row. Escapes stay as they are written: no name here has any."""
    return "".join(token.text[1:-1] for token in value)


def _is_ensemble(top: tuple[Field, ...]) -> bool:
    """Whether a configuration is an ensemble's, which has no instances."""
    return any(
        field.name == "ensemble_scheduling" or (field.name == "platform" and field.value[0].text[1:-1] == "ensemble")
        for field in top
    )


def _edits_of_group(group: tuple[Token, ...], text: str) -> Iterator[tuple[int, int, str]]:
    """The edits (start, end, replacement) of one instance group."""
    found = {field.name: field for field in fields(group[1:-1])}
    kind = found["kind"].value[0] if "kind" in found else None
    if kind is not None and kind.text not in (*_KIND_GPU, *_KIND_AUTO):
        return
    if kind is not None and kind.text in _KIND_GPU:
        yield kind.start, kind.end, _KIND_CPU
    if "count" not in found:
        space = "" if text[group[0].end] in " \t\r\n}>" else " "
        yield group[0].end, group[0].end, f" count: 1{space}"
    for field in fields(group[1:-1]):
        if field.name == "gpus":
            # A separator after the field goes with it: what follows must not begin with a comma.
            separator = re.match(r"\s*[,;]", text[field.end :])
            yield field.start, field.end + (separator.end() if separator else 0), ""


class _UnreadableError(Exception):
    """What is wrong with the text, and where."""

    def __init__(self, what: str, place: int) -> None:
        super().__init__(what)
        self.place = place


@contextmanager
def _said_of(file: str, text: str) -> Iterator[None]:
    """Turn what is wrong with the text into an error that names the file and the line."""
    try:
        yield
    except _UnreadableError as error:
        line = text.count("\n", 0, error.place) + 1
        raise ConfigSyntaxError(f"{file}: line {line}: {error}") from error


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text without white space and comments."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _UnreadableError(f"cannot read {text[at : at + 20]!r}", at)
        if match.lastgroup != "space":
            yield Token(match[0], match.start(), match.end())
        at = match.end()


def fields(inside: tuple[Token, ...]) -> Iterator[Field]:
    """The fields of a message, given the tokens inside it."""
    at = 0
    while at < len(inside):
        name = inside[at]
        if name.text in (",", ";"):
            at += 1
            continue
        first = at + 1
        if first < len(inside) and inside[first].text == ":":
            first += 1
        if name.text[0] in "{}[]<>:'\"" or first >= len(inside):
            raise _UnreadableError(f"a field was expected, {name.text!r} found", name.start)
        last = _closing(inside, first)
        while inside[first].text[0] in "'\"" and last + 1 < len(inside) and inside[last + 1].text[0] in "'\"":
            last += 1  # adjacent strings are one
        yield Field(name=name.text, start=name.start, value=inside[first : last + 1])
        at = last + 1


def _closing(inside: tuple[Token, ...], at: int) -> int:
    """The index of the token that ends the value beginning at ``at``."""
    awaited: list[str] = []
    for index in range(at, len(inside)):
        text = inside[index].text
        if text in _OPEN:
            awaited.append(_OPEN[text])
        elif text in _OPEN.values() and (not awaited or awaited.pop() != text):
            raise _UnreadableError(f"{text!r} closes nothing", inside[index].start)
        if not awaited:
            return index
    raise _UnreadableError(f"{inside[at].text!r} is not closed", inside[at].start)
