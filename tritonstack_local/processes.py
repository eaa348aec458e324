"""Processes that outlive the command that started them: identified, their ports, and the record of a local AWS."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from pydantic import TypeAdapter, ValidationError

from tritonstack.errors import InputError, Problem, WorkFailedError, refuse
from tritonstack.paths import HOME_VARIABLE, LocalPaths
from tritonstack_local.keys import LocalKeys

STOP_SECONDS = 20.0
LOOK_SECONDS = 0.02
TAIL_BYTES = 64 * 1024
"""How much of a log's end is read for its last lines."""

SAME_START_SECONDS = 1.0
"""How far two readings of one process's start time may lie apart; the clock is set now and then."""


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """One process of ours. The start time distinguishes it from a later process with the same id."""

    pid: int
    started: float
    log: str

    @property
    def running(self) -> bool:
        """Whether exactly this process is alive."""
        process = self._process()
        return process is not None and is_alive(process)

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
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
        await_end([process], seconds)
        # Listed again: it may have started others meanwhile.
        left = [member for member in {process, *family, *_descendants(process)} if is_alive(member)]
        for survivor in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                survivor.kill()
        await_end(left, seconds)


def start_process(command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ProcessRecord:
    """Start ``command`` in a session of its own, its output appended to ``log``.

    Raises WorkFailedError: the program cannot be run.
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


def await_end(processes: Sequence[psutil.Process], seconds: float) -> None:
    """Wait until all have ended, or for ``seconds``.

    A zombie has ended, even where nothing ever reaps it, as in a container without an init.
    """
    deadline = time.monotonic() + seconds
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    for process in processes:
        with contextlib.suppress(ChildProcessError):  # its starter is another process
            os.waitpid(process.pid, os.WNOHANG)


def is_alive(process: psutil.Process) -> bool:
    """Whether a process is there and has not ended; a zombie has."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@dataclass(frozen=True, kw_only=True)
class RunningProcess:
    """A process that uses the project's environments, for messages."""

    pid: int
    command: str  # what it runs, shortened
    end: str  # the command that ends it


SHOWN_COMMAND = 100
"""Characters of a command that a message shows."""


def running_processes(environments: Path) -> list[RunningProcess]:
    """The local AWS's processes, then what else runs in the folder of environments: what ends with none of the others.

    Never this process or its parents.

    Raises InputError: the record of the local AWS is damaged.
    """
    record = read_record(LocalPaths.from_environment())
    found = [
        RunningProcess(pid=part.pid, command=f"{name} of the local AWS", end="tritonstack local down")
        for name, part in (record.parts.items() if record else ())
        if part.running
    ]
    own = {part.pid for part in found}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # it has ended, or is another user's
            if process.uids().real != os.getuid() or process.pid in own or not is_alive(process):
                continue
            command = process.cmdline()
            # The path as it was typed: the interpreter of an environment is a link to one elsewhere.
            program = os.path.normpath(Path(process.cwd(), command[0])) if command else ""
            if Path(program).is_relative_to(environments):
                shown = " ".join(command)[:SHOWN_COMMAND]
                found.append(RunningProcess(pid=process.pid, command=shown, end=_ending(process, command)))
    this, pids = psutil.Process(), {each.pid for each in found}
    own = {this.pid, *(parent.pid for parent in this.parents())}
    return [each for each in found if each.pid not in own and not pids - own & _ancestors(each.pid)]


def _ancestors(pid: int) -> set[int]:
    try:
        return {parent.pid for parent in psutil.Process(pid).parents()}
    except psutil.NoSuchProcess:
        return set()


def _ending(process: psutil.Process, command: Sequence[str]) -> str:
    """The command that ends a process; of a local AWS in another state folder, that one's ``down``."""
    if "tritonstack_local.emulator" in command and (state := process.environ().get("STATE_DIR")):
        return _down_of(Path(state).parents[1])
    if "tritonstack_local.runtime" in command and "--state" in command[:-1]:
        return _down_of(Path(command[command.index("--state") + 1]).parent)
    return f"kill {process.pid}    # or Ctrl-C in its terminal"


def _down_of(home: Path) -> str:
    return f"{HOME_VARIABLE}={shlex.quote(str(home))} tritonstack local down"


LOOPBACK = "127.0.0.1"
FREE_ONES = (
    "tritonstack local up --port 0 --runtime-port 0 takes free ones; so do the variables TRITONSTACK_PORT=0 and "
    "TRITONSTACK_RUNTIME_PORT=0, for make demo too"
)


def choose_ports(*, emulator: int, runtime: int) -> tuple[int, int]:
    """The ports of the AWS APIs and of InvokeEndpoint; 0 takes a free one.

    Raises InputError: a port is taken or not permitted, or both are the same; every such problem.
    """
    problems, chosen = [], []
    with ExitStack() as held:  # until both are chosen, so that they differ
        for option, port in (("--port", emulator), ("--runtime-port", runtime)):
            probe = held.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
                probe.listen()
            except OSError as error:
                same = "both are the same port" if port in chosen else None
                problems.append(
                    Problem(
                        field=f"{option} {port}",
                        found=same or f"{error.strerror or error} on {LOOPBACK}",
                        allowed="a free port",
                        advice=FREE_ONES,
                    )
                )
            else:
                chosen.append(int(probe.getsockname()[1]))
    refuse(problems)
    return chosen[0], chosen[1]


def require_port_again(port: int, *, name: str) -> None:
    """Raise InputError where the port of a part that has ended is not free: the other part connects to that port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            problem = Problem(
                field=f"the port of {name}",
                found=f"{port}: {error.strerror or error} on {LOOPBACK}",
                allowed="a free port: the other part of the local AWS knows it by this one",
                advice="end what listens there; or tritonstack local down, which discards what is deployed, then "
                "tritonstack local up",
            )
            raise InputError([problem]) from error


# --- What a local AWS is made of, in a file: every command finds it, and two never start it ---


@dataclass(frozen=True, kw_only=True)
class RunningRecord:
    """The ports and the processes of one local AWS. A process is None until it was started."""

    emulator_port: int
    runtime_port: int
    keys: LocalKeys
    emulator: ProcessRecord | None = None
    runtime: ProcessRecord | None = None
    iam: bool = True  # whether permissions are enforced

    @property
    def half(self) -> bool:
        """Whether both parts were started and one of them has ended since."""
        alive = [part.running for part in (self.emulator, self.runtime) if part is not None]
        return sorted(alive) == [False, True]

    @property
    def parts(self) -> dict[str, ProcessRecord]:
        """Its processes by name, in the order in which they are stopped: the runtime and its Tritons first."""
        named = {"the SageMaker runtime": self.runtime, "the AWS emulator": self.emulator}
        return {name: process for name, process in named.items() if process is not None}


_RECORD = TypeAdapter(RunningRecord)


def read_record(paths: LocalPaths) -> RunningRecord | None:
    """The last written record, or None without one. Raises InputError: the file holds no record."""
    try:
        return _RECORD.validate_json(paths.record.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = Problem(
            file=str(paths.record),
            field=where,
            found=f"damaged: {first['msg']}",
            allowed="what `tritonstack local up` wrote",
            advice="end what `pgrep -af tritonstack_local` shows, remove the file, then tritonstack local up",
        )
        raise InputError([problem]) from error


def write_record(paths: LocalPaths, record: RunningRecord) -> None:
    """Put ``record`` in the place of the one before, whole or not at all. Only its owner may read the keys in it."""
    temporary = paths.record.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps(asdict(record), indent=2))
    temporary.replace(paths.record)


def forget_record(paths: LocalPaths) -> None:
    """Nothing runs any more."""
    paths.record.unlink(missing_ok=True)


def _close_to_others(folder: Path) -> None:
    """Take other users' rights away: functions' code, stored objects, logs and archives lie below this folder.

    A folder that was made for several users (sticky, as /tmp) is left as it is; the record is its owner's in any case.
    """
    status = folder.stat()
    if status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~0o077)


@contextmanager
def exclusive(paths: LocalPaths, *, report: Callable[[str], object], name: str = "lock") -> Iterator[None]:
    """Hold the local AWS's folder alone, so that of two commands one starts or stops and the other waits.

    Raises InputError: nothing can be written there.
    """
    lock = paths.root / name
    try:
        paths.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(paths.root)
        file = lock.open("a")
    except OSError as error:
        found, advice = f"{error.filename}: {error.strerror}", f"export {HOME_VARIABLE}=<folder>"
        problem = Problem(field=HOME_VARIABLE, found=found, allowed="a folder that can be written", advice=advice)
        raise InputError([problem]) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another tritonstack local up or down")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
