"""Model repositories drawn from a seed, of the kinds of NVIDIA's own tests: what is left out, completed, misnamed.

Nothing here says what becomes of a case: the real Triton does. The kinds are those of qa/L0_model_config in
triton-inference-server/server, by the names of the folders below autofill_noplatform and autofill_noplatform_success;
every case is made here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.models.lint.onnx_files import graph_file, loadable

TYPES = ("FP32", "INT64", "INT32", "FP16")
RARELY, OFTEN = 0.15, 0.7


@dataclass(frozen=True, kw_only=True)
class Case:
    """One repository: path → content; a path that ends with a slash is an empty folder."""

    name: str
    kind: str
    files: Mapping[str, str | bytes]

    def write(self, folder: Path) -> None:
        """Lay it out below an existing or new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            path = folder / name
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                path.write_bytes(content if isinstance(content, bytes) else content.encode())


def corpus(seed: str, count: int) -> tuple[Case, ...]:
    """``count`` cases of all kinds in turn."""
    draw = random.Random(seed)
    makers: Sequence[tuple[str, Callable[[random.Random], dict[str, str | bytes]]]] = tuple(KINDS.items())
    kinds = [makers[index % len(makers)] for index in range(count)]
    return tuple(Case(name=f"{kind}-{index}", kind=kind, files=make(draw)) for index, (kind, make) in enumerate(kinds))


def _name(draw: random.Random) -> str:
    return "".join(draw.choice("abcdefgh") for _ in range(5))


def _dims(draw: random.Random, *, least: int = 1) -> list[int]:
    return [draw.choice([-1, 1, 2, 3, 5, 8]) for _ in range(draw.randint(least, 3))]


def _tensor(name: str, kind: str, dims: Sequence[int] | None, *more: str) -> str:
    """A tensor of config.pbtxt; no ``data_type`` for an empty type, no ``dims`` for None."""
    fields = [f'name: "{name}"' if name else "", f"data_type: TYPE_{kind}" if kind else ""]
    fields += ["" if dims is None else f"dims: {list(dims)}", *more]
    return "{ " + " ".join(field for field in fields if field) + " }"


def _config(*, name: str = "", head: Sequence[str] = (), **tensors: Sequence[str]) -> str:
    lines = [f'name: "{name}"' if name else "", *head]
    lines += [f"{kind} [ {', '.join(each)} ]" for kind, each in tensors.items() if each]
    return "".join(f"{line}\n" for line in lines if line)


PROGRAM = (
    "import triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n"
    "    def execute(self, requests):\n        return []\n"
)


def python_partial(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model whose configuration is missing, minimal or partial."""
    name, limit = _name(draw), draw.choice([0, 0, 4, 8])
    tensors = {
        kind: [(f"{kind}{index}", draw.choice(TYPES), _dims(draw)) for index in range(draw.randint(1, 2))]
        for kind in ("input", "output")
    }
    files: dict[str, str | bytes] = {f"{name}/1/model.py": PROGRAM}
    shown = {
        kind: [_tensor(*_left_out(draw, each)) for each in given if draw.random() < OFTEN]
        if draw.random() < OFTEN
        else []
        for kind, given in tensors.items()
    }
    backend = draw.choice(['backend: "python"', 'backend: "python"', "", 'default_model_filename: "model.py"'])
    head = [backend, f"max_batch_size: {limit}" if limit else ""]
    head += ["sequence_batching { }"] if draw.random() < RARELY / 2 else []
    text = _config(name=draw.choice([name, name, ""]), head=head, **shown)
    way = draw.choice(["whole", "whole", "whole", "empty", "absent"])
    return files | ({} if way == "absent" else {f"{name}/config.pbtxt": text if way == "whole" else ""})


def _left_out(draw: random.Random, tensor: tuple[str, str, list[int]]) -> tuple[str, str, list[int] | None]:
    """A tensor that may lack its type or its dims."""
    name, kind, dims = tensor
    return name, "" if draw.random() < RARELY / 2 else kind, None if draw.random() < RARELY else dims


def onnx_completed(draw: random.Random) -> dict[str, str | bytes]:
    """An ONNX model with a configuration that says all, little or something else than the graph."""
    name, batches = _name(draw), draw.random() < OFTEN
    graph: dict[str, Any] = {"opset": 17}
    shown: dict[str, list[str]] = {}
    limit = draw.choice([0, 4, 8]) if batches else draw.choice([0, 0, 0, 4])
    for kind in ("input", "output"):
        graph[f"{kind}s"], shown[kind] = [], []
        for index in range(draw.randint(1, 2)):
            axes: list[int | None] = [None if axis < 0 else axis for axis in _dims(draw, least=0)]
            shape = [None, *axes] if batches else axes
            datatype = draw.choice(TYPES)
            graph[f"{kind}s"].append({"name": f"{kind}{index}", "dtype": datatype, "shape": shape})
            shown[kind].append(_seen(draw, kind, f"{kind}{index}", datatype, shape[1:] if limit else shape))
    if draw.random() < RARELY / 2:
        graph["outputs"].append({"name": "map", "dtype": "FP32", "kind": "sequence"})
    graph["nodes"] = loadable(graph)
    file = draw.choice(["model.onnx"] * 6 + ["net.onnx"])
    backend = draw.choice(['backend: "onnxruntime"', 'platform: "onnxruntime_onnx"', "", ""])
    head = [backend, f'default_model_filename: "{file}"' if draw.random() < RARELY or file != "model.onnx" else ""]
    head.append(f"max_batch_size: {limit}" if limit or draw.random() < 1 / 2 else "")
    for kind in ("input", "output"):
        if draw.random() < 2 * RARELY:
            shown[kind] = draw.choice([[], [], shown[kind][:1]])
    files: dict[str, str | bytes] = {f"{name}/1/{file}": graph_file(graph)}
    way = draw.choice(["whole"] * 6 + ["empty", "absent"])
    text = _config(name=draw.choice([name, ""]), head=head, **shown) if way == "whole" else ""
    return files | ({} if way == "absent" else {f"{name}/config.pbtxt": text})


def _seen(draw: random.Random, kind: str, name: str, datatype: str, axes: Sequence[int | None]) -> str:
    """A tensor of the graph as a configuration may say it, seldom wrongly."""
    dims = [-1 if axis is None else axis for axis in axes]
    more: list[str] = []
    change = draw.choice(["as it is"] * 12 + ["narrowed", "widened", "rank", "type", "name", "optional", "reshape"])
    if change == "narrowed":
        dims = [4 if axis is None else axis for axis in axes]
    elif change == "widened":
        dims = [-1] * len(axes)
    elif change == "rank":
        dims = [*dims, 3]
    elif change == "reshape" and dims and -1 not in dims:
        dims, more = [1, *dims], [f"reshape {{ shape: {dims} }}"]
    if not dims:
        dims, more = [1], draw.choice([["reshape { shape: [ ] }"], ["reshape { shape: [ ] }"], []])
    if change == "optional" and kind == "input":
        more.append("optional: true")
    return _tensor(f"{name}x" if change == "name" else name, "UINT8" if change == "type" else datatype, dims, *more)


def reshaped(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model whose tensors have another shape for the backend, with as many elements or not."""
    name, limit = _name(draw), draw.choice([0, 8])
    sizes = [draw.choice([1, 2, 3, 4, 6, 12]), draw.choice([1, 2, 3, 4]), draw.choice([1, 5])]
    flat = sizes[0] * sizes[1] * sizes[2]
    shapes = draw.choice([
        (sizes, [flat]), ([flat], sizes), ([1], []), ([1, 1], []), ([-1, *sizes], [-1, flat]), ([-1], [-1, 1]),
        ([sizes[0], -1, 4], [1, sizes[0], -1, 2, 2]), (sizes, [flat + 1]), ([-1], [4]), ([4], [-1]), ([-1, -1], [-1]),
        ([2], []), ([-1], []), (sizes, [flat, 0]), ([2, -1, 6], [4, -1, 3]),
    ])  # fmt: skip
    more = f"reshape {{ shape: {shapes[1]} }}"
    tensors = [_tensor("x", "FP32", shapes[0], more), _tensor("y", "FP32", [4])]
    if draw.random() < 1 / 2:
        tensors = [_tensor("x", "FP32", [4]), _tensor("y", "FP32", shapes[0], more)]
    head = ['backend: "python"', f"max_batch_size: {limit}"]
    text = _config(name=name, head=head, input=tensors[:1], output=tensors[1:])
    return {f"{name}/config.pbtxt": text, f"{name}/1/model.py": PROGRAM}


def instances(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model with instance groups; none asks for a GPU that could be there, for here is none."""
    groups = []
    for _ in range(draw.randint(1, 3)):
        fields = [
            draw.choice(["kind: KIND_CPU", "kind: KIND_CPU", "kind: KIND_AUTO", "kind: KIND_MODEL", "", "kind: 2"])
        ]
        fields.append(draw.choice(["", "count: 1", "count: 2", "count: 0", "count: -3"]))
        fields.append(draw.choice([""] * 8 + ["gpus: [ -1 ]", "gpus: -1", "gpus: [ ]"]))
        fields.append(draw.choice([""] * 12 + ['profile: "0"', "kind: KIND_GPU gpus: [ -1 ]", "kind: KIND_TPU"]))
        fields.append(draw.choice(["", "", 'name: "workers"', "passive: false", 'host_policy: "node"']))
        if fields[3].startswith("kind"):
            fields[0] = ""
        groups.append("{ " + " ".join(field for field in fields if field) + " }")
    name = _name(draw)
    head = ['backend: "python"', "max_batch_size: 4", f"instance_group [ {', '.join(groups)} ]"]
    text = _config(name=name, head=head, input=[_tensor("x", "FP32", [4])], output=[_tensor("y", "FP32", [4])])
    return {f"{name}/config.pbtxt": text, f"{name}/1/model.py": PROGRAM}


def files_laid_out(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model with versions, files, labels and an environment here and there."""
    name = _name(draw)
    head = [draw.choice(['backend: "python"', 'backend: "python"', ""]), "max_batch_size: 4"]
    versions = draw.choice([["1"], ["1"], ["3"], ["1", "2"], ["2", "10"], ["01"], ["v1"], [], ["0"], ["1", "notes"]])
    policy = draw.choice([""] * 4 + ["latest { num_versions: 1 }", "all { }", "specific { versions: [ 1 ] }",
                                     "specific { versions: [ 1, 7 ] }", "latest { num_versions: 0 }"])  # fmt: skip
    head += [f"version_policy {{ {policy} }}"] if policy else []
    file = draw.choice(["model.py"] * 6 + ["main.py", "model.txt"])
    head += [f'default_model_filename: "{file}"'] if draw.random() < 2 * RARELY else []
    label = draw.choice([[]] * 5 + [['label_filename: "labels.txt"']])
    files: dict[str, str | bytes] = {f"{name}/{version}/{file}": PROGRAM for version in versions}
    files |= {f"{name}/labels.txt": "a\nb\n"} if draw.random() < OFTEN else {}
    place = draw.choice([""] * 5 + ["/env", "/../env"])
    if place:
        entry = f'key: "EXECUTION_ENV_PATH" value {{ string_value: "$$TRITON_MODEL_DIRECTORY{place}.tar.gz" }}'
        head.append(f"parameters {{ {entry} }}")  # no such file: an environment that loads takes 2 GB of this machine
    named = draw.choice([name] * 4 + ["", _name(draw)])
    text = _config(name=named, head=head, input=[_tensor("x", "FP32", [4])], output=[_tensor("y", "FP32", [4], *label)])
    return files | {f"{name}/config.pbtxt": text, f"{name}/readme.md": "x"}


def batched(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model with a dynamic batcher, its queues and policies."""
    name, limit = _name(draw), draw.choice([0, 1, 8, 8, 8])
    preferred = draw.choice([[], [], [4], [4, 8], [16], [1]])
    levels = draw.choice([0, 0, 1, 2])
    inside = [f"preferred_batch_size: {preferred}" if preferred else ""]
    inside += [f"priority_levels: {levels} default_priority_level: {draw.choice([1] * 4 + [2, 0])}"] if levels else []
    inside += ["preserve_ordering: true"] if draw.random() < 2 * RARELY else []
    policy = draw.choice(["", "max_queue_size: 4", "timeout_action: DELAY default_timeout_microseconds: 9"])
    inside += [f"default_queue_policy {{ {policy} }}"] if policy else []
    inside += [f"priority_queue_policy {{ key: {draw.choice([1, 1, 1, 2])} value {{ {policy} }} }}"] if levels else []
    empty = draw.choice([""] * 12 + ["optimization [ ]", "parameters [ ]"])
    head = ['backend: "python"', f"max_batch_size: {limit}", f"dynamic_batching {{ {' '.join(inside)} }}", empty]
    head += draw.choice(
        [[]] * 4 + [["response_cache { enable: true }"], ["model_transaction_policy { decoupled: false }"]]
    )
    return _plain(name, head)


def _plain(name: str, head: Sequence[str], **tensors: Sequence[str]) -> dict[str, str | bytes]:
    """A Python model of one input and one output, unless they are given."""
    plain = {"input": [_tensor("x", "FP32", [4])], "output": [_tensor("y", "FP32", [4])]}
    return {f"{name}/config.pbtxt": _config(name=name, head=head, **plain | tensors), f"{name}/1/model.py": PROGRAM}


def sequences(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model with a sequence batcher: controls, a strategy and states."""
    limit, controls = draw.choice([0, 8, 8]), []
    for kind in draw.sample(("START", "END", "READY", "CORRID"), draw.randint(0, 4)):
        values = draw.choice(["fp32_false_true: [ 0, 1 ]"] * 4 + ["int32_false_true: [ 0, 1 ]"] * 4 +
                             ["bool_false_true: [ false, true ]"] * 4 + ["fp32_false_true: 1", ""])  # fmt: skip
        if kind == "CORRID":
            values = draw.choice([f"data_type: TYPE_{each}" for each in ("UINT64", "INT32", "STRING", "FP32", "INT64")])
        said = draw.choice([kind] * 12 + ["START"])
        controls.append(f'{{ name: "{kind}" control [ {{ kind: CONTROL_SEQUENCE_{said} {values} }} ] }}')
    strategy = draw.choice([
        "", "direct { }", f"direct {{ minimum_slot_utilization: {draw.choice(['0.5', '1', '0', '1.5'])} }}",
        "oldest { max_candidate_sequences: 4 }", f"oldest {{ preferred_batch_size: {draw.choice([1, 4, 8, 9])} }}",
    ])  # fmt: skip
    state = 'state { input_name: "in" output_name: "out" data_type: TYPE_INT32 dims: [ 4 ] %s }'
    start = 'initial_state { name: "s" data_type: TYPE_%s dims: [ %s ] zero_data: true }'
    start %= draw.choice([("INT32", 4)] * 5 + [("FP32", 4), ("INT32", 3), ("INT32", -1)])
    states = draw.choice(["", state % "", state % start])
    inside = f"{strategy} {states} control_input [ {', '.join(controls)} ]"
    return _plain(_name(draw), ['backend: "python"', f"max_batch_size: {limit}", f"sequence_batching {{ {inside} }}"])


def ragged(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model with ragged inputs, and tensors that Triton makes of a batch."""
    kinds = ["BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN"]
    sources = ['source_input: "x"'] * 10 + ['source_input: "z"', "", 'source_input: [ "x", "x" ]', 'source_input: "y"']
    kind = draw.choice(["FP32", "INT32"] * 4 + ["INT64"])
    inside = f'kind: {draw.choice(kinds)} target_name: "index" data_type: TYPE_{kind} {draw.choice(sources)}'
    head = ['backend: "python"', f"max_batch_size: {draw.choice([0, 8, 8])}", f"batch_input [ {{ {inside} }} ]"]
    if draw.random() < 1 / 2:
        target = draw.choice(["y"] * 6 + ["x"])
        inside = f'target_name: "{target}" kind: BATCH_SCATTER_WITH_INPUT_SHAPE {draw.choice(sources)}'
        head.append(f"batch_output [ {{ {inside} }} ]")
    ragged_input = _tensor("x", "FP32", [-1], "allow_ragged_batch: true")
    return _plain(_name(draw), head, input=[ragged_input], output=[_tensor("y", "FP32", [-1])])


def flags(draw: random.Random) -> dict[str, str | bytes]:
    """A Python model whose tensors have formats, or fields of TensorRT's."""
    dims = draw.choice([[4], [3, 8, 8], [3, 8, 8], [-1, -1, 3], [1, 3, 8, 8]])
    form = draw.choice(["", "format: FORMAT_NONE", "format: FORMAT_NCHW", "format: FORMAT_NHWC"])
    special = draw.choice([""] * 8 + ["is_shape_tensor: true", "is_shape_tensor: false", "allow_ragged_batch: true",
                                      "is_non_linear_format_io: true", "is_non_linear_format_io: false"])  # fmt: skip
    of_output = draw.choice([""] * 8 + ["is_shape_tensor: true", "is_non_linear_format_io: true"])
    head = [draw.choice(['backend: "python"'] * 4 + ['backend: "python" platform: "tensorrt_plan"'])]
    head += [f"max_batch_size: {draw.choice([0, 8])}", draw.choice(["", "", "", 'runtime: "libtriton_python.so"'])]
    given, made = _tensor("x", "FP32", dims, form, special), _tensor("y", "FP32", [4], of_output)
    return _plain(_name(draw), head, input=[given], output=[made])


def named(draw: random.Random) -> dict[str, str | bytes]:
    """An ensemble whose step has a dot in its name, and a backend of its own or none."""
    name, suffix = _name(draw), draw.choice(["onnxruntime", "onnxruntime", "v2", "python", "2"])
    step = f"{name}-step.{suffix}"
    graph: dict[str, Any] = {"opset": 17}
    for kind, tensor in (("input", "x"), ("output", "y")):
        graph[f"{kind}s"] = [{"name": tensor, "dtype": "FP32", "shape": [None, 4]}]
    graph["nodes"] = loadable(graph)
    file = draw.choice(["model.py", "model.onnx", f"model.{suffix}"])
    is_program = file == "model.py" or (suffix != "onnxruntime" and file != "model.onnx")
    own = "python" if is_program else "onnxruntime"
    backend = draw.choice(["", "", "", f'backend: "{own}"'])
    plain = {"input": [_tensor("x", "FP32", [4])], "output": [_tensor("y", "FP32", [4])]}
    maps = 'input_map { key: "x" value: "x" } output_map { key: "y" value: "y" }'
    scheduling = f'ensemble_scheduling {{ step {{ model_name: "{step}" model_version: -1 {maps} }} }}\n'
    head = ['platform: "ensemble"', "max_batch_size: 4"]
    return {
        f"{name}/config.pbtxt": _config(name=name, head=head, **plain) + scheduling,
        f"{name}/1/": "",
        f"{step}/config.pbtxt": _config(name="", head=[backend, "max_batch_size: 4"], **plain),
        f"{step}/1/{file}": PROGRAM if is_program else graph_file(graph),
    }


def ensembles(draw: random.Random) -> dict[str, str | bytes]:
    """An ensemble of one or two steps, whose models say their tensors."""
    prefix = _name(draw)
    limit, between = draw.choice([0, 8]), draw.choice([[4], [2, 3], [-1]])
    steps = [(f"{prefix}-first", [4], between), (f"{prefix}-second", between, [2])]
    files: dict[str, str | bytes] = {f"{prefix}/1/": ""}
    for index, (model, taken, given) in enumerate(steps):
        wrong = draw.random() < RARELY / 2
        tensors = ("x", "FP32", taken), ("y", "INT64" if wrong else "FP32", given)
        said = {"input": [_tensor(*tensors[0])], "output": [_tensor(*tensors[1])]}
        size = limit if draw.random() < 1 - RARELY / 2 else 2
        text = _config(name=model, head=['backend: "python"', f"max_batch_size: {size}" if size else ""], **said)
        if index == 0 or draw.random() < 1 - RARELY / 2:
            files |= {f"{model}/config.pbtxt": text, f"{model}/1/model.py": PROGRAM}
    names = draw.choice([("x", "between", "y")] * 8 + [("x", "x", "y"), ("x", "between", "z")])
    maps = [
        f'{{ model_name: "{model}" model_version: {draw.choice([-1] * 9 + [1, 3])} '
        f'input_map {{ key: "x" value: "{names[index]}" }} output_map {{ key: "y" value: "{names[index + 1]}" }} }}'
        for index, (model, _, _) in enumerate(steps)
    ]
    head = ['platform: "ensemble"', f"max_batch_size: {limit}" if limit else ""]
    tensors_of = {
        "input": [_tensor("x", "FP32", [4])],
        "output": [_tensor("y", "FP32", draw.choice([[2]] * 6 + [[3]]))],
    }
    text = _config(name=prefix, head=head, **tensors_of) + f"ensemble_scheduling {{ step [ {', '.join(maps)} ] }}\n"
    return files | {f"{prefix}/config.pbtxt": text}


KINDS: Mapping[str, Callable[[random.Random], dict[str, str | bytes]]] = {
    "python-partial": python_partial,
    "onnx-completed": onnx_completed,
    "reshaped": reshaped,
    "instances": instances,
    "files": files_laid_out,
    "batched": batched,
    "sequences": sequences,
    "ragged": ragged,
    "flags": flags,
    "named": named,
    "ensembles": ensembles,
}
"""Kind → what makes a case of it. ONNX graphs are judged by this project's stand-in for the onnxruntime backend, which
follows that backend's source; all else by NVIDIA's own core and Python backend."""
