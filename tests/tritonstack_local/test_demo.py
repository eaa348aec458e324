"""The demo's table and what it proposes; its calls on fakes of boto3's client and of an endpoint that evicts."""

from __future__ import annotations

import io
from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.tritonstack_local.fake_parts import AWS
from tritonstack.cli.progress import Steps
from tritonstack.config import Environment, load_environment
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY
from tritonstack_local.commands import demo
from tritonstack_local.commands.demo import (
    Request,
    Row,
    call_models,
    fleet_of,
    how_to_go_on,
    table_of,
)

TARGET = "digits-ensemble.1cd029da80bd35f6.tar.gz"


def request(**changes: Any) -> Request:
    """One model's sample request."""
    given: dict[str, Any] = {
        "endpoint": "local-digits",
        "model": "digits-ensemble",
        "target_model": TARGET,
        "send": SimpleNamespace,
        "file": "model_repos/digits-ensemble/sample/request.json",
    }
    return Request(**(given | changes))


def row(**changes: Any) -> Row:
    """One model with a response."""
    chosen = request(**{name: changes.pop(name) for name in ("endpoint", "model", "file") if name in changes})
    given: dict[str, Any] = {
        "request": chosen,
        "cold_ms": 1449.4,
        "warm_ms": 2.84,
        "evicted_by": "digits-onnx",
        "again_ms": 1301.2,
        "answer": "label 3; probabilities [1, 10]",
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


@pytest.mark.parametrize("answer", ["label 3; probabilities [1, 10]", "label 3; probabilities [1, 10]; " * 20])
@pytest.mark.parametrize("width", [80, 200])
def test_the_table_holds_every_figure_and_no_line_is_cut(width: int, answer: str) -> None:
    none = row(cold_ms=None, evicted_by=None, again_ms=None, endpoint="local-many")
    shown = printed([row(answer=answer), none], width=width)
    for words in (TARGET, "local-digits: label 3", "local-many: label 3"):
        assert words in shown
    figures = [line.split()[1:] for line in shown.splitlines() if line.startswith("digits-ensemble ")]
    assert figures == [["1449", "2.8", "digits-onnx", "1301"], ["-", "2.8", "-", "-"]]
    assert max(len(line) for line in shown.splitlines()) <= width


def aws_with(*endpoints: dict[str, Any]) -> Any:
    """A local AWS with this status."""
    return SimpleNamespace(runtime_status=lambda: {"endpoints": list(endpoints)})


class Evicting:
    """A local AWS whose one endpoint holds the models called last."""

    def __init__(self, *, holds: int, loaded: tuple[str, ...] = ()) -> None:
        """``loaded``: what it holds from before, the one called last at the end."""
        self.loaded = deque(loaded, maxlen=holds)

    def runtime_status(self) -> dict[str, Any]:
        """See LocalAws."""
        models = [{"target_model": target, "state": "loaded"} for target in self.loaded]
        models.append({"target_model": "a", "state": "unloading"})
        return {"endpoints": [{"name": "local-digits", "fleets": [{"serving": True, "models": models}]}]}

    def answer(self, target: str) -> Any:
        """See Verifier.ask."""
        if target in self.loaded:
            self.loaded.remove(target)
        self.loaded.append(target)
        return SimpleNamespace(milliseconds=3.0, outputs={"label": np.array([3])})


@pytest.mark.parametrize(
    ("names", "state", "evicted_by", "cold", "warm", "again"),
    [
        ("ab", {"holds": 1}, ["b", "a"], [True, True], [True, True], [True, False]),
        ("abc", {"holds": 2}, ["c", "a", None], [True] * 3, [True] * 3, [True, False, False]),
        ("ab", {"holds": 2}, [None, None], [True, True], [True, True], [False, False]),
        ("ab", {"holds": 2, "loaded": ("older", "a")}, [None, None], [False, True], [True, True], [False, False]),
        ("a", {"holds": 0}, None, None, [False], None),
    ],
    ids=["one fits", "two of three fit", "all fit", "loaded before", "none stays loaded"],
)
def test_each_model_is_called_cold_warm_and_the_first_evicted_one_again(
    names: str, state: dict[str, Any], *, evicted_by: Any, cold: Any, warm: Any, again: Any
) -> None:
    aws: Any = Evicting(**state)
    requests = [request(model=name, target_model=name, send=partial(aws.answer, name)) for name in names]
    rows = call_models(aws, requests, Steps(Console(file=io.StringIO())))
    found: dict[str, Any] = {
        "evicted_by": [row.evicted_by for row in rows],
        "cold": [row.cold_ms is not None for row in rows],
        "warm": [row.warm_ms is not None for row in rows],
        "again": [row.again_ms is not None for row in rows],
    }
    wanted = {"evicted_by": evicted_by, "cold": cold, "warm": warm, "again": again}
    assert {name: found[name] for name, one in wanted.items() if one is not None} == {
        name: one for name, one in wanted.items() if one is not None
    }
    assert rows[0].answer == "label 3"


def test_an_endpoint_that_serves_nothing_is_refused_with_what_to_do() -> None:
    for endpoints in ([], [{"name": "one", "fleets": [{"serving": False}]}]):
        with pytest.raises(InputError, match=r"(?s)endpoint one serves nothing.*tritonstack local deploy"):
            fleet_of(aws_with(*endpoints), "one")


def test_the_proposal_calls_a_model_whose_sample_is_json(
    settings: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    image = row(file="model_repos/digits-ensemble/sample/digit.png")
    onnx = row(model="digits-onnx", file="model_repos/digits-onnx/sample/request.json")
    proposed = how_to_go_on(AWS, settings, [image, onnx])
    assert "--body fileb://model_repos/digits-onnx/sample/request.json" in proposed
    assert (
        ".envs/main/bin/tritonstack invoke digits/digits-onnx --input model_repos/digits-onnx/sample/request.json\n"
        in proposed
    )
    assert "digit.png" not in proposed
    assert "http://127.0.0.1:4566" in proposed


def test_a_proposed_call_names_the_endpoint_and_the_environment_where_they_are_needed(settings: Environment) -> None:
    digits = settings.endpoints[0]
    two = settings.model_copy(update={"endpoints": (digits, digits.model_copy(update={"name": "more"}))})
    assert " invoke digits/digits-ensemble " in how_to_go_on(AWS, two, [row()])
    dev = settings.model_copy(update={"environment": "dev"})
    assert " -e dev --local\n" in how_to_go_on(AWS, dev, [row(endpoint="dev-digits")])
    without_sample = how_to_go_on(AWS, settings, [row(file="")])
    assert ("invoke" in without_sample, "status --watch" in without_sample) == (False, True)


def test_an_endpoint_that_is_not_in_the_file_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "require_local_aws", lambda: AWS)
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(REPOSITORY))
    result = CliRunner().invoke(demo.command, ["--endpoint", "nothing"])
    assert isinstance(result.exception, InputError)
    assert "digits" in result.exception.problems[0].allowed
