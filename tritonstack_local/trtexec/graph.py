"""The ONNX graph of the stand-in: its tensors, the profiles it may have, one run with ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as native

from tritonstack_local.trtexec.arguments import Arguments, Refused, Shape

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

    def profile(self, arguments: Arguments) -> tuple[dict[str, tuple[Shape, Shape, Shape]], list[str]]:
        """Input → smallest, best and largest shape, and the warnings about inputs that none was given for.

        Raises Refused with every shape that does not suit the graph.
        """
        shapes = arguments.shapes("--shapes")
        asked = {
            end: {**shapes, **arguments.shapes(f"--{end}Shapes")} for end in ("min", "opt", "max")
        }  # one of the three stands for those that are missing, as in trtexec
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
