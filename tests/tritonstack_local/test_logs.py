"""Logs: found also when nothing runs any more, printed from the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.tritonstack_local.fake_parts import wait_for
from tritonstack.errors import InputError
from tritonstack.paths import LocalPaths
from tritonstack_local.commands import status


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


def add_fleet(paths: LocalPaths, endpoint: str, fleet: str) -> None:
    """A fleet's folder with its log."""
    folder = paths.runtime / "fleets" / endpoint / fleet
    folder.mkdir(parents=True)
    (folder / "triton.log").write_text(f"{fleet} of {endpoint}\n")


def printed(*arguments: str) -> str:
    """What ``tritonstack local logs`` prints."""
    return CliRunner().invoke(status.logs_command, list(arguments), catch_exceptions=False).stdout


def test_without_a_name_every_log_is_listed(paths: LocalPaths) -> None:
    assert [line.split()[0] for line in printed().splitlines()] == ["emulator", "runtime", "local-digits"]


def test_the_last_lines_are_printed(paths: LocalPaths) -> None:
    assert printed("emulator", "-n", "2") == "emulator 98\nemulator 99\n"
    assert len(printed("runtime").splitlines()) == 50


def test_an_endpoint_s_log_is_that_of_its_latest_fleet(paths: LocalPaths) -> None:
    for fleet in ("config.9", "config.10", "no-number"):
        add_fleet(paths, "local-digits", fleet)
    assert printed("local-digits") == "config.10 of local-digits\n"


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


def test_where_nothing_was_ever_started_it_reports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / "none"))
    listed = CliRunner().invoke(status.logs_command, [])
    assert (listed.stdout, listed.exit_code) == ("", 0)
    assert "no log exists yet" in listed.stderr
    with pytest.raises(InputError, match="no log exists yet"):
        printed("emulator")


def test_bytes_that_are_no_text_are_printed_all_the_same(paths: LocalPaths) -> None:
    (paths.logs / "cdk.log").write_bytes(b"caf\xe9\n")
    assert printed("cdk") == "caf\ufffd\n"


def test_a_log_that_goes_away_is_a_message(paths: LocalPaths) -> None:
    with pytest.raises(InputError, match="no longer there"):
        status.print_log(paths.logs / "gone.log", lines=1, follow=False)


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
