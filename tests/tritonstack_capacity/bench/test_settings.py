"""Settings that a user may give; everything wrong with them is reported at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tritonstack.errors import InputError
from tritonstack_capacity.bench.load import Phase, Rate, Users
from tritonstack_capacity.bench.measuring import StabilityRule, StopConditions, Timing
from tritonstack_capacity.bench.settings import BenchSettings, OptionReader, check
from tritonstack_capacity.bench.subject import configured_names

MODELS = Path(__file__).resolve().parents[3] / "model_repos"
SETTINGS = BenchSettings(
    names=("digits-onnx",),
    environment="local",
    configurations=(),
    loads=(Users(count=1),),
    phases=(),
    formats=("binary",),
    timing=Timing(warm_up=1.0, round=5.0),
    rule=StabilityRule(within=0.1, least=3, most=10, percentile=95.0),
    stop=StopConditions(),
    container=False,
    cold_starts=0,
    files=(),
    outputs=(),
    max_calls=1000,
    max_seconds=600.0,
    timeout_seconds=70.0,
    most_under_way=100,
    seed=0,
    generator="client",
    cloudwatch_wait_seconds=0.0,
)
PHASE = Phase(initial_users=1, users_per_minute=1, seconds=10)


def refused(settings: BenchSettings, reader: OptionReader | None = None, *, local: bool = True) -> list[str]:
    """The fields that are refused."""
    with pytest.raises(InputError) as error:
        check(settings, reader or OptionReader(), local=local)
    return [problem.field for problem in error.value.problems]


ANALYSER = replace(SETTINGS, generator="perf-analyzer")
MANY_USERS = replace(ANALYSER, loads=(Users(count=1), Users(count=513)), most_under_way=1000)
WRONG = {
    "ordinary": (SETTINGS, []),
    "time for warm-up and a round": (replace(SETTINGS, max_seconds=6.0), []),
    "time for less than that": (replace(SETTINGS, max_seconds=5.9), ["--max-seconds"]),
    "users and a rate": (replace(SETTINGS, loads=(Users(count=1), Rate(per_second=1))), ["--users, --rate, --phase"]),
    "users and a phase": (replace(SETTINGS, phases=(PHASE,)), ["--users, --rate, --phase"]),
    "more users than calls": (replace(SETTINGS, loads=(Users(count=101),)), ["--most-under-way"]),
    "perf_analyzer with a ramp of both formats": (
        replace(ANALYSER, loads=(), phases=(PHASE,), formats=("binary", "json")),
        ["--format", "--generator"],
    ),
    "perf_analyzer with JSON through the proxy": (replace(ANALYSER, formats=("json",)), ["--format"]),
    "perf_analyzer at a container": (replace(ANALYSER, container=True), ["--container"]),
    "perf_analyzer with part of a percentile": (
        replace(ANALYSER, rule=replace(SETTINGS.rule, percentile=99.9)),
        ["--percentile"],
    ),
    "as many users as the proxy has calls": (replace(MANY_USERS, loads=(Users(count=512),)), []),
    "more users than the proxy has calls": (MANY_USERS, ["--users"]),
}


@pytest.mark.parametrize(("settings", "fields"), WRONG.values(), ids=WRONG)
def test_what_contradicts_itself_is_refused(settings: BenchSettings, fields: list[str]) -> None:
    if fields:
        assert refused(settings) == fields
    else:
        check(settings, OptionReader(), local=True)


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    reader = OptionReader()
    reader.users("0,4")
    reader.rates("-1", "poisson")
    reader.phases(["2+2", "0:10"])
    wrong = replace(
        SETTINGS,
        names=("a", "b", "a"),
        configurations=("plain",),
        rule=replace(SETTINGS.rule, least=5, most=2),
        container=True,
        cold_starts=3,
        files=("nothing.json",),
        max_seconds=1.0,
    )

    fields = refused(wrong, reader, local=False)

    messages = (
        "--users --rate --phase --phase --rounds --max-seconds --container --cold-starts --configurations NAME --input"
    )
    assert " ".join(fields) == messages


def test_loads_are_read_in_their_order_and_once_each() -> None:
    reader = OptionReader()

    assert reader.users("4,1,4") == (Users(count=4), Users(count=1))
    assert reader.rates("2.5", "even") == (Rate(per_second=2.5, arrivals="even"),)
    assert reader.phases(["2+2:1500", "50:60"]) == (
        Phase(initial_users=2, users_per_minute=2, seconds=1500),
        Phase(initial_users=50, users_per_minute=0, seconds=60),
    )
    assert not reader.problems


def test_the_posts_words_select_every_overlay_that_they_describe() -> None:
    found = configured_names(
        "nlp/bert-large", ["plain", "dynamic-batching", "two-instances", "both"], model_repos=MODELS
    )

    assert found == {
        "pytorch": "nlp/bert-large-pytorch",
        "tensorrt": "nlp/bert-large-tensorrt",
        "pytorch-db": "nlp/bert-large-pytorch-db",
        "tensorrt-db": "nlp/bert-large-tensorrt-db",
        "pytorch-ig": "nlp/bert-large-pytorch-ig",
        "tensorrt-ig": "nlp/bert-large-tensorrt-ig",
        "pytorch-db-ig": "nlp/bert-large-pytorch-db-ig",
        "tensorrt-db-ig": "nlp/bert-large-tensorrt-db-ig",
    }


def test_every_configuration_that_does_not_exist_is_reported() -> None:
    with pytest.raises(InputError) as error:
        configured_names("bert-large", ["plane", "both", "fp8"], model_repos=MODELS)

    assert [problem.found.split(",")[0] for problem in error.value.problems] == ["plane", "fp8"]
