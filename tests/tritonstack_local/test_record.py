"""The record of what runs: whole or refused with a message, and one command at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack.errors import InputError
from tritonstack.paths import LocalPaths
from tritonstack_local.processes import ProcessRecord
from tritonstack_local.record import RunningRecord, exclusive, forget_record, read_record, write_record

EMULATOR = ProcessRecord(pid=10, started=1.5, log="/logs/emulator.log")
RUNTIME = ProcessRecord(pid=11, started=2.5, log="/logs/runtime.log")
WHOLE = RunningRecord(emulator_port=4566, runtime_port=4567, emulator=EMULATOR, runtime=RUNTIME)


def ignore(_step: str) -> None:
    """A report that is discarded."""


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    paths = LocalPaths(tmp_path)
    for record in (WHOLE, RunningRecord(emulator_port=1, runtime_port=2, emulator=EMULATOR)):
        write_record(paths, record)
        assert read_record(paths) == record
    assert [path.name for path in tmp_path.iterdir()] == ["running.json"]


def test_the_runtime_comes_first_since_it_is_stopped_first() -> None:
    assert list(WHOLE.parts.values()) == [RUNTIME, EMULATOR]
    assert list(RunningRecord(emulator_port=1, runtime_port=2, emulator=EMULATOR).parts.values()) == [EMULATOR]


def test_without_a_record_nothing_runs(tmp_path: Path) -> None:
    assert read_record(LocalPaths(tmp_path)) is None
    assert read_record(LocalPaths(tmp_path / "no" / "such" / "folder")) is None
    forget_record(LocalPaths(tmp_path))


def test_a_forgotten_record_is_gone(tmp_path: Path) -> None:
    write_record(LocalPaths(tmp_path), WHOLE)
    forget_record(LocalPaths(tmp_path))
    assert read_record(LocalPaths(tmp_path)) is None


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", "null", "\x00\xff", '{"emulator_port": 1}', '{"emulator_port": "x", "runtime_port": 2}',
        '{"emulator_port": 1, "runtime_port": 2, "emulator": {"pid": 3}}',
    ],
)  # fmt: skip
def test_a_damaged_record_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    paths = LocalPaths(tmp_path)
    paths.record.write_text(content)
    with pytest.raises(InputError) as raised:
        read_record(paths)
    assert str(paths.record) in str(raised.value)
    assert "tritonstack local up" in str(raised.value)


@given(content=st.binary(max_size=80))
def test_any_bytes_in_the_record_s_place_are_refused_with_a_message(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = LocalPaths(tmp_path_factory.mktemp("record"))
    paths.record.write_bytes(content)
    with pytest.raises(InputError):
        read_record(paths)


def test_a_half_written_successor_leaves_the_record_as_it_was(tmp_path: Path) -> None:
    paths = LocalPaths(tmp_path)
    write_record(paths, WHOLE)
    paths.record.with_suffix(".new").write_text('{"emulator_p')
    assert read_record(paths) == WHOLE


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    paths = LocalPaths(tmp_path)
    with pytest.raises(ZeroDivisionError), exclusive(paths, report=ignore):
        raise ZeroDivisionError
    said: list[str] = []
    with exclusive(paths, report=said.append):
        assert said == []
