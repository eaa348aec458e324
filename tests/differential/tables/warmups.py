"""Warm-up requests: their shapes, files and values."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE, OPTIONAL, RESHAPED
from tests.differential.repository import Mutation, more, swap, write

_ZEROS = """\
model_warmup {{
  name: "w" batch_size: 1
  inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: {dims} zero_data: true }} }}
}}"""

WARMUPS = (
    Mutation(
        "warmup-of-text",
        BATCHED,
        (swap("TYPE_FP32", "TYPE_STRING"), swap("value { data_type: TYPE_FP32", "value { data_type: TYPE_STRING")),
    ),
    Mutation(
        "warmup-of-random-text",
        BATCHED,
        (
            swap("TYPE_FP32", "TYPE_STRING"),
            swap("value { data_type: TYPE_FP32", "value { data_type: TYPE_STRING"),
            swap("zero_data", "random_data"),
        ),
    ),
    Mutation(
        "warmup-of-a-long-file",
        BATCHED,
        (swap("zero_data: true", 'input_data_file: "x"'), write("batched/warmup/x", "0" * 64)),
    ),
    Mutation(
        "warmup-of-a-file-outside",
        BATCHED,
        swap("zero_data: true", 'input_data_file: "../labels.txt"'),
        "warmup-file",
        "failed to open text file for read",
    ),
    Mutation(
        "warmup-of-a-file-in-a-sub-folder",
        BATCHED,
        (swap("zero_data: true", 'input_data_file: "a/x"'), write("batched/warmup/a/x", "0" * 16)),
    ),
    Mutation("warmup-of-zeros-said-to-be-none", BATCHED, swap("zero_data: true", "zero_data: false")),
    Mutation(
        "warmup-without-dims",
        BATCHED,
        swap("dims: [ 4 ] zero", "zero"),
        "warmup-input",
        "unexpected shape for input 'x'",
    ),
    Mutation(
        "warmup-of-no-elements",
        BATCHED,
        swap("dims: [ 4 ] zero", "dims: [ 0 ] zero"),
        "warmup-input",
        "unexpected shape for input 'x'",
    ),
    Mutation(
        "warmup-with-a-batch-dimension",
        BATCHED,
        swap("dims: [ 4 ] zero", "dims: [ 1, 4 ] zero"),
        "warmup-input",
        "unexpected shape for input 'x'",
    ),
    Mutation(
        "warmup-without-batching",
        BATCHED,
        (swap("max_batch_size: 8", "max_batch_size: 0"), swap("  preferred_batch_size: [ 4, 8 ]\n", "")),
    ),
    Mutation(
        "warmup-without-an-optional-input",
        OPTIONAL,
        more(_ZEROS.format(dims=4)),
    ),
    Mutation(
        "warmup-of-a-reshaped-input",
        RESHAPED,
        more(_ZEROS.format(dims=1)),
    ),
    Mutation("instances-of-an-empty-name", DOUBLE, swap("{ kind: KIND_CPU }", '{ name: "" kind: KIND_CPU }')),
    Mutation("instances-of-nothing-said", DOUBLE, swap("{ kind: KIND_CPU }", "{ }")),
    Mutation(
        "rate-limiter-without-a-name",
        DOUBLE,
        swap("{ kind: KIND_CPU }", "{ kind: KIND_CPU rate_limiter { resources [ { count: 1 } ] } }"),
    ),
    Mutation(
        "rate-limiter-negative",
        DOUBLE,
        swap("{ kind: KIND_CPU }", '{ kind: KIND_CPU rate_limiter { resources [ { name: "r" count: -1 } ] } }'),
        "config",
        "Expected integer",
    ),
    Mutation(
        "instances-too-many",
        DOUBLE,
        swap("{ kind: KIND_CPU }", "{ kind: KIND_CPU count: 2147483648 }"),
        "config",
        "Integer out of range",
    ),
)
