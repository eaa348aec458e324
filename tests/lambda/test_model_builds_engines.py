"""What becomes of the engine jobs of a build that has ended."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tritonstack.engines import remote_job

# `lambda` is a word of the language, so neither folder of that name can stand in an import statement.
worlds: Any = importlib.import_module("tests.lambda.builds_world")
ended_build: Any = importlib.import_module("lambda.model_builds.ended_build")

OURS, OTHER = "builds:ours", "builds:other"
ENDS = ("FAILED", "FAULT", "STOPPED", "TIMED_OUT")


class World:
    """An account where the build ``OURS`` has ended, and others run."""

    def __init__(self, status: str = "STOPPED") -> None:
        self.aws = worlds.FakeEngines()
        self.aws.begin(OURS)
        self.aws.begin(OTHER, minutes=-10)
        self.aws.builds[OURS]["buildStatus"] = status

    def send(self, *, engine_project: str = "engines", engine_jobs: str = "local-engine-") -> None:
        place = worlds.wait.Place(
            "artifacts", "builds", "/tritonstack/local/", engine_project=engine_project, engine_jobs=engine_jobs
        )
        arn = f"arn:aws:codebuild:us-east-1:123456789012:build/{OURS}"
        event = {"source": "aws.codebuild", "detail": {"build-id": arn, "build-status": "STOPPED"}}
        ended_build.build_ended(event, aws=worlds.clients.Aws(self.aws.client), place=place)


def test_the_variable_is_the_one_that_the_build_sets() -> None:
    assert ended_build.STARTED_BY == remote_job.VARIABLE == worlds.STARTED_BY


@pytest.mark.parametrize("status", ENDS)
def test_the_jobs_that_it_started_and_no_others_are_stopped(status: str) -> None:
    world = World(status)
    for number in range(3):
        world.aws.begin_job(f"local-engine-bert-{number}", of=OURS)
        world.aws.begin_engine_build(f"engines:{number}", of=OURS, minutes=number + 1)
    world.aws.begin_job("local-engine-bert-other", of=OTHER)
    world.aws.begin_job("local-engine-bert-by-hand", of=None)
    world.aws.begin_job("prod-local-engine-bert-0", of=OURS)
    world.aws.begin_job("local-engine-bert-done", of=OURS, status="Completed")
    world.aws.begin_engine_build("engines:other", of=OTHER, minutes=9)
    world.aws.begin_engine_build("engines:by-hand", of=None, minutes=9)
    world.aws.begin_engine_build("engines:done", of=OURS, minutes=9, status="SUCCEEDED")
    world.aws.begin_engine_build("another:0", of=OURS, minutes=9)
    world.send()
    assert sorted(world.aws.stopped) == [
        "engines:0",
        "engines:1",
        "engines:2",
        "local-engine-bert-0",
        "local-engine-bert-1",
        "local-engine-bert-2",
    ]


def test_a_build_that_succeeded_stops_nothing_and_looks_for_nothing() -> None:
    world = World("SUCCEEDED")
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    world.send()
    assert world.aws.stopped == []
    assert world.aws.operations == ["BatchGetBuilds"]


def test_an_event_that_comes_twice_stops_each_job_once() -> None:
    world = World()
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    world.aws.begin_engine_build("engines:0", of=OURS, minutes=1)
    world.send()
    world.send()
    assert sorted(world.aws.stopped) == ["engines:0", "local-engine-bert-0"]


def test_a_job_that_ends_when_it_is_stopped_is_no_error() -> None:
    world = World()
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    world.aws.ends.add("local-engine-bert-0")
    world.send()
    assert world.aws.jobs["local-engine-bert-0"]["status"] == "Completed"


@pytest.mark.parametrize("name", ["local-engine-bert-0", "engines:0"])
def test_one_that_cannot_be_stopped_keeps_no_other_running_and_is_tried_again(name: str) -> None:
    world = World()
    for number in range(3):
        world.aws.begin_job(f"local-engine-bert-{number}", of=OURS)
        world.aws.begin_engine_build(f"engines:{number}", of=OURS, minutes=1)
    world.aws.unstoppable.add(name)
    with pytest.raises(ClientError):
        world.send()
    assert len(world.aws.stopped) == 5
    world.aws.unstoppable.clear()
    world.send()
    assert world.aws.stopped[-1] == name


def test_builds_from_before_are_not_looked_through() -> None:
    world = World()
    world.aws.begin_engine_build("engines:new", of=OURS, minutes=1)
    for number in range(40):
        world.aws.begin_engine_build(f"engines:{number}", of="builds:old", minutes=-number - 1, status="SUCCEEDED")
    world.send()
    assert world.aws.stopped == ["engines:new"]
    assert world.aws.operations.count("ListBuildsForProject") == 2


@pytest.mark.parametrize(
    ("places", "asked"),
    [
        ({"engine_project": ""}, {"ListProcessingJobs"}),
        ({"engine_jobs": ""}, {"ListBuildsForProject"}),
        ({"engine_project": "", "engine_jobs": ""}, set()),
    ],
)
def test_what_the_environment_does_not_have_is_not_asked_for(places: dict[str, str], asked: set[str]) -> None:
    world = World()
    world.send(**places)
    assert {each for each in world.aws.operations if each.startswith("List")} == asked


def test_a_deployment_that_cannot_be_told_keeps_no_job_running(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("nobody answers")

    world = World()
    world.aws.begin_job("local-engine-bert-0", of=OURS)
    monkeypatch.setattr(ended_build, "signal_outcome", refuse)
    with pytest.raises(OSError, match="nobody answers"):
        world.send()
    assert world.aws.stopped == ["local-engine-bert-0"]
