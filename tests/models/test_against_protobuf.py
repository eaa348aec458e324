"""Our reader of config.pbtxt against protobuf's own, with Triton's definitions of the messages out of tritonclient."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import pytest
import tritonclient
from google.protobuf import json_format, text_format  # type: ignore[import-untyped, unused-ignore]  # no stubs

from tritonstack.models.model_config import (
    ConfigFile,
    config_json,
    enum_members,
    is_message,
    merge_configs,
    message_fields,
    read_config,
)
from tritonstack.paths import REPOSITORY


def _definitions() -> Any:
    """Triton's messages: tritonclient's package for gRPC wants grpcio, the module with the messages does not."""
    path = Path(tritonclient.__path__[0]) / "grpc" / "model_config_pb2.py"
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MESSAGES = _definitions()
CONFIGS = [path.read_text() for path in sorted((REPOSITORY / "model_repos").glob("*/*/config.pbtxt"))]
FRAGMENTS = [
    "max_batch_size: 4",
    "name: 'other \\303\\244 \\\"quoted\\\"'",
    "dynamic_batching { max_queue_delay_microseconds: 7 preferred_batch_size: [ 2, 4 ] }",
    "sequence_batching { max_sequence_idle_microseconds: 5 }",
    "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] }, { count: 1 kind: KIND_CPU } ]",
    "parameters { key: 'a' value { string_value: 'new' } } parameters { key: 'b' value { string_value: '' } }",
    "optimization { graph { level: -1 } execution_accelerators { gpu_execution_accelerator { name: 'tensorrt' } } }",
    "sequence_batching { direct { minimum_slot_utilization: inf } }",
    "platform: 'tensorrt_plan' metric_tags { key: 'x' value: '1' } cc_model_filenames: { key: '8.0' value: 'm' }",
    "version_policy { specific { versions: [ 1, 3 ] } } input [ { name: 'i' data_type: TYPE_FP32 dims: [ -1 ] } ]",
]
MORE = """
sequence_batching { direct { max_queue_delay_microseconds: 3 minimum_slot_utilization: 0.5 } }
sequence_batching { control_input { name: "S" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } } }
model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } }
dynamic_batching { priority_levels: 2 priority_queue_policy { key: 1 value { timeout_action: DELAY } } }
dynamic_batching { default_queue_policy { default_timeout_microseconds: 9 allow_timeout_override: true } }
response_cache { enable: true } model_transaction_policy { decoupled: true }
batch_input { kind: BATCH_ELEMENT_COUNT target_name: "t" data_type: TYPE_INT32 source_input: "x" }
instance_group { kind: KIND_GPU rate_limiter { resources { name: "R" global: true count: 2 } priority: 3 } }
optimization { cuda { graphs: true graph_spec { batch_size: 1 input { key: "x" value { dim: [ 1, 2 ] } } } } }
input { name: "i" data_type: 11 dims: -1 reshape { } }
input < name: 'a\\x41\\U000000e4' "b\\n" ; dims: 017, dims: [ 0x10, -2 ] > # comment { [
sequence_batching { direct { minimum_slot_utilization: -1.5e-3 } }
sequence_batching { direct { minimum_slot_utilization: .5F } } name: "\\u00e4"   'b'
default_model_filename: "\\061\\x32" "\\a\\\\" max_batch_size: 0x2
metric_tags: < key: 'k', value: "\\"" >; version_policy: { latest { num_versions: 02 } }
""".strip().splitlines()
PIECES = (
    *"{}[]<>:,;-\n\t#.",
    *("1", "0x1F", "017", "1.5", "1e3", "inf", "true", "yes", "'a'", '"a"', '"\\x41"', "KIND_GPU", "TYPE_FP32", "99"),
    *("dims", "name", "input", "//", "ä", "\0"),
)


def _parsed(text: str) -> Any:
    return text_format.Parse(text, MESSAGES.ModelConfig())


def _is_refused(text: str) -> bool:
    try:
        _parsed(text)
    except text_format.ParseError:
        return True
    return False


def _mutated(count: int) -> list[str]:
    """The project's own configurations with small pieces left out, doubled or put in; the same ones every time."""
    choose = random.Random(0)
    texts = []
    for _ in range(count):
        text = choose.choice(CONFIGS)
        for _ in range(choose.choice([1, 1, 2, 3])):
            start = choose.randrange(len(text))
            end = min(len(text), start + choose.choice([0, 1, 2, 5, 20]))
            middle = choose.choice(["", 2 * text[start:end], choose.choice(PIECES)])
            text = f"{text[:start]}{middle}{text[end:]}"
        texts.append(text)
    return texts


def test_both_readers_refuse_the_same_of_a_thousand_mutated_configurations() -> None:
    texts = _mutated(1000)
    refused = {text for text in texts if _is_refused(text)}
    assert [text for text in texts if bool(read_config(text).complaints) != (text in refused)] == []
    assert 200 < len(refused) < 900


def test_both_readers_take_a_list_without_elements_for_the_same_fields() -> None:
    places = {"ModelConfig": "%s", "ModelOptimizationPolicy": "optimization { %s }", "ModelInput": "input { %s }"}
    fields = [(place, name) for kind, place in places.items() for name in (*message_fields(kind), "unknown")]
    texts = [place % f"{name}{colon}[ ]" for place, name in fields for colon in (" ", ": ")]
    taken = {text for text in texts if not _is_refused(text)}
    assert [text for text in texts if bool(read_config(text).complaints) == (text in taken)] == []
    assert len(fields) < len(taken) + len(fields) < len(texts)


def test_definitions_are_those_of_tritonclient() -> None:
    file = MESSAGES.DESCRIPTOR
    waiting = list(file.message_types_by_name.values())
    enums = list(file.enum_types_by_name.values())
    while waiting:
        message = waiting.pop()
        name = message.full_name.removeprefix(f"{file.package}.")
        ours = {field: spec.repeated for field, spec in message_fields(name).items()}
        assert is_message(name)
        assert ours == {field.name: field.is_repeated for field in message.fields}, name
        waiting += message.nested_types
        enums += message.enum_types
    for enum in enums:
        numbered = {value.number: value.name for value in enum.values}
        assert dict(enumerate(enum_members(enum.full_name.removeprefix(f"{file.package}.")))) == numbered
    assert len(enums) > 5


def _merge(base: Any, fragment: Any) -> None:
    """Replace the fragment's fields, but entries of maps by their key; protobuf's own merge would add to them."""
    for field, value in fragment.ListFields():
        if field.message_type is None or not field.message_type.GetOptions().map_entry:
            base.ClearField(field.name)
            continue
        target = getattr(base, field.name)
        for key in value:
            if hasattr(value[key], "CopyFrom"):
                target[key].CopyFrom(value[key])
            else:
                target[key] = value[key]
        fragment.ClearField(field.name)
    base.MergeFrom(fragment)


@pytest.mark.parametrize("number", range(len(FRAGMENTS)))
def test_merging_fragments_gives_the_message_that_protobuf_gives(number: int) -> None:
    fragments = [FRAGMENTS[number], FRAGMENTS[(number * 2 + 3) % len(FRAGMENTS)]]
    for config in CONFIGS:
        expected = _parsed(config)
        for fragment in fragments:
            _merge(expected, _parsed(fragment))
        files = [ConfigFile(file="fragment", text=text) for text in fragments]
        assert _parsed(merge_configs(ConfigFile(file="config.pbtxt", text=config), files)) == expected


def _wide_fields(message: Any) -> set[str]:
    """A message's fields of 64-bit integers, which protobuf's JSON writes as text and Triton as numbers."""
    own = {field.name for field in message.fields if field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64)}
    return own.union(*map(_wide_fields, message.nested_types))


WIDE = set().union(*map(_wide_fields, MESSAGES.DESCRIPTOR.message_types_by_name.values()))


def _numbers(value: Any, *, is_wide: bool = False) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(one, is_wide=key in WIDE) for key, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one, is_wide=is_wide) for one in value]
    return int(value) if is_wide and isinstance(value, str) and value.lstrip("-").isdigit() else value


@pytest.mark.parametrize("text", [*CONFIGS, *FRAGMENTS, *MORE, ""])
def test_json_is_what_protobuf_writes(text: str) -> None:
    written = json_format.MessageToDict(
        _parsed(text), preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    config = read_config(text)
    assert config.complaints == ()
    assert json.loads(json.dumps(config_json(config.node), allow_nan=False)) == _numbers(written)
