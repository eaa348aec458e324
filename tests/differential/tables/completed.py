"""Configurations that leave something out, and programs that complete them."""

from __future__ import annotations

from tests.differential.bases import DOUBLE, MODEL
from tests.differential.repository import Change, Mutation, drop, more, swap, write

_OUTPUT = '"y" data_type: TYPE_FP32 dims: [ 4 ]'
_BOTH = (
    'config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [4]})',
    'config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [4]})',
)
_RETURN = "return config"
_RULE = "python-auto-complete"


def _completing(*lines: str) -> Change:
    """The program with these lines in its ``auto_complete_config``."""
    head, mark, rest = MODEL.partition("class TritonPythonModel:\n")
    body = "".join(f"        {line}\n" for line in lines)
    return write(
        "double/1/model.py", f"{head}{mark}    @staticmethod\n    def auto_complete_config(config):\n{body}\n{rest}"
    )


COMPLETED = (
    Mutation("config-missing", DOUBLE, drop("double/config.pbtxt")),
    Mutation("config-missing-and-completed", DOUBLE, (drop("double/config.pbtxt"), _completing(*_BOTH, _RETURN))),
    Mutation("config-empty", DOUBLE, write("double/config.pbtxt", "")),
    Mutation("config-of-two-fields", DOUBLE, write("double/config.pbtxt", 'name: "double"\nbackend: "python"\n')),
    Mutation(
        "config-of-nothing-known",
        DOUBLE,
        (drop("double"), write("double/config.pbtxt", 'name: "double"\n'), write("double/1/weights.bin", "x")),
        "backend-missing",
        "unable to find backend library for backend 'tar.gz'",
    ),
    Mutation("completed-in-agreement", DOUBLE, _completing(*_BOTH, _RETURN)),
    Mutation("completed-dims", DOUBLE, (swap(_OUTPUT, '"y" data_type: TYPE_FP32'), _completing(*_BOTH, _RETURN))),
    Mutation("completed-type", DOUBLE, (swap(_OUTPUT, '"y" dims: [ 4 ]'), _completing(*_BOTH, _RETURN))),
    Mutation(
        "completed-dims-of-another-tensor",
        DOUBLE,
        (swap(_OUTPUT, '"y" data_type: TYPE_FP32'), _completing(_BOTH[0], _RETURN)),
        "tensor-dims",
        "model output 'y' must specify 'dims'",
    ),
    Mutation("completed-batch-size-larger", DOUBLE, _completing("config.set_max_batch_size(16)", _RETURN)),
    Mutation(
        "completed-batch-size-smaller",
        DOUBLE,
        _completing("config.set_max_batch_size(4)", _RETURN),
        _RULE,
        "configuration specified max_batch_size 8",
    ),
    Mutation(
        "completed-by-an-error",
        DOUBLE,
        _completing('raise ValueError("no configuration")'),
        _RULE,
        "ValueError: no configuration",
    ),
    Mutation("completed-dynamic-batching", DOUBLE, _completing("config.set_dynamic_batching()", _RETURN)),
    Mutation(
        "completed-dynamic-batching-of-sequences",
        DOUBLE,
        (more("sequence_batching { }"), _completing("config.set_dynamic_batching()", _RETURN)),
        _RULE,
        "tries to set scheduling_choice as 'dynamic_batching'",
    ),
    Mutation("completed-and-not-returned", DOUBLE, _completing(*_BOTH), _RULE, "must return a valid pb.ModelConfig"),
    Mutation("completed-with-an-error", DOUBLE, _completing("raise ValueError('no')"), _RULE, "ValueError: no"),
    Mutation(
        "completed-with-other-dims",
        DOUBLE,
        _completing(_BOTH[0].replace("[4]", "[5]"), _RETURN),
        _RULE,
        "the model expects dims [5] but the model configuration specifies dims [4]",
    ),
    Mutation(
        "completed-without-a-name",
        DOUBLE,
        _completing(_BOTH[0].replace('"name": "x", ', ""), _RETURN),
        _RULE,
        "is missing 'name' property",
    ),
    Mutation(
        "completed-with-another-property",
        DOUBLE,
        _completing(_BOTH[0].replace("}", ', "is_shape_tensor": True}'), _RETURN),
        _RULE,
        "contains property other than 'name', 'data_type', 'dims' and 'optional'",
    ),
    Mutation(
        "completed-transaction-policy-of-another-property",
        DOUBLE,
        _completing("config.set_model_transaction_policy(dict(order=1))", _RETURN),
        _RULE,
        "contains property other than 'decoupled'",
    ),
    Mutation(
        "completed-transaction-policy-against-the-written-one",
        DOUBLE,
        (
            more("model_transaction_policy { decoupled: false }"),
            _completing("config.set_model_transaction_policy(dict(decoupled=True))", _RETURN),
        ),
        _RULE,
        "which is already set to 'False'",
    ),
    Mutation(
        "gpus-of-no-number",
        DOUBLE,
        swap("kind: KIND_CPU", "kind: KIND_GPU gpus: [ -1 ]"),
        "instance-gpus",
        "specifies invalid or unsupported gpu id -1",
    ),
    Mutation(
        "gpus-of-no-number-chosen-by-triton",
        DOUBLE,
        swap("kind: KIND_CPU", "gpus: [ -1 ]"),
        "instance-gpus",
        "has kind KIND_CPU but specifies one or more GPUs",
    ),
)
