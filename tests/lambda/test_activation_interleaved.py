"""Release records while deployments, events delivered again, overtaken runs, undos and moves by hand interleave.

Between any two requests of a run to AWS, anything else may happen. At the end the records equal those of a model
without events, runs or notes, which has only the deployments that came into force and the moves by hand.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

worlds: Any = importlib.import_module("tests.lambda.activation_world")  # `lambda` is a word of the language
deployment: Any = importlib.import_module("lambda.activation.deployment")
operation: Any = importlib.import_module("lambda.shared.operation")
A, B, C = worlds.A, worlds.B, worlds.C
NAME, MODELS = "ReleaseRecords", ("bert", "resnet", "t5")
SETS = st.dictionaries(st.sampled_from(MODELS), st.sampled_from([A, B, C]), min_size=1)
WRITES = frozenset({"PutParameter", "DeleteParameters"})
TO_A_WRITE = st.tuples(st.just("advance to a write"), st.integers(0, 3), st.integers(1, 4))
TURNS = st.lists(st.tuples(st.just("advance"), st.integers(0, 3), st.integers(1, 6)) | TO_A_WRITE, max_size=6)
HANDS = st.lists(
    st.tuples(st.just("hand"), st.sampled_from(MODELS), st.sampled_from([A, B, C]), st.booleans()), max_size=2
)
AGAIN = st.lists(st.tuples(st.just("deliver again"), st.integers(0, 3)), max_size=1)


@st.composite
def deployments(draw: Any) -> list[tuple[Any, ...]]:
    """The steps of one deployment that ends well or is undone, with whatever may come in between."""
    begins = draw(st.tuples(st.just("advance"), st.just(0), st.integers(0, 60)) | TO_A_WRITE)
    steps = [("deploy", draw(SETS)), begins, *draw(AGAIN), *draw(TURNS)]
    if draw(st.booleans()):
        steps.append(("lose the run",))
    if draw(st.booleans()):
        steps += [("respond",), *draw(HANDS), *draw(AGAIN), *draw(TURNS)]
    if draw(st.booleans()):
        steps += [("fail",), *draw(AGAIN), *draw(TURNS), *draw(HANDS), ("undo",), *draw(TURNS), *draw(AGAIN)]
    steps += [*draw(TURNS), ("respond",), ("succeed",), *draw(HANDS), *draw(AGAIN), *draw(TURNS)]
    return [*steps, *draw(HANDS), ("settle",)]


OVERTAKEN = [
    ("deploy", {"bert": B}), ("advance to a write", 0, 1), ("fail",), ("undo",), ("respond",), ("settle",),
]  # fmt: skip
"""A run writes what it was about to, when all is undone."""
TWO_RUNS = [
    ("deploy", {"bert": A}), ("advance to a write", 0, 3), ("deliver again", 0), ("advance to a write", 1, 3),
    ("respond",), ("succeed",), ("settle",),
]  # fmt: skip
"""One of two runs of an event deletes a record that the other one deleted, when the update has ended well."""
AGAIN_AFTER_A_HAND = [
    ("deploy", {"bert": B}), ("respond",), ("fail",), ("hand", "bert", A, False), ("undo",), ("respond",), ("succeed",),
    ("settle",), ("deploy", {"bert": B}), ("respond",), ("succeed",), ("settle",),
]  # fmt: skip
"""A deployment that failed, whose record was moved back by hand before CloudFormation did, is tried again."""


class LostError(BaseException):
    """A run that Lambda lost."""


class Run(threading.Thread):
    """One delivery of an event, which pauses before each of its requests to AWS until ``go`` is released."""

    def __init__(self, world: Any, event: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self.world, self.event = world, event
        self.go, self.stopped = threading.Semaphore(0), threading.Semaphore(0)
        self.lost, self.ended, self.next = False, False, ""
        self.error: Exception | None = None
        self.start()
        self.stopped.acquire()

    def run(self) -> None:
        try:
            self.pause()
            deployment.activate(self.event, self.world.clients)
        except (operation.SupersededError, LostError):
            pass
        except Exception as error:  # noqa: BLE001 - raised in the test's own thread
            self.error = error
        finally:
            self.ended = True
            self.stopped.release()

    def pause(self, operation: str = "") -> None:
        """Give the turn back, until the next step; then comes the request ``operation``."""
        self.next = operation
        self.stopped.release()
        self.go.acquire()
        if self.lost:
            raise LostError

    def advance(self, steps: int = 10_000) -> None:
        """Make so many requests, or all that are left."""
        while steps and not self.ended:
            self.go.release()
            self.stopped.acquire()
            steps -= 1
        if self.error is not None:
            raise self.error

    def advance_to_a_write(self, number: int) -> None:
        """Stop before the write of that number from here on: what was read before it is older than anything later."""
        for _ in range(number):
            self.advance(1)
            while not self.ended and self.next not in WRITES:
                self.advance(1)

    def lose(self) -> None:
        """End it where it is."""
        self.lost = True
        self.advance()


@dataclass
class Right:
    """What the records are to be."""

    deployed: Mapping[str, str]
    records: dict[str, str]
    before: tuple[Mapping[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    by_hand: dict[str, str] = field(default_factory=dict)  # since the last deployment began

    def deploy(self, new: Mapping[str, str]) -> None:
        """What changed moves, what left goes, all else stays."""
        self.before, self.by_hand = (self.deployed, dict(self.records)), {}
        moved = {model: digest for model, digest in new.items() if self.deployed.get(model) != digest}
        self.records = {model: digest for model, digest in self.records.items() if model in new} | moved
        self.deployed = new

    def undo(self) -> None:
        """Everything is as before, but for what was moved by hand since."""
        self.deployed, records = self.before
        self.records = records | self.by_hand

    def hand(self, model: str, digest: str) -> None:
        self.records[model] = self.by_hand[model] = digest


class Stack:
    """CloudFormation with one stack; ``phase``: idle, forward, moved, failing or undoing."""

    def __init__(self, first: Mapping[str, str]) -> None:
        self.world, self.right = worlds.World(), Right(first, dict(first))
        self.world.create(first)
        self.phase, self.old, self.new = "idle", first, first
        self.runs: list[Run] = []
        self.sent: list[Mapping[str, Any]] = []
        self.awaited: Run | None = None
        respond = self.world.aws.respond

        def stop_and_respond(name: str, request: dict[str, Any], *, service: str) -> Any:
            run = threading.current_thread()
            if isinstance(run, Run):
                run.pause(name)
            return respond(name, request, service=service)

        self.world.aws.respond = stop_and_respond
        self._end("CREATE_COMPLETE")

    def step(self, what: str, *more: Any) -> None:
        """One step, if it is possible now."""
        if what == "deploy" and self.phase == "idle" and not self.runs and more[0] != self.new:
            [self.new] = more
            self.world.publish(self.new)
            self.right.deploy(self.new)
            self._begin("forward", "UPDATE_IN_PROGRESS", self.new, self.old)
        elif what == "advance" and self.runs:
            self.runs[more[0] % len(self.runs)].advance(more[1])
        elif what == "advance to a write" and self.runs:
            self.runs[more[0] % len(self.runs)].advance_to_a_write(more[1])
        elif what == "deliver again" and self.sent and len(self.runs) < 4:
            self.runs.append(Run(self.world, self.sent[more[0] % len(self.sent)]))
        elif what == "lose the run" and self.awaited is not None:
            self.awaited.lose()
            self.awaited = Run(self.world, self.awaited.event)  # Lambda delivers the event again
            self.runs.append(self.awaited)
        elif what == "respond" and self.awaited is not None:
            self.awaited.advance()
        elif what == "succeed" and self.phase == "moved":
            self.old = self.new
            self._end("UPDATE_COMPLETE")
        elif what == "fail" and self.phase in ("forward", "moved"):
            self._fail()
        elif what == "undo" and self.phase == "failing":
            self.right.undo()
            self._begin("undoing", "UPDATE_ROLLBACK_IN_PROGRESS", self.old, self.new)
            self.new = self.old
        elif what == "hand" and self.awaited is None:
            self._hand(*more)
        elif what == "settle" and self.phase == "idle":
            for run in self.runs:
                run.advance()
        self._end_awaited()

    def _begin(self, phase: str, status: str, new: Mapping[str, str], old: Mapping[str, str]) -> None:
        self.phase, self.world.aws.status = phase, status
        event = {
            "RequestType": "Update",
            "ResourceType": f"Custom::{NAME}",
            "LogicalResourceId": NAME,
            "StackId": worlds.STACK,
            "RequestId": f"request-{len(self.sent)}",
            "ResourceProperties": self.world.properties(new),
            "OldResourceProperties": self.world.properties(old),
        }
        self.world.begin(event)
        self.sent.append(event)
        self.awaited = Run(self.world, event)
        self.runs.append(self.awaited)

    def _fail(self) -> None:
        """The update fails elsewhere, or is cancelled; a run goes on."""
        if self.phase == "forward":
            self.world.aws.stack.ends(NAME, "FAILED")
        self.awaited = None
        self.phase, self.world.aws.status = "failing", "UPDATE_ROLLBACK_IN_PROGRESS"
        self.world.aws.stack.becomes(self.world.aws.status)

    def _end_awaited(self) -> None:
        """The awaited run has responded."""
        if self.awaited is not None and self.awaited.ended:
            self.awaited = None
            self.world.aws.stack.ends(NAME)
            if self.phase == "undoing":
                self._end("UPDATE_ROLLBACK_COMPLETE")
            else:
                self.phase = "moved"
        self.runs = [run for run in self.runs if not run.ended]

    def _end(self, status: str) -> None:
        self.phase, self.world.aws.status = "idle", status
        self.world.aws.stack.becomes(status)

    def _hand(self, model: str, digest: str, by_command: bool) -> None:
        """Of a model that is there whether the deployment under way succeeds or not, to another digest."""
        if model in self.old and model in self.new and self.world.records.get(model) not in (None, digest):
            self.right.hand(model, digest)
            if by_command:
                self.world.roll_back_by_command(model, digest)
            else:
                self.world.aws.put_by_hand(worlds.RECORDS + model, digest)

    def finish(self) -> None:
        """Finish the deployment and all runs."""
        for what in ("respond", "undo", "respond", "succeed"):
            self.step(what)
        for run in self.runs:
            run.advance()

    def abandon(self) -> None:
        """End every run where it is."""
        for run in self.runs:
            run.lose()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=SETS, episodes=st.lists(deployments(), max_size=4))
@example(first={"bert": A}, episodes=[OVERTAKEN])
@example(first={"bert": B, "t5": A}, episodes=[TWO_RUNS])
@example(first={"bert": A}, episodes=[AGAIN_AFTER_A_HAND])
def test_records_are_those_of_the_set_in_force_however_runs_interleave(first: Any, episodes: Any) -> None:
    stack = Stack(first)
    try:
        for step in (step for steps in episodes for step in steps):
            stack.step(*step)
            if stack.phase == "idle" and not stack.runs:
                assert stack.world.records == stack.right.records
        stack.finish()
        assert stack.world.records == stack.right.records
    finally:
        stack.abandon()
