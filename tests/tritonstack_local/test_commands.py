"""``up``, ``down``, ``env`` and ``status`` as a person runs them, on fake parts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from tests.tritonstack_local.fake_parts import FakeParts, kill
from tritonstack.cli.root import root
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.paths import REPOSITORY
from tritonstack_local.aws import PERSONAL_VARIABLES, require_local_aws
from tritonstack_local.record import note_deployed
from tritonstack_local.start import stop_local_aws


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeParts]:
    """Fakes, ended after the test."""
    fakes = FakeParts(tmp_path / "a folder with 'quotes' and $signs", monkeypatch)
    yield fakes
    fakes.stop()


def run(*arguments: str) -> Result:
    """Run the command line here; an error of ours is in ``exception``."""
    return CliRunner().invoke(root, list(arguments))


def up() -> Result:
    """``tritonstack local up`` on free ports."""
    return run("local", "up", "--port", "0", "--runtime-port", "0")


def test_up_prints_where_it_listens_and_down_that_it_stopped(parts: FakeParts) -> None:
    started = up()
    aws = require_local_aws()
    assert started.exit_code == 0
    assert f"{aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}" in started.stderr
    assert run("local", "down").stderr.endswith("stopped\n")
    assert run("local", "down").stderr.endswith("none was running\n")


def test_up_twice_reports_that_it_is_up_and_where(parts: FakeParts) -> None:
    up()
    second = up()
    assert second.exit_code == 0
    assert f"up already: {require_local_aws().emulator_url}" in second.stdout


def test_up_on_other_ports_than_asked_for_is_reported(parts: FakeParts) -> None:
    up()
    port = require_local_aws().emulator_port
    refused = run("local", "up", "--port", "1")
    assert isinstance(refused.exception, InputError)
    assert f"--port 1\n  found:   the local AWS is up on port {port}" in str(refused.exception)
    assert run("local", "up", "--port", str(port)).exit_code == 0


def test_the_variables_of_the_ports_are_named_in_the_help_and_where_they_are_wrong(parts: FakeParts) -> None:
    for name in ("TRITONSTACK_PORT", "TRITONSTACK_RUNTIME_PORT"):
        assert name in run("local", "up", "--help").stdout
        assert name in CliRunner().invoke(root, ["local", "up"], env={name: "http"}).stderr


def test_up_after_a_part_died_reports_what_is_discarded(parts: FakeParts) -> None:
    up()
    kill(require_local_aws().runtime)
    assert "what was deployed there is discarded" in up().stderr


def test_ports_can_be_given_as_variables(parts: FakeParts) -> None:
    started = CliRunner().invoke(root, ["local", "up"], env={"TRITONSTACK_PORT": "0", "TRITONSTACK_RUNTIME_PORT": "0"})
    assert started.exit_code == 0
    assert require_local_aws().emulator_port != 4566


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_port_that_cannot_be_one_is_a_usage_error(parts: FakeParts, port: str) -> None:
    for option in ("--port", "--runtime-port"):
        refused = run("local", "up", option, port)
        assert refused.exit_code == 2
        assert option in refused.stderr
    assert parts.processes() == []


def test_down_reports_which_part_had_ended_before(parts: FakeParts) -> None:
    up()
    kill(require_local_aws().runtime)
    assert run("local", "down").stderr.endswith("stopped; the SageMaker runtime had ended before\n")


def shell(script: str) -> list[str]:
    """What a shell prints after ``script``: the endpoint, the profile, the CDK's folder."""
    shown = 'echo "${AWS_ENDPOINT_URL-none}"; echo "${AWS_PROFILE-none}"; echo "${CDK_HOME-none}"'
    result = subprocess.run(
        ["bash", "-euc", f"export AWS_PROFILE=prod\n{script}\n{shown}"],
        env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True, check=True,
    )  # fmt: skip
    return result.stdout.splitlines()


def test_env_points_a_shell_at_the_local_aws_whatever_the_folder_is_called(parts: FakeParts) -> None:
    up()
    aws = require_local_aws()
    assert shell(run("local", "env").stdout) == [aws.emulator_url, "none", str(parts.home / "cdk-home")]
    assert set(aws.variables()) & set(PERSONAL_VARIABLES) == set()


def test_env_unset_takes_the_variables_back_also_after_the_end(parts: FakeParts) -> None:
    up()
    script = run("local", "env").stdout
    run("local", "down")
    assert shell(script + run("local", "env", "--unset").stdout) == ["none", "none", "none"]


def test_env_puts_our_programs_on_the_path_once_and_unset_takes_them_off(parts: FakeParts) -> None:
    up()
    script, back = run("local", "env").stdout, run("local", "env", "--unset").stdout
    shown = 'echo "$PATH"; echo "${JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION-}${NODE_NO_WARNINGS-}"'
    result = subprocess.run(
        ["bash", "-euc", f"{script}\n{script}\n{shown}\n{back}\n{shown}"],
        env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True, check=True,
    )  # fmt: skip
    programs = REPOSITORY / ".envs" / "main" / "bin"
    assert result.stdout.splitlines() == [f"{programs}:/usr/bin:/bin", "201", "/usr/bin:/bin", ""]


@pytest.mark.parametrize(
    "arguments",
    [["local", "env"], ["local", "status"], ["local", "status", "--json"], ["local", "destroy"], ["local", "demo"]],
)
def test_what_needs_a_local_aws_reports_how_to_start_one(parts: FakeParts, arguments: list[str]) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert "tritonstack local up" in str(result.exception)


def test_status_prints_the_view_and_json_prints_the_runtime_s_own(parts: FakeParts) -> None:
    up()
    assert "no endpoint is deployed" in run("local", "status").stdout
    assert json.loads(run("local", "status", "--json").stdout) == {"local_aws": "answers", "endpoints": []}


def test_status_after_the_runtime_died_reports_what_to_do(parts: FakeParts) -> None:
    up()
    kill(require_local_aws().runtime)
    result = run("local", "status")
    assert isinstance(result.exception, WorkFailedError)
    for words in ("the SageMaker runtime", "has ended", "started runtime", "tritonstack local up"):
        assert words in str(result.exception)


def test_watching_where_nothing_can_be_redrawn_is_refused(parts: FakeParts) -> None:
    refused = run("local", "status", "--watch")
    assert refused.exit_code == 2
    assert "needs a terminal" in refused.stderr


def test_watching_draws_anew_until_interrupted_and_ends_well(parts: FakeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    up()
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("tritonstack_local.commands.status.time", SimpleNamespace(sleep=pause))
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the output for a terminal
    monkeypatch.setenv("TERM", "xterm")
    watched = run("local", "status", "--watch")
    assert watched.exit_code == 0
    assert watched.stdout.count("no endpoint is deployed") >= 2
    assert len(pauses) == 3


def test_a_runtime_that_dies_while_it_is_watched_is_a_message(
    parts: FakeParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    up()
    runtime = require_local_aws().runtime
    monkeypatch.setattr("tritonstack_local.commands.status.time", SimpleNamespace(sleep=lambda _seconds: kill(runtime)))
    monkeypatch.setenv("FORCE_COLOR", "1")
    watched = run("local", "status", "--watch")
    assert isinstance(watched.exception, WorkFailedError)
    assert "does not answer" in str(watched.exception)


def test_watching_ends_well_when_the_local_aws_is_stopped(parts: FakeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    up()
    monkeypatch.setattr(
        "tritonstack_local.commands.status.time", SimpleNamespace(sleep=lambda _seconds: stop_local_aws())
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    watched = run("local", "status", "--watch")
    assert watched.exit_code == 0
    assert watched.stdout.endswith("the local AWS was stopped\n")


def deployed(parts: FakeParts, **endpoints: list[str]) -> None:
    """As ``local deploy`` notes it."""
    note_deployed(parts.paths, endpoints, emulator=require_local_aws().emulator)


def test_down_up_status_and_invoke_say_what_is_gone_until_it_is_deployed_again(parts: FakeParts) -> None:
    up()
    deployed(parts, local=["digits", "many"])
    assert "gone" not in run("local", "status").stdout
    down = run("local", "down").stderr
    assert "gone with it, though built archives stay: local (digits, many)" in down
    assert "tritonstack local deploy local" in down
    stopped = run("invoke", "digits/x", "--text", "x", "--local")
    assert isinstance(stopped.exception, InputError)
    assert "no local AWS is running, and what was deployed is gone with the last one: local" in str(stopped.exception)
    assert "tritonstack local up, then tritonstack local deploy local" in str(stopped.exception)
    for said in (up().stderr, run("local", "status").stdout):
        assert "no longer deployed" in said
        assert "local (digits, many)" in said
    deployed(parts, dev=["text"])
    assert "no longer deployed" not in run("local", "status").stdout


def test_what_ended_without_down_is_reported_by_up(parts: FakeParts) -> None:
    up()
    deployed(parts, local=["digits"])
    for part in (require_local_aws().runtime, require_local_aws().emulator):
        kill(part)  # as a restart of the machine does
    assert "no longer deployed, as the local AWS that held it was stopped: local (digits)" in up().stderr


def test_down_asks_the_local_aws_itself_what_is_deployed(parts: FakeParts, monkeypatch: pytest.MonkeyPatch) -> None:
    up()
    monkeypatch.setattr("tritonstack_local.commands.start_stop.deployed_environments", lambda _aws: {"by-hand": ["x"]})
    assert "by-hand (x)" in run("local", "down").stderr
    assert "gone with it" not in run("local", "down").stderr, "it is said once"


def test_a_damaged_note_of_what_was_deployed_stops_nothing(parts: FakeParts) -> None:
    parts.paths.deployed.write_text("{")
    assert up().exit_code == 0
    assert run("local", "down").exit_code == 0
