"""NVIDIA's perf_analyzer as a program: found, told what to do, run, and its export read.

Its latencies count from when a call was sent, also at a rate: a call that had to wait for its turn is not that late
here (see ``open_loop``).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from tritonstack.errors import WorkFailedError
from tritonstack.paths import machine_folder
from tritonstack_capacity.bench.load import Load, Users
from tritonstack_capacity.bench.samples import Call, Samples
from tritonstack_capacity.bench.settings import BenchSettings

VARIABLE = "TRITONSTACK_PERF_ANALYZER"
SETUP_NAME = "perf-analyzer"
FOLDER = f".envs/{SETUP_NAME}"
WHEEL = "tritonclient==2.51.0"
LIBRARIES = ("libb64.so.0d", "libcudart.so.12")
"""What the program is linked against, and the local Triton's wheel carries under names with a hash."""
NANOSECONDS = 1e9
WINDOWS = 3
"""So many measurements in a row must agree (its ``--stability-percentage``)."""
ANYTHING = 1e6
"""Per cent."""
UNSTABLE = "Failed to obtain stable measurement"
"""Its last words where they never did; then it writes no export."""


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
        cuts: where one of its measurements ends and the next begins, seconds of the calls' clock.
    """

    version: str
    samples: Samples
    cuts: tuple[float, ...]


def find_program() -> Path:
    """Where perf_analyzer lies. Raises WorkFailedError that says how to get it."""
    named = os.environ.get(VARIABLE)
    places = [named, shutil.which("perf_analyzer"), str(machine_folder() / FOLDER / "bin" / "perf_analyzer")]
    found = next((Path(place) for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise WorkFailedError(
            "perf_analyzer is not installed\n"
            f"  looked for: ${VARIABLE}, perf_analyzer on PATH, {FOLDER}/bin/perf_analyzer\n"
            f"  do:         python3 scripts/setup.py {SETUP_NAME} in a checkout of tritonstack, elsewhere\n"
            f"              pip install --no-deps --target {FOLDER} {WHEEL}; or take --generator client"
        )
    return found


def arguments(
    load: Load, settings: BenchSettings, *, data: Path, export: Path, whatever_comes: bool = False
) -> list[str]:
    """What it is told of one load, in its own options; its rounds are windows of the same length.

    At a rate its calls do not wait for each other (``--async``): by itself it has four threads for them.
    ``whatever_comes``: it takes the first windows, whether they agree or not, where else it would tell nothing.
    """
    rule = settings.rule
    within = ANYTHING if whatever_comes else rule.within * 100
    loaded = (
        ["--concurrency-range", f"{load.count}:{load.count}"]
        if isinstance(load, Users)
        else [
            *("--async", "--request-rate-range", f"{load.per_second:g}:{load.per_second:g}"),
            *("--request-distribution", {"even": "constant"}.get(load.arrivals, load.arrivals)),
        ]
    )
    return [
        *loaded,
        *("--measurement-interval", f"{settings.timing.round * 1000:.0f}"),
        *("--stability-percentage", f"{within:g}", "--max-trials", str(max(rule.most, WINDOWS))),
        *("--percentile", f"{rule.percentile:.0f}"),
        *("--input-data", str(data), "--profile-export-file", str(export)),
    ]


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
    cuts = tuple(cut / NANOSECONDS for cut in experiment.window_boundaries)
    return Analysed(version=export.version, samples=samples, cuts=cuts)


async def run(command: Sequence[str], *, seconds: float) -> str:
    """Run it. Returns what it says of an error, else its last words; the export alone says whether it measured.

    Raises:
        WorkFailedError: it does not end within ``seconds``.
    """
    with libraries() as folder:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=environment, start_new_session=True
        )
        try:
            async with asyncio.timeout(seconds):
                said, _ = await process.communicate()
        except TimeoutError as error:
            raise WorkFailedError(f"perf_analyzer did not end within {seconds:.0f} s (--max-seconds)") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    words = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    if not words:
        return f"perf_analyzer ended with {process.returncode}"
    return words[-1] if UNSTABLE in words[-1] else next((line for line in words if "error" in line.lower()), words[-1])


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
