"""A bench: names found before any load, subjects measured and kept as it goes, a failure that leaves the others."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import Request, echo, error_reply
from tests.fake_aws import AwsError
from tests.tritonstack_capacity.bench.world import (
    SHORT,
    BenchAccount,
    RecordedProgress,
    World,
    busy_but_once,
    loads,
    settings_with_input,
    subject,
    world,
)
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.errors import InputError, WorkFailedError
from tritonstack_capacity.bench.bench import Bench
from tritonstack_capacity.bench.document import EVERY_LOAD, BenchDocument, ResultPart, settings_part
from tritonstack_capacity.bench.load import Users
from tritonstack_capacity.bench.one_model import OneModel
from tritonstack_capacity.bench.results_folder import read_results
from tritonstack_capacity.bench.settings import BenchSettings
from tritonstack_capacity.bench.subject import Subject, describe_endpoint

COMMAND = ("tritonstack", "capacity", "bench", "bert/bert")
NAMES = ("bert/bert", "bert/small")


def test_an_endpoint_whose_requests_two_variants_share_is_refused() -> None:
    account = BenchAccount(variants=("g4dn-xlarge", "other"))
    with pytest.raises(InputError, match=r"prod-bert.*\n.*requests shared by g4dn-xlarge, other"):
        describe_endpoint(account.client("sagemaker"), "prod-bert")


def bench(found: World, settings: BenchSettings, folder: Path) -> Bench:
    return Bench(settings, session=found.aws, model_repos=folder)


def run(found: World, settings: BenchSettings, folder: Path, recorded: RecordedProgress | None = None) -> BenchDocument:
    one = bench(found, settings, folder)
    return asyncio.run(
        one.run(one.subjects(), folder / "results", command=COMMAND, progress=recorded or RecordedProgress())
    )


def test_every_name_in_every_format_is_a_subject(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, names=NAMES, formats=("binary", "json"))
    with world(models=("bert", "small")) as found:
        subjects = bench(found, settings, tmp_path).subjects()

    assert [(one.configuration, one.payload_format) for one in subjects] == [
        ("bert/bert", "binary"),
        ("bert/bert", "json"),
        ("bert/small", "binary"),
        ("bert/small", "json"),
    ]
    assert not found.endpoint.requests


def test_names_that_lead_nowhere_are_refused_before_any_load(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, names=(*NAMES, "bert/none"))
    with world() as found, pytest.raises((InputError, ReleaseLookupError), match="bert/none"):
        bench(found, settings, tmp_path).subjects()

    assert not found.endpoint.requests


def test_cold_starts_of_a_single_model_are_refused(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, cold_starts=2)
    with world(mode="single-model") as found, pytest.raises(InputError, match="--cold-starts"):
        bench(found, settings, tmp_path).subjects()


def test_the_document_has_everything_that_is_needed_to_repeat_it(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, seed=7)
    with world() as found:
        document = run(found, settings, tmp_path)

    written = read_results(tmp_path / "results" / "results.json")
    assert written == document
    assert document.complete
    assert document.ended is not None
    assert (document.seed, document.command) == (7, list(COMMAND))
    assert document.settings == json.loads(json.dumps(settings_part(settings)))
    assert {"processor", "cores", "memory", "system", "load_before"} == document.machine.keys()
    assert {"tritonstack", "commit", "python", "aiohttp", "numpy"} <= document.versions.keys()
    [result] = document.results
    assert result.request_sha256 is not None
    assert result.archive == "bert.0123456789abcdef.tar.gz"


def test_a_model_that_fails_leaves_the_others(tmp_path: Path) -> None:
    def reply(request: Request) -> Any:
        fails = request.target_model is not None and request.target_model.startswith("bert.")
        return error_reply("ModelError", 424, OriginalStatusCode=500, OriginalMessage="no") if fails else echo(request)

    recorded = RecordedProgress()
    with world(models=("bert", "small")) as found:
        found.endpoint.reply = reply
        document = run(found, settings_with_input(tmp_path, names=NAMES), tmp_path, recorded)

    failed, good = document.results
    assert (failed.failed, loads(failed)) == (True, [])
    assert failed.ended_by.startswith("failed: bert/bert: the first request failed: 424: no")
    assert (good.failed, loads(good)) == (False, ["1 user", "2 users"])
    assert document.complete
    assert recorded.notes[0].startswith("bert/bert (binary): bert/bert: the first request failed")


def test_calls_that_were_spent_before_a_round_are_no_failure(tmp_path: Path) -> None:
    with world() as found:
        [result] = run(found, settings_with_input(tmp_path, max_calls=1), tmp_path).results

    assert (loads(result), result.failed) == ([], False)
    assert result.ended_by == "all 1 requests were sent (--max-calls)"


def test_an_interrupted_test_leaves_what_was_measured(tmp_path: Path) -> None:
    settings = settings_with_input(tmp_path, names=NAMES)
    with world(models=("bert", "small")) as found:

        async def work() -> None:
            one = bench(found, settings, tmp_path)
            subjects = await asyncio.to_thread(one.subjects)
            task = asyncio.create_task(
                one.run(subjects, tmp_path / "results", command=COMMAND, progress=RecordedProgress())
            )

            def reply(request: Request) -> Any:
                if request.target_model is not None and request.target_model.startswith("small."):
                    task.get_loop().call_soon_threadsafe(task.cancel)
                return echo(request)

            found.endpoint.reply = reply
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(work())

    document = read_results(tmp_path / "results" / "results.json")
    assert not document.complete
    assert [loads(result) for result in document.results] == [["1 user", "2 users"]]


def measured(
    found: World,
    settings: BenchSettings = SHORT,
    given: Subject | None = None,
    recorded: RecordedProgress | None = None,
) -> tuple[ResultPart, list[ResultPart]]:
    """The result, and what was kept before it was whole."""
    kept: list[ResultPart] = []
    one = OneModel(
        settings, given or subject(), session=found.aws, progress=recorded or RecordedProgress(), keep=kept.append
    )
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


@pytest.mark.parametrize(
    ("reply", "message"),
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
def test_a_first_request_without_a_right_response_ends_it(reply: Any, message: str) -> None:
    with world() as found:
        found.endpoint.always(reply)
        with pytest.raises(WorkFailedError, match=message):
            measured(found)

    assert len(found.endpoint.requests) == 1


def test_failures_stop_it_and_are_reported_in_words() -> None:
    with world() as found:
        busy_but_once(found.endpoint)
        result, _ = measured(found)

    [point] = result.points
    assert point.all.answered == 0
    assert point.failures == {"503: ServiceUnavailable it is": point.all.failed}
    assert result.ended_by == f"{point.all.failed} of {point.all.failed} requests failed"


def test_cold_starts_call_copies_that_are_gone_afterwards() -> None:
    with world() as found:
        before = dict(found.aws.artifacts)
        result, _ = measured(found, replace(SHORT, cold_starts=3, loads=(Users(count=1),)))

    called = [request.target_model for request in found.endpoint.requests[:3]]
    assert result.cold is not None
    assert (len(result.cold.milliseconds), result.cold.failures) == (3, [])
    assert len(set(called)) == 3
    assert "bert.0123456789abcdef.tar.gz" not in called
    assert found.aws.artifacts == before
    assert result.calls == len(found.endpoint.requests)


def test_copies_are_removed_where_a_call_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    with world() as found:
        before = dict(found.aws.artifacts)

        async def interrupted(_: str) -> str | None:
            raise KeyboardInterrupt

        one = OneModel(
            replace(SHORT, cold_starts=1),
            subject(),
            session=found.aws,
            progress=RecordedProgress(),
            keep=lambda _: None,
        )
        monkeypatch.setattr(one, "_ask_archive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(one.run())

    assert found.aws.artifacts == before


def test_what_aws_refuses_fails_this_model_in_words() -> None:
    with world() as found:
        found.aws.refused["DescribeEndpoint"] = AwsError("AccessDeniedException", "not you")
        with pytest.raises(WorkFailedError, match=r"bert/bert cannot be invoked: .*AccessDeniedException.*not you"):
            measured(found, replace(SHORT, cold_starts=1))


@pytest.mark.parametrize("asked", [True, False])
def test_every_latency_is_published_where_it_is_asked_for_and_none_unasked(asked: bool) -> None:
    with world() as found:
        result, _ = measured(found, replace(SHORT, publish_metric=asked))
        sent = [datum for each in found.aws.requests("PutMetricData") for datum in each["MetricData"]]
    of_variant = [datum for datum in sent if len(datum["Dimensions"]) == 2]
    counted = sum(sum(datum["Counts"]) for datum in of_variant)
    assert result.published == counted == (sum(point.all.answered for point in result.points) if asked else 0)
    assert {datum["MetricName"] for datum in sent} == ({"EndToEndLatency"} if asked else set())
