"""The last step of an engine's build, again on any machine: prove the engine, put the plans in, pack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tritonstack.archives.programs import Report
from tritonstack.archives.staging import finish
from tritonstack.catalogue.triton_releases import minor_version
from tritonstack.engines.engine_step import outputs_name
from tritonstack.engines.trtexec import PLAN
from tritonstack.errors import WorkFailedError
from tritonstack.model_files.marked_plan import is_marked
from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.models.comparison import index_of, value_texts
from tritonstack.models.manifest import (
    EngineEntry,
    EngineMeasurement,
    EngineTensor,
    Manifest,
    Places,
    engine_figures,
    engine_manifest_name,
)
from tritonstack.models.runtime_options import INT64_TENSORS_SINCE
from tritonstack.preparation.export_step import Arrays, EngineJob, EngineWork
from tritonstack.preparation.step_result import read_result, take_file

PRINTED = 5e-6
"""Relative rounding of trtexec's output: it writes six significant digits (``--exportOutput``)."""


def compare_engine(outputs: Path, reference: Arrays, *, tolerance: float, what: str) -> float:
    """The largest difference of a floating-point value between a plan's outputs and the reference.

    Integers and booleans must be equal. The rounding of printed values (:data:`PRINTED`) is added to ``tolerance``.

    Raises :class:`WorkFailedError`, naming the tensor, where the outputs cannot be read, one is missing, has another
    shape, a value that is no number, or one that differs by more.
    """
    given = read_outputs(outputs, what)
    largest = 0.0
    for name, expected in reference.items():
        if name not in given:
            raise WorkFailedError(f"{what}: the plan gives no {name}; it gives {', '.join(given) or 'nothing'}")
        difference = _difference(given[name], expected, tolerance, f"{what}: tensor {name}")
        largest = max(largest, difference)
    return largest


def read_outputs(path: Path, what: str) -> dict[str, NDArray[Any]]:
    """``outputs.json`` of the engine step: name → values as numbers of 64 bits, in the shape that they have.

    Raises :class:`WorkFailedError` where it is not as the step writes it.
    """
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        found = {str(one["name"]): np.array(one["values"], np.float64).reshape(_shape(one["shape"])) for one in listed}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise WorkFailedError(f"{what}: the plan's outputs cannot be read: {error}") from error
    return found


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"shape {shape!r}")
    return tuple(shape)


def _difference(given: NDArray[Any], expected: NDArray[Any], tolerance: float, what: str) -> float:
    if given.shape != expected.shape:
        raise WorkFailedError(f"{what}: shape {list(given.shape)}, ONNX Runtime gives {list(expected.shape)}")
    if given.size == 0:
        return 0.0
    wanted = expected.astype(np.float64)
    is_float = expected.dtype.kind == "f"
    with np.errstate(invalid="ignore"):
        difference = np.where(given == wanted, 0.0, np.abs(given - wanted))  # equal infinities differ by nothing
        allowed = tolerance + PRINTED * np.abs(np.where(np.isfinite(wanted), wanted, 0.0)) if is_float else 0.0
    beyond, largest = ~(difference <= allowed), float(difference.max())  # so what is no number is beyond, too
    if beyond.any():
        limit = f"{tolerance:g} allowed" if is_float else "and must be equal"
        at = int(np.where(beyond, np.nan_to_num(difference, nan=np.inf), -1.0).argmax())
        wanted_text, given_text = value_texts(wanted.flat[at].item(), given.flat[at].item())
        place = f"at {list(index_of(at, expected.shape))} {wanted_text} expected, {given_text} found"
        count = f"{int(beyond.sum()):,} of {beyond.size:,} values"
        raise WorkFailedError(f"{what}: differs by up to {largest:.3g} from ONNX Runtime, {limit}; {count}; {place}")
    return largest if is_float else 0.0


def finish_archive(work: EngineWork, outputs: Mapping[str, Path], places: Places, report: Report) -> Manifest:
    """Prove the engines of an archive, put them in the places of their graphs, lint again, and pack.

    ``work``: of the export step; its repository is changed. ``outputs``: model → the output folder of its job.

    Raises :class:`WorkFailedError` where a file is not what the step wrote, or a plan differs from ONNX Runtime;
    :class:`InputError` where the repository with the plans is wrong.
    """
    engines = {job.model: _prove(job, outputs[job.model], report) for job in work.jobs}
    measured: dict[str, float] = {}
    for job in work.jobs:
        for each in read_result(outputs[job.model], what=f"engine of {job.model}").measurements:
            measured |= engine_figures(
                EngineMeasurement(
                    model=job.model,
                    profile=each.profile,
                    batch=next((shape[0] for shape in each.shapes.values()), 1),
                    throughput=each.throughput,
                    latency=each.latency,
                    gpu_compute=each.gpu_compute,
                )
            )
    for job in work.jobs:
        for part in job.parts:
            (job.version / part).unlink(missing_ok=True)
        _built(job).replace(job.version / job.plan)
        described = engines[job.model].model_dump_json(indent=1)
        (job.version / engine_manifest_name(job.plan)).write_text(described + "\n")
    work.staged.refuse_errors()
    return finish(work.staged, places=places, report=report, engines=engines, measured=measured)


def _built(job: EngineJob) -> Path:
    """The build's own copy of a plan, which is checked and used."""
    return job.folder.with_name("built.plan")


def _prove(job: EngineJob, output: Path, report: Report) -> EngineEntry:
    """Check a step's output; the plan's entry in the manifest."""
    what = f"engine of {job.model}"
    report(f"{what}: comparing its outputs")
    result = read_result(output, what=what)
    plan = _built(job)
    take_file(result, PLAN, output, plan)
    stand_in = is_marked(plan)
    if stand_in != result.trtexec.stand_in:
        mark = "a stand-in's mark" if stand_in else "no stand-in's mark"
        raise WorkFailedError(f"{what}: the plan has {mark}, and {result.trtexec} says otherwise")
    difference = 0.0
    for number, reference in enumerate(job.references):
        outputs, profile = job.folder.with_name(outputs_name(number)), f", profile {number}" if number else ""
        take_file(result, outputs.name, output, outputs)
        found = compare_engine(outputs, reference, tolerance=job.tolerance, what=f"{what}{profile}")
        difference = max(difference, found)
    narrow = minor_version(result.trtexec.tensorrt)[0] < INT64_TENSORS_SINCE
    return EngineEntry(
        plan=f"{job.model}/{job.version.name}/{job.plan}",
        bytes=result.files[PLAN].bytes,
        sha256=result.files[PLAN].sha256,
        stand_in=stand_in,
        release=result.release,
        tensorrt=result.trtexec.tensorrt,
        cuda=result.image.get("CUDA_VERSION"),
        driver=result.gpu.driver,
        gpu=result.gpu.name,
        compute_capability=result.gpu.compute_capability or job.job["gpu"]["compute_capability"],
        options=tuple(job.job["options"]),
        inputs=tuple(_input(tensor, job, narrow=narrow) for tensor in job.graph.inputs),
        outputs=tuple(_output(tensor, narrow=narrow) for tensor in job.graph.outputs),
        durations=dict(sorted(result.durations.items())),
        difference=difference,
        tolerance=job.tolerance,
        proof=job.proof,
    )


def _input(tensor: GraphTensor, job: EngineJob, *, narrow: bool) -> EngineTensor:
    """An input with the lengths that one of the profiles takes; ``options`` have those of each."""
    profiles = [each[tensor.name] for each in job.engine.profiles if tensor.name in each]
    fixed = job.inputs[tensor.name].shape
    least = tuple(map(min, zip(*(each.min for each in profiles), strict=True))) if profiles else fixed
    most = tuple(map(max, zip(*(each.max for each in profiles), strict=True))) if profiles else fixed
    return EngineTensor(name=tensor.name, datatype=_datatype(tensor, narrow=narrow), min=least, max=most)


def _output(tensor: GraphTensor, *, narrow: bool) -> EngineTensor:
    shape = tuple(-1 if axis is None else axis for axis in tensor.shape or ())
    return EngineTensor(name=tensor.name, datatype=_datatype(tensor, narrow=narrow), min=shape, max=shape)


def _datatype(tensor: GraphTensor, *, narrow: bool) -> str:
    """The engine's type: before TensorRT 10 it has INT32 where the graph has INT64."""
    return "INT32" if narrow and tensor.datatype == "INT64" else tensor.datatype
