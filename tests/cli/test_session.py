"""Which AWS ``publish`` and ``prune`` use, and their messages about wrong settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.test_examples import run_example
from tests.config.environment_file import write_environment
from tests.fake_aws import UNREACHABLE, FakeAws
from tests.local_keys import KEYS
from tritonstack.cli import root as cli
from tritonstack.cli import session
from tritonstack_local import aws as local_aws
from tritonstack_local.processes import ProcessRecord

ACCOUNT = "123456789012"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the environments ``dev`` and ``local``, no state, and a shell without any AWS setting."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "state"))
    (tmp_path / "environments").mkdir()
    for name in ("dev", "local"):
        write_environment(tmp_path / "environments", header=f"environment: {name}", name=name)
    return tmp_path


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """An account that the shell has credentials of."""
    aws = FakeAws.with_artifacts("dev", "local")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    aws.install(monkeypatch)
    return aws


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of ``tritonstack <arguments>``; a traceback fails the test."""
    monkeypatch.setattr("sys.argv", ["tritonstack", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize("command", [["publish", "-e", "dev"], ["prune", "-e", "dev"], ["prune", "-e", "dev", "--yes"]])
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"AWS_PROFILE": "nope"}, "nope"),
        ({"AWS_ENDPOINT_URL": "nonsense"}, "nonsense"),
    ],
)
def test_aws_settings_that_lead_nowhere_end_with_2_and_a_message(
    command: list[str],
    variables: dict[str, str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, *command) == 2
    said = capsys.readouterr().err
    assert "AWS settings" in said
    assert words in said


def test_without_credentials_nothing_is_published_and_the_message_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "publish", "-e", "dev") == 2
    assert "Unable to locate credentials" in capsys.readouterr().err


@pytest.mark.parametrize("variables", [{}, {"AWS_REGION": "eu-west-1"}])
def test_the_region_is_that_of_the_environments_file_whatever_the_shell_says(
    aws: FakeAws, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, "prune", "-e", "dev") == 0
    assert "0 archives" in capsys.readouterr().err
    assert {region for _, region in aws.clients} == {"us-east-1"}


@pytest.mark.parametrize("command", [["publish", "-e", "dev"], ["prune", "-e", "dev", "--yes"]])
def test_credentials_of_another_account_are_refused_and_both_accounts_named(
    command: list[str], aws: FakeAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.account = "210987654321"
    assert run(monkeypatch, *command) == 2
    said = capsys.readouterr().err
    assert "210987654321" in said
    assert ACCOUNT in said
    assert aws.writes == aws.deletes == []


def test_credentials_of_the_right_account_prune(
    aws: FakeAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.account = ACCOUNT
    key = f"endpoints/digits/24.09-t4/digits-onnx.{99:016x}.tar.gz"
    aws.artifacts[key], aws.ages[key] = b"archive", 100.0
    aws.parameters["/tritonstack/dev/digits/digits-onnx"] = f"{1:016x}"
    assert run(monkeypatch, "prune", "-e", "dev", "--yes") == 0
    assert (key in aws.deletes, "1 archives" in capsys.readouterr().err) == (True, True)


def test_the_example_of_prune_lists_what_it_would_delete(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_environment(project / "environments", header="environment: prod", name="prod")
    aws = FakeAws.with_artifacts("prod")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    aws.install(monkeypatch)
    key = f"endpoints/digits/24.09-t4/digits-onnx.{99:016x}.tar.gz"
    aws.artifacts[key], aws.ages[key] = b"archive", 100.0
    aws.parameters["/tritonstack/prod/digits/digits-onnx"] = f"{1:016x}"
    done = run_example("prune")
    assert done.exception is None
    assert key in done.output
    assert aws.deletes == []


def test_environment_local_without_a_local_aws_says_what_to_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "publish", "-e", "local") == 2
    assert "tritonstack local up" in capsys.readouterr().err


def test_a_shell_that_points_at_a_local_aws_that_has_ended_is_told_that_none_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {
        "AWS_ENDPOINT_URL": UNREACHABLE,
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert run(monkeypatch, "invoke", "digits", "--text", "x") == 2
    said = capsys.readouterr().err
    assert "no local AWS is running" in said
    assert "tritonstack local up" in said


def test_environment_local_is_where_a_profile_points_when_no_local_aws_of_ours_runs(
    aws: FakeAws, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text("[default]\nendpoint_url = http://127.0.0.1:4321\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert run(monkeypatch, "prune", "-e", "local", "--yes") == 0
    assert "0 archives" in capsys.readouterr().err
    assert aws.endpoint_urls == {"http://127.0.0.1:4321"}


def test_environment_local_means_the_running_local_aws(
    aws: FakeAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = ProcessRecord(pid=1, started=0.0, log="")
    running = local_aws.LocalAws(emulator_port=4322, runtime_port=4323, keys=KEYS, emulator=gone, runtime=gone)
    for name in ("find_local_aws", "require_local_aws"):
        monkeypatch.setattr(session, name, lambda: running)
    assert run(monkeypatch, "prune", "-e", "local", "--yes") == 0
    assert "0 archives" in capsys.readouterr().err
    assert aws.endpoint_urls == {"http://127.0.0.1:4322"}
