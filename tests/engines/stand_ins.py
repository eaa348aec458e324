"""A graph that doubles its inputs, written by hand, and a job for ``engine_step.py`` with the stand-ins' programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.lint.onnx_files import TYPES, node, number, part, tensor
from tritonstack.engines import engine_step
from tritonstack_local.trtexec.launchers import StandIns, machine_with, make_stand_ins

OPTIONS = ["--fp16", "--memPoolSize=workspace:64", "--minShapes=x:1x3,k:1x3", "--optShapes=x:4x3,k:4x3",
           "--maxShapes=x:8x3,k:8x3", "--skipInference"]  # fmt: skip


def doubling_graph() -> bytes:
    """x FP32 and k INT64, each [batch, 3] → y = x + x, m = k + k. Field numbers: onnx.proto of onnx/onnx."""
    nodes = [part(1, node("Add", [source, source], [target])) for source, target in (("x", "y"), ("k", "m"))]
    types = {"x": "FP32", "k": "INT64", "y": "FP32", "m": "INT64"}
    ends = [part(11 if name in "xk" else 12, tensor(name, kind, ["batch", 3])) for name, kind in types.items()]
    return number(1, 8) + part(8, number(2, 17)) + part(7, b"".join([*nodes, part(2, b"double"), *ends]))


def quantised_graph() -> bytes:
    """x FP32 [batch, 3] → y, x in steps of 0.5: QuantizeLinear to INT8 and DequantizeLinear."""
    nodes = [
        part(1, node("QuantizeLinear", ["x", "scale", "zero"], ["q"])),
        part(1, node("DequantizeLinear", ["q", "scale", "zero"], ["y"])),
    ]
    constants = {"scale": ("FP32", np.float32(0.5).tobytes()), "zero": ("INT8", b"\0")}
    weights = [
        part(5, number(2, TYPES[kind]) + part(8, name.encode()) + part(9, content))
        for name, (kind, content) in constants.items()
    ]
    ends = [part(11, tensor("x", "FP32", ["batch", 3])), part(12, tensor("y", "FP32", ["batch", 3]))]
    return number(1, 8) + part(8, number(2, 17)) + part(7, b"".join([*nodes, part(2, b"steps"), *weights, *ends]))


@dataclass(frozen=True)
class EngineStepRun:
    """A folder with a job, and the programs that it runs with."""

    folder: Path
    programs: StandIns

    @classmethod
    def make(
        cls,
        folder: Path,
        *,
        tensorrt: str = "10.4.0",
        gpu: str = "A10G",
        compute_capability: str = "8.6",
        planned: Sequence[str] = ("10.4",),
        driver: str = "560.35.03",
        supports: str = "12.6",
        compat: str = "",
        **job: Any,
    ) -> EngineStepRun:
        """A job for 24.09 on an A10G with TensorRT 10.4, on the machine of the arguments.

        Its driver supports CUDA ``supports``; ``compat``: what the entrypoint finds of CUDA's forward compatibility.
        """
        (folder / "model.onnx").write_bytes(doubling_graph())
        np.array([[1, 2, 0.1]], np.float32).tofile(folder / "x.raw")
        whole = np.int64 if tensorrt.startswith("1") else np.int32  # TensorRT 10 and 11 have tensors of INT64
        np.array([[1, -2, 3]], whole).tofile(folder / "k.raw")
        described = {
            "release": "24.09",
            "tensorrt": list(planned),
            "gpu": {"name": "A10G", "compute_capability": "8.6"},
            "cuda": "12.6.1",
            "options": OPTIONS,
            "inputs": {name: {"file": f"{name}.raw", "shape": [1, 3]} for name in ("x", "k")},
            "outputs": ["y", "m"],
            "timing_cache": True,
            "timeout_seconds": 120,
            "output": "output",
        }
        (folder / "job.json").write_text(json.dumps({**described, **job}))
        machine = machine_with(
            tensorrt=tensorrt,
            gpu=gpu,
            compute_capability=compute_capability,
            driver=driver,
            cuda=supports,
            compat=compat,
        )
        return cls(folder, make_stand_ins(folder / "programs", machine))

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def start(self, python: str = sys.executable, **variables: str) -> subprocess.Popen[str]:
        """Start the step as an image would: one file, nothing else of this project."""
        program = Path(str(engine_step.__file__))
        environment = {"PATH": os.environ["PATH"], **self.programs.environment(), **variables}
        return subprocess.Popen(
            [python, program, self.folder / "job.json"], env=environment, text=True, cwd="/",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, python: str = sys.executable, **variables: str) -> tuple[int, str]:
        with self.start(python, **variables) as child:
            log, _ = child.communicate(timeout=120)
        return child.returncode, log

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.output / "result.json").read_text())
        return found

    def replace_trtexec(self, script: str) -> EngineStepRun:
        """The same job with a shell script in trtexec's place."""
        banner = 'echo "&&&& RUNNING trtexec-stand-in of a test [TensorRT v100400]"\n'
        self.programs.trtexec.write_text(f'#!/bin/sh\n{banner}[ "$1" = --help ] && exit 0\n{script}\n')
        return self
