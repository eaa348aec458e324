"""A configuration as JSON, against what protobuf makes of it with Triton's own definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tritonclient
from google.protobuf import json_format, text_format  # type: ignore[import-untyped, unused-ignore]  # no stubs

from tests.models.protobuf_merge import definitions
from tests.models.test_protobuf_merge import FRAGMENTS
from tritonstack.models.config_json import config_json
from tritonstack.models.model_config import read_config
from tritonstack.models.programs import REPOSITORY

MESSAGES: Any = definitions(str(Path(tritonclient.__path__[0]) / "grpc" / "model_config_pb2.py"))
CONFIGS = {f"{path.parent.name}": path.read_text() for path in (REPOSITORY / "model_repos").glob("*/*/config.pbtxt")}
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
no_such_field: 0
""".strip().splitlines()


def wide_fields(message: Any) -> set[str]:
    """A message's fields of 64-bit integers, which protobuf's JSON writes as text."""
    own = {one.name for one in message.fields if one.cpp_type in (one.CPPTYPE_INT64, one.CPPTYPE_UINT64)}
    return own.union(*(wide_fields(nested) for nested in message.nested_types))


WIDE = set().union(*map(wide_fields, MESSAGES.DESCRIPTOR.message_types_by_name.values()))


def protobufs(text: str) -> Any:
    """protobuf's own JSON of a configuration, with every scalar that belongs to no oneof."""
    message = text_format.Parse(text, MESSAGES.ModelConfig())
    written = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return numbers(written)


def numbers(value: Any) -> Any:
    """64-bit integers, which protobuf writes as text, as Triton writes them."""
    if isinstance(value, dict):
        return {key: _number(one) if key in WIDE else numbers(one) for key, one in value.items()}
    return [numbers(one) for one in value] if isinstance(value, list) else value


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(one) for one in value]
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else numbers(value)


@pytest.mark.parametrize("text", [*CONFIGS.values(), *FRAGMENTS, *MORE, ""])
def test_json_is_what_protobuf_writes(text: str) -> None:
    config = read_config(text)
    if config.complaints:
        with pytest.raises(text_format.ParseError):
            protobufs(text)
        return
    assert json.loads(json.dumps(config_json(config.node), allow_nan=False)) == protobufs(text)


def test_every_configuration_of_the_repository_is_there() -> None:
    assert len(CONFIGS) > 10
    assert sum("ensemble_scheduling" in text for text in CONFIGS.values()) >= 2
