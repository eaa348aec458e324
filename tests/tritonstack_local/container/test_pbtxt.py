"""The one edit of ``config.pbtxt``, and that nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack_local.container.pbtxt import ConfigSyntaxError, string_parameters, with_value, without_gpus


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("instance_group [ { count: 2 kind: KIND_GPU } ]", "instance_group [ { count: 2 kind: KIND_CPU } ]"),
        ("instance_group { count: 2\n kind : KIND_GPU }", "instance_group { count: 2\n kind : KIND_CPU }"),
        ("instance_group: [ < count: 1, kind: 1 > ]", "instance_group: [ < count: 1, kind: KIND_CPU > ]"),
        (
            "instance_group [{count:1 kind:KIND_GPU gpus:[0, 1]},{count:1 kind:KIND_GPU gpus:2 gpus:3}]",
            "instance_group [{count:1 kind:KIND_CPU },{count:1 kind:KIND_CPU  }]",
        ),
        ("instance_group { gpus: [ 0 ], count: 3, kind: KIND_AUTO }", "instance_group {  count: 3, kind: KIND_AUTO }"),
        ("instance_group [ { count: 1 kind: KIND_MODEL } ]", "instance_group [ { count: 1 kind: KIND_MODEL } ]"),
        ("instance_group [ { kind: KIND_CPU } ]", "instance_group [ { kind: KIND_CPU } ]"),
        ("instance_group [ { kind: KIND_GPU } ]", "instance_group [ { count: 1 kind: KIND_CPU } ]"),
        ("instance_group [ { } ]", "instance_group [ { count: 1 } ]"),
        ("instance_group [{kind: KIND_GPU}]", "instance_group [{ count: 1 kind: KIND_CPU}]"),
        ("instance_group [{}]", "instance_group [{ count: 1}]"),
    ],
)
def test_instances_are_on_the_cpu_afterwards(before: str, after: str) -> None:
    assert without_gpus(before) == after


def test_a_configuration_without_instances_gets_one_as_on_a_gpu() -> None:
    assert without_gpus('backend: "python" # KIND_GPU') == (
        'backend: "python" # KIND_GPU\ninstance_group [ { count: 1 kind: KIND_CPU } ]\n'
    )


@pytest.mark.parametrize("text", ['platform: "ensemble"', "platform:'ensemble'\n", "ensemble_scheduling { step [] }"])
def test_an_ensemble_stays_since_it_has_no_instances(text: str) -> None:
    assert without_gpus(text) == text


def test_the_words_elsewhere_stay() -> None:
    text = (
        "# instance_group { kind: KIND_GPU }\n"
        'parameters { key: "kind" value: { string_value: "kind: KIND_GPU } \\" gpus: [0]" } }\n'
        "optimization { kind: KIND_GPU gpus: [0] }\n"
        "instance_group [ { count: 1 kind: KIND_CPU } ]\r\n"
    )
    assert without_gpus(text) == text


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name: 'a'\ninstance_group [ { kind: KIND_GPU", "line 2: the message opened on line 2 is not closed"),
        ("a: 1\n\n}", "line 3: a field's name was expected, found '}'"),
        ("name:", "line 1: a value was expected"),
    ],
)
def test_what_is_no_protobuf_text_is_refused_with_file_and_line(text: str, where: str) -> None:
    with pytest.raises(ConfigSyntaxError, match=f"^m/config.pbtxt: {where}"):
        without_gpus(text, file="m/config.pbtxt")


scalars = st.sampled_from(["1", "-2.5", "KIND_GPU", "true", '"text # { \\" }"', "'a' \"b\"", "[1, 2]", "[]"])
spaces = st.sampled_from([" ", "\n", "\t", " # kind: KIND_GPU\n"])
plain_fields = st.builds(
    lambda name, space, value: f"{name}:{space}{value}{space}", st.sampled_from("abc"), spaces, scalars
)
messages = st.recursive(
    plain_fields,
    lambda inner: st.builds(
        lambda name, parts: f"{name} {{ {' '.join(parts)} }}\n", st.sampled_from("xyz"), st.lists(inner)
    ),
    max_leaves=12,
)


@given(st.lists(messages), st.lists(messages))
def test_every_byte_outside_the_instance_groups_stays(before: list[str], after: list[str]) -> None:
    head, tail = " ".join(before), " ".join(after)
    served = without_gpus(f"{head} instance_group [ {{ kind: KIND_GPU gpus: [ 0 ] }} ] {tail}")
    assert served == f"{head} instance_group [ {{ count: 1 kind: KIND_CPU  }} ] {tail}"
    assert without_gpus(served) == served


@pytest.mark.parametrize(
    "text",
    [
        'parameters { key: "a" value { string_value: "b" } }',
        "parameters: { key: 'a', value: { string_value: 'b' } }",
        'parameters < value: < string_value: "b" > key: "a" >',
        'parameters [ { key: "a" value { string_value: "b" } } ]',
        '# parameters { key: "c" }\nparameters { key: "a" # key\n value { string_value: "b" } }',
    ],
)
def test_another_value_of_a_parameter_changes_nothing_else(text: str) -> None:
    (found,) = string_parameters(text)
    assert (found.key, found.value) == ("a", "b")
    changed = with_value(text, found, "other/value")
    assert changed in (text.replace('"b"', '"other/value"'), text.replace("'b'", '"other/value"'))


def test_adjacent_strings_are_one_value() -> None:
    text = 'parameters { key: "a" value { string_value: "one" \'-two\' } }'
    (found,) = string_parameters(text)
    assert found.value == "one-two"
    assert with_value(text, found, "x") == 'parameters { key: "a" value { string_value: "x" } }'


@pytest.mark.parametrize("text", ['parameters { key: "a" }', "parameters { value { string_value: 'b' } }"])
def test_parameters_without_key_or_text_are_passed_over(text: str) -> None:
    assert string_parameters(text) == ()


def test_a_parameter_that_cannot_be_read_is_reported_with_its_line() -> None:
    with pytest.raises(ConfigSyntaxError, match=r"other\.pbtxt: line 2: ':' or '{' was expected"):
        string_parameters("parameters {\n key }", file="other.pbtxt")
