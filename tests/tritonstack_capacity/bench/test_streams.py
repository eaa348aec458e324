"""Benches of an endpoint that streams: the times of events, and options that it does not have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import FakeEndpoint, serving_outputs, stream_reply
from tests.client.test_streaming import event
from tests.tritonstack_capacity.bench.world import RecordedProgress, settings_with_input, world
from tritonstack.errors import InputError
from tritonstack_capacity.bench.bench import Bench
from tritonstack_capacity.bench.document import BenchDocument, notes
from tritonstack_capacity.bench.stream_caller import StreamTimes
from tritonstack_local.runtime.streaming.event_stream import exception, payload_parts

WORDS = (payload_parts(event("one") + event("two")[:9]), payload_parts(event("two")[9:] + event("three")))
OUTPUTS = "/tritonstack/prod/_outputs/serving-bert"


def measured(folder: Path, *messages: bytes, **changes: Any) -> tuple[BenchDocument, FakeEndpoint]:
    """The results of a short bench of an endpoint whose responses are this stream."""
    with world(mode="single-model") as made:
        made.aws.parameters[OUTPUTS] = serving_outputs("single-model", streams=True)
        made.endpoint.always(stream_reply(*messages))
        settings = settings_with_input(folder, **changes)
        bench = Bench(settings, session=made.aws, model_repos=folder)
        run = bench.run(bench.subjects(), folder, command=("bench",), progress=RecordedProgress())
        return asyncio.run(run), made.endpoint


def test_each_load_has_the_times_of_its_streams(tmp_path: Path) -> None:
    document, endpoint = measured(tmp_path, *WORDS)
    [result] = document.results
    assert (result.payload_format, result.failed) == ("json", False)
    assert all(request.streamed and request.content == b'{"x":3.0}' for request in endpoint.requests)
    for point in result.points:
        assert point.stream is not None
        assert point.all.most_ms is not None
        assert (point.stream.events, point.stream.streams > 0) == (3.0, True)
        assert 0 < point.stream.first_ms["50"] <= point.all.most_ms * 1.5
    lines = [line for line in notes(document) if "first event after p50" in line]
    assert len(lines) == len(result.points)
    assert "3 events a response" in lines[0]


@pytest.mark.parametrize(
    ("messages", "failure"),
    [
        ((payload_parts(event("one") + b'data: {"error":"out of words"}\n\n'),), "out of words"),
        ((payload_parts(event("one")), exception("ModelStreamError", {"Message": "cut"})), "ModelStreamError: cut"),
        ((payload_parts(event("one")[:-1]),), "ended within an event"),
        ((), "a stream without an event"),
    ],
)
def test_a_stream_that_does_not_end_well_is_a_failed_request(
    messages: tuple[bytes, ...], failure: str, tmp_path: Path
) -> None:
    document, _ = measured(tmp_path, *messages)
    [result] = document.results
    assert result.failed
    assert failure in result.ended_by


def test_what_a_bench_of_streams_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="local container streams by another port"):
        measured(tmp_path, *WORDS, container=True)


def test_the_mean_time_between_events_is_of_each_stream_and_an_interval_ends_with_its_figures() -> None:
    clock = iter([0.0, 10.0, 20.0])
    times = StreamTimes(now=lambda: next(clock))
    times.add(sent=0.0, first=0.5, last=2.5, events=5)
    times.add(sent=1.0, first=1.1, last=1.1, events=1)
    part = times.take()
    assert part is not None
    assert (part.streams, part.events, part.events_per_second) == (2, 3.0, 0.6)
    assert part.gap_ms["50"] == 500.0
    assert part.first_ms["50"] == pytest.approx(300.0)
    assert times.take() is None
