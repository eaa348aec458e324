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
        "Signal (11) received",
    ),
    Mutation("directory-with-a-space", DOUBLE, move("double", "my double"), "directory-name", "std::invalid_argument"),
)
"""What the server says stands in its log only. Ends and waits were seen with server 2.51.0."""
