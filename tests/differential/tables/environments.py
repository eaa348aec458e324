"""Execution environments and other parameters of the Python backend."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE
from tests.differential.repository import Change, Mutation, more, move, swap, write


def _parameter(key: str, value: str) -> Change:
    """A parameter of the model."""
    return more(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}')


ENVIRONMENTS = (
    Mutation(
        "environment-is-the-model",
        DOUBLE,
        _parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY"),
        "execution-environment",
        "bin/activate does not exist",
    ),
    Mutation(
        "environment-with-a-trailing-slash",
        DOUBLE,
        (_parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/env/"), write("double/env/bin/activate", "")),
    ),
    Mutation(
        "environment-without-a-slash",
        DOUBLE,
        _parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORYenv"),
        "execution-environment",
        "Failed to get the canonical path",
    ),
    Mutation(
        "environment-relative",
        DOUBLE,
        (_parameter("EXECUTION_ENV_PATH", "env"), write("double/env/bin/activate", "")),
        "execution-environment",
        "Failed to get the canonical path for env",
    ),
    Mutation(
        "environment-with-a-dot",
        DOUBLE,
        (_parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/./env"), write("double/env/bin/activate", "")),
    ),
    Mutation("environment-without-a-path", DOUBLE, more('parameters { key: "EXECUTION_ENV_PATH" }')),
    Mutation("cpu-tensors-yes", DOUBLE, _parameter("FORCE_CPU_ONLY_INPUT_TENSORS", "yes")),
    Mutation(
        "cpu-tensors-empty",
        DOUBLE,
        _parameter("FORCE_CPU_ONLY_INPUT_TENSORS", ""),
        "python-parameter",
        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS",
    ),
    Mutation(
        "cpu-tensors-without-a-value",
        DOUBLE,
        more('parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" }'),
        "python-parameter",
        "Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS",
    ),
    Mutation(
        "labels-beside-the-model",
        BATCHED,
        (swap('"labels.txt"', '"../labels.txt"'), move("batched/labels.txt", "labels.txt")),
    ),
    Mutation(
        "labels-at-an-absolute-path",
        BATCHED,
        swap('"labels.txt"', '"/etc/hostname"'),
        "label-file",
        "failed to open text file for read",
    ),
    Mutation("labels-of-no-name", BATCHED, swap('"labels.txt"', '""')),
    Mutation("labels-of-any-bytes", BATCHED, write("batched/labels.txt", "\x00\x01\n\n\n")),
    Mutation("configurations-of-other-names", DOUBLE, write("double/configs/a.pbtxt", "max_batch_size: 4")),
)
