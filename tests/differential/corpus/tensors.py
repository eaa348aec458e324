"""Python models whose tensors have another shape for the backend, formats, fields of TensorRT's, or ragged batches."""

from __future__ import annotations

import random

from tests.differential.corpus.configuration import Message, Word
from tests.differential.corpus.repository import Files, drawn_name, plain_model, seldom, tensor


def reshaped(draw: random.Random) -> Files:
    """A tensor has another shape for the backend, with as many elements or not."""
    sizes = [draw.choice([1, 2, 3, 4, 6, 12]), draw.choice([1, 2, 3, 4]), draw.choice([1, 5])]
    flat = sizes[0] * sizes[1] * sizes[2]
    fitting: list[tuple[list[int], list[int]]] = [
        (sizes, [flat]), ([flat], sizes), ([1], []), ([1, 1], []), ([-1, *sizes], [-1, flat]), ([-1], [-1, 1]),
        ([sizes[0], -1, 4], [1, sizes[0], -1, 2, 2]), ([2, -1, 6], [2, -1, 3, 2]), (sizes, sizes[::-1]),
    ]  # fmt: skip
    others: list[tuple[list[int], list[int]]] = [
        (sizes, [flat + 1]), ([-1], [4]), ([4], [-1]), ([-1, -1], [-1]), ([2], []), ([-1], []), (sizes, [flat, 0]),
        ([2, -1, 6], [4, -1, 3]), ([4], [-2]),
    ]  # fmt: skip
    dims, shape = draw.choice(others if draw.random() < 1 / 4 else fitting)
    given = {"input": tensor("x", "FP32", [4]), "output": tensor("y", "FP32", [4])}
    kind = draw.choice(["input", "output"])
    given[kind] |= {"dims": dims, "reshape": {"shape": shape} if shape or draw.random() < 1 / 2 else {}}
    config: Message = {"max_batch_size": draw.choice([0, 8, 8])} | {name: [each] for name, each in given.items()}
    return plain_model(drawn_name(draw), config)


def ragged(draw: random.Random) -> Files:
    """Ragged inputs, and tensors that Triton makes of a batch."""
    kinds = ["BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
             "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN"]  # fmt: skip
    config: Message = {"max_batch_size": draw.choice([0, 8, 8])}
    config["batch_input"] = [
        _of_batch(draw, {
            "kind": Word(draw.choice(kinds)),
            "target_name": [f"index{index}"],
            "data_type": Word(seldom(draw, draw.choice(["TYPE_FP32", "TYPE_INT32"]), "TYPE_INT64", chance=0.05)),
        })
        for index in range(draw.randint(1, 2))
    ]  # fmt: skip
    if draw.random() < 1 / 2:
        targets = seldom(draw, ["y"], ["x"], ["y", "y"], ["z"], chance=0.05)
        kind = {"target_name": targets, "kind": Word("BATCH_SCATTER_WITH_INPUT_SHAPE")}
        config["batch_output"] = [_of_batch(draw, kind)]
    config["input"] = [tensor("x", "FP32", [-1], allow_ragged_batch=True)]
    if draw.random() < 1 / 3:
        config["input"].append(tensor("extra", "INT64", [-1], optional=True))
    config["output"] = [tensor("y", "FP32", [-1])]
    if draw.random() < 1 / 2:
        config["dynamic_batching"] = {}
    return plain_model(drawn_name(draw), config)


def _of_batch(draw: random.Random, fields: Message) -> Message:
    """A batch_input or batch_output with its source, seldom another one or none."""
    source = seldom(draw, ["x"], ["z"], [], ["x", "x"], ["y"], chance=0.05)
    return fields | ({"source_input": source} if source else {})


def flags(draw: random.Random) -> Files:
    """Tensors with formats, or with fields of TensorRT's, and inputs that may be left out."""
    form = draw.choice(["", "", "FORMAT_NONE", "FORMAT_NCHW", "FORMAT_NHWC"])
    images, others = [[3, 8, 8], [-1, -1, 3]], [[4], [1, 3, 8, 8], [-1]]
    dims = draw.choice(images if form and draw.random() < 0.8 else [*images, *others])
    given: Message = {"format": Word(form)} if form else {}
    fields: list[Message] = [{"is_shape_tensor": True}, {"is_shape_tensor": False}, {"is_non_linear_format_io": True},
                             {"is_non_linear_format_io": False}, {"allow_ragged_batch": True}]  # fmt: skip
    given |= seldom(draw, {}, *fields, chance=0.3)
    made: Message = seldom(draw, {}, *fields[::2], {"optional": True}, chance=0.1)
    inputs = [tensor("x", draw.choice(["FP32", "UINT8", "BF16", "STRING", "BOOL"]), dims, **given)]
    inputs += [tensor("more", "FP64", [1], optional=True)] if draw.random() < 1 / 2 else []
    config: Message = {
        "max_batch_size": draw.choice([0, 8]),
        "input": inputs,
        "output": [tensor("y", "FP32", [4], **made)],
    }
    if draw.random() < 0.2:
        config["platform"] = "tensorrt_plan"
    return plain_model(drawn_name(draw), config)
