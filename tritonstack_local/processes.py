"""Processes that outlive the command that started them, known again by process id and start time."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tritonstack.errors import WorkFailedError

STOP_SECONDS = 20.0
TAIL_BYTES = 64 * 1024
"""How much of a log's end is read for its last lines."""

SAME_START_SECONDS = 1.0
"""How far two readings of one process's start time may lie apart; the clock is set now and then."""


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
        return process is not None and _alive(process)

    def _process(self) -> psutil.Process | None:
        try:
            process = psutil.Process(self.pid)
            return process if abs(process.create_time() - self.started) < SAME_START_SECONDS else None
        except (psutil.NoSuchProcess, ValueError):  # a negative id, out of a damaged record, is a ValueError
            return None

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """End this process and its descendants.

        SIGTERM, and after ``seconds`` SIGKILL. Ending its descendants is the process's own work; those that it leaves
        behind get SIGKILL.
        """
        process = self._process()
        if process is None:
            return
        family = _descendants(process)
        _terminate(process)
        _await_end([process], seconds)
        # Asked again: it may have started others meanwhile.
        left = [member for member in {process, *family, *_descendants(process)} if _alive(member)]
        for survivor in left:
            _kill(survivor)
        _await_end(left, seconds)


def start_process(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ProcessRecord:
    """Start ``command`` in a session of its own, its output appended to ``log``.

    Args:
        command: the program and its arguments; no shell.
        environment: all of its environment variables.
        folder: its working folder.
        log: the file that takes standard output and error.

    Raises:
        WorkFailedError: the program cannot be run.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkFailedError(f"{command[0]} cannot be run: {error.strerror}: {error.filename}") from error
    return ProcessRecord(pid=process.pid, started=psutil.Process(process.pid).create_time(), log=str(log))


def log_tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, or a word that there is none."""
    if not log.is_file():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        start = max(0, file.tell() - TAIL_BYTES)
        file.seek(start)
        read = file.read().decode(errors="replace").splitlines()
        whole = read[1:] if start and len(read) > 1 else read  # the first was cut
        return "\n".join(whole[-lines:]) or "(empty)"


def ended_early(name: str, record: ProcessRecord) -> WorkFailedError:
    """The error for a process that ended while it was waited for."""
    return WorkFailedError(
        f"{name} ended while it was starting. The last lines of {record.log}:\n{log_tail(Path(record.log))}"
    )


def _await_end(processes: Sequence[psutil.Process], seconds: float) -> None:
    """Wait until all have ended. A zombie has, even where nothing ever reaps it, as in a container without an init."""
    deadline = time.monotonic() + seconds
    for process in processes:
        try:
            ended = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        try:
            waiting = select.poll()
            waiting.register(ended, select.POLLIN)
            waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(ended)
        with contextlib.suppress(ChildProcessError):  # its starter is another process
            os.waitpid(process.pid, os.WNOHANG)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _terminate(process: psutil.Process) -> None:
    try:
        process.terminate()
    except psutil.NoSuchProcess:
        return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
