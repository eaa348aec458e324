"""``python3 -m benchmarks.gpu_check``: measures this machine's GPU, writes one JSON file, prints the claims beside it.

Exit code 0: measured, whatever the claims; 1: no GPU or no PyTorch that finds it, or the file cannot be written; 2:
wrong options.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.nvml import Gpu, NvmlError
from benchmarks.gpu_check.published import Figures, held
from benchmarks.gpu_check.schedule import BATCHES, Deadline, Measurement, Precision, Prepare, Prepared, Subject
from benchmarks.gpu_check.schedule import measure_all as measure
from tritonstack.engines import engine_step

LONGEST_SECONDS = 300.0
SCHEMA_VERSION = 1
MODELS = ("bert-large", "resnet50", "bert-base", "roberta-base", "t5-small")
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16")
UTC = timezone.utc  # noqa: UP017 - the machine's Python may be 3.10


def subjects() -> list[Subject]:
    """Everything that is measured; first what the claims are about."""
    full = [Subject(model=model) for model in MODELS]
    half = [Subject(model=model, precision="fp16") for model in MODELS]
    onnx = [Subject(model="resnet50", runtime="onnxruntime", options=each) for each in ("default", "heuristic", "post")]
    return [full[0], full[1], *onnx, full[2], half[2], half[0], *full[3:], half[1], *half[3:]]


def main(arguments: Sequence[str]) -> int:
    """Run the check. Returns the exit code."""
    chosen = _arguments(arguments)
    deadline = Deadline(chosen.seconds)
    try:
        instances = importlib.import_module("benchmarks.gpu_check.torch_instances")
        device = instances.describe(chosen.device)
    except (ImportError, RuntimeError) as error:
        print(
            f"gpu-check: {error}\n  needs: a Python with PyTorch that finds an NVIDIA GPU, and NumPy", file=sys.stderr
        )
        print("  do: make gpu-check PYTHON=/path/to/that/python3", file=sys.stderr)
        return 1
    gpu, no_gpu = _nvml(device)
    ort = importlib.import_module("benchmarks.gpu_check.ort_instances")
    document = {
        "schema_version": SCHEMA_VERSION,
        "figures_of_a_gpu": device["kind"] == "cuda" and not chosen.tiny,
        "tiny": chosen.tiny,
        "device": {**device, "driver": None if gpu is None else gpu.driver(), "nvml": no_gpu or "read"},
        "machine": _machine(),
        "versions": {"python": platform.python_version(), "onnxruntime": ort.version(), "trtexec": trtexec()},
        "instances": "threads of one process, each with its own weights and CUDA stream, as Triton's instances",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_limit": chosen.seconds,
        "ended": None,
        "measurements": [],
        "claims": [],
    }
    document["versions"].update(device["versions"])
    missing = ort.missing(chosen.device)
    prepare = _prepare(instances, ort, missing, device=chosen.device, tiny=chosen.tiny)
    found: list[Measurement] = []

    def keep(measurement: Measurement) -> None:
        found.append(measurement)
        print(line(measurement), flush=True)
        document["measurements"] = [asdict(each) for each in found]
        write(document, chosen.to)

    try:
        write(document, chosen.to)
        measure(subjects(), prepare, deadline=deadline, gpu=gpu, keep=keep, batches=chosen.batches)
        rows = list(held(Figures(found), gpu=bool(document["figures_of_a_gpu"])))
        document["claims"] = [{**asdict(each), "verdict": each.verdict.value} for each in rows]
        document["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        write(document, chosen.to)
    except OSError as error:
        print(f"gpu-check: {chosen.to} cannot be written: {error}\n  do: --to FILE", file=sys.stderr)
        return 1
    print(f"\n{device['name']}: the published claims")
    for row in rows:
        print(f"  {row.post}: {row.said}\n    {row.verdict.value}: {row.here}")
    print(f"\nwritten: {chosen.to}")
    return 0


def _prepare(instances: Any, ort: Any, missing: str, *, device: str, tiny: bool) -> Prepare:
    def prepare(subject: Subject) -> Prepared:
        if subject.runtime == "pytorch":
            made: Prepared = instances.TorchInstances(subject, device=device, tiny=tiny).prepared()
            return made
        if missing:
            raise RuntimeError(missing)
        session: Prepared = ort.prepared(subject, device=device, tiny=tiny)
        return session

    return prepare


def line(measurement: Measurement) -> str:
    """A measurement as a line of the terminal."""
    one = measurement
    options = "" if one.options == "default" else f" ({one.options})"
    what = f"{one.model} {one.runtime}{options} {one.precision} {one.kind}"
    what += f", {one.instances} of {one.users} users" if one.kind == "under load" else f", batch {one.batch}"
    if one.status != "measured":
        return f"{what}: {one.status}: {one.reason}"
    if one.kind == "load":
        return f"{what}: {one.load_seconds or 0:.2f} s, first run {one.first_run_seconds or 0:.2f} s"
    used = "" if one.gpu_percent is None else f", GPU {one.gpu_percent:.0f} %"
    return f"{what}: p50 {one.p50_ms:.2f} ms, {one.per_second:.4g}/s{used}"


def write(document: dict[str, Any], file: Path) -> None:
    """Put the document into its place, whole. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(file)


def trtexec() -> str | None:
    """The path of trtexec; None where there is none."""
    try:
        return engine_step.find_program("TRITONSTACK_TRTEXEC", engine_step.TRTEXEC_PLACES, "trtexec")
    except engine_step.StepError:
        return None


def _nvml(device: dict[str, Any]) -> tuple[Gpu | None, str]:
    if device["kind"] != "cuda":
        return None, "no GPU"
    try:
        return Gpu(uuid=device["uuid"]), ""
    except NvmlError as error:
        return None, str(error)


def _machine() -> dict[str, Any]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        lines, pages = [], 0
    names = [each.partition(":")[2].strip() for each in lines if each.startswith("model name")]
    return {
        "processor": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": round(os.getloadavg()[0], 1),
    }


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.gpu_check", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--to", type=Path, default=Path("gpu-check.json"), metavar="FILE", help="default: %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=240.0, help="the longest that it measures; default: %(default)g"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: its figures are no GPU's")
    parser.add_argument("--tiny", action="store_true", help="networks of few layers: tries this program, not the GPU")
    parser.add_argument("--batches", default=",".join(map(str, BATCHES)), metavar="N,N", help="default: %(default)s")
    parser.add_argument("--has-trtexec", action="store_true", help="measure nothing; exit code 0 where trtexec is")
    chosen = parser.parse_args(list(arguments))
    if not 0 < chosen.seconds <= LONGEST_SECONDS:
        parser.error(f"--seconds: found {chosen.seconds:g}; allowed: more than 0, at most {LONGEST_SECONDS:g}")
    try:
        chosen.batches = tuple(int(each) for each in chosen.batches.split(","))
    except ValueError:
        parser.error(f"--batches: found {chosen.batches}; allowed: numbers with commas, such as 1,16")
    if not all(1 <= each <= 32 for each in chosen.batches):
        parser.error("--batches: allowed: 1 to 32")
    return chosen


if __name__ == "__main__":
    if "--has-trtexec" in sys.argv[1:]:
        sys.exit(0 if trtexec() else 1)
    sys.exit(main(sys.argv[1:]))
