"""config.pbtxt against Triton's message definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.errors import InputError
from tritonstack.models.model_config import ConfigFile, merge_configs, read_config, with_name
from tritonstack.models.pbtxt import Field, Message, Scalar, parse, to_text


@pytest.mark.parametrize(
    ("text", "line", "path", "found"),
    [
        ('name: "a"\nbatch_size: 1', 2, "batch_size", "an unknown field batch_size"),
        ('name: "a"\nname: "b"', 2, "name", "the field a second time"),
        ('name: [ "a" ]', 1, "name", "a list"),
        ("name: a", 1, "name", "a"),
        ('max_batch_size: "8"', 1, "max_batch_size", '"8"'),
        ("max_batch_size: 2147483648", 1, "max_batch_size", "2147483648"),
        ("max_batch_size: 1.0", 1, "max_batch_size", "1.0"),
        ("input { data_type: TYPE_FLOAT }", 1, "input.data_type", "TYPE_FLOAT"),
        ("input { is_shape_tensor: 2 }", 1, "input.is_shape_tensor", "2"),
        ("input: 1", 1, "input", "a value"),
        ("name { }", 1, "name", "a message"),
        (
            "dynamic_batching {}\nsequence_batching {}",
            2,
            "sequence_batching",
            "sequence_batching beside dynamic_batching",
        ),
        (
            "dynamic_batching { max_queue_delay_microseconds: -1 }",
            1,
            "dynamic_batching.max_queue_delay_microseconds",
            "-1",
        ),
        ("input [ {", 1, "", "the message opened on line 1 is not closed with '}'"),
    ],
)
def test_what_contradicts_the_definitions_is_named_with_line_and_field(
    text: str, line: int, path: str, found: str
) -> None:
    complaints = read_config(text).complaints
    assert [(c.line, c.path, c.found) for c in complaints] == [(line, path, found)]


def test_every_contradiction_is_named_at_once() -> None:
    assert len(read_config("a: 1\nb: 2\nname: 3\nmax_batch_size: true").complaints) == 4


def test_values_are_read_as_protobuf_reads_them() -> None:
    config = read_config(
        """
        name: "m" platform: "onnxruntime_onnx" max_batch_size: 0x10
        input { name: "x" data_type: TYPE_STRING dims: [ -1, 3 ] optional: t }
        output { name: "y" data_type: 11 dims: 4 dims: 5 reshape { shape: [ 20 ] } }
        """
    )
    assert config.complaints == ()
    assert (config.backend, config.max_batch_size, config.model_file) == ("onnxruntime", 16, "model.onnx")
    (x,), (y,) = config.inputs, config.outputs
    assert (x.data_type, x.dims, x.optional, x.shape(16)) == ("BYTES", (-1, 3), True, (-1, -1, 3))
    assert (y.data_type, y.dims, y.reshape, y.shape(0)) == ("FP32", (4, 5), (20,), (4, 5))


BASE = """\
name: "bert"  # the base
platform: "pytorch_libtorch"
max_batch_size: 32
input [ { name: "ids" data_type: TYPE_INT32 dims: [ 512 ] }, { name: "mask" data_type: TYPE_INT32 dims: [ 512 ] } ]
output [ { name: "pooled" data_type: TYPE_FP32 dims: [ 1024 ] } ]
parameters { key: "A" value { string_value: "1" } }
parameters { key: "B" value { string_value: "2" } }
dynamic_batching { preferred_batch_size: [ 8, 16 ] max_queue_delay_microseconds: 100 }
instance_group [ { count: 1 kind: KIND_GPU } ]
"""


def merged(*fragments: str, base: str = BASE) -> str:
    """The base with the fragments over it."""
    files = [ConfigFile(file=f"{index}.pbtxt", text=text) for index, text in enumerate(fragments)]
    return merge_configs(ConfigFile(file="config.pbtxt", text=base), files)


def test_without_fragments_the_text_stays_as_it_is() -> None:
    assert merged() == BASE


def test_a_scalar_is_replaced_and_all_else_stays() -> None:
    config, base = read_config(merged("max_batch_size: 4")), read_config(BASE)
    assert config.complaints == ()
    assert config.max_batch_size == 4
    plain, before = config.node.plain(), base.node.plain()
    assert {**plain, "max_batch_size": None} == {**before, "max_batch_size": None}


def test_a_repeated_field_and_a_message_are_replaced_whole() -> None:
    config = read_config(merged("dynamic_batching { }\ninput { name: 'one' data_type: TYPE_FP32 dims: 1 }"))
    batching = config.node.node("dynamic_batching")
    assert batching is not None
    assert not batching.has("preferred_batch_size")
    assert [tensor.name for tensor in config.inputs] == ["one"]


def test_entries_of_a_map_are_merged_by_key() -> None:
    over = "parameters { key: 'B' value { string_value: '3' } } parameters { key: 'C' value { string_value: '4' } }"
    entries = read_config(merged(over)).node.entries("parameters")
    values = {key: node.text("string_value") for key, node in entries.items() if not isinstance(node, str)}
    assert values == {"A": "1", "B": "3", "C": "4"}


def test_a_member_of_a_choice_drops_the_others() -> None:
    config = read_config(merged("sequence_batching { }"))
    assert config.complaints == ()
    assert not config.node.has("dynamic_batching")


def test_the_last_fragment_wins() -> None:
    assert read_config(merged("max_batch_size: 4", "max_batch_size: 2")).max_batch_size == 2


def test_a_fragment_that_is_no_text_format_is_named_with_its_line() -> None:
    with pytest.raises(InputError) as caught:
        merged("max_batch_size: 4", "\nmax_batch_size")
    assert [problem.file for problem in caught.value.problems] == ["1.pbtxt:2"]


def test_a_field_that_a_fragment_has_twice_is_left_for_the_linter_to_refuse() -> None:
    complaints = read_config(merged("max_batch_size: 4\nmax_batch_size: 5")).complaints
    assert {complaint.path for complaint in complaints} == {"max_batch_size"}


def test_another_name_leaves_a_configuration_without_one_as_it_is() -> None:
    assert read_config(with_name(ConfigFile(file="c", text=BASE), "bert-0")).name == "bert-0"
    assert with_name(ConfigFile(file="c", text="max_batch_size: 1  # one"), "x") == "max_batch_size: 1  # one"


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


@given(st.lists(MESSAGES, min_size=1, max_size=3))
def test_merging_takes_the_last_value_of_each_field_and_is_deterministic(messages: list[Message]) -> None:
    base, *fragments = [to_text(message) for message in messages]
    text = merged(*fragments, base=base)
    assert text == merged(*fragments, base=base)
    result = plain(parse(text))
    for name in ("name", "input", "dims"):
        last = [plain(message)[name] for message in messages if name in plain(message)][-1:]
        assert result.get(name) == (last[0] if last else None)


@given(MESSAGES)
def test_any_message_reads_back_as_it_was_written(message: Message) -> None:
    assert plain(parse(to_text(message))) == plain(message)


@pytest.mark.parametrize(("value", "text"), [(math.inf, "inf"), (-math.inf, "-inf")])
def test_infinity_is_written_as_the_format_spells_it(value: float, text: str) -> None:
    assert to_text(Message((Field("x", Scalar("float", value, 1), 1),), 1)) == f"x: {text}\n"
