"""``make gpu-check``: what of an engine's build this machine can try, tried and reported.

Everything else of this project runs without a GPU, with stand-ins; this is where a machine with one shows what they
cannot: that ``nvidia-smi`` and ``trtexec`` print what the engine step reads, that the catalogue has the options
that this TensorRT takes, that a plan is built and answers as ONNX Runtime does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.options import trtexec_table
from tritonstack.engines import engine_step
from tritonstack.engines.export_step import graph_for_engine, outputs_of_graph, proof_inputs, read_onnx
from tritonstack.engines.pack_step import compare_engine
from tritonstack.engines.trtexec import GRAPH, JOB, change_job, engine_problems, tensorrt_versions, write_job
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
SHAPES = {"x": {"min": [1, 64], "opt": [4, 64], "max": [8, 64]}}
TOLERANCES = {"fp32": 1e-3, "fp16": 2e-2, "graph": 2e-2}
"""The largest difference of an answer of about 1; FP32 runs in TF32 on GPUs that have it."""
BUILD_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was tried, or the reason why it was not."""

    name: str
    outcome: Outcome
    detail: str


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
        gpu = engine_step.find_gpus()[0]
    except engine_step.StepError as error:
        yield Check(name="NVIDIA GPU", outcome="not run", detail=error.reason)
        return
    shown = f"{gpu['name']}, compute capability {gpu['compute_capability']}, driver {gpu['driver']}"
    yield Check(name="NVIDIA GPU", outcome="passed", detail=shown)
    yield catalogue_check(gpu)
    try:
        release, seen = find_trtexec()
    except (engine_step.StepError, LookupError) as error:
        yield Check(name="trtexec", outcome="not run", detail=str(error))
        return
    yield Check(name="trtexec", outcome="passed", detail=seen)
    for fields in ({"precision": "fp32"}, {"precision": "fp16"}, {"precision": "graph", "graph_precision": "fp16"}):
        yield engine_check(folder / "-".join(fields.values()), fields=fields, gpu=gpu, release=release)


def find_trtexec() -> tuple[str, str]:
    """A release of the catalogue with the TensorRT of this machine's trtexec, and what was seen of it.

    Raises engine_step.StepError where there is no trtexec, LookupError for an unknown TensorRT.
    """
    program = engine_step.find_program("TRITONSTACK_TRTEXEC", engine_step.TRTEXEC_PLACES, "trtexec")
    _, text = engine_step.output_of([program, "--help"])
    version = engine_step.version_in(text)
    if version is None or trtexec_table().row_of(version) is None:
        raise LookupError(f"{program}: no options are known of its TensorRT {version or text[:200]!r}")
    minor = ".".join(version.split(".")[:2])
    release = next((name for name in load_catalogue().releases if tensorrt_versions(name) == (minor,)), None)
    if release is None:
        raise LookupError(f"{program}: no release of the catalogue has exactly TensorRT {minor}")
    seen = f"{program}, TensorRT {version}, options as of release {release}"
    return release, seen + (" (a stand-in)" if "stand-in" in text else "")


def catalogue_check(gpu: dict[str, Any]) -> Check:
    """Whether the catalogue knows this GPU as nvidia-smi names it."""
    name = "GPU in the catalogue"
    words = set(gpu["name"].lower().replace("-", " ").split())
    rows = [row for row in load_catalogue().instances.values() if set(row.gpu.lower().split("-")) <= words]
    if not rows:
        return Check(name=name, outcome="not run", detail=f"no instance type of the catalogue has a {gpu['name']}")
    found, known = gpu["compute_capability"], rows[0].compute_capability
    families = ", ".join(dict.fromkeys(row.family for row in rows))
    detail = f"{rows[0].gpu} of {families}: compute capability {known}"
    if found != known:
        return Check(name=name, outcome="failed", detail=f"{detail}, here {found}")
    return Check(name=name, outcome="passed", detail=detail)


def engine_check(folder: Path, *, fields: dict[str, str], gpu: dict[str, Any], release: str) -> Check:
    """Build an engine of a small graph with the engine step and compare its answer with ONNX Runtime's."""
    name = "engine, " + ", ".join(f"{key}: {value}" for key, value in fields.items())
    engine = Engine.model_validate({**fields, "shapes": SHAPES, "timing_cache": False})
    problems = engine_problems(engine, release=release, gpu=FULL_GPU)
    if problems:
        return Check(name=name, outcome="not run", detail=problems[0].found)
    try:
        detail = built_engine(folder, engine=engine, gpu=gpu, release=release)
    except (WorkFailedError, InputError) as error:
        return Check(name=name, outcome="failed", detail=str(error))
    return Check(name=name, outcome="passed", detail=detail)


def built_engine(folder: Path, *, engine: Engine, gpu: dict[str, Any], release: str) -> str:
    """Build an engine in a new folder; how long it took and how far it differs. Raises WorkFailedError otherwise."""

    def report(_line: str) -> None:
        pass

    folder.mkdir()
    exported = folder / "exported.onnx"
    script = str(Path(__file__).with_name("check_graph.py"))
    run_script(
        environment="exporters", arguments=["-P", script, str(exported)], folder=folder, what="graph", report=report
    )
    graph = read_onnx(exported)
    inputs = proof_inputs(engine, graph, sample=None, seed=0, file=script)
    reference = outputs_of_graph(exported, graph, inputs, work=folder, what="reference", report=report)
    shutil.copyfile(graph_for_engine(engine, exported=exported, work=folder, report=report), folder / GRAPH)
    platform = Platform(release=release, gpu=FULL_GPU)  # whose options do not depend on the GPU
    write_job(folder, engine=engine, platform=platform, inputs=inputs, outputs=["y"], timeout_seconds=BUILD_SECONDS)
    # This machine's trtexec is of no image, so its CUDA is not the release's.
    change_job(folder, gpu={key: gpu[key] for key in ("name", "compute_capability")}, cuda=None)
    command = [sys.executable, str(engine_step.__file__), str(folder / JOB)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WorkFailedError((done.stdout.strip() or "no output").splitlines()[-1])
    tolerance, output = TOLERANCES[engine.precision], folder / "output"
    difference = compare_engine(output / "outputs.json", reference, tolerance=tolerance, what="engine")
    seconds = json.loads((output / "result.json").read_text())["durations"]["build_seconds"]
    return f"built in {seconds:.1f} s; largest difference from ONNX Runtime {difference:.2g}"


if __name__ == "__main__":
    raise SystemExit(main())
