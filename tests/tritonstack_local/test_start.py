"""A start is whole or leaves nothing; a stop ends what there is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.tritonstack_local.fake_parts import FakeParts, kill, wait_for
from tritonstack.errors import InputError, WorkFailedError
from tritonstack_local.aws import find_local_aws
from tritonstack_local.commands import start_stop as start
from tritonstack_local.commands.start_stop import start_local_aws, stop_local_aws


def test_started_parts_respond_are_found_again_and_are_stopped(parts: FakeParts) -> None:
    steps: list[str] = []
    aws = parts.up(steps.append)
    assert [step.partition(" on port ")[0] for step in steps] == ["local AWS", "SageMaker runtime"]
    assert aws.running
    assert find_local_aws() == aws
    assert aws.runtime_status() == {"local_aws": "answers", "endpoints": []}
    assert stop_local_aws() == "stopped"
    assert parts.processes() == []
    assert find_local_aws() is None
    assert stop_local_aws() == "none was running"


def test_of_starts_at_once_one_starts_and_the_others_wait(parts: FakeParts) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: parts.up(), range(4)))
    assert len(set(found)) == 1
    assert len(parts.processes()) == 2


@pytest.mark.parametrize(
    ("part", "behaviour", "words"),
    [
        ("runtime", "die", "(?s)the SageMaker runtime ended while it was starting.*the disk is full"),
        ("emulator", "say nothing", r"(?s)the AWS emulator did not respond within 0 s.*emulator\.log"),
    ],
)
def test_a_part_that_ends_or_is_silent_while_it_starts_is_reported_and_the_other_is_ended(
    parts: FakeParts, part: str, *, behaviour: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if behaviour == "say nothing":
        monkeypatch.setattr(start, "START_SECONDS", 0.3)
    parts.set_behaviour(part, behaviour)
    with pytest.raises(WorkFailedError, match=words):
        parts.up()
    assert parts.processes() == []
    assert not parts.paths.record.exists()


@pytest.mark.parametrize("step", ["local AWS", "SageMaker runtime"])
def test_a_start_that_is_interrupted_leaves_nothing_running(parts: FakeParts, step: str) -> None:
    def interrupt(text: str) -> None:
        if text.startswith(step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parts.up(interrupt)
    assert parts.processes() == []
    assert not parts.paths.record.exists()
    assert parts.up().running


def test_a_start_that_was_killed_is_ended_by_the_next_stop(parts: FakeParts) -> None:
    parts.set_behaviour("emulator", "say nothing")
    code = (
        "import sys; from pathlib import Path; from tritonstack_local.commands import start_stop as start\n"
        f"start.environment_python = lambda _name: Path({str(parts.program)!r})\n"
        "start.start_local_aws(emulator_port=0, runtime_port=0, report=print)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], env=os.environ, stdout=subprocess.DEVNULL) as starting:
        wait_for(parts.paths.record.is_file)
        starting.send_signal(signal.SIGKILL)
    assert len(parts.processes()) == 1
    assert stop_local_aws() == "stopped"
    assert parts.processes() == []


@pytest.mark.parametrize("dead", [("emulator",), ("emulator", "runtime")])
def test_when_one_of_two_parts_has_ended_a_stop_ends_the_other_and_reports_it(
    parts: FakeParts, dead: tuple[str, ...]
) -> None:
    aws = parts.up()
    for part in dead:
        kill(getattr(aws, part))
    assert find_local_aws() is None
    text = "none was running" if len(dead) == 2 else "stopped; the AWS emulator had ended before"
    assert stop_local_aws() == text
    assert parts.processes() == []
    assert not parts.paths.record.exists()


@pytest.mark.parametrize(
    ("dead", "text"),
    [
        ("runtime", "the SageMaker runtime had ended: it is started again, and takes up the endpoints"),
        ("emulator", "the AWS emulator had ended, and all that was deployed there with it: it is started again, empty"),
    ],
)
def test_a_part_that_ended_is_started_again_alone_and_what_is_lost_is_reported(
    parts: FakeParts, dead: str, text: str
) -> None:
    notes: list[str] = []
    before = start_local_aws(emulator_port=0, runtime_port=0, report=print, iam=False)
    kill(getattr(before, dead))
    after = start_local_aws(emulator_port=0, runtime_port=0, report=print, note=notes.append)
    assert [note[: len(text)] for note in notes] == [text]
    other = "emulator" if dead == "runtime" else "runtime"
    assert getattr(after, other) == getattr(before, other)
    assert getattr(after, dead).pid != getattr(before, dead).pid
    assert (after.emulator_port, after.runtime_port) == (before.emulator_port, before.runtime_port)
    assert find_local_aws() == after
    assert {each.environ()["TRITONSTACK_IAM"] for each in parts.processes()} == {"off"}, "as the other part is"
    assert len(parts.processes()) == 2


def test_a_part_that_does_not_start_again_leaves_the_other_one_and_is_tried_again(parts: FakeParts) -> None:
    aws = parts.up()
    kill(aws.runtime)
    parts.set_behaviour("runtime", "die")
    with pytest.raises(WorkFailedError, match=r"(?s)the SageMaker runtime ended while.*the disk is full"):
        parts.up()
    assert aws.emulator.running
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", aws.runtime_port))
        taken.listen()
        with pytest.raises(InputError, match=f"(?s){aws.runtime_port}: Address already in use.*local down"):
            parts.up()
    parts.set_behaviour("runtime", "serve")
    assert parts.up().emulator == aws.emulator


def test_where_one_part_no_longer_responds_both_are_started_again(parts: FakeParts) -> None:
    aws, notes = parts.up(), list[str]()
    kill(aws.runtime)
    psutil.Process(aws.emulator.pid).suspend()
    after = start_local_aws(emulator_port=0, runtime_port=0, report=print, note=notes.append)
    assert not aws.emulator.running
    assert after.running
    assert "what was deployed there is discarded" in notes[0]


def test_a_taken_port_starts_nothing(parts: FakeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    aws = parts.up()
    other = parts.home.parent / "other"
    monkeypatch.setenv("TRITONSTACK_HOME", str(other))
    with pytest.raises(InputError, match=f"--port {aws.emulator_port}"):
        start_local_aws(emulator_port=aws.emulator_port, runtime_port=0, report=print)
    monkeypatch.setenv("TRITONSTACK_HOME", str(parts.home))
    assert len(parts.processes()) == 2
    assert not (other / "running.json").exists()


def test_a_home_that_cannot_be_written_starts_nothing(parts: FakeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    (parts.home / "file").touch()
    monkeypatch.setenv("TRITONSTACK_HOME", str(parts.home / "file" / "home"))
    with pytest.raises(InputError, match="TRITONSTACK_HOME"):
        parts.up()
    assert parts.processes() == []


def test_environments_that_are_not_made_yet_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tritonstack_local.commands.start_stop.environment_python", lambda name: tmp_path / name)
    with pytest.raises(InputError, match=r"(?s)main, emulator, backends.*make setup"):
        start_local_aws(emulator_port=0, runtime_port=0, report=print)
    assert not (tmp_path / "home").exists()


def test_the_parts_get_nothing_of_a_person_s_aws_settings_and_no_proxy(
    parts: FakeParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("AWS_PROFILE", "prod"), ("HTTP_PROXY", "http://127.0.0.1:9"), ("http_proxy", "http://x")):
        monkeypatch.setenv(name, value)
    aws = parts.up()
    for part in (aws.emulator, aws.runtime):
        variables = psutil.Process(part.pid).environ()
        assert not {"AWS_PROFILE", "HTTP_PROXY", "http_proxy"} & set(variables)
        assert variables["PYTHONPATH"]
