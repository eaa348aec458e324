"""One subject measured: its first call, its loads, its cold starts, what ends it, and what is kept as it goes."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

import pytest

from tests.client.fakes import client_error, error_reply
from tests.tritonstack_capacity.bench.world import SHORT, Told, World, busy_but_once, loads, subject, world
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.bench.document import EVERY_LOAD, ResultPart
from tritonstack_capacity.bench.load import Users
from tritonstack_capacity.bench.one_model import OneModel
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.subject import Subject


def measured(
    found: World, settings: BenchSettings = SHORT, given: Subject | None = None, told: Told | None = None
) -> tuple[ResultPart, list[ResultPart]]:
    """The result, and what was kept before it was whole."""
    kept: list[ResultPart] = []
    one = OneModel(settings, given or subject(), session=found.session, progress=told or Told(), keep=kept.append)
    asyncio.run(one.run())
    return one.result, kept


def test_every_load_is_measured_and_kept_as_it_comes() -> None:
    with world() as found:
        result, kept = measured(found)

    assert loads(result) == ["1 user", "2 users"]
    assert [loads(each) for each in kept] == [["1 user"], ["1 user", "2 users"]]
    assert result.ended_by == EVERY_LOAD
    assert result.calls == len(found.endpoint.requests), "the first call among them"
    assert {request.target_model for request in found.endpoint.requests} == {"bert.0123456789abcdef.tar.gz"}
    assert result.first_call_ms is not None


def test_a_result_says_what_was_sent_to_what() -> None:
    with world() as found:
        result, _ = measured(found)

    sent = found.endpoint.requests[0].content
    assert (result.request_bytes, result.request_sha256) == (len(sent), hashlib.sha256(sent).hexdigest())
    assert result.answer_bytes > 0
    assert (result.archive, result.archive_sha256) == ("bert.0123456789abcdef.tar.gz", "f" * 64)
    assert result.config == {"bert": 'name: "bert"'}
    assert (result.instance_type, result.instance_count, result.image) == ("ml.g4dn.xlarge", 3, "image:24.09")
    assert (result.way, result.generator, result.server_version) == ("endpoint", "aiohttp, one process", None)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            error_reply("ModelError", 424, OriginalStatusCode=500, OriginalMessage='{"error":"no such input"}'),
            "424: no",
        ),
        (error_reply("ServiceUnavailable", 503), "503: ServiceUnavailable it is"),
        ((200, {"Content-Type": "application/json"}, b"[]"), "no inference response"),
        ((200, {"Content-Type": "text/html"}, b"<html>"), "no inference response"),
    ],
    ids=["a model that fails", "5xx", "no answer of a model", "a page"],
)
def test_a_first_call_without_a_right_answer_ends_it(reply: Any, said: str) -> None:
    with world() as found:
        found.endpoint.always(reply)
        with pytest.raises(WorkFailedError, match=said):
            measured(found)

    assert len(found.endpoint.requests) == 1


def test_failures_stop_it_and_are_told_in_words() -> None:
    with world() as found:
        busy_but_once(found.endpoint)
        result, _ = measured(found)

    [point] = result.points
    assert point.all.answered == 0
    assert point.failures == {"503: ServiceUnavailable it is": point.all.failed}
    assert result.ended_by == f"{point.all.failed} of {point.all.failed} calls failed"


def test_calls_that_are_spent_end_it() -> None:
    with world() as found:
        result, _ = measured(found, replace(SHORT, max_calls=20, timing=replace(SHORT.timing, round=5.0)))

    assert result.ended_by == "all 20 calls were made (--max-calls)"
    assert len(found.endpoint.requests) == result.calls == 21, "and the first call"


def test_cold_starts_call_copies_that_are_gone_afterwards() -> None:
    with world() as found:
        before = dict(found.s3.objects)
        result, _ = measured(found, replace(SHORT, cold_starts=3, loads=(Users(count=1),)))

    called = [request.target_model for request in found.endpoint.requests[:3]]
    assert result.cold is not None
    assert (len(result.cold.milliseconds), result.cold.failures) == (3, [])
    assert len(set(called)) == 3
    assert "bert.0123456789abcdef.tar.gz" not in called
    assert found.s3.objects == before
    assert result.calls == len(found.endpoint.requests)


def test_a_cold_start_that_fails_is_told_and_no_time() -> None:
    with world() as found:
        found.endpoint.replies(error_reply("ModelError", 424, OriginalStatusCode=507, OriginalMessage="no memory"))
        result, _ = measured(found, replace(SHORT, cold_starts=2))

    assert result.cold is not None
    assert result.cold.failures == ["424: no memory"]
    assert len(result.cold.milliseconds) == 1


def test_copies_are_removed_where_a_call_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with world() as found:
        before = dict(found.s3.objects)

        async def interrupted(_: str) -> str | None:
            raise KeyboardInterrupt

        one = OneModel(
            replace(SHORT, cold_starts=1), subject(), session=found.session, progress=Told(), keep=lambda _: None
        )
        monkeypatch.setattr(one, "_ask_archive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(one.run())

    assert found.s3.objects == before


def test_what_aws_refuses_fails_this_model_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(**_: Any) -> Any:
        raise client_error("AccessDeniedException", "not you")

    with world() as found:
        monkeypatch.setattr(found.session.clients["sagemaker"], "describe_endpoint", refuses)
        with pytest.raises(WorkFailedError, match=r"bert/bert cannot be called: .*AccessDeniedException.*not you"):
            measured(found, replace(SHORT, cold_starts=1))
