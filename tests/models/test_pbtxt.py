"""A property of the text format: every message reads back as written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonstack.models.pbtxt import Field, Message, Scalar, parse, to_text

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


@given(MESSAGES)
def test_any_message_reads_back_as_it_was_written(message: Message) -> None:
    assert plain(parse(to_text(message))) == plain(message)
