"""config.pbtxt against Triton's message definitions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tritonstack.errors import InputError
from tritonstack.models.model_config import ConfigFile, merge_configs, read_config, with_name
from tritonstack.models.pbtxt import PbtxtError, parse


@cases("text, line, path, found")
def test_what_contradicts_the_definitions_is_named_with_line_and_field(
    text: str, line: int, path: str, found: str
) -> None:
    complaints = read_config(text).complaints
    assert [(c.line, c.path, c.found) for c in complaints] == [(line, path, found)]


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
    files = [ConfigFile(file=f"{index}.pbtxt", text=text) for index, text in enumerate(fragments)]
    return merge_configs(ConfigFile(file="config.pbtxt", text=base), files)


def test_a_scalar_is_replaced_and_all_else_stays() -> None:
    assert merged() == BASE
    config, base = read_config(merged("max_batch_size: 4")), read_config(BASE)
    assert config.complaints == ()
    assert config.max_batch_size == 4
    plain, before = config.node.plain(), base.node.plain()
    assert {**plain, "max_batch_size": None} == {**before, "max_batch_size": None}


def test_a_fragment_that_is_no_text_format_is_named_with_its_line() -> None:
    with pytest.raises(InputError) as caught:
        merged("max_batch_size: 4", "\nmax_batch_size")
    assert [problem.file for problem in caught.value.problems] == ["1.pbtxt:2"]


def test_another_name_leaves_a_configuration_without_one_as_it_is() -> None:
    assert read_config(with_name(ConfigFile(file="c", text=BASE), "bert-0")).name == "bert-0"
    assert with_name(ConfigFile(file="c", text="max_batch_size: 1  # one"), "x") == "max_batch_size: 1  # one"


@settings(max_examples=300)
@given(text=st.text(st.sampled_from("ab1.-{}[]<>:,;\"'\\ \n#x0e"), max_size=30))
def test_any_text_is_read_or_refused_with_a_line_of_the_text(text: str) -> None:
    try:
        parse(text)
    except PbtxtError as error:
        assert 1 <= error.line <= text.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("name", 1, "':' or '{'"),
        ("a: 1x", 1, "a space is missing"),
        ('\na: "x', 2, "does not end on its line"),
        ("a {\n\n", 3, "opened on line 1 is not closed"),
        ("a: -b", 1, "a number was expected"),
        ('a: "\\q"', 1, "unknown escape"),
        ("[a.b]: 1", 1, "a field's name was expected"),
        ("a {" * 101, 1, "nested more than"),
    ],
)
def test_what_is_no_text_format_is_refused_with_its_line(text: str, line: int, part: str) -> None:
    with pytest.raises(PbtxtError) as caught:
        parse(text)
    assert caught.value.line == line
    assert part in caught.value.message
