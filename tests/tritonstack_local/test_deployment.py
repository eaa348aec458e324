"""The CDK command line as it is run: its arguments, its variables, its failures, its interruption."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import psutil
import pytest

from tests.local_keys import KEYS
from tests.tritonstack_local.fake_parts import record_of, wait_for
from tests.tritonstack_local.http_fake import responding
from tritonstack.errors import WorkFailedError
from tritonstack_local.aws import LocalAws
from tritonstack_local.commands import deploy as deployment
from tritonstack_local.commands.deploy import LocalDeployment

Cdk = Callable[[str], None]
XML = {"Content-Type": "text/xml"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path / "project"))
    (tmp_path / "project").mkdir()
    return tmp_path / "home"


@pytest.fixture
def cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cdk:
    """Puts a piece of Python in the CDK's place."""
    program = tmp_path / "cdk"
    monkeypatch.setattr(deployment, "cdk_program", lambda: program)

    def put(code: str) -> None:
        program.write_text(f"#!{sys.executable} -S\nimport os, sys, time\n{dedent(code)}")
        program.chmod(0o755)

    return put


def local(port: int = 4566) -> LocalDeployment:
    """A deployment of environment ``local``."""
    me = record_of(os.getpid(), log="/logs/emulator.log")
    return LocalDeployment(
        aws=LocalAws(emulator_port=port, runtime_port=4567, keys=KEYS, emulator=me, runtime=me), environment="local"
    )


def lines_of(run: Callable[[LocalDeployment], None]) -> list[str]:
    """The lines that ``on_line`` is called with."""
    lines: list[str] = []
    one = local()
    one.on_line = lines.append
    run(one)
    return lines


PRINT_ARGUMENTS = "print(*sys.argv[1:], sep='\\n')"


def test_synthesis_gets_one_environment_and_the_project_s_folders(cdk: Cdk, home: Path) -> None:
    cdk(PRINT_ARGUMENTS)
    lines = lines_of(LocalDeployment.synthesise)
    assert lines[:4] == ["synth", "--quiet", "--output", str(home / "cdk.out" / "local")]
    for value in ("environments=local", f"model-repositories={home.parent}/project/model_repos"):
        assert lines[lines.index(value) - 1] == "--context"


def test_a_deployment_takes_the_synthesised_templates_without_a_prompt(cdk: Cdk, home: Path) -> None:
    cdk(PRINT_ARGUMENTS + "; sys.stdout.buffer.write(b'caf\\xe9\\n')")
    lines = lines_of(lambda one: one.deploy("local/serving-*", concurrency=3))
    assert lines[:3] == ["deploy", "--app", str(home / "cdk.out" / "local")]
    assert lines[lines.index("--require-approval") + 1] == "never"
    assert lines[lines.index("--concurrency") + 1] == "3"
    assert {"local/serving-*", "caf\ufffd"} <= set(lines)
    assert {"local/*", "--force"} <= set(lines_of(LocalDeployment.destroy))
    log = (home / "logs" / "cdk.log").read_text()
    assert log.index("$ cdk deploy") < log.index("$ cdk destroy")


def test_a_bootstrap_gives_the_execution_role_these_policies_or_else_every_right(cdk: Cdk) -> None:
    cdk(PRINT_ARGUMENTS)
    option = "--cloudformation-execution-policies"
    restricted = lines_of(lambda one: one.bootstrap(policies=["arn:a", "arn:b"]))
    assert restricted[:2] == ["bootstrap", "aws://123456789012/us-east-1"]
    assert restricted[restricted.index(option) + 1] == "arn:a,arn:b"
    assert option not in lines_of(LocalDeployment.bootstrap)


def test_the_cdk_sees_the_local_aws_and_nothing_of_the_person_s_own(
    cdk: Cdk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "HTTPS_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://mine")
    monkeypatch.setenv("KEPT", "kept")
    cdk("print(*sorted(f'{name}={value}' for name, value in os.environ.items()), sep='\\n')")
    variables = dict(line.partition("=")[::2] for line in lines_of(LocalDeployment.destroy))
    assert "http://mine" not in variables.values()
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert variables["KEPT"] == "kept"
    assert variables["CDK_HOME"] == str(home / "cdk-home")
    assert variables["PATH"].endswith(os.environ["PATH"])


def test_a_failure_shows_the_last_lines_and_the_whole_log_s_place(cdk: Cdk, home: Path) -> None:
    cdk(
        """
        for number in range(100): print("line", number)
        sys.exit("the stack is in ROLLBACK_COMPLETE")
        """
    )
    with pytest.raises(WorkFailedError) as raised:
        local().deploy("local/artifacts")
    message = str(raised.value)
    assert message.startswith(f"cdk deploy ended with 1; the whole log: {home}/logs/cdk.log")
    assert "ROLLBACK_COMPLETE" in message
    assert "line 99" in message
    assert "line 5\n" not in message
    assert "line 5\n" in (home / "logs" / "cdk.log").read_text()


@pytest.mark.parametrize("before", ["", "import signal; signal.signal(15, signal.SIG_IGN); "], ids=["heeds", "ignores"])
def test_an_interrupted_deployment_ends_the_cdk_also_one_that_ignores_sigterm(
    cdk: Cdk, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(deployment, "END_SECONDS", 0.5)
    cdk(f"{before}print(os.getpid(), flush=True); time.sleep(600)")
    pids: list[int] = []

    def interrupt(line: str) -> None:
        pids.append(int(line))
        raise KeyboardInterrupt

    one = local()
    one.on_line = interrupt
    with pytest.raises(KeyboardInterrupt):
        one.destroy()
    wait_for(lambda: not psutil.pid_exists(pids[0]))


def test_an_emulator_that_no_longer_responds_is_a_message_with_its_log() -> None:
    with responding(b"") as (port, _):
        free = port
    with pytest.raises(WorkFailedError, match=r"its log: /logs/emulator\.log"):
        local(free).bootstrapped()
