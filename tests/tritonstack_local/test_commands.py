"""``up``, ``down``, ``env`` and ``status`` as a person runs them, on fake parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.test_examples import run_example
from tests.tritonstack_local.fake_parts import FakeParts, kill, wait_for
from tritonstack.cli.root import root
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY, LocalPaths
from tritonstack_local.aws import PERSONAL_VARIABLES, require_local_aws
from tritonstack_local.commands import status


def run(*arguments: str) -> Result:
    """Run the command line here; an error of ours is in ``exception``."""
    return CliRunner().invoke(root, list(arguments))


def up(*options: str) -> Result:
    """``tritonstack local up`` on free ports."""
    return run("local", "up", "--port", "0", "--runtime-port", "0", *options)


def test_up_status_and_down_print_where_it_listens_what_is_there_and_that_it_stopped(parts: FakeParts) -> None:
    started = CliRunner().invoke(root, ["local", "up"], env={"TRITONSTACK_PORT": "0", "TRITONSTACK_RUNTIME_PORT": "0"})
    aws = require_local_aws()
    assert started.exit_code == 0
    assert f"{aws.emulator_url}, InvokeEndpoint at {aws.runtime_url}" in started.stderr
    assert f"up already: {aws.emulator_url}" in up().stdout
    assert "IAM stays on; to start without it: tritonstack local down" in up("--no-iam").stdout
    shown = run("local", "status").stdout
    assert "no endpoint is deployed" in shown
    assert "IAM" not in shown, "nothing was denied"
    assert json.loads(run("local", "status", "--json").stdout) == {
        "local_aws": "answers",
        "endpoints": [],
        "left": [],
    }
    kill(aws.runtime)
    assert "it is started again, and takes up the endpoints" in up("--no-iam").stderr
    kill(require_local_aws().emulator)
    assert "it is started again, empty. To deploy again: tritonstack local deploy" in up().stderr
    kill(require_local_aws().runtime)
    assert run("local", "down").stderr.endswith("stopped; the SageMaker runtime had ended before\n")
    assert run("local", "down").stderr.endswith("none was running\n")


def test_the_examples_of_help_start_a_local_aws_and_print_its_log(
    parts: FakeParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSTACK_RUNTIME_PORT", "0")
    assert run_example("local up").exception is None
    assert require_local_aws().emulator_url.startswith("http://127.0.0.1:")
    assert "started emulator" in run_example("local logs").stdout


@pytest.mark.parametrize(("option", "enforced"), [([], "on"), (["--no-iam"], "off")])
def test_permissions_are_enforced_and_recorded_unless_it_is_started_without_which_it_prints(
    parts: FakeParts, option: list[str], enforced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSTACK_IAM_RECORDS", "records")
    started = up(*option)
    assert ("IAM is switched off: every request is allowed" in started.stderr) is (enforced == "off")
    given = [each.environ() for each in parts.processes()]
    assert [each["TRITONSTACK_IAM"] for each in given] == [enforced] * 2
    # The emulator starts in a folder of its own, and the records are of the caller's.
    assert str(Path("records").absolute()) in [each.get("TRITONSTACK_IAM_RECORDS") for each in given]


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "aarch64")])
def test_on_another_system_every_command_reports_what_it_needs(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    for command in ("up", "deploy", "status"):
        error = run("local", command).exception
        assert isinstance(error, InputError)
        assert error.exit_code == 2
        assert f"tritonstack local {command}\n  found:   {system} on {machine}" in str(error)
        assert "docker build --platform linux/amd64" in str(error)
    assert "up " in run("local", "--help").stdout


def test_a_port_that_cannot_be_one_is_a_usage_error_that_names_option_or_variable(parts: FakeParts) -> None:
    for option, port in (("--port", "70000"), ("--runtime-port", "http")):
        refused = run("local", "up", option, port)
        assert refused.exit_code == 2
        assert option in refused.stderr
    for name in ("TRITONSTACK_PORT", "TRITONSTACK_RUNTIME_PORT"):
        assert name in run("local", "up", "--help").stdout
        assert name in CliRunner().invoke(root, ["local", "up"], env={name: "http"}).stderr
    assert parts.processes() == []


def test_env_points_a_shell_at_the_local_aws_and_unset_takes_all_back_also_after_the_end(parts: FakeParts) -> None:
    up()
    aws, script = require_local_aws(), run("local", "env").stdout
    run("local", "down")
    back = run("local", "env", "--unset").stdout
    shown = "; ".join(f'echo "${{{name}-none}}"' for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "CDK_HOME", "PATH"))
    result = subprocess.run(
        ["bash", "-euc", f"export AWS_PROFILE=prod\n{script}\n{script}\n{shown}\n{back}\n{shown}"],
        env={"PATH": "/usr/bin:/bin"}, text=True, capture_output=True, check=True,
    )  # fmt: skip
    programs = REPOSITORY / ".envs" / "main" / "bin"
    assert result.stdout.splitlines() == [
        *(aws.emulator_url, "none", str(parts.home / "cdk-home"), f"{programs}:/usr/bin:/bin"),
        *("none", "none", "none", "/usr/bin:/bin"),
    ]
    assert set(aws.variables()) & set(PERSONAL_VARIABLES) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["local", "env"],
        ["local", "iam", "report"],
        ["local", "status"],
        ["local", "status", "--json"],
        ["local", "destroy"],
        ["local", "demo"],
    ],
)
def test_what_needs_a_local_aws_reports_how_to_start_one(parts: FakeParts, arguments: list[str]) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, InputError)
    assert "tritonstack local up" in str(result.exception)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalPaths:
    """A state folder with two logs of ours and one endpoint's."""
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path))
    found = LocalPaths(tmp_path)
    found.logs.mkdir()
    for name in ("emulator", "runtime"):
        (found.logs / f"{name}.log").write_text("".join(f"{name} {number}\n" for number in range(100)))
    add_fleet(found, "local-digits", "config.1")
    return found


def add_fleet(paths: LocalPaths, endpoint: str, fleet: str, *, variant: str = "g4dn-xlarge") -> None:
    """A fleet's folder with its log."""
    folder = paths.runtime / "fleets" / endpoint / variant / fleet
    folder.mkdir(parents=True)
    (folder / "triton.log").write_text(f"{fleet} of {endpoint}\n")


def printed(*arguments: str) -> str:
    """What ``tritonstack local logs`` prints."""
    return CliRunner().invoke(status.logs_command, list(arguments), catch_exceptions=False).stdout


def test_every_log_is_listed_and_of_one_the_last_lines_are_printed(paths: LocalPaths) -> None:
    assert [line.split()[0] for line in printed().splitlines()] == ["emulator", "runtime", "local-digits"]
    assert printed("emulator", "-n", "2") == "emulator 98\nemulator 99\n"
    assert len(printed("runtime").splitlines()) == 50


def test_an_endpoint_s_log_is_that_of_its_latest_fleet(paths: LocalPaths) -> None:
    for fleet in ("config.9", "config.10", "no-number"):
        add_fleet(paths, "local-digits", fleet)
    assert printed("local-digits") == "config.10 of local-digits\n"


def test_each_of_several_variants_has_a_log(paths: LocalPaths) -> None:
    add_fleet(paths, "local-ab", "config.7", variant="a-g4dn-xlarge")
    add_fleet(paths, "local-ab", "config.8", variant="b-g5-xlarge")
    listed = [line.split()[0] for line in printed().splitlines()]
    assert [name for name in listed if name.startswith("local-")] == [
        "local-ab",
        "local-digits",
        "local-ab/a-g4dn-xlarge",
        "local-ab/b-g5-xlarge",
    ]
    assert printed("ab/a-g4dn-xlarge") == "config.7 of local-ab\n"
    assert printed("ab") == "config.8 of local-ab\n"


def test_an_endpoint_s_log_is_found_by_the_name_in_the_environment_s_file(paths: LocalPaths) -> None:
    assert printed("digits") == "config.1 of local-digits\n"
    add_fleet(paths, "dev-digits", "config.1")
    assert printed("digits") == "config.1 of local-digits\n"
    for environment in ("dev", "prod"):
        add_fleet(paths, f"{environment}-faces", "config.1")
    with pytest.raises(InputError, match="dev-digits, dev-faces, local-digits, prod-faces"):
        printed("faces")


def test_an_unknown_name_is_refused_with_those_that_there_are(paths: LocalPaths) -> None:
    with pytest.raises(InputError, match="emulator, runtime, local-digits"):
        printed("nothing")
    with pytest.raises(InputError, match=r"Did you mean emulator\?"):
        printed("emulatr")


def test_where_nothing_was_ever_started_it_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "none"))
    listed = CliRunner().invoke(status.logs_command, [])
    assert (listed.stdout, listed.exit_code) == ("", 0)
    assert "no local AWS is running, and no log exists yet" in listed.stderr
    with pytest.raises(InputError, match="emulator, and no local AWS is running") as refused:
        printed("emulator")
    assert refused.value.problems[0].advice == "tritonstack local up, then tritonstack local deploy"


def test_following_prints_what_is_added_until_interrupted(paths: LocalPaths, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with (
        output.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "tritonstack", "local", "logs", "emulator", "-n", "1", "-f"],
            env={**os.environ, "PYTHONUNBUFFERED": "1"}, stdout=file, stderr=subprocess.PIPE,
        ) as following,
    ):  # fmt: skip
        try:
            wait_for(lambda: output.read_text() == "emulator 99\n")
            with (paths.logs / "emulator.log").open("a") as log:
                log.write("emulator 100\n")
            wait_for(lambda: output.read_text() == "emulator 99\nemulator 100\n")
        finally:
            following.send_signal(signal.SIGINT)
        assert following.wait(20) == 130
        assert following.stderr is not None
        assert b"Traceback" not in following.stderr.read()
