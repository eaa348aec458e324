"""The short way of ordinary requests: what it takes, and that all is counted and given back as on the long way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.tritonstack_local.runtime.fakes import asynchronous, config, stage, until
from tritonstack.http_server import InvokeError


@asynchronous
async def test_a_loaded_model_answers_at_once_and_one_that_is_not_loaded_the_long_way(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        assert at.at_once == 0
        first = await at.call("a.tar.gz", body=b"again")
        assert at.at_once == 1
        assert (first.status, first.headers[b"x-amzn-invoked-production-variant"]) == (200, b"g4dn-xlarge")
        await at.call("b.tar.gz")
        assert at.at_once == 1


@asynchronous
async def test_what_is_counted_is_the_same_on_both_ways(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        for _ in range(4):
            await at.call("a.tar.gz")
        fleet = at.fleet()
        assert at.at_once == 3
        assert (fleet.metrics.requests, fleet.metrics.lookups, fleet.metrics.hits) == (4, 4, 3)
        assert fleet.metrics.recent()["count"] == 4
        assert (fleet.in_flight, fleet.models.models["a.tar.gz"].in_flight) == (0, 0)


@asynchronous
async def test_a_request_at_once_is_in_flight_until_its_answer(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.triton.held["a.tar.gz"] = asyncio.Event()
        calls = [asyncio.create_task(at.call("a.tar.gz")) for _ in range(3)]
        await until(lambda: at.triton.in_flight.get("a.tar.gz") == 3)
        fleet = at.fleet()
        assert at.at_once >= 1
        assert (fleet.in_flight, fleet.models.models["a.tar.gz"].in_flight) == (3, 3)
        at.triton.held["a.tar.gz"].set()
        await asyncio.gather(*calls)
        assert (fleet.in_flight, fleet.models.models["a.tar.gz"].in_flight) == (0, 0)


@asynchronous
async def test_an_error_of_the_model_is_counted_and_reported(tmp_path: Path) -> None:
    async with stage(tmp_path, config()) as at:
        await at.call("a.tar.gz")
        at.triton.statuses["a.tar.gz"] = 400
        with pytest.raises(InvokeError, match="Received client error \\(400\\)"):
            await at.call("a.tar.gz")
        fleet = at.fleet()
        assert at.at_once == 1
        assert (fleet.metrics.errors, fleet.in_flight, len(fleet.last_errors)) == (1, 0, 1)


@asynchronous
async def test_an_answer_that_does_not_come_in_time_is_a_timeout(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), invoke_seconds=1.0) as at:
        await at.call("a.tar.gz")
        at.triton.held["a.tar.gz"] = asyncio.Event()
        with pytest.raises(InvokeError, match="timed out"):
            await at.call("a.tar.gz")
        assert at.at_once == 1
        assert (at.fleet().in_flight, at.fleet().models.models["a.tar.gz"].in_flight) == (0, 0)
        at.triton.held.pop("a.tar.gz").set()
        assert (await at.call("a.tar.gz")).status == 200


@asynchronous
async def test_more_callers_than_connections_are_all_answered(tmp_path: Path) -> None:
    async with stage(tmp_path, config(), max_connections=3) as at:
        await at.call("a.tar.gz")
        answers = await asyncio.gather(*(at.call("a.tar.gz") for _ in range(30)))
        assert {answer.status for answer in answers} == {200}
        assert 1 <= at.at_once < 30
        assert at.fleet().in_flight == 0
