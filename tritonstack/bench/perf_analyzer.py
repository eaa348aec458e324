"""NVIDIA's perf_analyzer as the generator: found, told what to do, and its export read.

It speaks KServe's protocol, not InvokeEndpoint's: `tritonstack proxy` stands between. Latencies count from when a
call was sent, also at a rate: a call that had to wait for its turn is not that late here (see ``open_loop``).
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tritonstack.bench.load import Load, Users
from tritonstack.bench.payload import Payload
from tritonstack.bench.samples import Call, Samples
from tritonstack.bench.settings import BenchSettings
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.repository import machine_folder

VARIABLE = "TRITONSTACK_PERF_ANALYZER"
FOLDER = ".envs/perf-analyzer"
WHEEL = "tritonclient==2.51.0"
LIBRARIES = ("libb64.so.0d", "libcudart.so.12")
"""What the program is linked against, and the local Triton's wheel carries under names with a hash."""
NANOSECONDS = 1e9


class _Request(BaseModel):
    timestamp: int
    response_timestamps: list[int]
    success: bool = True


class _Experiment(BaseModel):
    requests: list[_Request]
    window_boundaries: list[int]


class _Export(BaseModel):
    version: str
    experiments: list[_Experiment]


@dataclass(frozen=True, kw_only=True)
class Analysed:
    """An export.

    Attributes:
        version: of perf_analyzer.
        samples: every call, in the order in which they ended.
        windows: begin and end of each of its measurements, seconds of the calls' clock.
    """

    version: str
    samples: Samples
    windows: tuple[tuple[float, float], ...]


def find_program() -> Path:
    """Where perf_analyzer lies. Raises WorkFailedError that says how to get it."""
    named = os.environ.get(VARIABLE)
    places = [named, shutil.which("perf_analyzer"), str(machine_folder() / FOLDER / "bin" / "perf_analyzer")]
    found = next((Path(place) for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise WorkFailedError(
            "perf_analyzer is not installed\n"
            f"  looked for: ${VARIABLE}, perf_analyzer on PATH, {FOLDER}/bin/perf_analyzer\n"
            f"  do:         pip install --no-deps --target {FOLDER} {WHEEL}, or take --generator client"
        )
    return found


def arguments(load: Load, settings: BenchSettings, *, model: str, address: str, data: Path, export: Path) -> list[str]:
    """What it is told for one load, in its own options; its rounds are windows of the same length."""
    rule = settings.rule
    loaded = (
        ["--concurrency-range", f"{load.count}:{load.count}"]
        if isinstance(load, Users)
        else [
            *("--request-rate-range", f"{load.per_second:g}:{load.per_second:g}"),
            *("--request-distribution", {"even": "constant"}.get(load.arrivals, load.arrivals)),
        ]
    )
    return [
        *("-m", model, "-u", address, *loaded),
        *("--measurement-interval", f"{settings.timing.round * 1000:.0f}"),
        *("--stability-percentage", f"{rule.within * 100:g}", "--max-trials", str(rule.most)),
        *("--percentile", f"{rule.percentile:.0f}"),
        *("--input-data", str(data), "--profile-export-file", str(export)),
    ]


def input_data(payload: Payload, *, batched: bool) -> dict[str, Any]:
    """A request as its ``--input-data`` has it: values in a row, shapes without the batch dimension.

    Raises:
        InputError: several inputs in one request, or bytes, which its JSON has in another form.
    """
    data = {}
    for name, array in payload.inputs.items():
        if array.dtype.kind == "O" or (batched and array.shape[0] != 1):
            found = f"{name}: {'BYTES' if array.dtype.kind == 'O' else f'a batch of {array.shape[0]}'}"
            allowed = "numbers, one to a request"
            raise InputError([Problem(field="--generator perf-analyzer", found=found, allowed=allowed)])
        shape = list(array.shape[1:] if batched else array.shape)
        data[name] = {"content": array.ravel().tolist(), "shape": shape}
    return {"data": [data]}


def read_export(text: str) -> Analysed:
    """What ``--profile-export-file`` holds, of one load.

    Raises:
        WorkFailedError: it is no such export, or holds no measurement.
    """
    try:
        export = _Export.model_validate_json(text)
    except ValidationError as error:
        raise WorkFailedError(f"perf_analyzer's export cannot be read: {error}") from error
    if len(export.experiments) != 1 or len(export.experiments[0].window_boundaries) < 2:
        raise WorkFailedError("perf_analyzer's export holds no measurement, or several loads")
    [experiment] = export.experiments
    samples = Samples()
    answered = [one for one in experiment.requests if one.response_timestamps]
    for one in sorted(answered, key=lambda one: one.response_timestamps[-1]):
        sent, ended = one.timestamp / NANOSECONDS, one.response_timestamps[-1] / NANOSECONDS
        samples.add(Call(due=sent, sent=sent, ended=ended, failure=None if one.success else "no success"))
    cuts = [cut / NANOSECONDS for cut in experiment.window_boundaries]
    return Analysed(version=export.version, samples=samples, windows=tuple(itertools.pairwise(cuts)))


def run(command: Sequence[str], *, seconds: float) -> str:
    """Run it. Returns its last words; the export alone says whether it measured. Raises WorkFailedError."""
    try:
        with libraries() as folder:
            done = subprocess.run(
                list(command),
                env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
                capture_output=True,
                text=True,
                check=False,
                timeout=seconds,
            )
    except subprocess.TimeoutExpired as error:
        raise WorkFailedError(f"perf_analyzer did not end within {seconds:g} s (--max-seconds)") from error
    words = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return words[-1] if words else f"perf_analyzer ended with {done.returncode}"


@contextmanager
def libraries() -> Iterator[Path]:
    """A folder with the libraries that it is linked against, under the names by which it looks for them."""
    carried = machine_folder() / ".envs" / "triton" / "nvidia_pytriton.libs"
    with tempfile.TemporaryDirectory(prefix="perf-analyzer-") as name:
        folder = Path(name)
        for library in LIBRARIES:
            stem, _, end = library.partition(".so.")
            found = next(iter(sorted(carried.glob(f"{stem}-*.so.{end}*"))), None)
            if found is not None:
                (folder / library).symlink_to(found)
        yield folder


def write_input(payload: Payload, file: Path, *, table: Mapping[str, Any] | None) -> None:
    """Write the request for it; ``table``: the manifest's entry of the model, which says whether it batches."""
    batched = table is not None and int(table.get("max_batch_size", 0)) > 0
    file.write_text(json.dumps(input_data(payload, batched=batched)))
