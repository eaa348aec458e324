"""An ensemble's graph: the maps of its steps, its tensors, their types and shapes."""

from __future__ import annotations

from tests.differential.bases import BRANCHES, CHAIN
from tests.differential.repository import Mutation, more, swap

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
_MORE_INPUT = 'input [ { name: "more" data_type: TYPE_FP32 dims: [ 4 ] } ]'
_MORE_OUTPUT = 'output [ { name: "more" data_type: TYPE_FP32 dims: [ 4 ] } ]'

GRAPHS = (
    # maps
    Mutation(
        "map-of-an-unknown-input",
        CHAIN,
        swap('key: "x" value: "between"', 'key: "z" value: "between"'),
        "ensemble-map",
        "is mapping to non-existing input z in model",
    ),
    Mutation(
        "map-of-an-unknown-output",
        CHAIN,
        swap('key: "y" value: "between"', 'key: "z" value: "between"'),
        "ensemble-map",
        "is mapped from non-existing output z in model",
    ),
    Mutation(
        "map-of-inputs-left-out",
        CHAIN,
        swap('input_map { key: "x" value: "between" } ', ""),
        "ensemble-map",
        "must specify 'input_map' in step 1",
    ),
    Mutation(
        "map-of-outputs-left-out",
        CHAIN,
        swap('output_map { key: "y" value: "between" }', ""),
        "ensemble-map",
        "must specify 'output_map' in step 0",
    ),
    Mutation(
        "map-of-one-input-left-out",
        BRANCHES,
        swap('input_map { key: "a" value: "left" } ', ""),
        "ensemble-map",
        "'left' is unused in ensemble",
    ),
    Mutation("map-of-a-key-twice", CHAIN, swap(_SECOND, f'input_map {{ key: "x" value: "x" }} {_SECOND}')),
    Mutation(
        "map-of-an-optional-input",
        BRANCHES,
        swap(
            'input_map { key: "b" value: "side" }',
            'input_map { key: "b" value: "side" } input_map { key: "weight" value: "w" }',
        ),
        "ensemble-tensor-missing",
        "'w', is not connected",
    ),
    Mutation(
        "map-of-an-optional-input-from-outside",
        BRANCHES,
        (
            swap(
                'input_map { key: "b" value: "side" }',
                'input_map { key: "b" value: "side" } input_map { key: "weight" value: "w" }',
            ),
            more('input [ { name: "w" data_type: TYPE_FP32 dims: [ 1 ] } ]'),
        ),
    ),
    Mutation(
        "map-as-a-list",
        CHAIN,
        swap(_FIRST, _FIRST.replace("input_map { key", "input_map [ { key").replace('"x" } output', '"x" } ] output')),
    ),
    Mutation("map-with-a-colon-list", CHAIN, swap("step [", "step: [")),
    Mutation(
        "map-value-left-out",
        CHAIN,
        swap('key: "y" value: "between"', 'key: "y"'),
        "ensemble-tensor-missing",
        "'between', is not connected",
    ),
    # tensors
    Mutation(
        "tensor-nobody-gives",
        CHAIN,
        swap('key: "y" value: "between"', 'key: "y" value: "lost"'),
        "ensemble-tensor-missing",
        "is not connected",
    ),
    Mutation(
        "tensor-two-steps-give",
        BRANCHES,
        swap('key: "y" value: "left"', 'key: "y" value: "side"'),
        "ensemble-tensor-twice",
        "can appear in an output map only once",
    ),
    Mutation(
        "tensor-given-by-step-and-input",
        CHAIN,
        swap('key: "y" value: "between"', 'key: "y" value: "x"'),
        "ensemble-tensor-missing",
        "'between', is not connected",
    ),
    Mutation(
        "tensor-given-by-step-and-input-alike",
        BRANCHES,
        more('input [ { name: "left" data_type: TYPE_FP32 dims: [ 4 ] } ]'),
    ),
    Mutation(
        "tensor-nobody-takes",
        CHAIN,
        swap(
            'output_map { key: "y" value: "y" }',
            'output_map { key: "y" value: "y" } output_map { key: "q" value: "spare" }',
        ),
        "ensemble-map",
        "'spare' is unused in ensemble",
    ),
    Mutation(
        "tensor-given-and-not-taken",
        BRANCHES,
        swap(
            'output_map { key: "y" value: "y" }',
            'output_map { key: "y" value: "y" } output_map { key: "debug" value: "spare" }',
        ),
        "ensemble-tensor-unused",
        "'spare' is unused in ensemble",
    ),
    Mutation(
        "input-nobody-takes", CHAIN, more(_MORE_INPUT), "ensemble-tensor-unused", "ensemble input 'more' for ensemble"
    ),
    Mutation(
        "input-goes-straight-out",
        CHAIN,
        (more(_MORE_INPUT), more(_MORE_OUTPUT)),
        "ensemble-tensor-unused",
        "is not used",
    ),
    Mutation(
        "output-nobody-gives",
        CHAIN,
        more(_MORE_OUTPUT),
        "ensemble-tensor-missing",
        "ensemble output 'more' for ensemble",
    ),
    Mutation(
        "output-is-also-an-inner-tensor", CHAIN, more('output [ { name: "between" data_type: TYPE_FP32 dims: [ 4 ] } ]')
    ),
    Mutation("output-is-also-the-input", CHAIN, more(f"output [ {{ {_X} }} ]")),
    Mutation(
        "circle-of-two-steps",
        BRANCHES,
        (
            swap(
                '{ key: "x" value: "x" } output_map { key: "y" value: "left" }',
                '{ key: "x" value: "y" } output_map { key: "y" value: "left" }',
            )
        ),
        "ensemble-circle",
        "is not written",
    ),
    Mutation(
        "circle-of-one-step",
        CHAIN,
        swap('key: "x" value: "between"', 'key: "x" value: "y"'),
        "ensemble-circle",
        "is not written",
    ),
    Mutation("steps-in-any-order", CHAIN, (swap('"one"', '"ONE"'), swap('"two"', '"one"'), swap('"ONE"', '"two"'))),
    # types and shapes
    Mutation(
        "type-differs-at-the-input",
        CHAIN,
        swap("TYPE_FP32", "TYPE_FP16"),
        "ensemble-tensor-differs",
        "inconsistent data type: TYPE_FP16 is inferred from model",
    ),
    Mutation(
        "type-differs-at-the-output",
        CHAIN,
        swap('"y" data_type: TYPE_FP32', '"y" data_type: TYPE_INT64'),
        "ensemble-tensor-differs",
        "inconsistent data type",
    ),
    Mutation(
        "type-differs-between-steps",
        CHAIN,
        swap('"y" data_type: TYPE_FP32', '"y" data_type: TYPE_INT32', file=_ONE),
        "ensemble-tensor-differs",
        "inconsistent data type",
    ),
    Mutation(
        "shape-differs-at-the-input",
        CHAIN,
        swap("dims: [ 4 ]", "dims: [ 5 ]"),
        "ensemble-tensor-differs",
        "inconsistent shape",
    ),
    Mutation(
        "shape-differs-between-steps",
        CHAIN,
        swap("dims: [ 4 ]", "dims: [ 5 ]", file=_TWO),
        "ensemble-tensor-differs",
        "inconsistent shape",
    ),
    Mutation(
        "rank-differs-between-steps",
        CHAIN,
        swap("dims: [ 4 ]", "dims: [ 4, 1 ]", file=_TWO),
        "ensemble-tensor-differs",
        "inconsistent shape",
    ),
    Mutation("shape-variable-at-one-end", CHAIN, swap("dims: [ 4 ]", "dims: [ -1 ]", file=_TWO)),
    Mutation("shape-variable-in-the-ensemble", CHAIN, swap("dims: [ 4 ]", "dims: [ -1 ]", count=2)),
    Mutation(
        "rank-variable-and-fixed",
        CHAIN,
        swap("dims: [ 4 ]", "dims: [ -1, -1 ]", file=_TWO),
        "ensemble-tensor-differs",
        "inconsistent shape",
    ),
    Mutation(
        "shape-differs-at-the-second-of-two-takers",
        BRANCHES,
        swap("dims: [ -1 ]", "dims: [ 3 ]", file=_JOIN),
        "ensemble-tensor-differs",
        "inconsistent shape",
    ),
    Mutation("step-decoupled", CHAIN, more("model_transaction_policy { decoupled: true }", file=_TWO)),
    Mutation(
        "steps-decoupled-and-joined",
        BRANCHES,
        (more("model_transaction_policy { decoupled: true }", file=_ONE)),
        "ensemble-decoupled",
        "receives inputs originated from different decoupled",
    ),
)
