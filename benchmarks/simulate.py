"""An exact replay of five million calls over ten thousand models on one instance, as ``capacity simulate`` does it.

    python -m benchmarks simulate

Each replay runs in a process of its own, twice, so that its memory and the sameness of its bits are its own. It has all
parts: a trace drawn by Zipf's law, GPU memory and a disk that are too small, downloads, loads, a queue for the GPU.
"""

from __future__ import annotations

import json
import sys

from benchmarks.measuring import Figure, tell, timed

CALLS, MODELS = 5_000_000, 10_000
SECONDS, MEGABYTES = 60.0, 1000.0

_REPLAY = f"""
import hashlib, json, resource, time
import numpy as np
from tritonstack_capacity.simulation.fleet import SimulatedFleet, simulate
from tritonstack_capacity.simulation.instance import EVICTION, HIT, Machine
from tritonstack_capacity.simulation.trace import ModelKind, ModelTable
from tritonstack_capacity.simulation.trace import trace_of_curve
from tritonstack_capacity.simulation.scenario import RatePoint

began = time.perf_counter()
weights = np.arange(1, {MODELS} + 1) ** -0.9
kind = ModelKind(name="m", memory=100, disk=100, download_seconds=0.5, load_seconds=0.5, fixed=0.001, per_item=0.001,
                 exponential=False, max_batch=8, delay=0.0, copies=1)
models = ModelTable(kinds=(kind,), kind_of=np.zeros({MODELS}, dtype=np.int64), popularity=weights / weights.sum(),
                    names=tuple(map(str, range({MODELS}))))
trace = trace_of_curve((RatePoint(minute=0, per_minute=600.0),), seconds={CALLS} / 10, poisson=True,
                       popularity=models.popularity, random=np.random.default_rng(1))
machine = Machine(memory=100 * 2000, disk=100 * 5000, most_models=None, executions=1, unload_seconds=0.0,
                  parallel_loads=8, patience=2.0, keep_on_disk=True)
happening = simulate(SimulatedFleet(machine=machine, count=1, routing="random"), models, trace, seed=1)
seconds = time.perf_counter() - began
digest = hashlib.sha256(happening.calls.latencies.tobytes() + happening.calls.outcomes.tobytes())
digest.update(happening.events.models.tobytes())
hits = float((happening.calls.outcomes[len(trace) // 5 :] == HIT).mean())
print(json.dumps({{"seconds": seconds, "calls": len(trace), "digest": digest.hexdigest(), "hits": hits,
    "evictions": len(happening.events.of_kind(EVICTION)[0]),
    "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}}))
"""


def main() -> int:
    """Two replays; 0 where both keep time and memory and are the same to the bit."""
    runs = [_replay() for _ in range(2)]
    first = runs[0]
    figures = [
        Figure("replay, wall clock, the slower of two", max(each["seconds"] for each in runs), "s", SECONDS),
        Figure("peak memory", max(each["megabytes"] for each in runs), "MB", MEGABYTES),
        Figure("replays with the same bits", 3 - len({each["digest"] for each in runs}), "of 2", 2.0, at_least=True),
        Figure("calls", first["calls"], "calls"),
        Figure("evictions", first["evictions"], "evictions"),
        Figure("hit ratio, replayed", 100 * first["hits"], "%"),
    ]
    return tell("simulate", figures)


def _replay() -> dict[str, float]:
    found: dict[str, float] = json.loads(timed([sys.executable, "-c", _REPLAY])[1])
    return found
