"""NVIDIA's perf_analyzer as the load generator: the program, how it reaches a model, and its export as points."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tritonstack.disk import temporary_folder
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.paths import machine_folder
from tritonstack_capacity.bench.load import Budget, Load, Samples, Users
from tritonstack_capacity.bench.measuring import SHARES, PointPart, figures, point_part
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.subject import Payload

# Its latencies count from when a request was sent, also at a rate: a wait for its turn does not count
# here (see ``open_loop``).
VARIABLE = "TRITONSTACK_PERF_ANALYZER"
SETUP_NAME = "perf-analyzer"
FOLDER = f".envs/{SETUP_NAME}"
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


def find_program() -> Path:
    """Path of perf_analyzer. Raises WorkFailedError with how to install it."""
    named = os.environ.get(VARIABLE)
    places = [named, shutil.which("perf_analyzer"), str(machine_folder() / FOLDER / "bin" / "perf_analyzer")]
    found = next((Path(place) for place in places if place and Path(place).is_file()), None)
    if found is None:
        raise WorkFailedError(
            "perf_analyzer is not installed\n"
            f"  looked for: ${VARIABLE}, perf_analyzer on PATH, {FOLDER}/bin/perf_analyzer\n"
            f"  do:         tritonstack setup {SETUP_NAME}; or take --generator client"
        )
    return found


def arguments(
    load: Load, settings: BenchSettings, *, data: Path, export: Path, whatever_comes: bool = False
) -> list[str]:
    """Its options for one load; its rounds are windows of the same length.

    At a rate its requests do not wait for each other (``--async``): by itself it has four threads for them.
    ``whatever_comes``: it takes the first windows, whether they agree or not, where else it would report nothing.
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


def read_export(text: str) -> tuple[str, Samples, list[float]]:
    """perf_analyzer's version, the requests of one load, and the ends of its measurements (seconds of the same clock).

    Raises WorkFailedError: it is no such export, or holds no measurement.
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
        samples.add(due=sent, sent=sent, ended=ended, failure=None if one.success else "no success")
    return export.version, samples, [cut / NANOSECONDS for cut in experiment.window_boundaries]


async def run(command: Sequence[str], *, seconds: float) -> str:
    """Run it. Returns its error message, else its last line; only the export shows whether it measured.

    Raises WorkFailedError: it does not end within ``seconds``.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True
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


ADDRESS = "KServe v2 at http://"
"""How the proxy's first line begins."""
STOP_SECONDS = 30.0


@contextmanager
def running_proxy(environment: str, *options: str) -> Iterator[str]:
    """``tritonstack proxy`` on a free port while the block lasts; its address, as ``127.0.0.1:8000``.

    Raises WorkFailedError: it does not start.
    """
    command = [sys.executable, "-m", "tritonstack", "proxy", "--environment", environment, "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            line = process.stdout.readline()
            if not line.startswith(ADDRESS):
                raise WorkFailedError(f"tritonstack proxy did not start: {line}{process.communicate()[1]}")
            yield line.removeprefix(ADDRESS).split()[0]
        finally:
            process.send_signal(signal.SIGINT)  # as a person would end it
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def kserve_data(payload: Payload, manifest: Mapping[str, Any] | None) -> str:
    """A request as its ``--input-data`` has it: values in a row, shapes without the batch dimension.

    ``manifest``: of the archive; it states whether the model batches.

    Raises InputError: several inputs in one request, or bytes, which its JSON has in another form.
    """
    batched = manifest is not None and int(manifest["model"].get("max_batch_size", 0)) > 0
    data = {}
    for name, array in payload.inputs.items():
        if array.dtype.kind == "O" or (batched and array.shape[0] != 1):
            found = f"{name}: {'BYTES' if array.dtype.kind == 'O' else f'a batch of {array.shape[0]}'}"
            allowed = "numbers, one to a request"
            raise InputError([Problem(field="--generator perf-analyzer", found=found, allowed=allowed)])
        shape = list(array.shape[1:] if batched else array.shape)
        data[name] = {"content": array.ravel().tolist(), "shape": shape}
    return json.dumps({"data": [data]})


class Analyser:
    """Measures loads on one model. Needs the program: see ``find_program``.

    Attributes:
        version: of perf_analyzer, once it has measured.
    """

    def __init__(self, settings: BenchSettings, way: Sequence[str], *, data: str, budget: Budget) -> None:
        """``way``: options by which it reaches the model; ``data``: the request, as its ``--input-data`` has it.

        ``budget``: its requests are counted after each load, since perf_analyzer takes no such number.
        """
        self.version = ""
        self._settings = settings
        self._way = way
        self._data = data
        self._budget = budget

    async def level(self, load: Load) -> PointPart | None:
        """One load; its rounds are perf_analyzer's last measurements. None where the budget is spent.

        Where its measurements never agree, three are taken as they come: the point is then marked unstable.

        Raises WorkFailedError: it measured nothing, or time is over.
        """
        if self._budget.spent:
            return None
        with temporary_folder("bench") as folder:
            data, export = folder / "input.json", folder / "export.json"
            data.write_text(self._data)
            last = await self._run(arguments(load, self._settings, data=data, export=export))
            if UNSTABLE in last:
                last = await self._run(arguments(load, self._settings, data=data, export=export, whatever_comes=True))
            if not export.is_file():
                raise WorkFailedError(f"perf_analyzer, {load.name}: {last}")
            self.version, samples, cuts = read_export(export.read_text())
        self._budget.count(len(samples))  # also where time ran out meanwhile: they were made
        shares = tuple(sorted({*SHARES, self._settings.rule.percentile}))
        part = samples.part()
        rounds = [figures(part, begin=begin, end=end, shares=shares) for begin, end in itertools.pairwise(cuts)]
        whole = figures(part, begin=cuts[0], end=cuts[-1], shares=shares)
        return point_part(load, rounds, whole=whole, rule=self._settings.rule, failures=dict(samples.failures))

    async def _run(self, options: list[str]) -> str:
        command = [str(find_program()), *self._way, *options]
        return await run(command, seconds=self._budget.seconds)
