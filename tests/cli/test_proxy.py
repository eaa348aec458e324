"""``tritonstack proxy``: what it says as it starts, what it refuses, and how it ends."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from click.testing import CliRunner, Result

from tests.client.fakes import FakeEndpoint, Reply, Request, echo
from tests.proxy.world import World
from tritonstack.cli import proxy
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.errors import InputError


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """What the command finds instead of AWS."""
    with FakeEndpoint().running() as endpoint:
        world = World(endpoint)
        monkeypatch.setattr(proxy, "calling_session", lambda *_, **__: world.aws)
        yield world


def run(*arguments: str) -> Result:
    """The command, which ends by itself."""
    return CliRunner().invoke(proxy.command, ["-e", "dev", *arguments])


def problem_of(result: Result) -> Any:
    """The one problem that it ended with."""
    assert isinstance(result.exception, InputError), result.exception
    (problem,) = result.exception.problems
    return problem


def served(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Result, int]:
    """The command until SIGINT, which it is sent once it has responded; and the status of its response."""
    answers = []
    announce = proxy._announce

    def announced(environment: str, port: int, releases: Any) -> None:
        announce(environment, port, releases)

        def send_request() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/v2/health/ready")
            answers.append(connection.getresponse().status)
            connection.close()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=send_request).start()

    monkeypatch.setattr(proxy, "_announce", announced)
    result = run("--port", "0", *arguments)
    return result, answers[0]


def test_it_says_where_it_listens_and_ends_cleanly_when_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, status = served(monkeypatch)
    assert (result.exit_code, status) == (0, 200), result.exception
    first, second = result.stdout.splitlines()
    assert first.startswith("KServe v2 at http://127.0.0.1:")
    assert first.endswith("for environment dev: 5 models of digits, lone, other. Ctrl-C ends it.")
    assert second.endswith("/v2/models/digits/both"), "the first name alone would be ambiguous"


def test_a_caller_who_may_not_list_is_told_how_models_are_reached(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.aws.refused["GetParametersByPath"] = "AccessDeniedException"
    result, status = served(monkeypatch)
    assert (result.exit_code, status) == (0, 200)
    assert "Models are reached by endpoint/model" in result.stderr
    assert "/v2/models/<endpoint>/<model>" in result.stdout


def test_an_environment_without_records_is_refused(world: World) -> None:
    world.aws.parameters.clear()
    problem = problem_of(run())
    assert problem.field == "--environment"
    assert "no release record" in problem.found
    result = CliRunner().invoke(proxy.command, ["-e", "stagin"])
    assert problem_of(result).advice == "Did you mean staging?"


def test_without_credentials_nothing_is_started(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.aws.refused["ssm"] = NoCredentialsError()
    monkeypatch.setattr("tritonstack.cli.session.find_local_aws", lambda: None)
    assert isinstance(run().exception, ReleaseLookupError)
    monkeypatch.setattr("tritonstack.cli.session.find_local_aws", object)
    assert "--local" in problem_of(run()).advice


def test_a_port_that_is_taken_is_refused(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        problem = problem_of(run("--port", str(taken.getsockname()[1])))
    assert problem.field == "--port"
    assert problem.advice == "--port 0 takes a free one"


def test_an_interruption_does_not_wait_for_ever_for_a_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invocation may take over a minute, and a model that loads six."""
    asked, answered = threading.Event(), threading.Event()

    def slow(request: Request) -> Reply:
        asked.set()
        assert answered.wait(60)
        return echo(request)

    def announced(_environment: str, port: int, _releases: Any) -> None:
        def send_request() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("POST", "/v2/models/digits-onnx/infer", b'{"inputs": []}')
            assert asked.wait(20)
            os.kill(os.getpid(), signal.SIGINT)
            with pytest.raises(OSError, match=r"closed connection|reset"):
                connection.getresponse()
            connection.close()

        thread = threading.Thread(target=send_request)
        thread.start()
        threads.append(thread)

    threads: list[threading.Thread] = []
    world.endpoint.reply = slow
    monkeypatch.setattr(proxy, "_announce", announced)
    monkeypatch.setattr("tritonstack.proxy.server.LAST_REQUESTS_SECONDS", 0.1)
    try:
        assert run("--port", "0").exit_code == 0
        assert not answered.is_set()
        threads[0].join(20)
        assert not threads[0].is_alive()
    finally:
        answered.set()
