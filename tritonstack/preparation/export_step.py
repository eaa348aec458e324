"""The first step of an engine's build, on any machine: export, lint, prove the ONNX graph, write the GPU step's job."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tritonclient.utils import triton_to_np_dtype

from tritonstack.archives.programs import Report, run_script
from tritonstack.archives.proof import run_prover
from tritonstack.archives.staging import Proofs, Staged, Task, stage_archive
from tritonstack.disk import link_or_copy
from tritonstack.engines import engine_step
from tritonstack.engines.trtexec import CALIBRATION, GRAPH, write_job
from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxError, OnnxGraph, external_files, operators, read_graph
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import RECIPE
from tritonstack.models.runtime_options import Engine, EngineShapes, Shape
from tritonstack.models.sample import to_tensors
from tritonstack.models.source import ArchiveSource
from tritonstack.models.tensorrt_models import TensorrtModel, tensorrt_models
from tritonstack.untrusted.folder_files import is_fit_file, open_inside


def graph_of(version: Path) -> Path | None:
    """The graph in a version folder that an engine is built from; None where there is none."""
    path = version / "model.onnx"
    if path.is_file():
        return path
    graphs = sorted(version.glob("*.onnx"))
    return graphs[0] if len(graphs) == 1 else None


def read_onnx(path: Path) -> OnnxGraph:
    """Inputs and outputs of a graph. Raises :class:`WorkFailedError` where the file is no graph or has no shapes."""
    try:
        graph = read_graph(path)
    except OnnxError as error:
        raise WorkFailedError(f"{path}: no ONNX graph: {error}") from error
    for tensor in (*graph.inputs, *graph.outputs):
        if not tensor.datatype or tensor.shape is None:
            raise WorkFailedError(f"{path}: the graph has no type or no rank of {tensor.name}")
    return graph


def parts_of_graph(path: Path) -> dict[str, Path]:
    """A graph's own file and those with its external weights: name in the graph's folder → path.

    Raises :class:`WorkFailedError` where one is missing or outside the folder.
    """
    found = {path.name: path}
    for name in external_files(path):
        pure = PurePosixPath(name)
        if not name or pure.is_absolute() or ".." in pure.parts or not is_fit_file(path.parent / pure, path.parent):
            raise WorkFailedError(f"{path}: weights in {name!r}, which is no file next to the graph")
        found[str(pure)] = path.parent / pure
    return found


def graph_for_engine(engine: Engine, *, exported: Path, work: Path, report: Report) -> Path:
    """The graph for trtexec: the exported one, or its FP16 form in a new folder ``half`` of ``work``.

    A graph too large for one file has its weights in ``model.onnx.data``.

    Raises :class:`WorkFailedError` where the graph cannot be read, or nothing of it can be converted to FP16, and
    :class:`InputError` where the environment of the exporters is not made.
    """
    if engine.graph_precision is None:
        return exported
    folder = work / "half"
    folder.mkdir()
    half = folder / "model.onnx"
    script = Path(__file__).with_name("half_graph.py")
    arguments = ["-P", str(script), str(exported.resolve()), str(half.resolve())]
    what = f"{exported.name} in {engine.graph_precision.upper()}"
    run_script(environment="exporters", arguments=arguments, folder=folder, what=what, report=report)
    return half


ProofInputs = dict[str, NDArray[Any]]


def proofs_of_profiles(
    engine: Engine,
    graph: OnnxGraph,
    *,
    sample: Mapping[str, NDArray[Any]] | None,
    seed: int,
    file: str,
) -> tuple[ProofInputs, ...]:
    """The proof's inputs for each optimisation profile of an engine; arguments and errors as of ``proof_inputs``.

    A profile whose shapes do not hold the sample gets random numbers; the sample must fit one of them.
    """
    proofs: list[ProofInputs] = []
    misfits: list[InputError] = []
    for profile in engine.profiles:
        try:
            proofs.append(proof_inputs(profile, graph, sample=sample, seed=seed, file=file))
        except InputError as error:
            misfits.append(error)
            if len(misfits) == len(engine.profiles):
                raise misfits[0] from None
            proofs.append(proof_inputs(profile, graph, sample=None, seed=seed, file=file))
    return tuple(proofs)


def proof_inputs(
    profile: Mapping[str, EngineShapes],
    graph: OnnxGraph,
    *,
    sample: Mapping[str, NDArray[Any]] | None,
    seed: int,
    file: str,
) -> ProofInputs:
    """An array for every input of the graph, in the graph's type; ``profile``: input → its shapes.

    ``sample``: the sample request where it is the model's own; without it random numbers, the same for the same
    ``seed`` in whatever order the graph has its inputs. ``file``: the recipe, for messages.

    Raises :class:`InputError` with every input outside the engine's shapes or of another type than the graph's, and
    every one that the graph leaves free and ``engine.shapes`` does not name.
    """
    problems: list[Problem] = []
    found: ProofInputs = {}
    for tensor in graph.inputs:
        array = (sample or {}).get(tensor.name)
        if array is None:
            shape = _proof_shape(profile, tensor)
            if shape is None:
                free = f"input {tensor.name} with free axes, and no shapes for it"
                problems.append(Problem(file=file, field="engine.shapes", found=free, allowed="every input's shapes"))
                continue
            array = _random(tensor, shape, seed)
        problem = _misfit(profile, tensor, array)
        if problem is None:
            found[tensor.name] = array.astype(_dtype(tensor), copy=False)
        else:
            problems.append(replace(problem, file=file))
    refuse(problems)
    return found


def _proof_shape(profile: Mapping[str, EngineShapes], tensor: GraphTensor) -> Shape | None:
    """The optimal shape with the smallest batch: large batches only make the proof slow."""
    shapes = profile.get(tensor.name)
    if shapes is not None:
        return (shapes.min[0], *shapes.opt[1:])
    axes = tuple(axis for axis in tensor.shape or () if axis is not None)
    return axes if len(axes) == len(tensor.shape or ()) else None


def _misfit(profile: Mapping[str, EngineShapes], tensor: GraphTensor, array: NDArray[Any]) -> Problem | None:
    shapes = profile.get(tensor.name)
    if not np.can_cast(array.dtype, _dtype(tensor), "same_kind"):
        return Problem(field="sample.request", found=f"{tensor.name} as {array.dtype}", allowed=tensor.datatype)
    if shapes is None or (
        array.ndim == len(shapes.min)
        and all(low <= length <= high for low, length, high in zip(shapes.min, array.shape, shapes.max, strict=True))
    ):
        return None
    return Problem(
        field=f"engine.shapes.{tensor.name}",
        found=f"the proof's input has shape {list(array.shape)}",
        allowed=f"from {list(shapes.min)} to {list(shapes.max)}",
        advice="widen the shapes, or take a sample request within them",
    )


def _dtype(tensor: GraphTensor) -> np.dtype[Any]:
    kind = triton_to_np_dtype(tensor.datatype)
    return np.dtype(object if kind is None else kind)


def _random(tensor: GraphTensor, shape: Shape, seed: int) -> NDArray[Any]:
    """Random values for any model: integers are 0 or 1, valid in every vocabulary and mask."""
    generator = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    kind = _dtype(tensor)
    if kind.kind == "f":
        return generator.standard_normal(shape).astype(kind)
    return generator.integers(0, 2, shape).astype(kind)


# Each TensorRT model of an archive without a plan gets a folder with all that ``engine_step.py`` needs: the job, the
# graph, the proof's inputs and the step itself. The folder goes to a machine with the GPU; the pack step reads the
# output.
STEP = Path(str(engine_step.__file__))

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class EngineJob:
    """One TensorRT model of an archive: what its engine is built from, and the outputs expected of it."""

    model: str  # the model's directory in the archive
    folder: Path  # the job's, sent to the GPU's machine whole
    job: dict[str, Any]  # of ``engine_step.py``; a runner may write another ``output`` into the folder
    version: Path  # the staged version folder that the plan goes into
    plan: str  # the plan's file name there
    # the staged files of the ONNX graph, by their names in the version folder: replaced by the plan
    parts: tuple[str, ...]
    engine: Engine  # of the recipe
    graph: OnnxGraph  # its inputs and outputs
    inputs: Arrays  # the proof's inputs with profile 0, in the graph's types
    proof: Literal["sample", "random"]  # the origin of the inputs; where several profiles are proven, of one's
    references: tuple[Arrays, ...]  # ONNX Runtime's outputs for the proof's inputs of each profile
    tolerance: float  # the largest difference from it


@dataclass(frozen=True, kw_only=True)
class EngineWork:
    """One archive after the export step: staged, linted, its ONNX graphs proven; a job for each missing plan."""

    staged: Staged
    jobs: tuple[EngineJob, ...]


def prepare_engines(
    task: Task,
    work: Path,
    places: Places,
    report: Report,
    *,
    timeout_seconds: float,
    proofs: Proofs | None = None,
) -> EngineWork:
    """Export and prove an archive as ``tritonstack build`` does, then write the jobs of its engines.

    ``work``: a folder of this build's own; jobs go to ``jobs/<model>/job`` in it. ``timeout_seconds``: of each engine.
    ``proofs``: of this process so far. Raises :class:`InputError` where the folder is wrong, a recipe has no engine, or
    the proof's inputs are outside its shapes; :class:`WorkFailedError` where an export or a proof fails.
    """
    staged = stage_archive(task, work, places, report, {} if proofs is None else proofs)
    recipes = _recipes(task.source)
    waiting = [model for model in tensorrt_models(staged.repository) if not model.plans]
    problems = [problem for model in waiting for problem in _problems(model, recipes[model.name])]
    refuse(problems)
    jobs = tuple(_engine_job(staged, model, recipes[model.name], report, timeout_seconds) for model in waiting)
    return EngineWork(staged=staged, jobs=jobs)


def _recipes(source: ArchiveSource) -> dict[str, ArchiveSource]:
    """Model of an archive → the source whose recipe has its engine."""
    found = {model.name: source for model in source.own_models}
    used = {part.name: part for part in source.used}
    for folder in source.recipe.uses:
        found |= dict.fromkeys(folder.models, used[folder.folder])
    return found


def _problems(model: TensorrtModel, source: ArchiveSource) -> Iterator[Problem]:
    """Why an engine cannot be built of a staged model."""
    recipe, graphs = str(source.folder / RECIPE), [graph_of(version) for version in model.versions]
    if source.recipe.engine is None:
        found, allowed = f"{model.name} has neither a plan nor engine:", "engine: and its shapes, or a plan"
        yield Problem(file=recipe, field="engine", found=found, allowed=allowed)
    if len(model.versions) != 1 or not graphs[0]:
        versions = ", ".join(version.name for version in model.versions) or "none"
        found = f"{model.name} with the versions {versions}, of which {sum(map(bool, graphs))} have an ONNX graph"
        yield Problem(file=recipe, found=found, allowed=f"one version, and {GRAPH} in it")
    elif source.recipe.engine is not None:
        yield from quantisation_problems(source.recipe.engine, graphs[0], source.folder)


QUANTISED = {"QuantizeLinear", "DequantizeLinear"}
"""ONNX's operators of a graph that has its own ranges for INT8."""

CALIBRATOR = "-EntropyCalibration2"
"""The end of a calibration cache's first line: trtexec's calibrator is ``IInt8EntropyCalibrator2``, and calibrates
again, without data, where another wrote the cache (samples/common/sampleEngines.cpp of NVIDIA/TensorRT)."""


def quantisation_problems(engine: Engine, graph: Path, folder: Path) -> Iterator[Problem]:
    """Why trtexec finds no ranges for INT8, finds them twice, or may not use the graph's."""
    nodes, cache = " and ".join(sorted(QUANTISED)), engine.calibration_cache
    is_quantised = bool(operators(graph) & QUANTISED)
    field, found = "calibration_cache", ""
    allowed = f"a cache of the endpoint's TensorRT, as TRT-100400{CALIBRATOR}; or a graph with {nodes}"
    if is_quantised and engine.precision not in {"int8", "graph"}:
        field, found = "precision", f"{engine.precision} for a graph with {nodes}"
        allowed = "int8; or graph, from release 24.05 on"
    elif is_quantised and engine.graph_precision is not None:
        field, found = (
            "graph_precision",
            f"{engine.graph_precision} for a graph with {nodes}: older ones take FP32 only",
        )
        allowed = "the field left out, and a graph exported in the types that its layers are to have"
    elif is_quantised and cache is not None:
        found = f"{cache}, which TensorRT ignores for a graph with {nodes}"
    elif not is_quantised and cache is not None:
        with open_inside(folder / cache, folder) as lines:
            first = lines.readline(100).decode("utf-8", "replace").strip()
        found = "" if first.endswith(CALIBRATOR) else f"{cache}, whose first line is {first!r}"
    elif not is_quantised and engine.precision == "int8":  # setTensorDynamicRange of sampleEngines.cpp
        found = f"none, and a graph without {nodes}: trtexec would give every tensor the same range"
    if found:
        yield Problem(file=str(folder / RECIPE), field=f"engine.{field}", found=found, allowed=allowed)


def _engine_job(
    staged: Staged, model: TensorrtModel, source: ArchiveSource, report: Report, timeout_seconds: float
) -> EngineJob:
    platform, engine, version = staged.task.platform, source.recipe.engine, model.versions[0]
    exported = graph_of(version)
    if platform is None or engine is None or exported is None:
        raise AssertionError("refused before")
    graph = read_onnx(exported)
    names = {tensor.name for tensor in graph.inputs}  # a folder may hold several models
    own_shapes = [{name: shape for name, shape in each.items() if name in names} for each in engine.profiles]
    engine = engine.model_copy(update={"shapes": tuple(own_shapes) if len(own_shapes) > 1 else own_shapes[0]})
    is_sampled = model.name == staged.task.source.model
    proofs = proofs_of_profiles(
        engine,
        graph,
        sample=staged.request if is_sampled else None,
        seed=source.recipe.seed,
        file=str(source.folder / RECIPE),
    )
    own = staged.work / "jobs" / model.name
    folder = own / "job"
    folder.mkdir(parents=True)
    references = tuple(
        outputs_of_graph(exported, graph, inputs, work=own, what=f"reference of {model.name}", report=report)
        for inputs in proofs
    )
    built_from = graph_for_engine(engine, exported=exported, work=own, report=report)
    for name, path in parts_of_graph(built_from).items():
        place = folder / (GRAPH if path == built_from else name)
        place.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(path, place)
    shutil.copyfile(STEP, folder / STEP.name)
    if engine.calibration_cache is not None:
        shutil.copyfile(source.folder / engine.calibration_cache, folder / CALIBRATION)
    job = write_job(
        folder,
        engine=engine,
        platform=platform,
        inputs=proofs[0],
        more_inputs=proofs[1:],
        outputs=[tensor.name for tensor in graph.outputs],
        timeout_seconds=timeout_seconds,
    )
    return EngineJob(
        model=model.name,
        folder=folder,
        job=job,
        version=version,
        plan=model.plan,
        parts=tuple(parts_of_graph(exported)),
        engine=engine,
        graph=graph,
        inputs=proofs[0],
        proof="sample" if is_sampled else "random",
        references=references,
        tolerance=source.recipe.sample.tolerance if engine.tolerance is None else engine.tolerance,
    )


def outputs_of_graph(path: Path, graph: OnnxGraph, inputs: Arrays, *, work: Path, what: str, report: Report) -> Arrays:
    """Outputs of an ONNX graph by name, in the graph's types; ``work`` is a folder for the run's files.

    Raises :class:`WorkFailedError` where ONNX Runtime does not run it, or an output has a value that is no number:
    such a graph proves nothing. :class:`InputError` where the environment of the exporters is not made.
    """
    model = {
        "backend": "onnxruntime",
        "file": str(path.resolve()),
        "steps": [],
        "inputs": _tensors(graph.inputs),
        "outputs": _tensors(graph.outputs),
    }
    request = {"model": "graph", "models": {"graph": model}, "request": to_tensors(inputs)}
    result, _ = run_prover(request, work=work, what=what, report=report)
    if "failure" in result:
        raise WorkFailedError(f"{what}: ONNX Runtime does not run {path.name}: {result['failure']}")
    outputs = {
        tensor["name"]: np.array(tensor["data"], triton_to_np_dtype(tensor["datatype"])).reshape(tensor["shape"])
        for tensor in result["outputs"]
    }
    for name, array in outputs.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise WorkFailedError(f"{what}: {name} of {path.name} is not a number for the proof's inputs")
    return outputs


def _tensors(tensors: Sequence[GraphTensor]) -> list[dict[str, Any]]:
    shapes = [[-1 if axis is None else axis for axis in tensor.shape or ()] for tensor in tensors]
    return [
        # A graph has no `reshape`: the caller's shape is the backend's.
        {"name": each.name, "datatype": each.datatype, "shape": shape, "backend_shape": shape, "optional": False}
        for each, shape in zip(tensors, shapes, strict=True)
    ]
