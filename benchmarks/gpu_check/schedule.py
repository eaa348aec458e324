"""What is measured, in the order of importance, each within a limit of time; what there is no time for is named."""

from __future__ import annotations

import asyncio
import queue
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Literal

from benchmarks.gpu_check.nvml import Gpu, Sampler
from tritonstack_capacity.bench.load import Budget, ClosedLoop

Runtime = Literal["pytorch", "onnxruntime"]
Precision = Literal["fp32", "fp16"]
BATCHES = (1, 16, 32, 8, 4, 2)
"""The most telling first. Of the post's dynamic batching, 16 is the preferred size."""
USERS = 16
INSTANCES = (1, 2)
LOAD_SECONDS, LATENCY_SECONDS, WARM_UP_SECONDS = 3.0, 1.0, 0.5
WARM_UP_RUNS = 3
"""A traced network is profiled at its first run with new shapes, and compiled after it."""
LONGEST_LOAD, LONGEST_LATENCY, LONGEST_PREPARATION = 15.0, 12.0, 40.0
"""Seconds after which a measurement is given up. A call into CUDA is not interrupted: the next line of Python is."""
LEAST_SECONDS = 2.0
"""With less time left nothing more begins."""
MOST_REQUESTS = 100_000


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model as it is loaded once: everything measured of it follows each other."""

    model: str
    runtime: Runtime = "pytorch"
    precision: Precision = "fp32"
    options: str = "default"  # of ONNX Runtime's session


@dataclass(kw_only=True)
class Prepared:
    """A subject that is loaded, with one instance at first."""

    run: Callable[[int], Sequence[Callable[[], object]]]
    """For a batch of so many: a call of each instance, which ends when the outputs are in host memory."""
    add_instance: Callable[[], None] | None  # None: the runtime is not measured with two
    peak_mib: Callable[[], float | None]  # most device memory of this process's tensors since the last call
    parameters: int | None = None
    weights_mib: float | None = None
    load_seconds: float | None = None  # to an instance that can run
    close: Callable[[], None] = lambda: None


Prepare = Callable[[Subject], Prepared]
"""Loads a subject. Raises what its library raises."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One row of the document. Figures are None where they were not measured, and ``reason`` has why."""

    model: str
    runtime: Runtime
    precision: Precision
    options: str
    kind: Literal["load", "latency", "under load"]  # "load": of the model, up to its first response
    batch: int = 1
    instances: int = 1
    users: int = 0  # of the closed loop, under load
    status: Literal["measured", "skipped", "failed"] = "measured"
    reason: str = ""
    runs: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    per_second: float | None = None  # inferences: a run of a batch of 16 is 16
    peak_mib: float | None = None
    gpu_percent: float | None = None
    gpu_memory_mib: float | None = None
    parameters: int | None = None
    weights_mib: float | None = None
    load_seconds: float | None = None
    first_run_seconds: float | None = None


class TimeIsUpError(Exception):
    """A measurement reached its limit."""


@dataclass
class Deadline:
    """The end of the whole check."""

    seconds: float
    now: Callable[[], float] = time.monotonic
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now()

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 where it is over."""
        return self._began + self.seconds - self.now()

    @property
    def over(self) -> str:
        """Why nothing more begins."""
        return f"no time left of {self.seconds:.0f} s"


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeIsUpError in the block once so many seconds are over. In another thread than the first: no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TimeIsUpError(f"not done in {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure_all(
    subjects: Sequence[Subject],
    prepare: Prepare,
    *,
    deadline: Deadline,
    gpu: Gpu | None,
    keep: Callable[[Measurement], None],
    batches: Sequence[int] = BATCHES,
) -> None:
    """Measure every subject. ``keep`` gets each measurement at once, skipped and failed ones, too.

    At the deadline what is left is kept as skipped: every subject has the same rows on every machine.
    """
    for subject in subjects:
        rows = rows_of(subject, batches)
        if deadline.left < LEAST_SECONDS:
            _all(rows, keep, status="skipped", reason=deadline.over)
            continue
        try:
            with limited(min(LONGEST_PREPARATION, deadline.left)):
                prepared = prepare(subject)
        except TimeIsUpError as error:
            _all(rows, keep, status="skipped", reason=str(error))
            continue
        except Exception as error:  # noqa: BLE001 - of whichever library: the others go on
            _all(rows, keep, status="failed", reason=_in_short(error))
            continue
        try:
            for row in rows:
                keep(_measured(row, prepared, deadline=deadline, gpu=gpu))
        finally:
            prepared.close()


def rows_of(subject: Subject, batches: Sequence[int]) -> list[Measurement]:
    """The measurements of a subject, in order, without figures."""
    base = Measurement(
        model=subject.model,
        runtime=subject.runtime,
        precision=subject.precision,
        options=subject.options,
        kind="load",
    )
    rows = [base, replace(base, kind="latency")]
    if subject.options == "default":
        rows += [replace(base, kind="under load", instances=count, users=USERS) for count in INSTANCES]
        # The second instance is in memory from here on; a latency is of one alone.
        rows[2:2] = [replace(base, kind="latency", batch=batch) for batch in batches if batch != 1]
    return rows


def _all(
    rows: Sequence[Measurement],
    keep: Callable[[Measurement], None],
    *,
    status: Literal["skipped", "failed"],
    reason: str,
) -> None:
    for row in rows:
        keep(replace(row, status=status, reason=reason))


def _measured(row: Measurement, prepared: Prepared, *, deadline: Deadline, gpu: Gpu | None) -> Measurement:
    if deadline.left < LEAST_SECONDS:
        return replace(row, status="skipped", reason=deadline.over)
    try:
        if row.kind == "under load":
            if row.instances > 1:
                if prepared.add_instance is None:
                    return replace(row, status="skipped", reason=f"{row.runtime} is measured with one instance")
                with limited(min(LONGEST_PREPARATION, deadline.left)):
                    prepared.add_instance()
            seconds = min(LOAD_SECONDS, deadline.left / 2)
            with limited(min(LONGEST_LOAD, deadline.left)):
                return _under_load(row, prepared, seconds=seconds, gpu=gpu)
        with limited(min(LONGEST_LATENCY, deadline.left)):
            return _first_run(row, prepared) if row.kind == "load" else _latency(row, prepared)
    except TimeIsUpError as error:
        return replace(row, status="skipped", reason=str(error))
    except Exception as error:  # noqa: BLE001 - out of memory, an operator that a library lacks: the next may run
        return replace(row, status="failed", reason=_in_short(error))


def _in_short(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"


def _first_run(row: Measurement, prepared: Prepared) -> Measurement:
    began = time.perf_counter()
    prepared.run(1)[0]()
    return replace(
        row,
        runs=1,
        first_run_seconds=time.perf_counter() - began,
        load_seconds=prepared.load_seconds,
        parameters=prepared.parameters,
        weights_mib=prepared.weights_mib,
        peak_mib=prepared.peak_mib(),
    )


def _latency(row: Measurement, prepared: Prepared) -> Measurement:
    """One caller, one run after the other, after a warm-up."""
    run = prepared.run(row.batch)[0]
    _runs(run, seconds=WARM_UP_SECONDS, least=WARM_UP_RUNS)
    prepared.peak_mib()
    times = _runs(run, seconds=LATENCY_SECONDS)
    return replace(
        row,
        runs=len(times),
        p50_ms=statistics.median(times) * 1000,
        p95_ms=percentile(times, 95) * 1000,
        per_second=row.batch * len(times) / sum(times),
        peak_mib=prepared.peak_mib(),
    )


def _runs(run: Callable[[], object], *, seconds: float, least: int = 1) -> list[float]:
    """Seconds of each run, of at least so many."""
    times: list[float] = []
    while len(times) < least or sum(times) < seconds:
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of some values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]


def _under_load(row: Measurement, prepared: Prepared, *, seconds: float, gpu: Gpu | None) -> Measurement:
    """The closed loop of ``tritonstack capacity bench``: ``USERS`` users, whose requests the instances take in turn."""
    runs = prepared.run(1)
    assert len(runs) == row.instances
    for run in runs:
        _runs(run, seconds=0, least=WARM_UP_RUNS)
    prepared.peak_mib()
    with Sampler(gpu, leave_out_seconds=seconds / 3) as sampler:
        times, failures, took = asyncio.run(_closed_loop(runs, users=row.users, seconds=seconds))
    if not times:
        reason = failures[0] if failures else f"no response in {seconds:.0f} s"
        return replace(row, status="failed", reason=reason)
    return replace(
        row,
        runs=len(times),
        reason=failures[0] if failures else sampler.reason,
        p50_ms=statistics.median(times),
        p95_ms=percentile(times, 95),
        per_second=len(times) / took,
        peak_mib=prepared.peak_mib(),
        gpu_percent=sampler.percent,
        gpu_memory_mib=sampler.memory_mib,
    )


async def _closed_loop(
    runs: Sequence[Callable[[], object]], *, users: int, seconds: float
) -> tuple[list[float], list[str], float]:
    """Milliseconds of each response, what failed, and the seconds that all took together."""
    idle: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    for run in runs:
        idle.put(run)

    def one() -> None:
        run = idle.get()
        try:
            run()
        finally:
            idle.put(run)

    with ThreadPoolExecutor(max_workers=len(runs)) as pool:

        async def ask() -> str | None:
            try:
                await asyncio.get_running_loop().run_in_executor(pool, one)
            except Exception as error:  # noqa: BLE001 - kept as the request's failure
                return _in_short(error)
            return None

        budget = Budget(calls=MOST_REQUESTS, seconds=seconds, now=time.perf_counter)
        loop = ClosedLoop(ask, budget=budget, now=time.perf_counter)
        began = time.perf_counter()
        loop.set_users(users)
        await asyncio.sleep(seconds)
        await loop.stop()
        took = time.perf_counter() - began
    latencies: list[Any] = loop.samples.part().latencies_ms.tolist()
    return latencies, list(loop.samples.failures), took
