"""An ensemble as a model, and its steps."""

from __future__ import annotations

from tests.differential.bases import CHAIN, DOUBLE
from tests.differential.repository import Mutation, drop, folder, more, move, swap, write

_ONE = "one/config.pbtxt"
_TWO = "two/config.pbtxt"
_JOIN = "join/config.pbtxt"
_X = 'name: "x" data_type: TYPE_FP32 dims: [ 4 ]'
_FIRST = 'input_map { key: "x" value: "x" } output_map { key: "y" value: "between" }'
_SECOND = 'input_map { key: "x" value: "between" } output_map { key: "y" value: "y" }'
_STEPS = """
    { model_name: "one" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "between" } },
    { model_name: "two" model_version: -1
      input_map { key: "x" value: "between" } output_map { key: "y" value: "y" } }
  ]
}
"""
_PLATFORM = 'platform: "ensemble"\n'
_MORE_INPUT = 'input [ { name: "more" data_type: TYPE_FP32 dims: [ 4 ] } ]'
_MORE_OUTPUT = 'output [ { name: "more" data_type: TYPE_FP32 dims: [ 4 ] } ]'

ENSEMBLES = (
    # the ensemble as a model
    Mutation(
        "ensemble-backend-beside-platform",
        CHAIN,
        more('backend: "ensemble"'),
        "backend-platform-pair",
        "and empty backend type",
    ),
    Mutation(
        "ensemble-backend-python", CHAIN, more('backend: "python"'), "backend-platform-pair", "and empty backend type"
    ),
    Mutation(
        "ensemble-with-instances",
        CHAIN,
        more("instance_group [ { kind: KIND_CPU } ]"),
        "ensemble-field",
        "instance group should not be specified for ensemble",
    ),
    Mutation(
        "ensemble-with-optimization",
        CHAIN,
        more("optimization { }"),
        "ensemble-field",
        "optimization should not be specified for ensemble",
    ),
    Mutation(
        "ensemble-with-warmup",
        CHAIN,
        more('model_warmup { name: "w" }'),
        "ensemble-field",
        "model_warmup can not be specified for ensemble",
    ),
    Mutation("ensemble-with-dynamic-batching", CHAIN, more("dynamic_batching { }"), "config", "oneof"),
    Mutation("ensemble-with-parameters", CHAIN, more('parameters { key: "a" value { string_value: "b" } }')),
    Mutation("ensemble-with-version-policy", CHAIN, more("version_policy { all { } }")),
    Mutation("ensemble-with-response-cache", CHAIN, more("response_cache { enable: true }")),
    Mutation(
        "ensemble-without-version-folder",
        CHAIN,
        drop("chain/1/"),
        "no-version",
        "at least one version must be available",
    ),
    Mutation("ensemble-with-a-file-in-its-version", CHAIN, write("chain/1/notes.txt", "x")),
    Mutation("ensemble-in-version-two", CHAIN, move("chain/1/", "chain/2/")),
    Mutation(
        "ensemble-without-input",
        CHAIN,
        swap(f"input [ {{ {_X} }} ]\n", ""),
        "ensemble-tensor-missing",
        "is not written",
    ),
    Mutation(
        "ensemble-without-output",
        CHAIN,
        swap('output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]\n', ""),
        "ensemble-tensor-unused",
        "is unused in ensemble",
    ),
    Mutation("ensemble-batch-zero", CHAIN, (swap("max_batch_size: 8", "max_batch_size: 0"))),
    Mutation("ensemble-batch-smaller", CHAIN, swap("max_batch_size: 8", "max_batch_size: 4")),
    Mutation(
        "ensemble-batch-larger",
        CHAIN,
        swap("max_batch_size: 8", "max_batch_size: 9"),
        "ensemble-batch",
        "allows maximum batch size 9, but it contains model one which only allows maximum batch size to be 8",
    ),
    Mutation(
        "ensemble-step-batch-smaller",
        CHAIN,
        swap("max_batch_size: 8", "max_batch_size: 7", file=_TWO),
        "ensemble-batch",
        "but it contains model two",
    ),
    Mutation("ensemble-step-batch-larger", CHAIN, swap("max_batch_size: 8", "max_batch_size: 16", file=_TWO)),
    Mutation("ensemble-step-without-batching", CHAIN, swap("max_batch_size: 8", "max_batch_size: 0", file=_ONE)),
    Mutation(
        "ensemble-step-without-batching-full-shape",
        CHAIN,
        (swap("max_batch_size: 8", "max_batch_size: 0", file=_TWO), swap("[ 4 ]", "[ -1, 4 ]", count=2, file=_TWO)),
    ),
    Mutation("ensemble-input-with-reshape", CHAIN, (swap("dims: [ 4 ]", "dims: [ 2, 2 ] reshape { shape: [ 4 ] }"))),
    Mutation(
        "ensemble-input-with-reshape-of-other-shape",
        CHAIN,
        (swap("dims: [ 4 ]", "dims: [ 4 ] reshape { shape: [ 2, 2 ] }")),
        "ensemble-tensor-differs",
        "inconsistent shape",
    ),
    Mutation(
        "ensemble-step-with-reshape", CHAIN, swap("dims: [ 4 ]", "dims: [ 4 ] reshape { shape: [ 2, 2 ] }", file=_ONE)
    ),
    Mutation(
        "ensemble-limit-of-a-newer-release",
        CHAIN,
        swap("ensemble_scheduling {", "ensemble_scheduling {\n  max_inflight_requests: 4"),
        "field-newer",
        'no field named "max_inflight_requests"',
    ),
    # steps
    Mutation(
        "ensemble-steps-empty",
        CHAIN,
        swap(f"  step [{_STEPS}", "}\n"),
        "ensemble-without-steps",
        "must specify 'step' for ensemble",
    ),
    Mutation(
        "step-of-a-missing-model",
        CHAIN,
        drop("two"),
        "ensemble-step",
        "models that are not available or ambiguous: two",
    ),
    Mutation(
        "step-of-a-misspelt-model",
        CHAIN,
        swap('"two"', '"tow"'),
        "ensemble-step",
        "models that are not available or ambiguous: tow",
    ),
    Mutation(
        "step-of-the-ensemble-itself",
        CHAIN,
        swap('model_name: "two"', 'model_name: "chain"'),
        "ensemble-step",
        "models that are not available or ambiguous: chain",
    ),
    Mutation(
        "step-without-model",
        CHAIN,
        swap('model_name: "two" ', ""),
        "ensemble-step",
        "must specify 'model_name' in step 1",
    ),
    Mutation(
        "step-version-left-out",
        CHAIN,
        swap('"two" model_version: -1', '"two"'),
        "ensemble-version",
        "required version 0 is not loaded",
    ),
    Mutation("step-version-one", CHAIN, swap('"two" model_version: -1', '"two" model_version: 1')),
    Mutation(
        "step-version-missing",
        CHAIN,
        swap('"two" model_version: -1', '"two" model_version: 2'),
        "ensemble-version",
        "required version 2 is not loaded",
    ),
    Mutation(
        "step-version-not-served",
        CHAIN,
        (
            swap('"two" model_version: -1', '"two" model_version: 1'),
            folder("two/2"),
            write("two/2/model.py", "x = 1\n" + CHAIN.files["two/1/model.py"]),
        ),
        "ensemble-version",
        "required version 1 is not loaded",
    ),
    Mutation(
        "step-version-minus-two",
        CHAIN,
        swap('"two" model_version: -1', '"two" model_version: -2'),
        "ensemble-version",
        "required version -2 is not loaded",
    ),
    Mutation(
        "step-with-namespace",
        CHAIN,
        swap('"two" model_version: -1', '"two" model_namespace: "x"'),
        "ensemble-version",
        "required version 0 is not loaded",
    ),
    Mutation(
        "step-model-refused",
        CHAIN,
        swap("dims: [ 4 ]", "dims: [ 0 ]", file=_TWO),
        "tensor-dims",
        "model input 'x' dimension must be integer >= 1",
    ),
    Mutation(
        "step-model-of-other-name",
        CHAIN,
        swap('name: "two"', 'name: "other"', file=_TWO),
        "name-differs",
        "directory name must equal model name",
    ),
    Mutation("step-model-without-name", CHAIN, swap('name: "two"\n', "", file=_TWO)),
    Mutation(
        "step-model-without-version", CHAIN, drop("two/1"), "no-version", "at least one version must be available"
    ),
    Mutation("step-model-unreadable", CHAIN, more("}", file=_TWO), "config", "failed to read text proto from"),
    Mutation("step-program-empty", CHAIN, write("two/1/model.py", ""), "python-class", "TritonPythonModel"),
    Mutation(
        "model-that-no-step-uses",
        CHAIN,
        (
            write("three/config.pbtxt", DOUBLE.files["double/config.pbtxt"].replace("double", "three")),
            write("three/1/model.py", DOUBLE.files["double/1/model.py"]),
        ),
    ),
    Mutation(
        "ensemble-in-an-ensemble",
        CHAIN,
        (
            write(
                "outer/config.pbtxt",
                CHAIN.files["chain/config.pbtxt"].replace('"chain"', '"outer"').replace('"two"', '"one"'),
            ),
            folder("outer/1"),
            swap('model_name: "two"', 'model_name: "outer"'),
            drop("two"),
        ),
    ),
)
