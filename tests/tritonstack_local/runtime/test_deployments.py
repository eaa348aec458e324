"""Deployments: a fleet per config, traffic moved with no failed request, failures reported, restarts survived."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tritonstack_local.runtime.fakes import Callers, Stage, asynchronous, config, fails_with, stage, until
from tritonstack.errors import WorkFailedError
from tritonstack.loopback.http_server import InvokeError
from tritonstack_local.runtime.deployed import DeployedEndpoint, DeploymentError
from tritonstack_local.runtime.fleet import FleetState, InstanceUsage, RunningFleet
from tritonstack_local.runtime.publisher import LogShipper


@asynchronous
async def test_an_endpoint_is_in_service_only_when_its_container_responds_to_ping(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        at.triton.ping_status = 400
        at.reader.deploy("e", config())
        await until(lambda: at.triton.pings > 3)
        assert at.reader.reports == []
        at.triton.ping_status = 200
        await at.in_service()
        assert at.reader.reports == [("e", "config-1", "in_service", "")]


@asynchronous
async def test_a_container_that_ends_fails_the_deployment_with_its_logs_last_lines(tmp_path: Path) -> None:
    async with stage(tmp_path) as at:
        at.triton.exits_at_start.append(1)
        at.reader.deploy("e", config())
        await until(lambda: bool(at.reader.reports))
        _, _, outcome, reason = at.reader.reports[0]
        assert outcome == "failed"
        assert "exit code 1" in reason
        assert "the fake Triton says hello" in reason
        assert at.reader.described["e"].status == "Failed"
        await until(lambda: not at.runtime.reconciler.endpoints)
        assert len(at.triton.containers) == 1


@pytest.mark.parametrize(
    ("spoil", "changes", "reason"),
    [
        (
            lambda at: setattr(at.triton, "ping_status", 400),
            {"startup_seconds": 0.3},
            "did not pass the ping health check within 0 s (status 400)",
        ),
        (
            lambda at: at.objects.missing.add("one.tar.gz"),
            {"multi_model": False},
            'for container "container_1" from URL: "s3://models/prefix/one.tar.gz". Please ensure that there is',
        ),
        (lambda at: at.reader.configs.clear(), {}, "Could not find endpoint configuration config-1"),
        (lambda at: object.__setattr__(at.runtime._parts, "check_role", refuse_role), {}, "does not trust SageMaker"),
        (lambda at: object.__setattr__(at.runtime._parts, "launch", refuse), {}, "apt-get install libpython3.11"),
    ],
    ids=["no ping", "no archive", "no config", "no role", "no launch"],
)
@asynchronous
async def test_what_cannot_be_served_fails_the_deployment_with_the_reason(
    tmp_path: Path, spoil: Callable[[Stage], object], changes: dict[str, Any], reason: str
) -> None:
    async with stage(tmp_path) as at:
        at.reader.deploy("e", config(**changes))
        spoil(at)
        await until(lambda: bool(at.reader.reports))
        assert at.reader.reports[0][2] == "failed"
        assert reason in at.reader.reports[0][3]
        assert all(container.exited.done() for container in at.triton.containers)


def refuse_role(_role: str) -> None:
    """A role that cannot be assumed."""
    raise DeploymentError("it does not trust SageMaker")


def refuse(_settings: object, *, folder: Path) -> None:
    """A launcher that cannot launch."""
    raise WorkFailedError("libpython3.11 is missing: apt-get install libpython3.11")


@asynchronous
async def test_an_update_moves_the_traffic_and_no_call_fails(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        callers = Callers(at)
        for number in (2, 3):
            at.reader.deploy("e", config(f"config-{number}"))
            await at.in_service(f"config-{number}")
            await until(lambda: not at.endpoint().draining)
        await callers.more()
        await callers.stop()
        assert [container.exited.done() for container in at.triton.containers] == [True, True, False]


@asynchronous
async def test_requests_in_flight_end_in_the_old_fleet_before_it_stops(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.triton.held["a.tar.gz"] = asyncio.Event()
        slow = asyncio.create_task(at.model_of("a.tar.gz"))
        await until(lambda: at.triton.in_flight.get("a.tar.gz") == 1)
        at.reader.deploy("e", config("config-2"))
        await at.in_service("config-2")
        await asyncio.sleep(0.05)
        assert not at.triton.containers[0].exited.done()
        at.triton.held["a.tar.gz"].set()
        assert await slow == "a.tar.gz"
        await until(at.triton.containers[0].exited.done)


@asynchronous
async def test_a_failed_update_leaves_the_old_fleet_serving(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.triton.exits_at_start.append(3)
        at.reader.deploy("e", config("config-2"))
        await until(lambda: len(at.reader.reports) == 2)
        assert at.reader.reports[1][2] == "failed"
        assert at.reader.described["e"].status == "InService"
        assert at.serves("config-1")
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_a_deployment_that_another_one_replaced_is_given_up(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.triton.ping_status = 400
        at.reader.deploy("e", config("config-2"))
        await until(lambda: len(at.triton.containers) == 2)
        at.reader.deploy("e", config("config-3"))
        await until(at.triton.containers[1].exited.done)
        at.triton.ping_status = 200
        await at.in_service("config-3")
        assert ("e", "config-2", "in_service", "") not in at.reader.reports


@asynchronous
async def test_an_endpoint_that_is_deleted_is_stopped(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        folder = at.fleet().folder
        at.reader.described.clear()
        await until(at.triton.containers[0].exited.done)
        await until(lambda: not folder.exists())
        with pytest.raises(InvokeError, match="not found"):
            await at.call()


@asynchronous
async def test_an_endpoint_made_anew_under_its_name_gets_a_fleet_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.reader.described.clear()
        at.reader.deploy("e", config())
        await until(lambda: len(at.triton.containers) == 2 and at.serves("config-1"))
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        await until(at.triton.containers[0].exited.done)


@pytest.mark.parametrize(
    ("status", "pending", "reports"),
    [("InService", None, []), ("Updating", "config-2", [("e", "config-2", "in_service", "")])],
)
@asynchronous
async def test_a_runtime_that_starts_again_serves_what_is_in_service_and_finishes_an_update(
    tmp_path: Path, status: str, pending: str | None, reports: list[object]
) -> None:
    async with stage(tmp_path) as at:
        at.reader.configs |= {"config-1": (config(),), "config-2": (config("config-2"),)}
        at.reader.described["e"] = DeployedEndpoint(
            name="e", status=status, config="config-1", pending=pending, created="1", generation="2"
        )
        await at.in_service(pending or "config-1")
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        assert at.reader.reports == reports


@asynchronous
async def test_a_runtime_that_cannot_start_what_is_in_service_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonstack_local.runtime.endpoint.RETRY_SECONDS", 0.05)
    async with stage(tmp_path) as at:
        at.reader.configs |= {"config-1": (config(),)}
        at.triton.exits_at_start.append(1)
        at.reader.described["e"] = DeployedEndpoint(
            name="e", status="InService", config="config-1", pending=None, created="1", generation="1"
        )
        await until(lambda: len(at.triton.containers) == 2)
        await at.in_service()
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_endpoints_go_on_serving_while_the_local_aws_does_not_respond(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        at.reader.reachable = False
        await until(lambda: at.runtime.reconciler.unreachable is not None)
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


# The container ends -------------------------------------------------------------------------------------------------


@asynchronous
async def test_a_container_that_ended_is_started_again_with_its_models(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        for target in ("a.tar.gz", "b.tar.gz"):
            await at.call(target)
        await at.triton.containers[0].die()
        await until(lambda: len(at.triton.containers) == 2 and len(at.triton.loaded) == 2)
        assert set(at.triton.loaded.values()) == {"a.tar.gz", "b.tar.gz"}
        assert at.objects.downloads == ["prefix/a.tar.gz", "prefix/b.tar.gz"]
        assert at.fleet().restarts == 1
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_requests_in_flight_end_at_once_when_the_container_ends(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.triton.held["a.tar.gz"] = asyncio.Event()
        calls = [asyncio.create_task(at.call("a.tar.gz")) for _ in range(5)]
        await until(lambda: at.triton.in_flight.get("a.tar.gz") == 5)
        await at.triton.containers[0].die()
        async with asyncio.timeout(1):
            found = await asyncio.gather(*calls, return_exceptions=True)
        assert {one.code for one in found if isinstance(one, InvokeError)} == {"ModelError"}
        assert {one.members["OriginalStatusCode"] for one in found if isinstance(one, InvokeError)} == {0}


@asynchronous
async def test_a_model_that_kills_the_container_when_it_loads_is_not_loaded_again_by_itself(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.triton.held_loads["deadly.tar.gz"] = asyncio.Event()
        deadly = asyncio.create_task(at.call("deadly.tar.gz"))
        await until(lambda: at.triton.count("load", "deadly.tar.gz") == 1)
        await at.triton.containers[0].die()
        with pytest.raises(InvokeError) as caught:
            await deadly
        assert caught.value.code == "ModelError"
        await until(lambda: "a.tar.gz" in at.triton.loaded.values())
        assert at.triton.count("load", "deadly.tar.gz") == 1


@asynchronous
async def test_a_container_that_no_longer_responds_to_ping_is_replaced(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), health_seconds=0.02, unhealthy_seconds=0.1) as at:
        silent = at.triton.containers[0]
        silent.hangs = True
        await until(silent.exited.done)
        await until(lambda: at.fleet().state is FleetState.READY and len(at.triton.containers) == 2)
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_an_unhealthy_container_takes_no_request_while_it_ends(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), health_seconds=0.02, unhealthy_seconds=0.1) as at:
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        silent, ending, go_on = at.triton.containers[0], threading.Event(), threading.Event()
        stop = silent.stop

        def slowly(*, seconds: float = 10.0) -> int:
            ending.set()
            go_on.wait(30)
            return stop(seconds=seconds)

        silent.stop = slowly  # type: ignore[method-assign]
        silent.hangs = True
        await until(ending.is_set)
        refused = asyncio.create_task(at.call("a.tar.gz"))
        await asyncio.wait([refused], timeout=5)
        go_on.set()
        with pytest.raises(InvokeError) as caught:
            await refused
        assert (caught.value.code, caught.value.status) == ("ServiceUnavailable", 503)
        await until(lambda: at.fleet().state is FleetState.READY and len(at.triton.containers) == 2)
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_a_container_is_started_again_whatever_the_first_attempt_fails_with(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        fleet = at.fleet()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(fleet, "_await_ping", fails_with(KeyError("unlisted")))
            await at.triton.containers[0].die()
            await until(lambda: any("KeyError('unlisted')" in message for _, message in fleet.last_errors))
        await until(lambda: fleet.state is FleetState.READY)
        assert await at.model_of("a.tar.gz") == "a.tar.gz"


@asynchronous
async def test_a_deployment_that_fails_for_any_reason_is_reported_and_the_old_fleet_serves_on(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RunningFleet, "start", fails_with(RecursionError("unlisted")))
            at.reader.deploy("e", config("config-2"))
            await until(lambda: bool(at.reader.reports) and at.reader.reports[-1][1] == "config-2")
        _, _, outcome, reason = at.reader.reports[-1]
        assert (outcome, "RecursionError('unlisted')" in reason) == ("failed", True)
        assert await at.model_of("a.tar.gz") == "a.tar.gz"
        at.reader.deploy("e", config("config-3"))
        await at.in_service("config-3")


@asynchronous
async def test_what_is_deployed_is_followed_on_after_any_error_and_logs_and_metrics_go_on(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), flush_seconds=0.01, log_seconds=0.01) as at:
        mark, broken = at.reader.mark, [True]

        def read_mark() -> str:
            if broken:
                raise KeyError("unlisted")
            return mark()

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(at.reader, "mark", read_mark)
            patched.setattr(LogShipper, "ship", lambda _self: 1 // 0)
            patched.setattr(InstanceUsage, "sample", lambda _self, _pid: 1 // 0)
            await until(lambda: "KeyError('unlisted')" in (at.runtime.reconciler.unreachable or ""))
            at.cloudwatch.calls.clear()
            await at.call("a.tar.gz")
            await until(lambda: any(name == "put_metric_data" for name, _ in at.cloudwatch.calls))
            broken.clear()
            at.reader.deploy("e", config("config-2"))
            await at.in_service("config-2")
        at.logs.calls.clear()
        at.triton.containers[-1].log_path.write_text("a line\n")
        await until(lambda: any(name == "put_log_events" for name, _ in at.logs.calls))


@asynchronous
async def test_a_container_whose_ping_turns_400_is_unhealthy_and_not_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tritonstack.runtime")
    async with stage(tmp_path, config(), health_seconds=0.01, unhealthy_seconds=0.02) as at:
        at.triton.ping_status = 400
        await until(lambda: at.fleet().condition == "unhealthy (/ping returns 400)")
        pings = at.triton.pings
        await until(lambda: at.triton.pings > pings + 5)
        at.triton.ping_status = 200
        await until(lambda: at.fleet().condition == "ready")
        assert [container.exited.done() for container in at.triton.containers] == [False]
    message = [record.getMessage().partition(": the container is ")[2] for record in caplog.records]
    assert [one for one in message if one] == [
        "unhealthy: /ping returns 400; it is not started again",
        "healthy again",
    ]


@asynchronous
async def test_a_single_model_endpoint_is_unavailable_while_its_container_starts_again(tmp_path: Path) -> None:
    async with stage(tmp_path, config(multi_model=False)) as at:
        at.triton.ping_status = 400
        await at.triton.containers[0].die()
        await until(lambda: at.fleet().state is FleetState.RESTARTING)
        with pytest.raises(InvokeError) as caught:
            await at.call(None)
        assert (caught.value.code, caught.value.status) == ("ServiceUnavailable", 503)
        at.triton.ping_status = 200
        await until(at.fleet().ready.is_set)
        assert (await at.call(None)).status == 200


@asynchronous
async def test_a_look_that_ends_after_the_stop_began_deploys_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        reading, go_on, read = threading.Event(), threading.Event(), at.reader.endpoints

        def slowly() -> tuple[DeployedEndpoint, ...]:
            at.reader.deploy("other", config("config-2"))  # here, so that no look before this one finds it
            found = read()
            reading.set()
            go_on.wait(20)
            return found

        at.reader.endpoints = slowly  # type: ignore[method-assign]
        at.reader.mark = lambda: "changed"  # type: ignore[method-assign]
        await until(reading.is_set)
        stopping = asyncio.create_task(at.runtime.reconciler.stop())
        await asyncio.sleep(0)
        go_on.set()
        await at.runtime.reconciler.step()  # and one that begins after it
        await stopping
        assert at.runtime.reconciler.endpoints == {}
    assert len(at.triton.containers) == 1
