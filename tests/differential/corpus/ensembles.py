"""Ensembles: chains of two to four steps, branches that meet, and steps that are named after backends."""

from __future__ import annotations

import random
from typing import Any

from tests.differential.corpus.configuration import Message, text
from tests.differential.corpus.repository import PROGRAM, RARELY, Files, completing_program, drawn_name, seldom, tensor
from tests.lint.onnx_files import graph_file, loadable


def ensembles(draw: random.Random) -> Files:
    """A graph of two to four steps, each of which takes one or two tensors of the ensemble's or of earlier steps.

    What nothing takes is an output. Seldom one of the names, sizes, types or versions is another.
    """
    prefix, limit = drawn_name(draw), draw.choice([0, 8])
    known = {"start": [4]} | ({"mask": [4]} if draw.random() < 1 / 3 else {})
    inputs, waiting, steps, files = dict(known), list(known), list[Message](), Files()
    for index in range(draw.randint(2, 4)):
        model = f"{prefix}-{index}"
        taken = [draw.choice(waiting or list(known))]
        others = [each for each in known if each not in taken]
        if others and draw.random() < 0.4:
            taken.append(draw.choice(others))
        given = [f"{model}-out{number}" for number in range(draw.choice([1, 1, 2]))]
        waiting = [each for each in waiting if each not in taken] + given
        shapes = {each: draw.choice([[4], [2, 3], [-1], [4, -1]]) for each in given}
        takes = [(f"in{number}", known[each]) for number, each in enumerate(taken)]
        gives = [(f"out{number}", shapes[each]) for number, each in enumerate(given)]
        files |= _model(draw, model, takes, gives, limit)
        known |= shapes
        of_inputs = {f"in{number}": each for number, each in enumerate(taken)}
        of_outputs = {f"out{number}": each for number, each in enumerate(given)}
        steps.append(_step(draw, model, {"input_map": of_inputs, "output_map": of_outputs}))
    if draw.random() < 1 / 4:
        draw.shuffle(steps)
    ends = waiting if draw.random() < 1 - RARELY / 4 else waiting[1:]
    inner = [each for each in known if each not in (*ends, *inputs)]
    if inner and draw.random() < RARELY:
        ends = [*ends, draw.choice(inner)]
    config: Message = {"name": prefix, "platform": "ensemble", "max_batch_size": limit}
    config["input"] = [tensor(each, "FP32", dims) for each, dims in inputs.items()]
    config["output"] = [tensor(each, _type(draw), _near(draw, known[each])) for each in ends]
    config["ensemble_scheduling"] = {"step": steps}
    config |= seldom(draw, {}, {"version_policy": {"all": {}}}, {"instance_group": []}, {"optimization": {}},
                     {"parameters": [{"key": "a", "value": {"string_value": "b"}}]}, chance=RARELY / 2)  # fmt: skip
    return files | {f"{prefix}/1/": "", f"{prefix}/config.pbtxt": text(config)}


def _type(draw: random.Random) -> str:
    return seldom(draw, "FP32", "INT64", chance=0.01)


def _near(draw: random.Random, dims: list[int]) -> list[int]:
    """These dims, or others that mostly agree with them."""
    fixed = [7 if length == -1 else length for length in dims]
    return seldom(draw, dims, [-1] * len(dims), fixed, [*dims, 1], chance=0.04)


def _model(
    draw: random.Random, name: str, takes: list[tuple[str, list[int]]], gives: list[tuple[str, list[int]]], limit: int
) -> Files:
    """A step's Python model, whose tensors the configuration declares or the program completes."""
    inputs = [tensor(each, _type(draw), _near(draw, dims)) for each, dims in takes]
    inputs += [tensor("more", "FP32", [1], optional=True)] if draw.random() < RARELY else []
    config: Message = {"name": name, "backend": "python"}
    config |= {"max_batch_size": seldom(draw, limit, 16 if limit else 0, 2, chance=0.05)}
    config |= {"input": inputs, "output": [tensor(each, "FP32", _near(draw, dims)) for each, dims in gives]}
    config |= seldom(draw, {}, {"dynamic_batching": {}}, {"sequence_batching": {}}, chance=RARELY / 2)
    config |= {"model_transaction_policy": {"decoupled": True}} if draw.random() < 0.03 else {}
    program = PROGRAM
    if draw.random() < 1 / 5:
        lines = [f"config.set_max_batch_size({config.pop('max_batch_size')})"]
        for kind in ("input", "output"):
            declared = [each | {"data_type": str(each["data_type"])} for each in config.pop(kind)]
            lines += [f"config.add_{kind}({each!r})" for each in declared]
        program = completing_program([*lines, "return config"])
    files: Files = {f"{name}/{version}/model.py": program for version in draw.choice([["1"]] * 6 + [["1", "2"]])}
    return files | {f"{name}/config.pbtxt": text(config)}


def _step(draw: random.Random, model: str, maps: dict[str, dict[str, str]]) -> Message:
    step: Message = {"model_name": seldom(draw, model, f"{model}x", chance=0.01)}
    version = seldom(draw, -1, 1, 2, 0, chance=0.03)
    step |= {} if draw.random() < 0.01 else {"model_version": version}
    for field, pairs in maps.items():
        if draw.random() < 0.01:
            continue
        step[field] = [
            {"key": seldom(draw, key, f"{key}x", chance=0.01), "value": seldom(draw, value, "lost", chance=0.01)}
            for key, value in pairs.items()
        ]
    return step


def named(draw: random.Random) -> Files:
    """An ensemble whose step has a dot in its name, and a backend of its own or none."""
    name, suffix = drawn_name(draw), draw.choice(["onnxruntime", "v2", "python", "2", "v1.onnx"])
    step = f"{name}-step.{suffix}"
    graph: dict[str, Any] = {"opset": 17}
    for kind, each in (("input", "x"), ("output", "y")):
        graph[f"{kind}s"] = [{"name": each, "dtype": "FP32", "shape": [None, 4]}]
    graph["nodes"] = loadable(graph)
    file = draw.choice(["model.py", "model.py", "model.onnx", "model.onnx", f"model.{suffix}"])
    is_program = file == "model.py" or (suffix != "onnxruntime" and file != "model.onnx")
    own = "python" if is_program else "onnxruntime"
    can_be_named = not is_program or file == "model.py"  # a program of another name is waited for in vain
    plain: Message = {"max_batch_size": 4, "input": [tensor("x", "FP32", [4])], "output": [tensor("y", "FP32", [4])]}
    maps = {field: [{"key": each, "value": each}] for field, each in (("input_map", "x"), ("output_map", "y"))}
    scheduling: Message = {"step": [{"model_name": step, "model_version": -1} | maps]}
    backend: Message = {"backend": own} if can_be_named and draw.random() < 2 / 3 else {}
    ensemble: Message = {"name": name, "platform": "ensemble"} | plain | {"ensemble_scheduling": scheduling}
    return {
        f"{name}/config.pbtxt": text(ensemble),
        f"{name}/1/": "",
        f"{step}/config.pbtxt": text(backend | plain),
        f"{step}/1/{file}": PROGRAM if is_program else graph_file(graph),
    }
