"""Phase three of an engine's build, again on any machine: compare, put the plans in, pack.

Nothing of it lies where built archives do before every engine of the archive is proven.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tritonstack.archives.building import finish
from tritonstack.archives.lint.onnx_graph import GraphTensor
from tritonstack.archives.manifest import EngineEntry, EngineTensor, Manifest, engine_manifest_name
from tritonstack.archives.marked_plan import is_marked
from tritonstack.archives.places import Places
from tritonstack.archives.programs import Report
from tritonstack.catalogue.trtexec import minor_version
from tritonstack.engines.engine_job import INT64_TENSORS_SINCE
from tritonstack.engines.engine_proof import compare_engine
from tritonstack.engines.phase_one import EngineWork, PlannedEngine
from tritonstack.engines.step_result import PlannedMachine, StepResult, file_of, read_result, refuse_changed
from tritonstack.errors import WorkFailedError


@dataclass(frozen=True, kw_only=True)
class _ProvenPlan:
    """A plan that is the step's and answers as it has to: its file in the build's own folder, and its entry."""

    job: PlannedEngine
    file: Path
    entry: EngineEntry


def finish_archive(work: EngineWork, outputs: Mapping[str, Path], places: Places, report: Report) -> Manifest:
    """Prove the engines of an archive, put them in the places of their graphs, lint again, and pack.

    Args:
        work: of phase one; its repository is changed.
        outputs: model → the output folder of its job.
        places: where the archive goes: the folder of its platform.
        report: told what is being done.

    Raises:
        WorkFailedError: a step failed or was another than planned, a file is not what the step wrote, or a plan does
            not answer as ONNX Runtime does.
        InputError: the repository with the plans is wrong.
    """
    missing = [job.model for job in work.jobs if job.model not in outputs]
    if missing:
        raise WorkFailedError(f"{work.task.source.name}: no engine was built for {', '.join(missing)}")
    proven = [_prove(job, outputs[job.model], report) for job in work.jobs]
    for plan in proven:
        for part in plan.job.parts:
            (plan.job.version / part).unlink(missing_ok=True)
        plan.file.replace(plan.job.version / plan.job.plan)
        described = plan.job.version / engine_manifest_name(plan.job.plan)
        described.write_text(plan.entry.model_dump_json(indent=1) + "\n")
    work.staged.refuse_errors()
    engines = {plan.job.model: plan.entry for plan in proven}
    return finish(work.staged, places=places, report=report, engines=engines)


def _prove(job: PlannedEngine, output: Path, report: Report) -> _ProvenPlan:
    what = f"engine of {job.model}"
    report(f"{what}: comparing its answer")
    described = json.loads(job.job.read_text())
    result = read_result(output, planned=PlannedMachine.of_job(job.job), what=what)
    answer = job.folder.with_name("outputs.json")
    plan = job.folder.with_name("built.plan")
    for key, copy in (("outputs", answer), ("plan", plan)):  # what is checked is what is used: copies that are ours
        shutil.copyfile(file_of(result, key, output), copy)
        refuse_changed(result, key, copy)
    stand_in = is_marked(plan)
    if stand_in != result.trtexec.stand_in:
        said = "a stand-in's mark" if stand_in else "no stand-in's mark"
        raise WorkFailedError(f"{what}: the plan has {said}, and {result.trtexec} says otherwise")
    difference = compare_engine(answer, job.reference, tolerance=job.tolerance, what=what)
    entry = _entry(job, result, described=described, stand_in=stand_in, difference=difference)
    return _ProvenPlan(job=job, file=plan, entry=entry)


def _entry(
    job: PlannedEngine, result: StepResult, *, described: Mapping[str, Any], stand_in: bool, difference: float
) -> EngineEntry:
    narrow = minor_version(result.trtexec.tensorrt)[0] < INT64_TENSORS_SINCE
    plan = result.files["plan"]
    return EngineEntry(
        plan=f"{job.model}/{job.version.name}/{job.plan}",
        bytes=plan.bytes,
        sha256=plan.sha256,
        stand_in=stand_in,
        release=result.release,
        tensorrt=result.trtexec.tensorrt,
        cuda=result.image.get("CUDA_VERSION"),
        driver=result.gpu.driver,
        gpu=result.gpu.name,
        compute_capability=result.gpu.compute_capability or described["gpu"]["compute_capability"],
        options=tuple(described["options"]),
        inputs=tuple(_input(tensor, job, job.inputs[tensor.name], narrow=narrow) for tensor in job.graph.inputs),
        outputs=tuple(_output(tensor, narrow=narrow) for tensor in job.graph.outputs),
        durations=dict(sorted(result.durations.items())),
        difference=difference,
        tolerance=job.tolerance,
        proof=job.proof,
    )


def _input(tensor: GraphTensor, job: PlannedEngine, asked: NDArray[Any], *, narrow: bool) -> EngineTensor:
    shapes = job.engine.shapes.get(tensor.name)
    least, most = (shapes.min, shapes.max) if shapes else (asked.shape, asked.shape)
    return EngineTensor(name=tensor.name, datatype=_datatype(tensor, narrow=narrow), min=least, max=most)


def _output(tensor: GraphTensor, *, narrow: bool) -> EngineTensor:
    shape = tuple(-1 if axis is None else axis for axis in tensor.shape or ())
    return EngineTensor(name=tensor.name, datatype=_datatype(tensor, narrow=narrow), min=shape, max=shape)


def _datatype(tensor: GraphTensor, *, narrow: bool) -> str:
    """The engine's type: before TensorRT 10 it has INT32 where the graph has INT64."""
    return "INT32" if narrow and tensor.datatype == "INT64" else tensor.datatype
