"""The question before a test with Inference Recommender: what it takes at most, `--yes`, and a terminal's answer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.stacks.environments import SINGLE
from tests.tritonstack_capacity.bench.cloud.test_resume import FIRST, SECOND, TEST, Cloud
from tritonstack.errors import InputError
from tritonstack_capacity.commands.bench import command

ENVIRONMENT = {
    "environment": "dev",
    "account": "123456789012",
    "region": "us-east-1",
    "production": False,
    "endpoints": [SINGLE],
    "load_test": {"recommender": {}},
}
COST = "Inference Recommender: 2 load tests, 2.5 hours at most"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """An account with a test of three jobs that was interrupted after the first, and the environment's file."""
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments/dev.yaml").write_text(yaml.safe_dump(ENVIRONMENT))
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    made = Cloud(jobs={FIRST: "COMPLETED", SECOND: "STOPPED"}, executions={TEST: ["ABORTED"]})
    monkeypatch.setattr("tritonstack.cli.session.session_of", lambda *_, **__: made)
    monkeypatch.setattr("tritonstack.cli.session.require_account", lambda *_: None)
    return made


def go_on(*options: str, typed: str | None = None) -> Result:
    """The command that goes on with the test; ``typed`` at a terminal, None: there is none."""
    if typed is None:
        return CliRunner().invoke(command, ["--cloud", "-e", "dev", "--resume", TEST, *options])
    with pytest.MonkeyPatch.context() as patched:
        # The runner puts its own standard input in place: its kind is changed once it is there.
        patched.setattr("tritonstack.cli.conventions.sys", Terminal())
        return CliRunner().invoke(command, ["--cloud", "-e", "dev", "--resume", TEST, *options], input=typed)


class Terminal:
    """``sys``, whose standard input is a terminal."""

    class stdin:  # noqa: N801 - sys's name
        """Only asked what it is."""

        @staticmethod
        def isatty() -> bool:
            """It is one."""
            return True

    stdout = sys.stdout


def test_without_a_terminal_the_cost_is_shown_and_the_command_that_asks_nothing(cloud: Cloud) -> None:
    result = go_on()
    assert isinstance(result.exception, InputError)
    [problem] = result.exception.problems
    assert problem.advice == f"tritonstack capacity bench --cloud -e dev --resume {TEST} --yes"
    assert COST in result.stderr
    assert cloud.requests("StartExecution") == []


def test_with_yes_it_starts_without_the_question(cloud: Cloud, tmp_path: Path) -> None:
    result = go_on("--yes", "--to", str(tmp_path / "results"))
    assert result.exit_code == 0, result.output
    assert COST in result.stderr
    assert "Start it?" not in result.output
    assert len(cloud.requests("StartExecution")) == 1
    assert (tmp_path / "results/recommender/results.json").is_file()


def test_a_no_starts_nothing_and_a_yes_does(cloud: Cloud, tmp_path: Path) -> None:
    refused = go_on("--to", str(tmp_path / "results"), typed="n\n")
    assert (refused.exit_code, cloud.requests("StartExecution")) == (1, [])
    assert "Start it? [y/N]" in refused.stderr
    assert "Start it?" not in refused.stdout, "results alone are on standard output"
    result = go_on("--to", str(tmp_path / "results"), typed="y\n")
    assert result.exit_code == 0, result.output
    assert len(cloud.requests("StartExecution")) == 1


def test_on_the_local_aws_nothing_is_asked(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.local_aws.is_local", lambda _: True)
    result = go_on("--to", str(tmp_path / "results"))
    assert result.exit_code == 0, result.output
    assert "the local AWS makes no instance: nothing is billed" in result.stderr
    assert len(cloud.requests("StartExecution")) == 1
