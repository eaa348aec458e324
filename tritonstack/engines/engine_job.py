"""The job file of ``engine_step.py``: a recipe's engine, a release and a GPU, and the proof's inputs beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tritonstack.archives.engine_recipe import Engine
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.trtexec import minor_version
from tritonstack.engines.trtexec import engine_options, tensorrt_versions
from tritonstack.errors import InputError, Problem
from tritonstack.naming import Platform

TYPES = ("float16", "float32", "int8", "uint8", "int32", "int64", "bool")
"""The types that an input of an engine may have (NumPy's names; TensorRT has no others that NumPy has too)."""

INT64_TENSORS_SINCE = 10
"""Before TensorRT 10 an engine's tensor is INT32 where the graph's is INT64. trtexec then reads a file of twice the
size without a word, and half of it (``loadFromFile`` in samples/common/sampleUtils.cpp of NVIDIA/TensorRT)."""


@dataclass(frozen=True, kw_only=True)
class EngineJob:
    """What one run of the step does.

    Attributes:
        engine: of the recipe.
        platform: the release whose image builds, and the GPU.
        onnx: the graph's path, as the step finds it from the job's folder.
        inputs: input → the proof's array, in the graph's type, the batch first.
        outputs: the outputs that the plan must answer.
        timing_cache: the path where the cache may lie; None: no cache, as also where the recipe wants none.
        timeout_seconds: how long build and proof may take together.
    """

    engine: Engine
    platform: Platform
    onnx: str
    inputs: Mapping[str, NDArray[Any]]
    outputs: Sequence[str]
    timing_cache: str | None
    timeout_seconds: float


def write_job(job: EngineJob, folder: Path, *, plan: str = "model.plan", output: str = "output") -> Path:
    """Write ``job.json`` and the inputs' raw files into a folder, the job last; returns the job's path.

    Args:
        job: what the step does.
        folder: made where it is missing.
        plan: the plan's file name.
        output: the step's output folder, from the job's.

    Raises:
        InputError: the release and the GPU have no such engine, or an input has a type that no engine takes; every
            reason at once.
    """
    wrong = [
        Problem(field=f"inputs.{name}", found=str(array.dtype), allowed=", ".join(TYPES))
        for name, array in job.inputs.items()
        if array.dtype.name not in TYPES
    ]
    if wrong:
        raise InputError(wrong)
    release, gpu = job.platform.release, job.platform.gpu
    options = engine_options(job.engine, release=release, gpu=gpu)
    versions = tensorrt_versions(release)
    narrow = minor_version(versions[-1] + ".0")[0] < INT64_TENSORS_SINCE
    raw = {name: _engine_array(name, array, narrow=narrow) for name, array in job.inputs.items()}
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {}
    for index, (name, array) in enumerate(raw.items()):
        array.tofile(folder / f"input{index}.raw")
        inputs[name] = {"file": f"input{index}.raw", "shape": list(array.shape)}
    known = load_catalogue().release(release)
    card = next(row for row in load_catalogue().instances.values() if row.gpu.lower() == gpu.lower())
    described = {
        "release": release,
        "tensorrt": list(versions),
        "gpu": {"name": card.gpu, "compute_capability": card.compute_capability},
        "cuda": None if known is None else known.cuda,
        "options": list(options),
        "onnx": job.onnx,
        "plan": plan,
        "inputs": inputs,
        "outputs": list(job.outputs),
        "timing_cache": job.timing_cache if job.engine.timing_cache else None,
        "timeout_seconds": job.timeout_seconds,
        "output": output,
    }
    temporary = folder / ".job.json.new"
    temporary.write_text(json.dumps(described, indent=1) + "\n")
    return temporary.replace(folder / "job.json")


def _engine_array(name: str, array: NDArray[Any], *, narrow: bool) -> NDArray[Any]:
    """An input as the engine's tensor holds it. Raises InputError for a number that INT32 does not hold."""
    if not narrow or array.dtype != np.int64:
        return np.ascontiguousarray(array)
    narrowed = array.astype(np.int32)
    if not np.array_equal(narrowed, array):
        advice = "give the recipe's sample smaller numbers: before TensorRT 10 an engine takes INT32"
        raise InputError([Problem(field=f"inputs.{name}", found="a number of 64 bits", allowed="INT32", advice=advice)])
    return narrowed
