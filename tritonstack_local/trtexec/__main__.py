"""``trtexec-stand-in MACHINE …``: trtexec's options checked, its files read and written, and no engine built.

It takes the options of one TensorRT version and refuses others as trtexec does, checks the shapes against the ONNX
graph, and writes the graph with a mark in the plan's place. Such a file it runs with ONNX Runtime on the CPU.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tritonstack.models.marked_plan import is_marked, read_graph, read_header, write_marked_plan
from tritonstack_local.trtexec.arguments import Arguments, Refused
from tritonstack_local.trtexec.graph import Graph
from tritonstack_local.trtexec.machine import Machine

NAME = "trtexec-stand-in"


def say(level: str, text: str) -> None:
    """A log line, or several; each says whose it is."""
    for line in text.splitlines():
        sys.stdout.write(f"[{NAME}] [{level}] {line}\n")
    sys.stdout.flush()


def build(machine: Machine, arguments: Arguments) -> tuple[Graph, Mapping[str, Any]]:
    """Write the marked file of an ONNX graph; returns the graph and the header. Raises Refused."""
    onnx = Path(arguments.text("--onnx") or "")
    if not onnx.is_file():
        raise Refused(f"Could not open file {onnx}")
    content = onnx.read_bytes()
    graph = Graph.load(content, int64_tensors=machine.int64_tensors)
    profile, warnings = graph.profile(arguments)
    for warning in warnings:
        say("W", warning)
    say("W", "no engine is built: precision and tactics are not applied, the graph stays as it is")
    header = {
        "tool": NAME,
        "tensorrt": machine.tensorrt,
        "gpu": machine.gpu,
        "compute_capability": machine.compute_capability,
        "options": {name: value for name, value in arguments.values.items() if "/" not in value},
        "profile": profile,
        "onnx_sha256": hashlib.sha256(content).hexdigest(),
    }
    target = arguments.text("--saveEngine")
    if target:
        write_marked_plan(Path(target), header=header, onnx=onnx)
        say("I", f"wrote the marked ONNX graph in the plan's place: {target}")
    cache = arguments.text("--timingCacheFile")
    if cache:
        with Path(cache).open("a") as stream:
            stream.write(f"{NAME}: no tactic was timed (TensorRT {machine.tensorrt}, {machine.gpu})\n")
    return graph, json.loads(json.dumps(header))


def load(machine: Machine, path: Path) -> tuple[Graph, Mapping[str, Any]]:
    """The graph of a marked file. Raises Refused for a real plan, another TensorRT's or another GPU's file."""
    if not is_marked(path):
        raise Refused(f"{path} was not written by {NAME}, and a TensorRT plan needs TensorRT and a GPU")
    header = read_header(path)
    if header["tensorrt"] != machine.tensorrt:
        raise Refused(f"Version tag does not match: TensorRT {header['tensorrt']} built it, this is {machine.tensorrt}")
    if header["compute_capability"] != machine.compute_capability:
        raise Refused(f"The engine plan file is generated on an incompatible device, expecting compute "
                      f"{machine.compute_capability} got compute {header['compute_capability']}")  # fmt: skip
    return Graph.load(read_graph(path), int64_tensors=machine.int64_tensors), header


def infer(graph: Graph, profile: Mapping[str, Any], arguments: Arguments) -> None:
    """One run; exports the outputs where asked to. Raises Refused."""
    shapes, files = arguments.shapes("--shapes"), arguments.pairs("--loadInputs")
    unknown = [name for name in {**shapes, **files} if name not in graph.inputs]
    if unknown:
        raise Refused(f"Cannot find input tensor with name {', '.join(unknown)} in the engine bindings")
    feed = {}
    for name in graph.inputs:
        least, best, most = (tuple(one) for one in profile[name])
        shape = shapes.get(name, best)
        if len(shape) != len(least) or any(not a <= b <= c for a, b, c in zip(least, shape, most, strict=True)):
            raise Refused(f"{name}: shape {shape} is not between {least} and {most}, the optimisation profile's")
        feed[name] = graph.read_input(name, Path(files[name]), shape) if name in files else graph.zeros(name, shape)
    outputs = graph.run(feed)
    exported = arguments.text("--exportOutput")
    if exported:
        Path(exported).write_text(exported_text(outputs))
    say("I", "ONNX Runtime ran the graph on the CPU; no figure of speed is reported")


def exported_text(outputs: Mapping[str, np.ndarray[Any, Any]]) -> str:
    """Outputs as ``--exportOutput`` writes them: six digits, C++'s nan and inf, flat values."""
    parts = []
    for name, values in outputs.items():
        dimensions = "x".join(map(str, values.shape))
        listed = ", ".join(f"{float(one):g}" if values.dtype.kind == "f" else str(int(one)) for one in values.ravel())
        parts.append(f'{{ "name" : "{name}"\n  , "dimensions" : "{dimensions}"\n  , "values" : [ {listed} ]\n  }}\n')
    return "[\n  " + ", ".join(parts) + "]\n"


def work(machine: Machine, given: list[str]) -> None:
    """Everything but the first and the last line. Raises Refused."""
    arguments = Arguments.parse(given, known=frozenset(machine.options), later_values=machine.later_values)
    say("I", f"Selected Device: NVIDIA {machine.gpu} ({NAME})")
    say("I", f"Compute Capability: {machine.compute_capability}")
    plan = arguments.text("--loadEngine")
    if plan is None and arguments.text("--onnx") is None:
        raise Refused("Model missing or format not recognized")
    graph, header = build(machine, arguments) if plan is None else load(machine, Path(plan))
    if not {"--skipInference", "--buildOnly"} & set(arguments.values):
        infer(graph, header["profile"], arguments)


def main(given: list[str]) -> int:
    """The program."""
    machine, arguments = Machine.read(Path(given[0])), given[1:]
    told = f"{NAME} [TensorRT v{machine.number}] # {NAME} {' '.join(arguments)}\n"
    sys.stdout.write(f"&&&& RUNNING {told}")
    if "--help" in arguments:
        say("I", "no TensorRT and no GPU are used; options of this version:\n" + "\n".join(machine.options))
        return 0
    try:
        work(machine, arguments)
    except Refused as error:
        say("E", str(error))
        sys.stdout.write(f"&&&& FAILED {told}")
        return 1
    sys.stdout.write(f"&&&& PASSED {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
