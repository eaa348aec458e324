"""Instance groups, dynamic batching and warm-up."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE
from tests.differential.repository import Mutation, more, swap, write

_GROUP = 'instance_group [ { name: "workers" kind: KIND_CPU count: 2 } ]'
_SIMPLE = "{ kind: KIND_CPU }"
_ZEROS = 'inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } }'


INSTANCES = (
    Mutation("instances-left-out", DOUBLE, swap(f"instance_group [ {_SIMPLE} ]\n", "")),
    Mutation("instances-automatic", DOUBLE, swap("KIND_CPU", "KIND_AUTO")),
    Mutation("instances-of-model-kind", DOUBLE, swap("KIND_CPU", "KIND_MODEL")),
    Mutation("instances-of-unknown-kind", DOUBLE, swap("KIND_CPU", "KIND_TPU"), "config", "KIND_TPU"),
    Mutation("instances-zero", DOUBLE, swap(_SIMPLE, "{ kind: KIND_CPU count: 0 }")),
    Mutation("instances-negative", DOUBLE, swap(_SIMPLE, "{ kind: KIND_CPU count: -1 }")),
    Mutation("instances-three", DOUBLE, swap(_SIMPLE, "{ kind: KIND_CPU count: 3 }")),
    Mutation(
        "instances-in-words", DOUBLE, swap(_SIMPLE, "{ kind: KIND_CPU count: two }"), "config", "Expected integer"
    ),
    Mutation("instances-in-two-groups", DOUBLE, swap(_SIMPLE, "{ kind: KIND_CPU }, { kind: KIND_CPU count: 2 }")),
    Mutation(
        "instances-of-one-name", DOUBLE, swap(_SIMPLE, '{ name: "a" kind: KIND_CPU }, { name: "a" kind: KIND_CPU }')
    ),
    Mutation(
        "instances-on-cpu-with-gpus",
        DOUBLE,
        swap(_SIMPLE, "{ kind: KIND_CPU gpus: [ 0 ] }"),
        "instance-gpus",
        "KIND_CPU but specifies one or more GPUs",
    ),
    Mutation(
        "instances-of-model-kind-with-gpus",
        DOUBLE,
        swap(_SIMPLE, "{ kind: KIND_MODEL gpus: [ 0 ] }"),
        "instance-gpus",
        "KIND_MODEL but specifies one or more GPUs",
    ),
    Mutation(
        "instances-with-profile",
        DOUBLE,
        swap(_SIMPLE, '{ kind: KIND_CPU profile: "0" }'),
        "instance-profile",
        "only supported for TensorRT",
    ),
    Mutation("instances-passive", DOUBLE, swap(_SIMPLE, "{ kind: KIND_CPU passive: true }")),
    Mutation("instances-with-host-policy", DOUBLE, swap(_SIMPLE, '{ kind: KIND_CPU host_policy: "numa" }')),
    Mutation(
        "instances-with-rate-limiter",
        DOUBLE,
        swap(_SIMPLE, '{ kind: KIND_CPU rate_limiter { resources [ { name: "r" count: 1 } ] priority: 1 } }'),
    ),
    Mutation(
        "instances-with-secondary-device",
        DOUBLE,
        swap(_SIMPLE, "{ kind: KIND_CPU secondary_devices [ { kind: KIND_NVDLA device_id: 0 } ] }"),
    ),
    Mutation(
        "preferred-zero", BATCHED, swap("[ 4, 8 ]", "[ 0 ]"), "preferred-batch-size", "preferred size must be positive"
    ),
    Mutation(
        "preferred-negative",
        BATCHED,
        swap("[ 4, 8 ]", "[ -4 ]"),
        "preferred-batch-size",
        "preferred size must be positive",
    ),
    Mutation(
        "preferred-too-large",
        BATCHED,
        swap("[ 4, 8 ]", "[ 4, 9 ]"),
        "preferred-batch-size",
        "preferred size must be <= max batch size",
    ),
    Mutation("preferred-out-of-order", BATCHED, swap("[ 4, 8 ]", "[ 8, 4, 4 ]")),
    Mutation("preferred-left-out", BATCHED, swap("preferred_batch_size: [ 4, 8 ]", "")),
    Mutation(
        "preferred-without-batching",
        BATCHED,
        swap("max_batch_size: 8", "max_batch_size: 0"),
        "preferred-batch-size",
        "preferred size must be <= max batch size",
    ),
    Mutation(
        "dynamic-batching-without-batching",
        DOUBLE,
        (swap("max_batch_size: 8", "max_batch_size: 0"), more("dynamic_batching { }")),
    ),
    Mutation(
        "delay-negative", BATCHED, swap("microseconds: 100\n", "microseconds: -1\n"), "config", "Expected integer"
    ),
    Mutation(
        "delay-fraction", BATCHED, swap("microseconds: 100\n", "microseconds: 0.1\n"), "config", "Expected integer"
    ),
    Mutation("delay-zero", BATCHED, swap("microseconds: 100\n", "microseconds: 0\n")),
    Mutation(
        "priority-default-zero",
        BATCHED,
        swap("default_priority_level: 1", "default_priority_level: 0"),
        "priority-level",
        "default priority level must be in range [1, 2]",
    ),
    Mutation(
        "priority-default-left-out",
        BATCHED,
        swap("default_priority_level: 1", ""),
        "priority-level",
        "default priority level must be in range [1, 2]",
    ),
    Mutation(
        "priority-default-too-large",
        BATCHED,
        swap("default_priority_level: 1", "default_priority_level: 3"),
        "priority-level",
        "default priority level must be in range [1, 2]",
    ),
    Mutation(
        "priority-policy-of-level-three",
        BATCHED,
        swap("key: 2", "key: 3"),
        "priority-level",
        "priority queue policy must have priority level in range [1, 2]",
    ),
    Mutation(
        "priority-policy-of-level-zero",
        BATCHED,
        swap("key: 2", "key: 0"),
        "priority-level",
        "priority queue policy must have priority level in range [1, 2]",
    ),
    Mutation("priority-policy-without-levels", BATCHED, swap("priority_levels: 2\n  default_priority_level: 1\n", "")),
    Mutation(
        "ordering-with-priorities",
        BATCHED,
        swap("preserve_ordering: false", "preserve_ordering: true"),
        "preserve-ordering",
        "Only one priority level is allowed",
    ),
    Mutation(
        "ordering-with-one-priority",
        BATCHED,
        (
            swap("preserve_ordering: false", "preserve_ordering: true"),
            swap("priority_levels: 2", "priority_levels: 1"),
            swap("key: 2 value { timeout_action: DELAY", "key: 1 value { timeout_action: REJECT"),
        ),
    ),
    Mutation(
        "ordering-with-delayed-default",
        BATCHED,
        (
            swap("preserve_ordering: false", "preserve_ordering: true"),
            swap("priority_levels: 2", "priority_levels: 1"),
            swap("key: 2", "key: 1"),
            swap("REJECT", "DELAY"),
        ),
        "preserve-ordering",
        "can not have DELAY",
    ),
    Mutation(
        "ordering-with-delayed-level",
        BATCHED,
        (
            swap("preserve_ordering: false", "preserve_ordering: true"),
            swap("priority_levels: 2", "priority_levels: 1"),
            swap("key: 2", "key: 1"),
        ),
        "preserve-ordering",
        "can not have DELAY",
    ),
    Mutation("queue-policy-unknown-action", BATCHED, swap("REJECT", "DROP"), "config", "DROP"),
    Mutation(
        "queue-size-negative", BATCHED, swap("max_queue_size: 10", "max_queue_size: -1"), "config", "Expected integer"
    ),
    Mutation("warmup-batch-zero", BATCHED, swap('"zeros" batch_size: 1', '"zeros" batch_size: 0')),
    Mutation("warmup-batch-left-out", BATCHED, swap('"zeros" batch_size: 1', '"zeros"')),
    Mutation("warmup-batch-full", BATCHED, swap('"zeros" batch_size: 1', '"zeros" batch_size: 8')),
    Mutation("warmup-without-name", BATCHED, swap('name: "zeros" ', "")),
    Mutation("warmup-without-inputs", BATCHED, swap(_ZEROS, ""), "warmup-input", "missing required input(s) ['x']"),
    Mutation(
        "warmup-of-unknown-input",
        BATCHED,
        swap('key: "x"', 'key: "z"'),
        "warmup-input",
        "missing required input(s) ['x']",
    ),
    Mutation(
        "warmup-of-wrong-type",
        BATCHED,
        swap("value { data_type: TYPE_FP32", "value { data_type: TYPE_INT32"),
        "warmup-input",
        "data-type is 'INT32', but model",
    ),
    Mutation(
        "warmup-without-type",
        BATCHED,
        swap("value { data_type: TYPE_FP32", "value {"),
        "warmup-input",
        "data-type is '<invalid>', but model",
    ),
    Mutation(
        "warmup-of-wrong-dims",
        BATCHED,
        swap("dims: [ 4 ] zero_data", "dims: [ 5 ] zero_data"),
        "warmup-input",
        "unexpected shape for input 'x'",
    ),
    Mutation(
        "warmup-of-variable-dims",
        BATCHED,
        swap("dims: [ 4 ] zero_data", "dims: [ -1 ] zero_data"),
        "warmup-input",
        "expects all variable-size dimensions are specified for input 'x'",
    ),
    Mutation("warmup-of-random-data", BATCHED, swap("zero_data", "random_data")),
    Mutation(
        "warmup-without-data",
        BATCHED,
        swap(" zero_data: true", ""),
        "warmup-input",
        "expects input 'x' to have input_data_type set",
    ),
    Mutation(
        "warmup-of-two-kinds-of-data",
        BATCHED,
        swap("zero_data: true", "zero_data: true random_data: true"),
        "config",
        "oneof",
    ),
    Mutation(
        "warmup-of-a-file",
        BATCHED,
        (swap("zero_data: true", 'input_data_file: "x"'), write("batched/warmup/x", "0123456789abcdef")),
    ),
    Mutation(
        "warmup-of-a-missing-file", BATCHED, swap("zero_data: true", 'input_data_file: "x"'), "warmup-file", "/warmup/x"
    ),
    Mutation(
        "warmup-of-a-short-file",
        BATCHED,
        (swap("zero_data: true", 'input_data_file: "x"'), write("batched/warmup/x", "0123")),
        "warmup-file",
        "expects 16 bytes, but the data provided from x",
    ),
    Mutation(
        "warmup-with-an-input-too-many",
        BATCHED,
        swap(_ZEROS, f"{_ZEROS} {_ZEROS.replace('x', 'z')}"),
    ),
    Mutation("warmup-of-nothing-and-wrong", BATCHED, (swap(_ZEROS, ""), swap('"zeros" batch_size: 1', '"zeros"'))),
    Mutation("warmup-count", BATCHED, swap('"zeros" batch_size: 1', '"zeros" batch_size: 1 count: 3')),
    Mutation("warmup-twice", BATCHED, more(f'model_warmup {{ name: "more" batch_size: 2 {_ZEROS} }}')),
)
