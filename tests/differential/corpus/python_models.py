"""Python models: configurations that are missing, partial or completed by a program; their files and versions."""

from __future__ import annotations

import random

from tests.differential.corpus.configuration import Message, Word, text
from tests.differential.corpus.repository import (
    OFTEN,
    PROGRAM,
    RARELY,
    TYPES,
    Files,
    completing_program,
    drawn_dims,
    drawn_name,
    plain_model,
    seldom,
    tensor,
)

KINDS_OF_TENSOR = ("input", "output")


def python_partial(draw: random.Random) -> Files:
    """A Python model whose configuration is missing, minimal or partial, and whose program completes nothing."""
    name, config = drawn_name(draw), _partial(draw, _tensors(draw))
    return _written(draw, name, config, PROGRAM)


def python_completed(draw: random.Random) -> Files:
    """The same with a program that completes it, seldom in contradiction to what is there."""
    name, tensors = drawn_name(draw), _tensors(draw)
    described = {kind: [_described(each) for each in tensors[kind]] for kind in KINDS_OF_TENSOR}
    if draw.random() < 2 * RARELY:
        kind = draw.choice(KINDS_OF_TENSOR)
        described[kind][0] = _damaged(draw, described[kind][0])
    lines = _completing(draw, described)
    if draw.random() < OFTEN:
        lines.append(f"config.set_max_batch_size({draw.choice([0, 4, 8, 8, 16])})")
    if draw.random() < 2 * RARELY:
        lines.append("config.set_dynamic_batching()")
    if draw.random() < 2 * RARELY:
        policy = draw.choice(["dict(decoupled=False)", "{'decoupled': False}", "{'decoupled': True}", "{'order': 1}"])
        lines.append(f"config.set_model_transaction_policy({policy})")
    lines += [] if draw.random() < RARELY / 3 else ["return config"]
    config = _partial(draw, tensors)
    if draw.random() < RARELY:
        config["model_transaction_policy"] = {"decoupled": draw.random() < 1 / 2}
    files = _written(draw, name, config, completing_program(lines, decorator=seldom(draw, "@staticmethod", "")))
    if f"{name}/config.pbtxt" in files and draw.random() < RARELY:
        files |= {f"{name}/2/model.py": PROGRAM}
        files[f"{name}/config.pbtxt"] = text(config | draw.choice([{}, {"version_policy": {"all": {}}}]))
    return files


def _tensors(draw: random.Random) -> dict[str, list[Message]]:
    return {
        kind: [tensor(f"{kind}{index}", draw.choice(TYPES), drawn_dims(draw)) for index in range(draw.randint(1, 2))]
        for kind in KINDS_OF_TENSOR
    }


def _partial(draw: random.Random, tensors: dict[str, list[Message]]) -> Message:
    """A configuration that declares some of the tensors, rarely without a type or dims."""
    config: Message = draw.choice([{"backend": "python"}] * 3 + [{}, {"default_model_filename": "model.py"}])
    config = config | draw.choice([{}, {"max_batch_size": 0}, {"max_batch_size": 4}, {"max_batch_size": 8}])
    for kind, given in tensors.items():
        if draw.random() < OFTEN:
            shown = [_left_out(draw, each) for each in given if draw.random() < OFTEN]
            config |= {kind: shown} if shown else {}
    scheduler: Message = draw.choice([{"sequence_batching": {}}, {"dynamic_batching": {}}])
    return config | (scheduler if draw.random() < 2 * RARELY else {})


def _left_out(draw: random.Random, each: Message) -> Message:
    """A tensor that may lack its type or its dims."""
    gone = seldom(draw, "", "data_type", "dims", "dims", chance=RARELY / 2)
    return {field: value for field, value in each.items() if field != gone}


def _written(draw: random.Random, name: str, config: Message, program: str) -> Files:
    files: Files = {f"{name}/1/model.py": program}
    way = draw.choice(["whole"] * 5 + ["empty", "absent"])
    declared = draw.choice([{"name": name}, {"name": name}, {}])
    written = text(declared | config) if way == "whole" else ""
    return files | ({} if way == "absent" else {f"{name}/config.pbtxt": written})


def _described(each: Message) -> Message:
    """A tensor as ``auto_complete_config`` has it."""
    return each | {"data_type": str(each["data_type"])}


def _damaged(draw: random.Random, each: Message) -> Message:
    """A tensor of ``auto_complete_config`` that is not the configuration's, or not whole."""
    change = draw.choice(["dims", "type", "without", "more", "zero", "optional"])
    if change == "without":
        gone = draw.choice(["name", "data_type", "dims"])
        return {field: value for field, value in each.items() if field != gone}
    other: dict[str, Message] = {
        "dims": {"dims": [*each["dims"], 7]},
        "zero": {"dims": [0]},
        "type": {"data_type": "TYPE_UINT8"},
        "more": {"label_filename": "a"},
        "optional": {"optional": draw.random() < 1 / 2},
    }
    return each | other[change]


def _completing(draw: random.Random, described: dict[str, list[Message]]) -> list[str]:
    """The lines of an ``auto_complete_config``, written in one of the ways that people write it."""
    way, lines = draw.choice(["calls", "names", "loops", "unless"]), list[str]()
    for kind, tensors in described.items():
        if way == "calls":
            lines += [f"config.add_{kind}({each!r})" for each in tensors]
        elif way == "names":
            for index, each in enumerate(tensors):
                lines += [f"{kind}_{index} = {each!r}", f"config.add_{kind}({kind}_{index})"]
        elif way == "loops":
            lines += [f"{kind}s = {tensors!r}", f"for one in {kind}s:", f"    config.add_{kind}(one)"]
        else:
            lines += [f"{kind}s = {tensors!r}", f"known_{kind} = []", f"for one in config.as_dict()['{kind}']:"]
            lines += [f"    known_{kind}.append(one['name'])", f"for one in {kind}s:"]
            lines += [f"    if one['name'] not in known_{kind}:", f"        config.add_{kind}(one)"]
    return lines


def files_laid_out(draw: random.Random) -> Files:
    """A Python model with names, versions, files, labels and an environment here and there."""
    name = drawn_name(draw)
    name = seldom(draw, name, name.upper(), f"{name}.v2", f"{name}-1", f"{name}_{name}", f"{name}+@", "1", f"{name}.py")
    versions = draw.choice([["1"], ["1"], ["3"], ["1", "2"], ["2", "10"], ["1", "notes"], ["0"], ["1", "3"]])
    versions = seldom(draw, versions, ["01"], ["v1"], [], chance=RARELY / 2)
    first = int(versions[0]) if versions and versions[0].isdigit() else 1
    policies: list[Message] = [{"latest": {"num_versions": 1}}, {"latest": {"num_versions": 2}}, {"all": {}}, {},
                               {"specific": {"versions": [first]}}, {"specific": {"versions": [1, 7]}},
                               {"latest": {"num_versions": 0}}]  # fmt: skip
    config: Message = draw.choice([{"backend": "python"}] * 3 + [{}]) | {"max_batch_size": 4}
    if draw.random() < 2 * RARELY:
        config["version_policy"] = draw.choice(policies)
    file = seldom(draw, "model.py", "main.py", "src/model.py", "src/main.py", "net.v2.py", "model.txt", chance=0.25)
    if file != "model.py" or draw.random() < RARELY:
        config["default_model_filename"] = seldom(draw, file, "model.py", chance=RARELY / 2)
    files: Files = {f"{name}/{version}/{file}": PROGRAM for version in versions}
    labels = draw.choice(["labels.txt", "labels.txt", "text/labels.txt", "1/labels.txt", "../labels.txt"])
    if draw.random() < 0.9:
        files[f"{name}/{labels}".replace(f"{name}/../", "")] = draw.choice(["a\nb\n", "", "ä\n\n"])
    place = seldom(draw, "", "/env", "/../env", chance=RARELY / 2)
    if place:  # no such file: an environment that loads takes 2 GB of this machine
        value = {"string_value": f"$$TRITON_MODEL_DIRECTORY{place}.tar.gz"}
        config["parameters"] = [{"key": "EXECUTION_ENV_PATH", "value": value}]
    config["input"], config["output"] = [tensor("x", "FP32", [4])], [tensor("y", "FP32", [4])]
    for _ in range(draw.choice([0, 1, 1, 2])):
        declared = seldom(draw, labels, "none.txt", f"/{labels}", f"./{labels}", chance=RARELY)
        config["output"].append(tensor(draw.choice(["z", "y", "w"]), "FP32", [4], label_filename=declared))
    named = draw.choice([{"name": name}] * 3 + [{}, {"name": drawn_name(draw)}])
    return files | {f"{name}/config.pbtxt": text(named | config), f"{name}/readme.md": "x"}


def parameters(draw: random.Random) -> Files:
    """A Python model with parameters, tags and fields that the core hands on, or looks at in the wrong place."""
    choices: list[Message] = [
        {"parameters": [{"key": "threshold", "value": {"string_value": "0.5"}}]},
        {"parameters": [{"key": "a", "value": {"string_value": "1"}}, {"key": "a", "value": {"string_value": "2"}}]},
        {
            "parameters": [
                {"key": "FORCE_CPU_ONLY_INPUT_TENSORS", "value": {"string_value": draw.choice(["yes", "no"])}}
            ]
        },
        {
            "parameters": [
                {"key": "FORCE_CPU_ONLY_INPUT_TENSORS", "value": {"string_value": draw.choice(["0", "True"])}}
            ]
        },
        {"parameters": [{"key": "TRITON_BATCH_STRATEGY_PATH", "value": {"string_value": ""}}]},
        {"parameters": {"key": "empty", "value": {}}},
        {"metric_tags": [{"key": "team", "value": "search"}, {"key": "tier", "value": "1"}]},
        {"model_operations": {"op_library_filename": ["libop.so"]}},
        {"model_transaction_policy": {"decoupled": draw.random() < 1 / 2}},
        {"response_cache": {"enable": draw.random() < 1 / 2}},
        {"optimization": {"priority": Word(draw.choice(["PRIORITY_MAX", "PRIORITY_MIN", "PRIORITY_DEFAULT"]))}},
        {"optimization": {"input_pinned_memory": {"enable": False}, "output_pinned_memory": {"enable": True}}},
        {"optimization": {"graph": {"level": draw.choice([-1, 0, 1, 2])}, "eager_batching": True}},
        {"optimization": {"cuda": {"graphs": True, "busy_wait_events": True, "graph_spec": [{"batch_size": 4}]}}},
        {"optimization": {"gather_kernel_buffer_threshold": 0}},
        {"version_policy": {"all": {}}},
        {"cc_model_filenames": [{"key": "7.5", "value": "model_75.py"}]},
        {"runtime": draw.choice(["", "libtriton_python.so", "libother.so"])},
        {"platform": draw.choice(["", "python", "custom"])},
        {"model_repository_agents": {"agents": [{"name": "checksum"}]}},
    ]
    config: Message = {"max_batch_size": draw.choice([0, 8])}
    for chosen in draw.sample(choices, draw.randint(1, 3)):
        config |= chosen
    return plain_model(drawn_name(draw), config)
