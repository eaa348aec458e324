"""Runs a buildspec's commands, one after the other, as CodeBuild's agent does.

Each command is a script of its own that takes on the folder and the variables in which the one before ended: with
version 0.2 they carry over, through all phases. The agent does it so too: its scripts, ``output/tmp/script.sh``, are
seen in the shells' error messages, with the command in line 4.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tritonstack.local.emulator.clock import Deadline, clock
from tritonstack.local.emulator.codebuild.processes import end_processes

_LAST_LINES_SECONDS = 0.5


class BuildShell:
    """The shell of one build.

    Attributes:
        mark: the environment's entry by which the build's processes are known.
    """

    def __init__(
        self,
        *,
        program: str,
        folder: Path,
        directory: Path,
        environment: Mapping[str, str],
        line: Callable[[str], None],
    ) -> None:
        """A shell for one build.

        Args:
            program: ``sh`` or ``bash``.
            folder: for scripts and state; made where it is missing.
            directory: where the first command runs.
            environment: all that it has; CODEBUILD_BUILD_ID is in it.
            line: gets each line of output, from a thread.
        """
        self._program = program
        self._script = folder / "script.sh"
        self._state = folder / "env.sh"
        self._directory = folder / "dir.txt"
        self._environment = dict(environment)
        self._line = line
        self._leaders: list[int] = []
        self._running: list[threading.Thread] = []
        self.mark = f"CODEBUILD_BUILD_ID={environment['CODEBUILD_BUILD_ID']}"
        folder.mkdir(parents=True, exist_ok=True)
        self._state.write_text("")
        self._directory.write_text(str(directory))

    def set(self, name: str, value: str) -> None:
        """A variable for the commands to come."""
        with self._state.open("a") as stream:
            stream.write(f"\nexport {name}={shlex.quote(value)}\n")

    def run(self, command: str, *, interrupted: Callable[[], bool], deadline: Deadline) -> int | None:
        """A command's exit status; None where it was interrupted or the deadline came first (it still runs then)."""
        self._write_script(command)
        process = subprocess.Popen(
            [self._program, str(self._script)],
            cwd=self._script.parent,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._leaders.append(process.pid)
        reader = self._start(self._read, process)
        ended = threading.Event()
        self._start(self._watch, process.pid, ended)
        clock.wait_for(lambda: ended.is_set() or interrupted(), deadline)
        if not ended.is_set():
            return None
        reader.join(_LAST_LINES_SECONDS)  # a process in the background may hold the pipe until the build's end
        return self._exit_status(process.pid)

    def end(self) -> None:
        """End every process, then read what they still said."""
        end_processes(self._leaders, mark=self.mark)
        for thread in self._running:
            thread.join(_LAST_LINES_SECONDS)

    def _write_script(self, command: str) -> None:
        state, directory = shlex.quote(str(self._state)), shlex.quote(str(self._directory))
        self._script.write_text(
            f". {state}\n"
            f'cd "$(cat {directory})"\n'
            "set -a\n"
            f"{command}\n"
            "set -- $?\n"  # a positional parameter is not exported
            f"export -p > {state}; pwd > {directory}\n"
            'exit "$1"\n'
        )

    def _start(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self._running.append(thread)
        return thread

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # noqa: S101  asked for above
        for raw in process.stdout:
            self._line(raw.decode("utf-8", errors="replace").rstrip("\r\n"))

    @staticmethod
    def _watch(pid: int, ended: threading.Event) -> None:
        """Wait for the end and leave the process unreaped: its number, and its group's, then stay its own."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        ended.set()
        with clock.condition:
            clock.condition.notify_all()

    @staticmethod
    def _exit_status(pid: int) -> int:
        with contextlib.suppress(ChildProcessError):
            result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            if result is not None:
                return result.si_status if result.si_code == os.CLD_EXITED else 128 + result.si_status
        return 1  # somebody else reaped it: only the end of the emulator does
