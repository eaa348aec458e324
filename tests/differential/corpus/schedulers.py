"""Schedulers: the dynamic batcher, its queues and policies; sequences with controls, strategies and states."""

from __future__ import annotations

import random

from tests.differential.corpus.configuration import Message, Word
from tests.differential.corpus.repository import RARELY, Files, drawn_name, plain_model, seldom


def batched(draw: random.Random) -> Files:
    """A Python model with a dynamic batcher."""
    config: Message = {"max_batch_size": draw.choice([0, 1, 8, 8, 8, 8])}
    config["dynamic_batching"] = drawn_batcher(draw, config["max_batch_size"])
    others: list[Message] = [{"response_cache": {"enable": True}}, {"model_transaction_policy": {"decoupled": False}}]
    config |= seldom(draw, {}, *others, chance=1 / 3)
    return plain_model(drawn_name(draw), config)


def drawn_batcher(draw: random.Random, limit: int) -> Message:
    """A ``dynamic_batching`` whose values mostly fit a batch size."""
    found: Message = {}
    fitting = [size for size in (1, 2, 4, 8) if size <= limit]
    if fitting and draw.random() < 1 / 2:
        found["preferred_batch_size"] = sorted(draw.sample(fitting, draw.randint(1, min(2, len(fitting)))))
    if draw.random() < RARELY:
        found["preferred_batch_size"] = draw.choice([[limit + 1], [0], [-1], [limit, limit + 8]])
    if draw.random() < 1 / 2:
        found["max_queue_delay_microseconds"] = draw.choice([0, 100, 5000])
    if levels := draw.choice([0, 0, 1, 2, 3]):
        found |= {"priority_levels": levels, "default_priority_level": seldom(draw, 1, levels, 0, levels + 1)}
        keys = draw.sample(range(1, levels + 1), draw.randint(0, levels))
        keys = seldom(draw, keys, [levels + 1], [0], chance=RARELY / 2)
        found["priority_queue_policy"] = [{"key": key, "value": _policy(draw)} for key in keys]
    if draw.random() < 1 / 3:
        found["default_queue_policy"] = _policy(draw)
    if draw.random() < 1 / 4:
        found["preserve_ordering"] = draw.random() < 2 / 3
    return found


def _policy(draw: random.Random) -> Message:
    fields: Message = {
        "timeout_action": Word(draw.choice(["REJECT", "REJECT", "DELAY"])),
        "default_timeout_microseconds": draw.choice([0, 1000]),
        "allow_timeout_override": True,
        "max_queue_size": draw.choice([0, 16]),
    }
    return {name: value for name, value in fields.items() if draw.random() < 2 / 3}


def sequences(draw: random.Random) -> Files:
    """A Python model with a sequence batcher."""
    config: Message = {"max_batch_size": draw.choice([0, 8, 8])}
    config["sequence_batching"] = drawn_sequences(draw, config["max_batch_size"])
    if draw.random() < RARELY / 2:
        config["response_cache"] = {"enable": draw.random() < 2 / 3}
    if draw.random() < RARELY:
        config["model_transaction_policy"] = {"decoupled": draw.random() < 2 / 3}
    return plain_model(drawn_name(draw), config)


def drawn_sequences(draw: random.Random, limit: int, *, prefix: str = "") -> Message:
    """A ``sequence_batching`` whose values mostly fit; ``prefix``: of the names of its controls."""
    found: Message = {}
    if draw.random() < 1 / 2:
        found["max_sequence_idle_microseconds"] = draw.choice([0, 1000000, 5000000])
    controls = [control(draw, kind, prefix) for kind in draw.sample(_KINDS, draw.randint(0, 4))]
    if controls:
        found["control_input"] = controls
    preferred = seldom(draw, [max(limit, 0)] if limit else [], [limit + 1], [0])
    strategies: list[Message] = [
        {}, {"direct": {}}, {"direct": {"minimum_slot_utilization": seldom(draw, 0.5, 1, 0, 1.5, -0.5)}},
        {"direct": {"max_queue_delay_microseconds": 100}}, {"oldest": {"max_candidate_sequences": 4}},
        {"oldest": {"preferred_batch_size": preferred, "preserve_ordering": draw.random() < 1 / 2}},
    ]  # fmt: skip
    found |= draw.choice(strategies)
    if draw.random() < 1 / 3:
        found["state"] = _states(draw)
    if draw.random() < RARELY:
        found["iterative_sequence"] = draw.random() < 1 / 2
    return found


_KINDS = ("START", "END", "READY", "CORRID")


def control(draw: random.Random, kind: str, prefix: str = "") -> Message:
    """A tensor of one kind of control, seldom without a name, of another kind or with values that do not do."""
    values: Message = draw.choice([{"fp32_false_true": [0, 1]}, {"int32_false_true": [0, 1]},
                                   {"bool_false_true": [Word("false"), Word("true")]}])  # fmt: skip
    values = seldom(draw, values, {"fp32_false_true": [1]}, {}, {"int32_false_true": [0, 1, 2]},
                    {"int32_false_true": [0, 1], "fp32_false_true": [0, 1]}, chance=0.06)  # fmt: skip
    if kind == "CORRID":
        types = [f"TYPE_{each}" for each in ("UINT64", "INT64", "UINT32", "INT32", "STRING")]
        values = {"data_type": Word(seldom(draw, draw.choice(types), "TYPE_FP32", "TYPE_UINT8", chance=0.06))}
    declared = seldom(draw, kind, "START", chance=0.04)
    return {
        "name": f"{prefix}{seldom(draw, kind, '', 'START', chance=0.04)}",
        "control": [{"kind": Word(f"CONTROL_SEQUENCE_{declared}")} | values],
    }


def _states(draw: random.Random) -> list[Message]:
    """States of which some start with values. Few cannot start: each of those takes seconds to be refused."""
    found = []
    for index in range(draw.randint(1, 2)):
        dims = draw.choice([[4], [2, 3], [1]])
        state: Message = {
            "input_name": f"in{index}",
            "output_name": f"out{index}",
            "data_type": Word(draw.choice(["TYPE_INT32", "TYPE_FP32", "TYPE_STRING"])),
            "dims": seldom(draw, dims, [-1], chance=0.1),
        }
        start: Message = {"name": "zeros", "data_type": state["data_type"], "dims": dims, "zero_data": True}
        start |= seldom(draw, {}, {"dims": [*dims, 1]}, {"data_type": Word("TYPE_UINT8")}, chance=0.06)
        if state["dims"] == dims and draw.random() < 1 / 2:
            state["initial_state"] = [start]
        if draw.random() < 1 / 5:
            state |= {"use_same_buffer_for_input_output": draw.random() < 1 / 2}
        found.append(state)
    return found
