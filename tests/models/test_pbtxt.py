"""Properties of the text format: every spelling is read, every message reads back as written, fragments merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.models.model_config import ConfigFile, merge_configs
from tritonstack.models.pbtxt import Field, Message, Scalar, parse, to_text

Value = Any
_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
_scalars = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
_fields = st.recursive(
    st.lists(st.tuples(_names, _scalars), max_size=4),
    lambda inner: st.lists(st.tuples(_names, st.one_of(_scalars, inner)), max_size=4),
    max_leaves=20,
)


class _Writer:
    """Writes fields in every spelling that the format has, as ``draw`` decides."""

    def __init__(self, draw: st.DataObject) -> None:
        self.draw = draw

    def choice(self, *texts: str) -> str:
        return self.draw.draw(st.sampled_from(texts))

    def gap(self) -> str:
        return self.choice(" ", "\n", "\t", '  # a comment: { [ " \n', " ")

    def fields(self, fields: list[tuple[str, Value]]) -> str:
        return self.gap().join(self.field(name, value) + self.choice("", ",", ";") for name, value in fields)

    def field(self, name: str, value: Value) -> str:
        if isinstance(value, list):
            opening, closing = self.draw.draw(st.sampled_from([("{", "}"), ("<", ">")]))
            return f"{name}{self.choice(':', '', ' : ')}{opening}{self.gap()}{self.fields(value)}{self.gap()}{closing}"
        text = self.scalar(value)
        return f"{name}: [{self.gap()}{text}]" if self.draw.draw(st.booleans()) else f"{name}:{self.gap()}{text}"

    def scalar(self, value: Value) -> str:
        if isinstance(value, str):
            half = len(value) // 2
            return self.choice(
                self.quoted(value), f"{self.quoted(value[:half])}{self.gap()}{self.quoted(value[half:])}"
            )
        if isinstance(value, float):
            return repr(value)
        sign = "-" if value < 0 else ""
        return self.choice(str(value), f"{sign}{hex(abs(value))}", f"{sign}0{abs(value):o}")

    def quoted(self, text: str) -> str:
        quote = self.choice('"', "'")
        plain = "".join(self.escaped(letter, quote) for letter in text)
        return f"{quote}{plain}{quote}"

    def escaped(self, letter: str, quote: str) -> str:
        if letter in "\\\n" or letter == quote or self.draw.draw(st.integers(0, 5)) == 0:
            octal = "".join(f"\\{byte:03o}" for byte in letter.encode())
            return self.choice(octal, "".join(f"\\x{byte:02x}" for byte in letter.encode()), f"\\U{ord(letter):08x}")
        return letter


def _plain(message: Message) -> list[tuple[str, Value]]:
    return [
        (field.name, field.value.value if isinstance(field.value, Scalar) else _plain(field.value))
        for field in message.fields
    ]


@settings(max_examples=150)
@given(fields=_fields, data=st.data())
def test_what_is_written_in_any_spelling_is_read_back(fields: list[tuple[str, Value]], data: st.DataObject) -> None:
    assert _plain(parse(_Writer(data).fields(fields))) == fields


NAMES = st.sampled_from(["name", "input", "dims", "parameters", "key", "value", "count"])
STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(
    st.builds(lambda text: Scalar("string", text, 1), STRINGS),
    st.builds(lambda number: Scalar("integer", number, 1), st.integers(-(2**63), 2**63)),
    st.builds(lambda number: Scalar("float", number, 1), st.floats(allow_nan=False, allow_infinity=False)),
    st.sampled_from([Scalar("word", "KIND_GPU", 1), Scalar("word", "true", 1)]),
)
MESSAGES = st.recursive(
    st.just(Message((), 1)),
    lambda inner: st.lists(st.tuples(NAMES, st.one_of(SCALARS, inner)), max_size=5).map(
        lambda pairs: Message(tuple(Field(name, value, 1) for name, value in pairs), 1)
    ),
    max_leaves=12,
)


def plain(message: Message) -> dict[str, list[object]]:
    """Field → its values in their order: what a message means. Protobuf does not order different fields."""
    found: dict[str, list[object]] = {}
    for field in message.fields:
        value = field.value
        found.setdefault(field.name, []).append(
            plain(value) if isinstance(value, Message) else (value.kind, value.value)
        )
    return found


def _merged(base: str, fragments: Sequence[str]) -> str:
    files = [ConfigFile(file=f"{index}.pbtxt", text=text) for index, text in enumerate(fragments)]
    return merge_configs(ConfigFile(file="config.pbtxt", text=base), files)


@given(st.lists(MESSAGES, min_size=1, max_size=3))
def test_merging_takes_the_last_value_of_each_field_and_is_deterministic(messages: list[Message]) -> None:
    base, *fragments = [to_text(message) for message in messages]
    text = _merged(base, fragments)
    assert text == _merged(base, fragments)
    result = plain(parse(text))
    for name in ("name", "input", "dims"):
        last = [plain(message)[name] for message in messages if name in plain(message)][-1:]
        assert result.get(name) == (last[0] if last else None)


@given(MESSAGES)
def test_any_message_reads_back_as_it_was_written(message: Message) -> None:
    assert plain(parse(to_text(message))) == plain(message)
