"""The demo's table and what it proposes; its calls on a fake of boto3's client."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from click.testing import CliRunner
from rich.console import Console

from tritonstack.client.body import Body
from tritonstack.commands import demo
from tritonstack.commands.demo import Row, fleet_of, how_to_go_on, in_words, loaded_models, table_of, timed_call
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.local.aws import LocalAws
from tritonstack.local.paths import REPOSITORY
from tritonstack.local.processes import ProcessRecord
from tritonstack.settings import Environment, load_environment

GONE = ProcessRecord(pid=1, started=0.0, log="")
AWS = LocalAws(emulator_port=4566, runtime_port=4567, emulator=GONE, runtime=GONE)
TARGET = "digits-ensemble.1cd029da80bd35f6.tar.gz"


def row(**changes: Any) -> Row:
    """One answered model."""
    given: dict[str, Any] = {
        "endpoint": "local-digits",
        "model": "digits-ensemble",
        "target_model": TARGET,
        "cold_ms": 1449.4,
        "warm_ms": 2.84,
        "sent": 386,
        "received": 313,
        "answer": "label 3; probabilities [1, 10]",
        "request": Path("model_repos/digits-ensemble/sample/request.json"),
        "asked_release": "24.09",
        "answering_server": "24.10 (2.51.0)",
    }
    return Row(**(given | changes))


def printed(rows: list[Row], *, width: int) -> str:
    """The table in a terminal of that width."""
    file = io.StringIO()
    Console(file=file, width=width, highlight=False).print(table_of(rows))
    return file.getvalue()


@pytest.fixture
def settings() -> Environment:
    """The repository's own environment ``local``."""
    return load_environment(REPOSITORY / "environments" / "local.yaml")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_holds_every_figure_and_no_line_is_cut(width: int) -> None:
    shown = printed([row()], width=width)
    for words in (TARGET, "label 3", "1449", "2.8", "386", "313", "24.09", "24.10", "(2.51.0)"):
        assert words in shown
    assert max(len(line) for line in shown.splitlines()) <= width


def test_the_release_asked_for_and_the_one_that_answered_are_told_apart() -> None:
    head, line = printed([row()], width=120).splitlines()[1:3], printed([row()], width=120)
    assert " ".join(" ".join(head).split()).endswith("asked answered")
    assert "24.09 24.10 (2.51.0)" in line


def test_a_model_that_was_loaded_before_has_no_cold_time() -> None:
    assert "loaded before" not in printed([row()], width=80)
    shown = printed([row(cold_ms=None), row()], width=80)
    assert "cold -: the model was loaded before" in shown
    figures = [line.split() for line in shown.splitlines() if "24.09" in line]
    assert [line[line.index("24.09") - 4] for line in figures] == ["-", "1449"]


def test_a_long_answer_does_not_push_the_figures_out() -> None:
    shown = printed([row(answer="probabilities [1, 10]; " * 20)], width=80)
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "(2.51.0)" in shown


def test_the_same_model_on_two_endpoints_is_told_apart() -> None:
    shown = printed([row(), row(endpoint="local-many")], width=120)
    assert "local-digits: label 3" in shown
    assert "local-many: label 3" in shown


def test_short_outputs_are_shown_in_full_and_long_ones_by_their_shape() -> None:
    outputs = {"label": np.array([[3]]), "probabilities": np.zeros((1, 10)), "empty": np.zeros((0,))}
    assert in_words(outputs) == "label 3; probabilities [1, 10]; empty "


class Client:
    """boto3's client: an answer or an error."""

    def __init__(self, outcome: bytes | Exception) -> None:
        """What a call comes to."""
        self.outcome = outcome
        self.calls: list[dict[str, Any]] = []

    def invoke_endpoint(self, **call: Any) -> dict[str, Any]:
        """See boto3."""
        self.calls.append(call)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return {"Body": io.BytesIO(self.outcome), "ContentType": "application/json"}


BODY = Body(content=b"{}", content_type="application/json")


def test_a_call_is_timed_until_the_whole_answer_was_read() -> None:
    client = Client(b"answer")
    milliseconds, content, content_type = timed_call(client, endpoint="local-digits", target=TARGET, body=BODY)
    assert milliseconds > 0
    assert (content, content_type) == (b"answer", "application/json")
    assert client.calls == [
        {"EndpointName": "local-digits", "TargetModel": TARGET, "ContentType": "application/json", "Body": b"{}"}
    ]


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ModelError", "Message": "no"}}, "InvokeEndpoint"),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:4567"),
    ],
)
def test_a_call_without_an_answer_is_a_message_with_the_endpoint_and_the_model(error: Exception) -> None:
    with pytest.raises(WorkFailedError, match=f"local-digits does not answer for {TARGET}"):
        timed_call(Client(error), endpoint="local-digits", target=TARGET, body=BODY)


def aws_with(*endpoints: dict[str, Any]) -> Any:
    """A local AWS with this status."""
    return SimpleNamespace(runtime_status=lambda: {"endpoints": list(endpoints)})


def test_the_serving_fleet_is_the_one_that_is_shown() -> None:
    old = {"serving": False, "models": []}
    new = {"serving": True, "models": [{"target_model": TARGET, "state": "loaded"}]}
    found = fleet_of(aws_with({"name": "other", "fleets": []}, {"name": "one", "fleets": [old, new]}), "one")
    assert found is new
    assert loaded_models(found) == {TARGET}


@pytest.mark.parametrize("state", ["loading", "unloading", "failed"])
def test_a_model_that_is_not_yet_or_no_longer_loaded_is_cold(state: str) -> None:
    assert loaded_models({"models": [{"target_model": TARGET, "state": state}]}) == set()


@pytest.mark.parametrize("fleets", [None, [], [{"serving": False}]])
def test_an_endpoint_that_serves_nothing_is_refused_with_what_to_do(fleets: list[dict[str, Any]] | None) -> None:
    endpoints = [] if fleets is None else [{"name": "one", "fleets": fleets}]
    with pytest.raises(InputError, match=r"(?s)endpoint one serves nothing.*tritonstack deploy-local"):
        fleet_of(aws_with(*endpoints), "one")


def test_the_proposal_calls_a_model_whose_sample_is_json(
    settings: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    image = row(request=REPOSITORY / "model_repos/digits-ensemble/sample/digit.png")
    onnx = row(model="digits-onnx", request=REPOSITORY / "model_repos/digits-onnx/sample/request.json")
    proposed = how_to_go_on(AWS, settings, [image, onnx])
    assert "--body fileb://model_repos/digits-onnx/sample/request.json" in proposed
    assert (
        ".envs/main/bin/tritonstack invoke digits-onnx --input model_repos/digits-onnx/sample/request.json\n"
        in proposed
    )
    assert "digit.png" not in proposed
    assert "http://127.0.0.1:4566" in proposed


def test_without_a_json_sample_no_call_is_proposed(settings: Environment) -> None:
    proposed = how_to_go_on(AWS, settings, [row(request=Path("digit.png"))])
    assert "invoke" not in proposed
    assert "status --watch" in proposed


def test_elsewhere_the_proposal_names_whole_paths(
    settings: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    proposed = how_to_go_on(AWS, settings, [row()])
    program = f"{REPOSITORY}/.envs/main/bin/tritonstack"
    assert f"{program} status" in proposed
    assert f'eval "$({program} env)"' in proposed
    assert f"Stop it: {program} down" in proposed
    monkeypatch.chdir(REPOSITORY)
    assert "Stop it: make down" in how_to_go_on(AWS, settings, [row()])


def test_the_proposed_call_writes_its_answer_to_a_file(settings: Environment) -> None:
    proposed = how_to_go_on(AWS, settings, [row()])
    assert "    answer.json" in proposed
    assert "/dev/stdout" not in proposed


def test_a_model_on_two_endpoints_is_proposed_with_its_endpoint(settings: Environment) -> None:
    digits = settings.endpoints[0]
    two = settings.model_copy(update={"endpoints": (digits, digits.model_copy(update={"name": "more"}))})
    assert " invoke digits/digits-ensemble " in how_to_go_on(AWS, two, [row()])


def test_in_another_environment_the_proposal_names_it_and_the_local_aws(settings: Environment) -> None:
    dev = settings.model_copy(update={"environment": "dev"})
    assert " --environment dev --local\n" in how_to_go_on(AWS, dev, [row(endpoint="dev-digits")])


def test_an_endpoint_that_is_not_in_the_file_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "require_local_aws", lambda: AWS)
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(REPOSITORY))
    result = CliRunner().invoke(demo.command, ["local", "--endpoint", "nothing"])
    assert isinstance(result.exception, InputError)
    assert "digits" in result.exception.problems[0].allowed
