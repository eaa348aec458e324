"""Repositories that do not load and are not always refused: the server waits for ever, or ends."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE, SEQUENCE
from tests.differential.repository import Mutation, drop, folder, more, move, swap

_NO_PROGRAM = "Failed to preinitialize Python stub: Python model file not found"
_OTHER_START = """dims: [ 4 ] initial_state { name: "s" data_type: TYPE_INT32 dims: [ 5 ] zero_data: true }"""

STUCK = (
    Mutation("program-missing", DOUBLE, (drop("double/1"), folder("double/1")), "model-file", _NO_PROGRAM),
    Mutation("program-of-other-name", DOUBLE, more('default_model_filename: "main.py"'), "model-file", _NO_PROGRAM),
    Mutation("version-of-digits-and-letters", DOUBLE, move("double/1", "double/1a"), "no-version", _NO_PROGRAM),
    Mutation("version-negative", DOUBLE, move("double/1", "double/-1"), "no-version", _NO_PROGRAM),
    Mutation("version-too-large", DOUBLE, move("double/1", f"double/{2**64}"), "no-version", "Signal (11) received"),
    Mutation(
        "labels-a-folder",
        BATCHED,
        (drop("batched/labels.txt"), folder("batched/labels.txt")),
        "label-file",
        "Signal (11) received",
    ),
    Mutation(
        "warmup-batch-too-large",
        BATCHED,
        swap('"zeros" batch_size: 1', '"zeros" batch_size: 9'),
        "warmup-batch",
        "max allowed is 8",
    ),
    Mutation(
        "state-starts-with-other-dims",
        SEQUENCE,
        swap("TYPE_INT32 dims: [ 4 ]", f"TYPE_INT32 {_OTHER_START}"),
        "sequence-batching",
        "doesn't match 'state' dim description",
    ),
    Mutation(
        "state-with-start-of-other-type",
        SEQUENCE,
        swap(
            "TYPE_INT32 dims: [ 4 ]",
            'TYPE_INT32 dims: [ 4 ] initial_state { name: "s" data_type: TYPE_FP32 dims: [ 4 ] zero_data: true }',
        ),
        "sequence-batching",
        "'initial_state' field of state 'IN_STATE' does not match the state data type",
    ),
    Mutation(
        "state-with-start-without-name",
        SEQUENCE,
        swap(
            "TYPE_INT32 dims: [ 4 ]",
            "TYPE_INT32 dims: [ 4 ] initial_state { data_type: TYPE_INT32 dims: [ 4 ] zero_data: true }",
        ),
        "sequence-batching",
        "Field 'name' must be set when using initial_state",
    ),
    Mutation(
        "state-with-start-without-data",
        SEQUENCE,
        swap(
            "TYPE_INT32 dims: [ 4 ]",
            'TYPE_INT32 dims: [ 4 ] initial_state { name: "s" data_type: TYPE_INT32 dims: [ 4 ] }',
        ),
        "sequence-batching",
        "to have state_data set",
    ),
    Mutation(
        "state-with-start-in-a-missing-file",
        SEQUENCE,
        swap(
            "TYPE_INT32 dims: [ 4 ]",
            'TYPE_INT32 dims: [ 4 ] initial_state { name: "s" data_type: TYPE_INT32 dims: [ 4 ] data_file: "none" }',
        ),
        "sequence-batching",
        "initial_state/none",
    ),
    Mutation(
        "state-with-start-of-variable-dims",
        SEQUENCE,
        swap(
            "TYPE_INT32 dims: [ 4 ]",
            'TYPE_INT32 dims: [ -1 ] initial_state { name: "s" data_type: TYPE_INT32 dims: [ -1 ] zero_data: true }',
        ),
        "sequence-batching",
        "contains variable dimensions",
    ),
    Mutation("directory-with-a-space", DOUBLE, move("double", "my double"), "directory-name", "std::invalid_argument"),
)
"""Seen with server 2.51.0. Some are refused at one time and end the server at the next, with nothing said but that."""

ENDED = ("Signal (11) received", "terminate called after throwing an instance of")
"""What the log says where the server ended of it."""
