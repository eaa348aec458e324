"""``make gpu-check``: what of an engine's build this machine can try, tried and reported.

Everything else of this project runs without a GPU, with stand-ins; this is where a machine with one shows what they
cannot: that ``nvidia-smi`` and ``trtexec`` print what the engine step reads, that the catalogue has the options
that this TensorRT takes, that a plan is built and answers as ONNX Runtime does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.options import trtexec_table
from tritonstack.engines import engine_step
from tritonstack.engines.export_step import graph_for_engine
from tritonstack.engines.trtexec import EngineJob, engine_problems, tensorrt_versions, write_job
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.models.programs import run_script
from tritonstack.models.runtime_options import Engine
from tritonstack.naming import Platform

Outcome = Literal["passed", "failed", "not run"]
NO_GPU = 2
FILE_WIDTH = 10_000
"""Columns where the output is no terminal: a row is a line."""
FULL_GPU = "L4"
"""A GPU that supports every option of trtexec that a recipe may ask for."""
TOLERANCES = {"fp32": 1e-3, "fp16": 2e-2, "graph": 2e-2}
"""The largest difference of an answer of about 1; FP32 runs in TF32 on GPUs that have it."""
BUILD_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was tried, or the reason why it was not."""

    name: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """This machine's first GPU, from nvidia-smi."""

    name: str
    compute_capability: str
    driver: str


@dataclass(frozen=True, kw_only=True)
class Builder:
    """This machine's trtexec and the release of the catalogue whose options it takes."""

    program: str
    tensorrt: str
    is_stand_in: bool
    release: str


def main() -> int:
    """Try everything and print a table. 0 where nothing failed, 1 where something did, 2 without an NVIDIA GPU."""
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        done = tuple(checks(Path(folder)))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("check", "outcome", "what was seen"):
        table.add_column(column, overflow="fold")
    for check in done:
        table.add_row(check.name, check.outcome, check.detail)
    Console(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH).print(table)
    if all(check.outcome == "not run" for check in done):
        return NO_GPU
    return int(any(check.outcome == "failed" for check in done))


def checks(folder: Path) -> Iterator[Check]:
    """Every check, in order; what an earlier one lacks ends them. ``folder``: empty, for the work."""
    try:
        gpu = find_gpu()
    except engine_step.StepError as error:
        yield Check(name="NVIDIA GPU", outcome="not run", detail=error.reason)
        return
    shown = f"{gpu.name}, compute capability {gpu.compute_capability}, driver {gpu.driver}"
    yield Check(name="NVIDIA GPU", outcome="passed", detail=shown)
    yield catalogue_check(gpu)
    try:
        builder = find_builder()
    except (engine_step.StepError, LookupError) as error:
        yield Check(name="trtexec", outcome="not run", detail=str(error))
        return
    named = f"{builder.program}, TensorRT {builder.tensorrt}, options as of release {builder.release}"
    yield Check(name="trtexec", outcome="passed", detail=named + (" (a stand-in)" if builder.is_stand_in else ""))
    for fields in ({"precision": "fp32"}, {"precision": "fp16"}, {"precision": "graph", "graph_precision": "fp16"}):
        yield engine_check(folder / "-".join(fields.values()), fields=fields, gpu=gpu, builder=builder)


def find_gpu() -> Gpu:
    """This machine's GPU. Raises engine_step.StepError where there is none."""
    program = engine_step.find_program("TRITONSTACK_NVIDIA_SMI", (), "nvidia-smi")
    fields = "name,driver_version,compute_cap"
    status, text = engine_step.output_of([program, f"--query-gpu={fields}", "--format=csv,noheader"])
    cells = [cell.strip() for cell in text.partition("\n")[0].split(",")]
    if status != 0 or len(cells) != 3:
        raise engine_step.StepError(engine_step.MACHINE, f"{program} finds no GPU: {text.strip()[:200]!r}")
    return Gpu(name=cells[0], driver=cells[1], compute_capability=cells[2])


def find_builder() -> Builder:
    """This machine's trtexec. Raises engine_step.StepError where there is none, LookupError for an unknown TensorRT."""
    program = engine_step.find_program("TRITONSTACK_TRTEXEC", engine_step.TRTEXEC_PLACES, "trtexec")
    _, text = engine_step.output_of([program, "--help"])
    version = engine_step.version_in(text)
    row = trtexec_table().row_of(version) if version else None
    if version is None or row is None:
        raise LookupError(f"{program}: no options are known of its TensorRT {version or text[:200]!r}")
    minor = ".".join(version.split(".")[:2])
    release = next((name for name in load_catalogue().releases if tensorrt_versions(name) == (minor,)), None)
    if release is None:
        raise LookupError(f"{program}: no release of the catalogue has exactly TensorRT {minor}")
    return Builder(program=program, tensorrt=version, is_stand_in="stand-in" in text, release=release)


def catalogue_check(gpu: Gpu) -> Check:
    """Whether the catalogue knows this GPU as nvidia-smi names it."""
    name = "GPU in the catalogue"
    words = set(gpu.name.lower().replace("-", " ").split())
    rows = [row for row in load_catalogue().instances.values() if set(row.gpu.lower().split("-")) <= words]
    if not rows:
        return Check(name=name, outcome="not run", detail=f"no instance type of the catalogue has a {gpu.name}")
    found, known = gpu.compute_capability, rows[0].compute_capability
    families = ", ".join(dict.fromkeys(row.family for row in rows))
    detail = f"{rows[0].gpu} of {families}: compute capability {known}"
    if found != known:
        return Check(name=name, outcome="failed", detail=f"{detail}, here {found}")
    return Check(name=name, outcome="passed", detail=detail)


def engine_check(folder: Path, *, fields: dict[str, str], gpu: Gpu, builder: Builder) -> Check:
    """Build an engine of a small graph with the engine step and compare its answer with ONNX Runtime's."""
    name = "engine, " + ", ".join(f"{key}: {value}" for key, value in fields.items())
    engine = Engine.model_validate({**fields, "shapes": {"x": {"min": [1, 64], "opt": [4, 64], "max": [8, 64]}}})
    problems = engine_problems(engine, release=builder.release, gpu=FULL_GPU, own_image=True)
    if problems:
        return Check(name=name, outcome="not run", detail=problems[0].found)
    try:
        answer = make_job(folder, engine=engine, gpu=gpu, builder=builder)
    except (WorkFailedError, InputError) as error:
        return Check(name=name, outcome="failed", detail=str(error))
    status, detail = run_step(folder)
    if status != 0:
        return Check(name=name, outcome="failed", detail=detail)
    (output,) = json.loads((folder / "output" / "outputs.json").read_text())
    found = np.array(output["values"], np.float32).reshape(output["shape"])
    difference = float(np.abs(found - answer).max())
    within = difference <= TOLERANCES[engine.precision]
    seconds = json.loads((folder / "output" / "result.json").read_text())["durations"]["build_seconds"]
    detail = f"built in {seconds:.1f} s; largest difference from ONNX Runtime {difference:.2g}"
    return Check(name=name, outcome="passed" if within else "failed", detail=detail)


def make_job(folder: Path, *, engine: Engine, gpu: Gpu, builder: Builder) -> np.ndarray[Any, Any]:
    """Write a job of the engine step, planned for this machine; returns ONNX Runtime's answer."""
    folder.mkdir()
    script = str(Path(__file__).with_name("check_graph.py"))
    arguments = ["-P", script, *(str(folder / name) for name in ("model.onnx", "x.npy", "answer.npy"))]
    run_script(environment="exporters", arguments=arguments, folder=folder, what="graph", report=lambda _line: None)
    graph = graph_for_engine(engine, exported=folder / "model.onnx", work=folder, report=lambda _line: None)
    job = EngineJob(
        engine=engine,
        platform=Platform(release=builder.release, gpu=FULL_GPU),  # whose options do not depend on the GPU
        onnx=str(graph),
        inputs={"x": np.load(folder / "x.npy")},
        outputs=["y"],
        timing_cache=None,
        timeout_seconds=BUILD_SECONDS,
    )
    path = write_job(job, folder)
    here = {"name": gpu.name, "compute_capability": gpu.compute_capability}
    # This machine's trtexec is of no image, so its CUDA is not the release's.
    path.write_text(json.dumps({**json.loads(path.read_text()), "gpu": here, "cuda": None}))
    return np.asarray(np.load(folder / "answer.npy"))


def run_step(folder: Path) -> tuple[int, str]:
    """The engine step's exit status and last line."""
    command = [sys.executable, str(engine_step.__file__), str(folder / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout.strip() or "no output").splitlines()[-1]


if __name__ == "__main__":
    raise SystemExit(main())
