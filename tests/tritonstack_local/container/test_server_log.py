"""What is read off the server's log."""

from __future__ import annotations

from pathlib import Path

from tritonstack_local.container.container import last_lines, server_version


def test_the_version_is_that_of_the_last_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("| server_version    | 2.50.0  |\nmore\n| server_version                   | 2.51.0     |\n")
    assert server_version(log) == "2.51.0"


def test_without_a_start_log_there_is_no_version(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("serve: starting\n")
    assert server_version(tmp_path / "log") is None


def test_the_last_lines_leave_out_tables_and_flags(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nsecond\n\n+----+\n| a |\n+----+\nthird\nUsage: tritonserver [options]\n  --help\n")
    assert last_lines(log, 2) == "second\nthird"


def test_an_argument_named_after_the_list_of_flags_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "log"
    flags = "Usage: tritonserver [options]\n  --help\n\tPrint usage\n\nMemory/Device Management:\n  --id <string>\n\n"
    log.write_text(f"serve: a note\n{flags}Unexpected argument: twelve\n\n")
    assert last_lines(log, 5) == "serve: a note\nUnexpected argument: twelve"


def test_the_last_lines_of_a_long_log_are_its_last(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(50_000)))
    assert last_lines(log, 2) == "line 49998\nline 49999"
