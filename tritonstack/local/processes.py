"""Processes that outlive the command that started them, known again by process id and start time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tritonstack.errors import WorkFailedError

STOP_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """One process of ours. The start time tells it from a later process with the same id."""

    pid: int
    started: float
    log: str

    @property
    def running(self) -> bool:
        """Whether exactly this process is alive."""
        process = self._process()
        return process is not None and process.status() != psutil.STATUS_ZOMBIE

    def _process(self) -> psutil.Process | None:
        try:
            process = psutil.Process(self.pid)
            return process if abs(process.create_time() - self.started) < 1.0 else None
        except psutil.NoSuchProcess:
            return None

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """End this process and its descendants: SIGTERM, and after ``seconds`` SIGKILL to those that remain."""
        process = self._process()
        if process is None:
            return
        family = [process, *_descendants(process)]
        _signal(process.terminate)
        _, alive = psutil.wait_procs(family, timeout=seconds)
        for survivor in alive:
            _signal(survivor.kill)
        psutil.wait_procs(alive, timeout=seconds)


def start_process(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ProcessRecord:
    """Start ``command`` in a session of its own, its output appended to ``log``.

    Args:
        command: the program and its arguments; no shell.
        environment: all of its environment variables.
        folder: its working folder.
        log: the file that takes standard output and error.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    return ProcessRecord(pid=process.pid, started=psutil.Process(process.pid).create_time(), log=str(log))


def log_tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, or a word that there is none."""
    if not log.is_file():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 200 * lines))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def ended_early(name: str, record: ProcessRecord) -> WorkFailedError:
    """The error for a process that ended while it was waited for."""
    return WorkFailedError(
        f"{name} ended while it was starting. The last lines of {record.log}:\n{log_tail(Path(record.log))}"
    )


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except psutil.NoSuchProcess:
        return
