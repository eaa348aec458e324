"""The simulated cache against the local runtime's own, with calls at once: in a time that only counts.

The runtime's ``ModelCache`` runs as it is, on a loop whose clock jumps; the container behind it takes the simulation's
times. tests/e2e/local/test_simulated_cache.py plays a trace on the real Triton, one call after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.local_keys import KEYS
from tests.tritonstack_capacity.bench.virtual_time import VirtualLoop
from tests.tritonstack_capacity.simulation.fleets import KIND, calls, evicted, fleet, hits, table
from tritonstack.loopback.http_server import HttpResponse
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_local.runtime.errors import ContainerAddress
from tritonstack_local.runtime.metrics import FleetMetrics
from tritonstack_local.runtime.model_cache import CachedModel, ModelCache
from tritonstack_local.runtime.model_store import ModelStore
from tritonstack_local.runtime.settings import RuntimeSettings

MODELS, PLACES = 6, 3
LOAD, EXECUTION = 1.0, 0.25
FOREVER = 1e6
GAPS = st.floats(0.001, 3.0).map(lambda gap: gap * 1.000_123)
"""Seconds between calls: no two events of a trace come at the same moment."""
Pairs = list[tuple[float, int]]
TRACES = st.lists(st.tuples(GAPS, st.integers(0, MODELS - 1)), min_size=1, max_size=40)


@dataclass(frozen=True, kw_only=True)
class Played:
    """What each call met and how long it took, and which models were unloaded."""

    hits: list[bool]
    latencies: list[float]
    unloaded: list[int]


class Loop(VirtualLoop):
    """What threads would do is done at once: downloads and deletions take no time here."""

    def run_in_executor(self, _: Any, work: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[override]  # wider
        """The work's result, as a future."""
        done = self.create_future()
        done.set_result(work(*arguments))
        return done


class Container:
    """Loads and unloads in the simulation's times."""

    def __init__(self, unload: float) -> None:
        self.unloaded: list[int] = []
        self._unload = unload

    async def load(self, _: CachedModel) -> HttpResponse:
        await asyncio.sleep(LOAD)
        return HttpResponse(200, {}, b"")

    async def unload(self, model: CachedModel) -> HttpResponse:
        self.unloaded.append(int(model.target))
        if self._unload:
            await asyncio.sleep(self._unload)
        return HttpResponse(200, {}, b"")


async def played(pairs: Pairs, *, parallel: int, unload: float, cached: bool) -> Played:
    """On the runtime's cache."""
    container = Container(unload)
    nothing = SimpleNamespace(duration=lambda *_: None)
    files = SimpleNamespace(fetch_target=lambda *_, **__: 0.0, remove=lambda _: None)
    limits = RuntimeSettings(port=1, emulator_url="", keys=KEYS, state=Path())
    cache = ModelCache(
        load=container.load,
        unload=container.unload,
        store=cast("ModelStore", files),
        settings=replace(limits, load_seconds=FOREVER, victim_patience_seconds=FOREVER, max_parallel_loads=parallel),
        address=ContainerAddress(endpoint="e", log_group="/aws/sagemaker/Endpoints/e", log_stream="s"),
        events=cast("FleetMetrics", nothing),
        log=lambda _: None,
        limit=PLACES,
        cache_enabled=cached,
    )
    clock = asyncio.get_running_loop().time

    async def call(moment: float, target: int) -> tuple[bool, float]:
        await asyncio.sleep(moment)
        model = cache.claim_loaded(str(target))
        hit = model is not None
        if model is None:
            model = await cache.claim(str(target), seconds=FOREVER)
        await asyncio.sleep(EXECUTION)
        cache.release(model)
        return hit, clock() - moment

    found = await asyncio.gather(*(call(moment, target) for moment, target in pairs))
    return Played(hits=[hit for hit, _ in found], latencies=[late for _, late in found], unloaded=container.unloaded)


def simulated(pairs: Pairs, *, parallel: int, unload: float, cached: bool) -> Played:
    """The same calls of the same models."""
    kind = replace(KIND, load_seconds=LOAD, fixed=EXECUTION, copies=64)
    machine = fleet(
        most_models=PLACES,
        executions=1000,
        parallel_loads=parallel,
        unload_seconds=unload,
        patience=FOREVER,
        keep_on_disk=False,
        cached=cached,
    )
    happening = simulate(machine, table(*[kind] * MODELS), calls(*pairs), seed=0)
    return Played(hits=hits(happening), latencies=happening.calls.latencies.tolist(), unloaded=evicted(happening))


@given(trace=TRACES, parallel=st.integers(1, 3), unload=st.sampled_from([0.0, 0.4]), cached=st.booleans())
@example(trace=[(0.01, model) for model in range(6)], parallel=1, unload=0.4, cached=True)
@example(  # 2 waits for a place, in vain once, before 3 does
    trace=[(1.000123, 1), (0.125015375, 4), (0.5000615, 0), (0.25003075, 2), (0.125015375, 3)],
    parallel=3,
    unload=0.0,
    cached=True,
)
@example(trace=[(2.01, 0), (2.01, 1), (2.01, 2), (2.01, 3), (0.1, 0), (0.1, 0)], parallel=2, unload=0.4, cached=True)
@settings(max_examples=200)
def test_calls_at_once_hit_wait_and_evict_as_on_the_local_runtime(
    trace: Pairs, *, parallel: int, unload: float, cached: bool
) -> None:
    moment, pairs = 0.0, []
    for gap, model in trace:
        moment += gap
        pairs.append((moment, model))
    how: dict[str, Any] = {"parallel": parallel, "unload": unload, "cached": cached}
    with asyncio.Runner(loop_factory=Loop) as runner:
        real = runner.run(played(pairs, **how))
    found = simulated(pairs, **how)
    # Models that still wait at the end may be unloaded after the last response.
    count = min(len(real.unloaded), len(found.unloaded))
    assert found.unloaded[:count] == real.unloaded[:count]
    assert found.hits == real.hits
    assert found.latencies == pytest.approx(real.latencies, abs=1e-6)
