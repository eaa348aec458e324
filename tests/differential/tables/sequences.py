"""Sequence batching: controls, strategies and states."""

from __future__ import annotations

from tests.differential.bases import SEQUENCE
from tests.differential.repository import Mutation, more, swap

_DIRECT = "direct { max_queue_delay_microseconds: 100 minimum_slot_utilization: 0.5 }"
_START = '{ name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] }'
_STATE = '{ input_name: "IN_STATE" output_name: "OUT_STATE" data_type: TYPE_INT32 dims: [ 4 ] }'

SEQUENCES = (
    Mutation(
        "control-without-name",
        SEQUENCE,
        swap('name: "START"', 'name: ""'),
        "sequence-batching",
        "control tensor must have a name",
    ),
    Mutation(
        "control-name-twice",
        SEQUENCE,
        swap('"READY"', '"START"'),
        "sequence-batching",
        "is specified for multiple control kinds",
    ),
    Mutation(
        "control-kind-twice",
        SEQUENCE,
        swap("CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_START"),
        "sequence-batching",
        "specifies multiple CONTROL_SEQUENCE_START",
    ),
    Mutation(
        "control-kind-unknown",
        SEQUENCE,
        swap("CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_GO"),
        "config",
        "CONTROL_SEQUENCE_GO",
    ),
    Mutation(
        "control-without-values",
        SEQUENCE,
        swap("fp32_false_true: [ 0, 1 ]", ""),
        "sequence-batching",
        "must specify either 'int32_false_true'",
    ),
    Mutation(
        "control-of-one-value",
        SEQUENCE,
        swap("fp32_false_true: [ 0, 1 ]", "fp32_false_true: 1"),
        "sequence-batching",
        "must have exactly 2 entries",
    ),
    Mutation(
        "control-of-three-values",
        SEQUENCE,
        swap("int32_false_true: [ 0, 1 ]", "int32_false_true: [ 0, 1, 2 ]"),
        "sequence-batching",
        "must have exactly 2 entries",
    ),
    Mutation(
        "control-of-two-types",
        SEQUENCE,
        swap("fp32_false_true: [ 0, 1 ]", "fp32_false_true: [ 0, 1 ] int32_false_true: [ 0, 1 ]"),
        "sequence-batching",
        "specifies more than one from",
    ),
    Mutation(
        "control-of-truth-values", SEQUENCE, swap("fp32_false_true: [ 0, 1 ]", "bool_false_true: [ false, true ]")
    ),
    Mutation("control-with-equal-values", SEQUENCE, swap("fp32_false_true: [ 0, 1 ]", "fp32_false_true: [ 1, 1 ]")),
    Mutation("control-left-out", SEQUENCE, swap(f"    {_START},\n", "")),
    Mutation(
        "correlation-without-type",
        SEQUENCE,
        swap("data_type: TYPE_UINT64", ""),
        "sequence-batching",
        "unexpected data type for control CONTROL_SEQUENCE_CORRID",
    ),
    Mutation(
        "correlation-of-wrong-type",
        SEQUENCE,
        swap("TYPE_UINT64", "TYPE_FP32"),
        "sequence-batching",
        "unexpected data type for control CONTROL_SEQUENCE_CORRID",
    ),
    Mutation("correlation-of-text", SEQUENCE, swap("TYPE_UINT64", "TYPE_STRING")),
    Mutation(
        "correlation-with-values",
        SEQUENCE,
        swap("TYPE_UINT64", "TYPE_UINT64 int32_false_true: [ 0, 1 ]"),
        "sequence-batching",
        "must not specify either",
    ),
    Mutation(
        "slot-utilization-above-one",
        SEQUENCE,
        swap("0.5", "1.5"),
        "sequence-batching",
        "minimum slot utilization must be in range",
    ),
    Mutation(
        "slot-utilization-negative",
        SEQUENCE,
        swap("0.5", "-0.5"),
        "sequence-batching",
        "minimum slot utilization must be in range",
    ),
    Mutation("slot-utilization-whole", SEQUENCE, swap("0.5", "1")),
    Mutation(
        "slot-utilization-infinite",
        SEQUENCE,
        swap("0.5", "inf"),
        "sequence-batching",
        "minimum slot utilization must be in range",
    ),
    Mutation("slot-utilization-no-number", SEQUENCE, swap("0.5", "nan")),
    Mutation("oldest", SEQUENCE, swap(_DIRECT, "oldest { max_candidate_sequences: 4 preferred_batch_size: [ 4, 8 ] }")),
    Mutation(
        "oldest-preferred-too-large",
        SEQUENCE,
        swap(_DIRECT, "oldest { max_candidate_sequences: 4 preferred_batch_size: 9 }"),
        "sequence-batching",
        "preferred batch size must be <= max batch size",
    ),
    Mutation(
        "oldest-preferred-zero",
        SEQUENCE,
        swap(_DIRECT, "oldest { max_candidate_sequences: 4 preferred_batch_size: 0 }"),
        "sequence-batching",
        "preferred batch size must be positive",
    ),
    Mutation("oldest-and-direct", SEQUENCE, swap(_DIRECT, f"{_DIRECT} oldest {{ }}"), "config", "oneof"),
    Mutation("strategy-left-out", SEQUENCE, swap(_DIRECT, "")),
    Mutation("idle-left-out", SEQUENCE, swap("max_sequence_idle_microseconds: 5000000", "")),
    Mutation(
        "sequences-with-response-cache",
        SEQUENCE,
        more("response_cache { enable: true }"),
        "response-cache",
        "Response Cache does not currently support model",
    ),
    Mutation("sequences-without-batching", SEQUENCE, swap("max_batch_size: 8", "max_batch_size: 0")),
    Mutation("sequences-empty", SEQUENCE, (swap(f"state [ {_STATE} ]", ""), swap(_DIRECT, ""))),
    Mutation("state-without-input", SEQUENCE, swap('input_name: "IN_STATE" ', "")),
    Mutation("state-without-type", SEQUENCE, swap("data_type: TYPE_INT32 ", "")),
    Mutation("state-without-dims", SEQUENCE, swap("TYPE_INT32 dims: [ 4 ]", "TYPE_INT32")),
    Mutation("state-with-dims-zero", SEQUENCE, swap("TYPE_INT32 dims: [ 4 ]", "TYPE_INT32 dims: [ 0 ]")),
    Mutation("state-of-variable-dims", SEQUENCE, swap("TYPE_INT32 dims: [ 4 ]", "TYPE_INT32 dims: [ -1 ]")),
    Mutation("state-named-as-an-input", SEQUENCE, swap('input_name: "IN_STATE"', 'input_name: "x"')),
    Mutation("state-named-as-an-output", SEQUENCE, swap('output_name: "OUT_STATE"', 'output_name: "y"')),
    Mutation("state-twice", SEQUENCE, swap(_STATE, f"{_STATE}, {_STATE}")),
    Mutation(
        "state-with-zero-start",
        SEQUENCE,
        swap(
            "TYPE_INT32 dims: [ 4 ]",
            'TYPE_INT32 dims: [ 4 ] initial_state { name: "s" data_type: TYPE_INT32 dims: [ 4 ] zero_data: true }',
        ),
    ),
)
