"""Runs a buildspec's commands as CodeBuild's agent does, as processes of this machine that end to the last one."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tritonstack_local.emulator.clock import Deadline, clock

_SECONDS = 5.0


def end_processes(leaders: Iterable[int], *, mark: str) -> None:
    """SIGKILL to whatever a build started, as if its container were removed."""
    _kill(_left(mark))  # before the leaders: a process whose parent is gone is no descendant any more
    for leader in leaders:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    until = time.monotonic() + _SECONDS
    while (left := _left(mark)) and time.monotonic() < until:
        _kill(left)
        time.sleep(0.01)


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def descendants(of: Iterable[int]) -> set[int]:
    """Living processes that these started, and what those started, from /proc."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(folder.name)] = int(parent)
    found = set(of)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found & parents.keys()


def _left(mark: str) -> set[int]:
    """Living processes that bear the mark, and their descendants."""
    marked = set()
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in file.read_bytes().split(b"\0"):
                marked.add(int(file.parent.name))
    return descendants(marked) - {os.getpid()}


# Each command is a script of its own that takes on the folder and the variables in which the one before ended: with
# version 0.2 they carry over, through all phases. The agent does it so too: its scripts, ``output/tmp/script.sh``, are
# seen in the shells' error messages, with the command in line 4.
_LAST_LINES_SECONDS = 10.0


class BuildShell:
    """The shell of one build."""

    def __init__(
        self,
        *,
        folder: Path,  # for scripts and state; made where it is missing
        directory: Path,  # where the first command runs
        environment: Mapping[str, str],  # all that it has; CODEBUILD_BUILD_ID is in it
        line: Callable[[str], None],  # gets each line of output, from a thread
    ) -> None:
        self._script = folder / "script.sh"
        self._state = folder / "env.sh"
        self._directory = folder / "dir.txt"
        self._environment = dict(environment)
        self._line = line
        self._commands: list[_Command] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._state.write_text("")
        self._directory.write_text(str(directory))

    def set(self, name: str, value: str) -> None:
        """A variable for the commands to come."""
        with self._state.open("a") as stream:
            stream.write(f"\nexport {name}={shlex.quote(value)}\n")

    def run(self, command: str, *, interrupted: Callable[[], bool], deadline: Deadline) -> int | None:
        """A command's exit status, once all its output is passed on.

        None where it was interrupted or the deadline came first: it runs on then, until ``end``.
        """
        self._write_script(command)
        running = _Command(["sh", str(self._script)], self._script.parent, self._environment, self._line)
        self._commands.append(running)
        clock.wait_for(lambda: running.ended.is_set() or interrupted(), deadline)
        return running.finish() if running.ended.is_set() else None

    def end(self) -> None:
        """End every process that a command started, then pass on their remaining output."""
        mark = f"CODEBUILD_BUILD_ID={self._environment['CODEBUILD_BUILD_ID']}"
        commands, self._commands = self._commands, []
        end_processes([command.pid for command in commands], mark=mark)
        for command in commands:
            command.close()

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


class _Command:
    """One running command, its output read line by line.

    Attributes:
        pid: of the leader of its process group. It is not reaped before the build's end: the number stays its own.
        ended: set once the leader has ended; others of its group may run on and write on.
    """

    def __init__(
        self, argv: list[str], folder: Path, environment: Mapping[str, str], line: Callable[[str], None]
    ) -> None:
        self.ended = threading.Event()
        self._line = line
        self._told = threading.Event()
        self._mark = f"\0{uuid.uuid4().hex}\n".encode()
        output, self._input = os.pipe()
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._input,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, args=(output,), daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, daemon=True).start()

    def finish(self) -> int:
        """The exit status, after every line that came before the end.

        Our own end of the pipe gets a mark: what the command wrote lies before it, even if another process holds the
        pipe open.
        """
        os.write(self._input, self._mark)
        self._told.wait(_LAST_LINES_SECONDS)
        with contextlib.suppress(ChildProcessError):
            result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            if result is not None:
                return result.si_status if result.si_code == os.CLD_EXITED else 128 + result.si_status
        return 1  # reaped by the end of the emulator

    def close(self) -> None:
        """Read the rest, once no process holds the pipe any more."""
        os.close(self._input)
        self._reader.join(_LAST_LINES_SECONDS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_LAST_LINES_SECONDS)

    def _read(self, output: int) -> None:
        with os.fdopen(output, "rb") as stream:
            for raw in stream:
                text = raw.removesuffix(self._mark)
                if text:
                    self._line(text.decode("utf-8", errors="replace").rstrip("\r\n"))
                if text != raw:
                    self._told.set()

    def _watch(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self.ended.set()
        with clock.condition:
            clock.condition.notify_all()
