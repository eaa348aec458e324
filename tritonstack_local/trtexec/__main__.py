"""``trtexec-stand-in MACHINE …``: trtexec's options checked, its files read and written, and no engine built.

It accepts the options of one TensorRT version and refuses others as trtexec does, checks the shapes against the ONNX
graph, and writes the graph with a mark in the plan's place. Such a file it runs with ONNX Runtime on the CPU.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as native

from tritonstack.model_files.marked_plan import is_marked, read_graph, read_header, write_marked_plan
from tritonstack_local.trtexec.arguments import Arguments, Refused, Shape
from tritonstack_local.trtexec.machine import Machine

TYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}
"""The types that an engine's tensors have; TensorRT has no others of ONNX's."""

QUANTISED = re.compile(rb"\x22(\x0eQuantizeLinear|\x10DequantizeLinear)")
"""``op_type`` of a NodeProto (field 4): the operators of a graph that has its own ranges for INT8."""

FAILURES = (
    native.Fail,
    native.InvalidArgument,
    native.InvalidGraph,
    native.InvalidProtobuf,
    native.NotImplemented,
    native.RuntimeException,
    native.NoSuchFile,
    native.EPFail,
)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A graph and how an engine of it takes its arrays."""

    session: Any
    int64_tensors: bool

    @classmethod
    def load(cls, content: bytes, *, int64_tensors: bool) -> Graph:
        """Raises Refused where ONNX Runtime reads no graph in it, or a tensor has a type that TensorRT lacks."""
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except FAILURES as error:
            raise Refused(f"ModelImporter: ONNX Runtime cannot read the graph: {error}") from error
        strange = [
            f"{one.name}: {one.type} is no type of TensorRT's"
            for one in [*session.get_inputs(), *session.get_outputs()]
            if one.type not in TYPES
        ]
        if strange:
            raise Refused("\n".join(strange))
        return cls(session=session, int64_tensors=int64_tensors)

    @property
    def inputs(self) -> dict[str, tuple[int | None, ...]]:
        """Input → its axes, None where the length is free."""
        return {
            one.name: tuple(axis if isinstance(axis, int) else None for axis in one.shape)
            for one in self.session.get_inputs()
        }

    def profile(
        self, given: Mapping[str, Mapping[str, Shape]], shapes: Mapping[str, Shape]
    ) -> tuple[dict[str, tuple[Shape, Shape, Shape]], list[str]]:
        """Input → smallest, best and largest shape, and the warnings about inputs that none was given for.

        ``given``: of one optimisation profile. ``shapes``: ``--shapes``. Raises Refused with every shape that does not
        suit the graph.
        """
        # One of the three is taken for those that are missing, as in trtexec.
        asked = {end: {**shapes, **given.get(end, {})} for end in ("min", "opt", "max")}
        known = {**asked["max"], **asked["opt"], **asked["min"]}
        problems = [
            f"Cannot find input tensor with name {name!r} in the graph" for name in known if name not in self.inputs
        ]
        profile, warnings = {}, []
        for name, axes in self.inputs.items():
            if name not in known:
                profile[name] = (tuple(axis or 1 for axis in axes),) * 3
                if None in axes:
                    spelled = "x".join(map(str, profile[name][0]))
                    warnings.append(f"Dynamic dimensions required for input: {name}, but no shapes were provided. "
                                    f"Automatically overriding shape to: {spelled}")  # fmt: skip
                continue
            least, best, most = (asked[end].get(name, known[name]) for end in ("min", "opt", "max"))
            profile[name] = (least, best, most)
            problems += _shape_problems(name, axes, (least, best, most))
        if problems:
            raise Refused("\n".join(problems))
        return profile, warnings

    def read_input(self, name: str, path: Path, shape: Shape) -> np.ndarray[Any, Any]:
        """An input's array from its raw bytes, in the type of the engine's tensor. Raises Refused for another size."""
        graph_type = self._type(name)
        tensor_type = np.int32 if graph_type is np.int64 and not self.int64_tensors else graph_type
        if not path.is_file():
            raise Refused(f"Cannot open file {path}!")
        wanted = int(np.prod(shape)) * np.dtype(tensor_type).itemsize
        # trtexec itself also takes twice the size and reads half of it; here that is a mistake.
        if path.stat().st_size != wanted:
            raise Refused(f"Unexpected file size for input file: {path}. Note: Input binding size is: {wanted} bytes "
                          f"but the file size is {path.stat().st_size} bytes.")  # fmt: skip
        return np.fromfile(path, tensor_type).reshape(shape).astype(graph_type)

    def zeros(self, name: str, shape: Shape) -> np.ndarray[Any, Any]:
        """An array for an input that none was given for."""
        return np.zeros(shape, self._type(name))

    def _type(self, name: str) -> Any:
        return TYPES[next(one.type for one in self.session.get_inputs() if one.name == name)]

    def run(self, feed: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Output → array. Raises Refused with ONNX Runtime's message."""
        names = [one.name for one in self.session.get_outputs()]
        try:
            return dict(zip(names, self.session.run(names, feed), strict=True))
        except FAILURES as error:
            raise Refused(f"ONNX Runtime: {error}") from error


def _shape_problems(name: str, axes: tuple[int | None, ...], shapes: tuple[Shape, Shape, Shape]) -> list[str]:
    problems = []
    for shape in dict.fromkeys(shapes):
        fits = len(shape) == len(axes) and all(axis in (None, length) for axis, length in zip(axes, shape, strict=True))
        if not fits:
            spelled = "x".join("-1" if axis is None else str(axis) for axis in axes)
            problems.append(f"{name}:{'x'.join(map(str, shape))} does not suit the graph's {name}:{spelled}")
    rising = len({len(shape) for shape in shapes}) == 1 and all(a <= b <= c for a, b, c in zip(*shapes, strict=True))
    return problems if rising or problems else [f"{name}: smallest, best and largest shape do not rise"]


NAME = "trtexec-stand-in"


def say(level: str, text: str) -> None:
    """Write log lines, each with the tool's name."""
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
    profiles, warnings = [], []
    for number, each in enumerate(arguments.profiles()):
        profile, missing = graph.profile(each, {} if number else arguments.shapes("--shapes"))
        profiles.append(profile)
        warnings += missing
    for warning in [*warnings, *quantisation(machine, arguments, content)]:
        say("W", warning)
    say("W", "no engine is built: precision and tactics are not applied, the graph stays as it is")
    header = {
        "tool": NAME,
        "tensorrt": machine.tensorrt,
        "gpu": machine.gpu,
        "compute_capability": machine.compute_capability,
        "options": {name: value for name, value in arguments.values.items() if "/" not in value},
        "profiles": profiles,
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


def quantisation(machine: Machine, arguments: Arguments, graph: bytes) -> list[str]:
    """The warnings about INT8's ranges, by samples/common/sampleEngines.cpp of NVIDIA/TensorRT.

    Raises Refused where the builder fails: nodes that quantise without ``--int8`` (microsoft/onnxruntime issue 13381),
    and a cache of another calibrator or of another major version, for which trtexec has no data to calibrate with.
    """
    cache, is_typed = arguments.text("--calib"), machine.is_strongly_typed or "--stronglyTyped" in arguments.values
    if QUANTISED.search(graph):
        if not is_typed and "--int8" not in arguments.values:
            raise Refused("Error Code 4: Internal Error (Int8 precision has been set for a layer or layer output, but "
                          "int8 is not configured in the builder)")  # fmt: skip
        return ["Calibrator won't be used in explicit quantization mode."] if cache else []
    if "--int8" not in arguments.values:
        return []
    if cache is None:
        return ["--int8 without --calib and without Q/DQ nodes: every tensor gets a dynamic range that is made up"]
    if not Path(cache).is_file():
        return [f"{cache} is not there: the ranges are calibrated with random data"]
    first = Path(cache).read_text(errors="replace").partition("\n")[0]
    major = re.fullmatch(r"TRT-(\d+)-EntropyCalibration2", first.strip())
    if major is None or int(major[1]) // (10_000 if int(major[1]) >= 100_000 else 1_000) != machine.major:
        raise Refused("Calibration table does not match calibrator algorithm type.")
    return []


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


def infer(graph: Graph, profiles: Sequence[Mapping[str, Any]], arguments: Arguments) -> None:
    """One run with the profile of ``--useProfile``; exports the outputs where an option requests it. Raises Refused."""
    number = arguments.text("--useProfile") or "0"
    if not number.isdecimal() or int(number) >= len(profiles):
        raise Refused(f"setOptimizationProfileAsync: profile {number}, and the engine has {len(profiles)}")
    profile = profiles[int(number)]
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
        infer(graph, header["profiles"], arguments)


def main(given: list[str]) -> int:
    machine, arguments = Machine.read(Path(given[0])), given[1:]
    run_line = f"{NAME} [TensorRT v{machine.number}] # {NAME} {' '.join(arguments)}\n"
    sys.stdout.write(f"&&&& RUNNING {run_line}")
    if "--help" in arguments:
        say("I", "no TensorRT and no GPU are used; options of this version:\n" + "\n".join(machine.options))
        return 0
    try:
        work(machine, arguments)
    except Refused as error:
        say("E", str(error))
        sys.stdout.write(f"&&&& FAILED {run_line}")
        return 1
    sys.stdout.write(f"&&&& PASSED {run_line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
