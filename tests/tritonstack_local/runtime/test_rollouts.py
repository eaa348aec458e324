"""Traffic in steps: both fleets alive, each with its part of the calls, and no call lost on the way there or back."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.local_keys import OWN
from tests.tritonstack_local.runtime.fakes import Callers, Stage, asynchronous, config, stage, until
from tritonstack_local.runtime.deployed import DeployedEndpoint, Reported, Traffic, UnreachableError
from tritonstack_local.runtime.endpoint import RunningEndpoint
from tritonstack_local.runtime.variants import Split


@given(st.integers(0, 20), st.integers(0, 20))
def test_a_split_gives_the_new_fleet_its_exact_part_of_any_run_of_calls(instances: int, more: int) -> None:
    of = max(1, instances + more)
    split = Split(share=instances / of)
    taken = 0
    for _ in range(10 * of):
        assert split.next_is_new() == split.next_is_new(), "asking alone changes nothing"
        taken += split.next_is_new()
        split.count()
    assert taken == 10 * instances


def endpoint(at: Stage) -> RunningEndpoint:
    """The one endpoint."""
    return at.endpoint()


def requests(at: Stage) -> dict[str, int]:
    """Requests of each fleet that is alive, by config."""
    return {fleet.config.name: fleet.metrics.requests for fleet in endpoint(at).fleets}


@asynccontextmanager
async def shifting(folder: Path, **changes: Any) -> AsyncIterator[Stage]:
    """An endpoint whose second config is up next to the first one and gets no request yet."""
    async with stage(folder, config(), **changes) as at:
        at.reader.in_steps.add("config-2")
        at.reader.deploy("e", config("config-2"))
        await until(lambda: ("e", "config-2", "in_service", "") in at.reader.reports)
        yield at


async def shifted(at: Stage, instances: int) -> None:
    """A step, and the runtime's word that it was taken."""
    at.reader.shift("e", instances)
    await until(lambda: at.reader.shifts[-1:] == [("config-2", instances)])


@asynchronous
async def test_each_fleet_takes_its_part_of_the_calls_and_both_follow_the_tag(tmp_path: Path) -> None:
    async with shifting(tmp_path) as at:
        for _ in range(4):
            await at.call("a.tar.gz")
        assert requests(at) == {"config-1": 4, "config-2": 0}
        await shifted(at, 1)
        for _ in range(40):
            await at.call("a.tar.gz")
        assert requests(at) == {"config-1": 34, "config-2": 10}
        [found] = (await fetched(at.port, "/_tritonstack/status"))["endpoints"]
        assert [(one["endpoint_config"], one["share"], one["state"]) for one in found["fleets"]] == [
            ("config-1", 0.75, "ready"),
            ("config-2", 0.25, "ready"),
        ]
        await shifted(at, 4)
        for _ in range(10):
            await at.call("a.tar.gz")
        assert requests(at) == {"config-1": 34, "config-2": 20}
        assert not at.triton.containers[0].exited.done()
        at.reader.described["e"] = replace(at.reader.described["e"], max_loaded_models=3)
        await until(lambda: {fleet.models.limit for fleet in endpoint(at).fleets} == {3})


@pytest.mark.parametrize(("steps", "ends_in", "stopped"), [((1, 2, 4), "config-2", 0), ((2,), "config-1", 1)])
@asynchronous
async def test_no_call_fails_while_traffic_goes_over_in_steps_or_back(
    tmp_path: Path, steps: tuple[int, ...], ends_in: str, stopped: int
) -> None:
    async with shifting(tmp_path) as at:
        callers = Callers(at)
        for instances in steps:
            await shifted(at, instances)
            await callers.more()
        assert requests(at)["config-2"] > 0
        at.reader.end("e", ends_in)
        await at.in_service(ends_in)
        await until(at.triton.containers[stopped].exited.done)
        await callers.more()
        await callers.stop()
        await until(lambda: requests(at).keys() == {ends_in})
        assert endpoint(at).share(at.fleet()) == 1.0


@asynchronous
async def test_after_a_rollback_the_next_update_starts_a_fleet_of_its_own(tmp_path: Path) -> None:
    async with shifting(tmp_path) as at:
        await shifted(at, 2)
        at.reader.end("e", "config-1")
        await until(at.triton.containers[1].exited.done)
        at.triton.ping_status = 400
        at.reader.deploy("e", config("config-2"))
        await until(lambda: len(at.triton.containers) == 3)
        for _ in range(4):
            await at.call("a.tar.gz")
        assert requests(at) == {"config-1": 4, "config-2": 0}, "it starts, and takes no call yet"
        at.triton.ping_status = 200
        await until(lambda: len(at.reader.reports) == 3)
        await shifted(at, 4)
        at.reader.end("e", "config-2")
        await at.in_service("config-2")
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_the_old_fleet_gets_every_request_while_the_local_aws_gets_no_report_of_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(**_report: object) -> Reported:
        raise UnreachableError("connection refused")

    monkeypatch.setattr("tritonstack_local.runtime.endpoint.REPORT_ATTEMPTS", 1)
    async with shifting(tmp_path) as at:
        with monkeypatch.context() as patched:
            patched.setattr(at.reader, "report", unreachable)
            at.reader.shift("e", 2)
            await until(at.triton.containers[1].exited.done)
            assert await at.model_of("a.tar.gz") == "a.tar.gz"
            assert endpoint(at).last_failure is not None


@asynchronous
async def test_a_runtime_that_starts_again_amid_the_steps_starts_both_fleets_and_shifts(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        at.reader.configs |= {"config-1": (config(),), "config-2": (config("config-2"),)}
        at.reader.in_steps.add("config-2")
        at.reader.described["e"] = DeployedEndpoint(
            name="e",
            status="Updating",
            config="config-1",
            pending="config-2",
            created="1",
            generation="2",
            traffic=Traffic(instances=1, of=2),
        )
        await until(lambda: at.reader.shifts == [("config-2", 1)])
        for _ in range(10):
            await at.call("a.tar.gz")
        assert requests(at) == {"config-1": 5, "config-2": 5}


async def fetched(port: int, path: str) -> Any:
    """A JSON response of the runtime."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=OWN)

    def fetch() -> Any:
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310  (on loopback)
            return json.load(response)

    return await asyncio.to_thread(fetch)


@asynchronous
async def test_the_status_reports_endpoints_fleets_models_and_errors(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_models=2) as at:
        await until(lambda: at.runtime.reconciler.endpoints["e"].described.status == "InService")
        for target in ("a.tar.gz", "a.tar.gz", "b.tar.gz", "c.tar.gz"):
            await at.call(target)
        at.triton.statuses["c.tar.gz"] = 500
        await asyncio.gather(at.call("c.tar.gz"), return_exceptions=True)
        found = await fetched(at.port, "/_tritonstack/status")
        [endpoint] = found["endpoints"]
        [fleet] = endpoint["fleets"]
        assert (endpoint["name"], endpoint["status"], endpoint["endpoint_config"]) == ("e", "InService", "config-1")
        assert (fleet["state"], fleet["serving"], fleet["release_asked_for"]) == ("ready", True, "24.09")
        assert (fleet["server_version"], fleet["isolation"], fleet["restarts"]) == ("2.51.0", "namespace", 0)
        assert (fleet["requests"], fleet["errors"], fleet["hit_ratio"], fleet["unloads"]) == (5, 1, 0.4, 1)
        assert fleet["model_latency_ms"]["count"] == 5
        assert fleet["last_errors"][-1]["error"].startswith("ModelError (424)")
        assert [(one["target_model"], one["state"]) for one in fleet["models"]] == [
            ("b.tar.gz", "loaded"),
            ("c.tar.gz", "loaded"),
        ]
        at.fleet().refused_ping = 400
        found = await fetched(at.port, "/_tritonstack/status")
        assert found["endpoints"][0]["fleets"][0]["state"] == "unhealthy (/ping returns 400)"
        assert "no GPU" in found["metrics_not_written"]
