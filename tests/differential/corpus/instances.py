"""Instance groups, and warm-up requests, of Python models."""

from __future__ import annotations

import random
import struct

from tests.differential.corpus.configuration import Message, Word
from tests.differential.corpus.repository import ECHO, RARELY, Files, drawn_name, plain_model, seldom, tensor
from tests.differential.corpus.schedulers import control


def instances(draw: random.Random) -> Files:
    """One to three groups; none needs a GPU: the test machine has none."""
    config: Message = {"max_batch_size": 4, "instance_group": [_group(draw) for _ in range(draw.randint(1, 2))]}
    if draw.random() < RARELY / 2:
        config["platform"] = "tensorrt_plan"
    return plain_model(drawn_name(draw), config)


def _group(draw: random.Random) -> Message:
    kinds: list[Message] = [{"kind": Word(f"KIND_{each}")} for each in ("CPU", "CPU", "AUTO", "MODEL")]
    group = dict(draw.choice([*kinds, {"kind": 2}, {}]))
    group |= draw.choice([{}, {"count": 1}, {"count": 2}, {"count": 0}])
    others: list[Message] = [{"name": "workers"}, {"passive": draw.random() < 1 / 2}, {"host_policy": "node"}]
    group |= draw.choice([{}, {}, {}, *others])
    resources = [{"name": "memory", "count": 4}, {"name": "disk", "global": True, "count": 1}]
    limiter = {"resources": draw.sample(resources, draw.randint(0, 2)), "priority": draw.choice([0, 1, 2])}
    group |= {"rate_limiter": limiter} if draw.random() < 1 / 4 else {}
    group |= {"secondary_devices": [{"kind": Word("KIND_NVDLA"), "device_id": 0}]} if draw.random() < RARELY / 2 else {}
    wrong: list[Message] = [{"count": -3}, {"gpus": [-1]}, {"gpus": [0], "kind": Word("KIND_CPU")}, {"gpus": []},
                            {"profile": ["0"]}, {"kind": Word("KIND_GPU"), "gpus": [-1]}, {"kind": Word("KIND_TPU")},
                            {"profile": ["one"]}, {"kind": 4}]  # fmt: skip
    return group | seldom(draw, {}, *wrong)


def warmups(draw: random.Random) -> Files:
    """One or two warm-up requests of every kind of data; the model has one to three inputs."""
    name, files = drawn_name(draw), Files()
    limit = draw.choice([0, 4, 4])
    inputs = []
    for index in range(draw.randint(1, 3)):
        kind = draw.choice(["FP32", "INT64", "FP16", "BOOL", "UINT8", "STRING", "FP32"])
        dims = [draw.choice([1, 2, 4, -1]) for _ in range(draw.randint(1, 2))]
        inputs.append(tensor(f"x{index}", kind, dims, **({"optional": True} if draw.random() < RARELY else {})))
        if -1 not in dims and draw.random() < RARELY:
            inputs[-1]["reshape"] = {"shape": [1, *dims]}
    config: Message = {"max_batch_size": limit, "input": inputs, "model_warmup": []}
    if has_sequences := draw.random() < RARELY:
        config["sequence_batching"] = {"control_input": [control(draw, "START")]}
    for number in range(draw.randint(1, 2)):
        given = []
        for each in inputs:
            left_out = each.get("optional", False) and draw.random() < 1 / 2
            if not left_out and draw.random() > RARELY / 6:
                given.append({"key": each["name"], "value": _values(draw, each, f"{name}/warmup", files)})
        if has_sequences and draw.random() < 2 / 3:
            start = {"data_type": Word("TYPE_FP32"), "dims": draw.choice([[1], [1, 1], [2]]), "zero_data": True}
            given.append({"key": "START", "value": start})
        request: Message = {"name": f"warm{number}"} if draw.random() < 0.9 else {}
        request |= {"batch_size": draw.choice([1, 1, max(limit, 1), 0])} if draw.random() < 0.95 else {}
        request |= {"inputs": given} | ({"count": draw.choice([0, 1, 2])} if draw.random() < 1 / 4 else {})
        config["model_warmup"].append(request)
    files |= plain_model(name, config, program=ECHO)
    return files


def _values(draw: random.Random, each: Message, folder: str, files: Files) -> Message:
    """The values of one input; a file of them is laid out."""
    lengths = [3 if length == -1 else length for length in each["dims"]]
    lengths = seldom(draw, lengths, [*lengths, 1], lengths[1:], each["dims"], chance=0.06)
    kind = seldom(draw, each["data_type"], Word("TYPE_INT8"), chance=0.04)
    value: Message = {"data_type": kind, "dims": lengths}
    way = draw.choice(["zero", "random", "file", "file"])
    if way != "file":
        declared = seldom(draw, {f"{way}_data": True}, {f"{way}_data": False}, {}, chance=0.06)
        return value | declared
    name = draw.choice(["values", "data/values", "x.bin"]) + each["name"]
    count = 1
    for length in lengths:
        count *= abs(length)
    change = seldom(draw, 0, -1, 1, chance=0.1)
    width = {"FP32": 4, "INT64": 8, "FP16": 2}.get(kind.removeprefix("TYPE_"), 1)
    content = bytes(max(0, count * width + change))
    if kind == "TYPE_STRING":
        content = b"".join(struct.pack("<I", 2) + b"ab" for _ in range(count + change))
        content = seldom(draw, content, b"ab" * count, content + b"x", chance=0.06)
    if draw.random() > 0.03:
        files[f"{folder}/{name}"] = content
    return value | {"input_data_file": name}
