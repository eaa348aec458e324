"""Whole configurations: in every spelling of the text format, with a field changed, or with a character changed."""

from __future__ import annotations

import random

from tests.differential.corpus.configuration import Message, Word, damaged, mutated, text
from tests.differential.corpus.repository import ECHO, Files, drawn_name, tensor


def spelt(draw: random.Random) -> Files:
    """A sound configuration in one of its many spellings, sometimes with a character too few, too many, or another."""
    name = drawn_name(draw)
    written = text(_whole(draw, name), draw)
    if draw.random() < 1 / 4:
        heads = ["# made by hand\n", "\n\n", "#\t{\n", "# -*- mode: protobuf -*-\r\n", "\ufeff", "// by hand\n", " \t"]
        written = draw.choice(heads) + written
    if draw.random() < 0.05:
        written = written.replace("\n", draw.choice(["\r\n", "\r"]))
    if draw.random() < 1 / 4:
        written = damaged(written, draw)
    return _laid_out(name, written)


def changed(draw: random.Random) -> Files:
    """A sound configuration with one or two fields misspelt, doubled, left out or with another value."""
    name = drawn_name(draw)
    config = _whole(draw, name)
    for _ in range(draw.choice([0, 1, 1, 1, 2])):
        config = mutated(config, draw)
    return _laid_out(name, text(config))


def changed_ensemble(draw: random.Random) -> Files:
    """A sound ensemble of two steps, with one field of it or of a step misspelt, doubled, left out or changed."""
    name, limit = drawn_name(draw), draw.choice([0, 8])
    steps = []
    for step, takes, gives in (("first", "x", "between"), ("second", "between", "y")):
        maps = {"input_map": [{"key": "x", "value": takes}], "output_map": [{"key": "y", "value": gives}]}
        steps.append({"model_name": f"{name}-{step}", "model_version": -1} | maps)
    plain: Message = {"input": [tensor("x", "FP32", [4])], "output": [tensor("y", "FP32", [4])]}
    head: Message = {"name": name, "platform": "ensemble", "max_batch_size": limit}
    configs: dict[str, Message] = {name: head | plain | {"ensemble_scheduling": {"step": steps}}}
    for step in ("first", "second"):
        head = {"name": f"{name}-{step}", "backend": "python", "max_batch_size": limit}
        more: Message = draw.choice([{}, {"dynamic_batching": {}}, {"instance_group": [{"kind": Word("KIND_CPU")}]}])
        configs[f"{name}-{step}"] = head | plain | more
    if draw.random() < 2 / 3:
        # A doubled platform, or one of another spelling, is the front end's matter: it searches the text.
        which = draw.choice([name, name, *configs])
        fixed = {"platform": configs[which].pop("platform")} if which == name else {}
        configs[which] = fixed | mutated(configs[which], draw)
    files: Files = {f"{each}/config.pbtxt": text(config) for each, config in configs.items()}
    return files | {f"{name}/1/": ""} | {f"{name}-{step}/1/model.py": ECHO for step in ("first", "second")}


def _laid_out(name: str, written: str) -> Files:
    return {
        f"{name}/config.pbtxt": written,
        f"{name}/1/model.py": ECHO,
        f"{name}/labels.txt": "a\nb\n",
        f"{name}/warmup/x": bytes(16),
    }


def _whole(draw: random.Random, name: str) -> Message:
    """A configuration of many fields, all of them as Triton wants them."""
    limit = draw.choice([4, 8])
    x, y = tensor("x", "FP32", [4]), tensor("y", "FP32", [2, 2], label_filename="labels.txt")
    y |= draw.choice([{}, {"reshape": {"shape": [4]}}])
    x |= draw.choice([{}, {"optional": True}, {"reshape": {"shape": [2, 2]}}, {"allow_ragged_batch": False}])
    values: Message = draw.choice([{"zero_data": True}, {"random_data": True}, {"input_data_file": "x"}])
    warm = {"key": "x", "value": {"data_type": Word("TYPE_FP32"), "dims": [4]} | values}
    config: Message = {"name": name, "backend": "python", "max_batch_size": limit, "input": [x], "output": [y]}
    limiter = {
        "resources": [{"name": "memory", "count": 2}, {"name": "disk", "global": True, "count": 1}],
        "priority": 1,
    }
    of_batch = {"kind": Word("BATCH_ELEMENT_COUNT"), "target_name": ["counts"], "data_type": Word("TYPE_FP32")}
    more: Message = {
        "instance_group": [{"count": 1, "kind": Word("KIND_CPU"), "name": "workers", "rate_limiter": limiter}],
        "model_warmup": [{"name": "zeros", "batch_size": 1, "inputs": [warm]}],
        "parameters": [{"key": "threshold", "value": {"string_value": "0.5"}}],
        "version_policy": draw.choice([{"latest": {"num_versions": 1}}, {"specific": {"versions": [1]}}, {"all": {}}]),
        "optimization": {"input_pinned_memory": {"enable": False}, "priority": Word("PRIORITY_MAX"),
                         "graph": {"level": 1}, "execution_accelerators": {"cpu_execution_accelerator": []}},
        "response_cache": {"enable": False},
        "model_transaction_policy": {"decoupled": False},
        "metric_tags": [{"key": "team", "value": "search"}],
        "default_model_filename": "model.py",
        "batch_input": [of_batch | {"source_input": ["x"]}],
    }  # fmt: skip
    config |= {field: more[field] for field in draw.sample(list(more), draw.randint(1, 4))}
    scheduler = draw.choice(["none", "dynamic_batching", "sequence_batching"])
    if scheduler == "dynamic_batching":
        policy = {"timeout_action": Word("REJECT"), "default_timeout_microseconds": 1000, "max_queue_size": 16}
        levels = {
            "priority_levels": 2,
            "default_priority_level": 1,
            "priority_queue_policy": [{"key": 2, "value": policy}],
        }
        queues: Message = draw.choice([{}, levels, {"preserve_ordering": True}, {"default_queue_policy": policy}])
        config[scheduler] = {"preferred_batch_size": [2, limit], "max_queue_delay_microseconds": 100} | queues
    elif scheduler == "sequence_batching":
        start = {"kind": Word("CONTROL_SEQUENCE_START"), "fp32_false_true": [0, 1]}
        identity = {"kind": Word("CONTROL_SEQUENCE_CORRID"), "data_type": Word("TYPE_UINT64")}
        of_start = {"name": "zeros", "data_type": Word("TYPE_INT32"), "dims": [4], "zero_data": True}
        state = {"input_name": "in", "output_name": "out", "data_type": Word("TYPE_INT32"), "dims": [4]}
        state |= {"initial_state": [of_start]} if draw.random() < 1 / 3 else {}
        config[scheduler] = {
            "max_sequence_idle_microseconds": 5000000,
            "control_input": [{"name": "START", "control": [start]}, {"name": "ID", "control": [identity]}],
        }
        config[scheduler] |= {"state": [state]} if draw.random() < 1 / 2 else {}
        oldest = {"max_candidate_sequences": 4, "preferred_batch_size": [limit]}
        config[scheduler] |= draw.choice([{"direct": {"minimum_slot_utilization": 0.5}}, {"oldest": oldest}])
    return config
