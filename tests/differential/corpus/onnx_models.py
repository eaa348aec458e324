"""ONNX models, judged by this project's stand-in for the onnxruntime backend, which follows that backend's source.

Settings that the stand-in ignores because it has no GPU, as accelerators that the backend refuses, are not drawn.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.differential.corpus.configuration import Message, Word, text
from tests.differential.corpus.repository import OFTEN, RARELY, TYPES, Files, drawn_dims, drawn_name, seldom, tensor
from tests.differential.corpus.schedulers import drawn_batcher, drawn_sequences
from tests.lint.onnx_files import graph_file, loadable

Graph = dict[str, Any]


def onnx_completed(draw: random.Random) -> Files:
    """An ONNX model with a configuration that declares all tensors, few or, rarely, others than the graph's."""
    batches = draw.random() < OFTEN
    limit = draw.choice([0, 4, 8]) if batches else draw.choice([0, 0, 0, 0, 4])
    graph, config = Graph(opset=17, inputs=[], outputs=[]), Message()
    for kind in ("input", "output"):
        config[kind] = []
        for index in range(draw.randint(1, 2)):
            axes: list[int | None] = [None if axis < 0 else axis for axis in drawn_dims(draw, least=0)]
            shape = [None, *axes] if batches else axes
            datatype = draw.choice(TYPES)
            graph[f"{kind}s"].append({"name": f"{kind}{index}", "dtype": datatype, "shape": shape})
            config[kind].append(_seen(draw, kind, f"{kind}{index}", datatype, shape[1:] if limit else shape))
    if draw.random() < RARELY / 3:
        graph["outputs"].append({"name": "map", "dtype": "FP32", "kind": "sequence"})
    if draw.random() < 2 * RARELY:
        for kind in draw.choice([["input"], ["output"], ["input", "output"]]):
            del config[kind]
    elif draw.random() < RARELY / 3:
        config["input"] = config["input"][:1]
    file = seldom(draw, "model.onnx", "net.onnx", chance=RARELY / 2)
    if file != "model.onnx" or draw.random() < RARELY:
        config["default_model_filename"] = file
    if limit or draw.random() < 1 / 2:
        config["max_batch_size"] = limit
    config |= draw.choice(
        [{"backend": "onnxruntime"}, {"platform": "onnxruntime_onnx"}, {"backend": "onnxruntime"}, {}]
    )
    config |= _unspecific(draw) if draw.random() < RARELY else {}
    name = drawn_name(draw)
    files = _written(draw, name, config, graph, file)
    if f"{name}/config.pbtxt" in files and draw.random() < RARELY:
        files |= _another_version(draw, name, config, graph, file)
    return files


def _another_version(draw: random.Random, name: str, config: Message, graph: Graph, file: str) -> Files:
    """A second version, rarely with a graph of other inputs, that is served with the first, or alone."""
    more = {"name": "more", "dtype": "FP32", "shape": [None]}
    other = graph | {"inputs": [*graph["inputs"], *([more] if draw.random() < 1 / 3 else [])]}
    policies: list[Message] = [{"all": {}}, {"latest": {"num_versions": 2}}, {"specific": {"versions": [1]}}]
    policy: Message = draw.choice([{}, *({"version_policy": each} for each in policies)])
    return {f"{name}/2/{file}": graph_file(other), f"{name}/config.pbtxt": text(config | policy)}


def _seen(draw: random.Random, kind: str, name: str, datatype: str, axes: Sequence[int | None]) -> Message:
    """A tensor of the graph as a configuration may declare it, rarely wrongly."""
    dims, more = [-1 if axis is None else axis for axis in axes], Message()
    change = draw.choice(["as it is"] * 24 + ["narrowed", "widened", "rank", "type", "name", "optional", "reshape"])
    if change == "narrowed":
        dims = [4 if axis is None else axis for axis in axes]
    elif change == "widened":
        dims = [-1] * len(axes)
    elif change == "rank":
        dims = [*dims, 3]
    elif change == "reshape" and dims and -1 not in dims:
        dims, more = [1, *dims], {"reshape": {"shape": dims}}
    if not dims:
        dims, more = [1], draw.choice([{"reshape": {"shape": []}}, {"reshape": {}}])
    if change == "optional" and kind == "input":
        more |= {"optional": True}
    return tensor(f"{name}x" if change == "name" else name, "UINT8" if change == "type" else datatype, dims, **more)


def onnx_scheduled(draw: random.Random) -> Files:
    """An ONNX model of a batch with each scheduler, and the options of the backend."""
    limit = draw.choice([4, 8])
    graph = Graph(opset=17, inputs=[_axes("x", "FP32", [4])], outputs=[_axes("y", "FP32", [2])])
    config: Message = {"backend": "onnxruntime", "max_batch_size": limit}
    config |= {"input": [tensor("x", "FP32", [4])], "output": [tensor("y", "FP32", [2])]}
    scheduler = draw.choice(["dynamic", "sequence", "sequence", "none"])
    if scheduler == "dynamic":
        config["dynamic_batching"] = drawn_batcher(draw, limit)
    elif scheduler == "sequence":
        config["sequence_batching"] = drawn_sequences(draw, limit)
        _feed(graph, config["sequence_batching"], has_all=draw.random() < 0.9)
    elif draw.random() < 1 / 3:
        config["batch_input"] = [{
            "kind": Word("BATCH_ELEMENT_COUNT"), "target_name": ["counts"],
            "data_type": Word("TYPE_FP32"), "source_input": ["x"],
        }]  # fmt: skip
        graph["inputs"].append(_axes("counts", "FP32", []))
    for field, value in _unspecific(draw).items():
        if draw.random() < 1 / 2:
            config[field] = value
    return _written(draw, drawn_name(draw), config, graph, "model.onnx")


def _feed(graph: Graph, scheduler: Message, *, has_all: bool) -> None:
    """Give a graph the inputs and outputs of a sequence batcher, or leave the last out."""
    kinds = {"int32_false_true": "INT32", "fp32_false_true": "FP32", "bool_false_true": "BOOL"}
    for each in scheduler.get("control_input", []):
        if not each["name"]:
            continue  # no graph has an input without a name
        control = each["control"][0]
        kind = next((kinds[field] for field in kinds if field in control), control.get("data_type", "TYPE_INT32"))
        graph["inputs"].append(_axes(each["name"], _onnx_type(kind), [1]))
    for state in scheduler.get("state", []):
        graph["inputs"].append(_axes(state["input_name"], _onnx_type(state["data_type"]), state["dims"]))
        graph["outputs"].append(_axes(state["output_name"], _onnx_type(state["data_type"]), state["dims"]))
    if not has_all and len(graph["inputs"]) > 1:
        graph["inputs"].pop()


def _onnx_type(kind: str) -> str:
    return kind.removeprefix("TYPE_").replace("STRING", "BYTES")


def _axes(name: str, kind: str, dims: Sequence[int]) -> Message:
    return {"name": name, "dtype": kind, "shape": [None, *(None if length == -1 else length for length in dims)]}


def _unspecific(draw: random.Random) -> Message:
    """Options of the backend and of the model as a whole."""
    numbers = {"intra_op_thread_count": "1", "inter_op_thread_count": "1", "execution_mode": "1",
               "enable_mem_arena": "0", "enable_mem_pattern": "1", "memory.enable_memory_arena_shrinkage": "cpu:0",
               "session.use_device_allocator_for_initializers": "1"}  # fmt: skip
    keys = draw.sample(list(numbers), draw.randint(1, 3))
    options = [{"key": key, "value": {"string_value": numbers[key]}} for key in keys]
    options += [{"key": "intra_op_thread_count", "value": {"string_value": "two"}}] if draw.random() < 0.05 else []
    of_engine = {"precision_mode": "FP16", "max_workspace_size_bytes": "1073741824"}
    given = [{"key": key, "value": value} for key, value in of_engine.items()]
    tensorrt = {"name": "tensorrt", "parameters": given}
    accelerators = draw.choice([{"cpu_execution_accelerator": [{"name": "openvino"}]},
                                {"gpu_execution_accelerator": [tensorrt]},
                                {"gpu_execution_accelerator": [{"name": "cuda"}]}])  # fmt: skip
    optimization: Message = draw.choice([{"graph": {"level": 1}}, {"execution_accelerators": accelerators},
                                         {"priority": Word("PRIORITY_MAX"), "cuda": {"graphs": True}}])  # fmt: skip
    return {
        "parameters": options,
        "optimization": optimization,
        "instance_group": [{"count": draw.choice([1, 2]), "kind": Word(draw.choice(["KIND_CPU", "KIND_AUTO"]))}],
        "version_policy": draw.choice([{"all": {}}, {"latest": {"num_versions": 1}}, {"specific": {"versions": [1]}}]),
        "response_cache": {"enable": draw.random() < 1 / 2},
        "metric_tags": [{"key": "team", "value": "search"}],
    }


def _written(draw: random.Random, name: str, config: Message, graph: Graph, file: str) -> Files:
    graph["nodes"] = loadable(graph)
    files: Files = {f"{name}/1/{file}": graph_file(graph)}
    way = draw.choice(["whole"] * 10 + ["empty", "absent"]) if file == "model.onnx" else "whole"
    named: Message = draw.choice([{"name": name}, {}])
    written = text(named | config, draw if draw.random() < RARELY else None) if way == "whole" else ""
    return files | ({} if way == "absent" else {f"{name}/config.pbtxt": written})
