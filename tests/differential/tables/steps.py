"""Steps of an ensemble: their models, versions and tables of tensors."""

from __future__ import annotations

from tests.differential.bases import BRANCHES, CHAIN, MODEL
from tests.differential.repository import Mutation, more, swap, write

_ONE = "one/config.pbtxt"
_TWO = "two/config.pbtxt"


STEPS = (
    Mutation(
        "ensemble-labels-missing",
        CHAIN,
        swap('"y" data_type: TYPE_FP32 dims: [ 4 ]', '"y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "l.txt"'),
        "label-file",
        "failed to open text file for read",
    ),
    Mutation(
        "ensemble-labels",
        CHAIN,
        (
            swap(
                '"y" data_type: TYPE_FP32 dims: [ 4 ]', '"y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "l.txt"'
            ),
            write("chain/l.txt", "a\n"),
        ),
    ),
    Mutation(
        "ensemble-input-optional",
        CHAIN,
        swap('"x" data_type: TYPE_FP32 dims: [ 4 ]', '"x" data_type: TYPE_FP32 dims: [ 4 ] optional: true'),
    ),
    Mutation(
        "tensor-left-without-a-taker",
        BRANCHES,
        swap('key: "a" value: "left"', 'key: "a" value: "side"'),
        "ensemble-tensor-unused",
        "'left' is unused in ensemble",
    ),
    Mutation(
        "tensor-taken-by-two-inputs",
        BRANCHES,
        (
            swap('key: "a" value: "left"', 'key: "a" value: "side"'),
            swap(
                """    { model_name: "one" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "left" } },
""",
                "",
            ),
        ),
    ),
    Mutation(
        "ensemble-batch-negative",
        CHAIN,
        swap("max_batch_size: 8", "max_batch_size: -1"),
        "max-batch-size",
        "must be non-negative",
    ),
    Mutation(
        "ensemble-input-without-type",
        CHAIN,
        swap('"x" data_type: TYPE_FP32', '"x"'),
        "ensemble-tensor-differs",
        "TYPE_INVALID is inferred from model",
    ),
    Mutation(
        "ensemble-input-dims-zero",
        CHAIN,
        swap("[ 4 ]", "[ 0 ]"),
        "ensemble-tensor-differs",
        "inconsistent shape: [-1,0]",
    ),
    Mutation(
        "ensemble-output-without-dims",
        CHAIN,
        swap('"y" data_type: TYPE_FP32 dims: [ 4 ]', '"y" data_type: TYPE_FP32'),
        "ensemble-tensor-differs",
        "inconsistent shape: [-1]",
    ),
    Mutation("ensemble-output-twice", CHAIN, more('output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]')),
    Mutation("ensemble-input-twice", CHAIN, more('input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]')),
    Mutation("ensemble-model-filename", CHAIN, more('default_model_filename: "x"')),
    Mutation("ensemble-runtime", CHAIN, more('runtime: "x.so"')),
    Mutation("ensemble-decoupled", CHAIN, more("model_transaction_policy { decoupled: true }")),
    Mutation(
        "ensemble-decoupled-with-a-cache",
        CHAIN,
        more("response_cache { enable: true }\nmodel_transaction_policy { decoupled: true }"),
        "response-cache",
        "Response Cache does not currently support model",
    ),
    Mutation("ensemble-with-sequences", CHAIN, more("sequence_batching { }"), "config", "oneof"),
    Mutation(
        "step-empty",
        CHAIN,
        swap('{ model_name: "one"', '{ },\n    { model_name: "one"'),
        "ensemble-step",
        "must specify 'model_name' in step 0",
    ),
    Mutation(
        "step-that-takes-two-at-once",
        CHAIN,
        (swap("max_batch_size: 8", "max_batch_size: 0", file=_ONE), swap("[ 4 ]", "[ 2, 4 ]", count=2, file=_ONE)),
    ),
    Mutation(
        "steps-that-batch-in-an-ensemble-that-does-not",
        CHAIN,
        (swap("max_batch_size: 8", "max_batch_size: 0"), swap("[ 4 ]", "[ -1, 4 ]", count=2)),
    ),
    Mutation("step-with-sequences", CHAIN, more("sequence_batching { }", file=_TWO)),
    Mutation("step-with-dynamic-batching", CHAIN, more("dynamic_batching { }", file=_TWO)),
    Mutation("step-without-backend", CHAIN, swap('backend: "python"\n', "", file=_TWO)),
    Mutation(
        "step-of-an-empty-configuration", CHAIN, write(_TWO, ""), "ensemble-map", "is mapping to non-existing input"
    ),
    Mutation(
        "step-without-tensors",
        CHAIN,
        write(_TWO, 'backend: "python"\nmax_batch_size: 8\n'),
        "ensemble-map",
        "is mapping to non-existing input",
    ),
    Mutation(
        "step-of-version-two",
        CHAIN,
        (write("two/2/model.py", MODEL), swap('"two" model_version: -1', '"two" model_version: 2')),
    ),
    Mutation(
        "step-of-the-older-of-two",
        CHAIN,
        (
            write("two/2/model.py", MODEL),
            more("version_policy { all { } }", file=_TWO),
            swap('"two" model_version: -1', '"two" model_version: 1'),
        ),
    ),
)
