"""Small processes in place of the emulator and the runtime: they serve /_tritonstack/…, or misbehave on request."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil
import pytest

from tests.local_keys import KEYS
from tritonstack.errors import InputError
from tritonstack.paths import HOME_VARIABLE, LocalPaths
from tritonstack_local.aws import LocalAws
from tritonstack_local.commands.start_stop import start_local_aws, stop_local_aws
from tritonstack_local.processes import ProcessRecord

PROGRAM = """
    #!{python} -S
    import os, signal, sys, time
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from pathlib import Path

    part = sys.argv[2].rpartition(".")[2]
    told = Path("..", "told", part)
    behaviour = told.read_text() if told.is_file() else "serve"
    port = int(os.environ["GATEWAY_PORT"] if part == "emulator" else sys.argv[sys.argv.index("--port") + 1])
    print("started", part, flush=True)
    if behaviour == "die":
        sys.exit("the disk is full")
    if behaviour == "say nothing":
        time.sleep(600)
    if behaviour == "ignore SIGTERM":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            told = Path("..", "told", self.path.rpartition("/")[2] + ".json")
            content = told.read_bytes() if told.is_file() else b"{{}}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self):  # DescribeStacks, of an account without any
            self.rfile.read(int(self.headers["Content-Length"]))
            content = b"<DescribeStacksResponse><DescribeStacksResult/></DescribeStacksResponse>"
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
EMPTY_STATUS = {"local_aws": "answers", "endpoints": []}
NO_DENIALS = {"enforced": True, "denials": [], "roles": []}


GONE = ProcessRecord(pid=1, started=0.0, log="")
AWS = LocalAws(emulator_port=4566, runtime_port=4567, keys=KEYS, emulator=GONE, runtime=GONE)


class FakeParts:
    """A local AWS's folder whose parts are fakes. ``stop`` ends whatever was started in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let TRITONSTACK_HOME and the environments' interpreters lie in ``folder``."""
        self.home = folder / "home"
        self._told = self.home / "told"
        self._told.mkdir(parents=True)
        self.program = folder / "fake-python"
        self.program.write_text(dedent(PROGRAM).lstrip().format(python=sys.executable))
        self.program.chmod(0o755)
        self.set_status(EMPTY_STATUS)
        (self._told / "iam.json").write_text(json.dumps(NO_DENIALS))
        monkeypatch.setenv(HOME_VARIABLE, str(self.home))
        monkeypatch.setattr("tritonstack_local.commands.start_stop.environment_python", lambda _name: self.program)

    @property
    def paths(self) -> LocalPaths:
        """The folders."""
        return LocalPaths(self.home)

    def set_behaviour(self, part: str, behaviour: str) -> None:
        """Set how ``emulator`` or ``runtime`` behaves: ``die``, ``say nothing``, ``ignore SIGTERM``, ``serve``."""
        (self._told / part).write_text(behaviour)

    def set_status(self, status: dict[str, Any]) -> None:
        """The runtime's status response."""
        (self._told / "status.json").write_text(json.dumps(status))

    def up(self, report: Callable[[str], None] = lambda _step: None) -> LocalAws:
        """Start on free ports."""
        return start_local_aws(emulator_port=0, runtime_port=0, report=report)

    def processes(self) -> list[psutil.Process]:
        """Every living fake of this folder."""
        mine = []
        for process in psutil.process_iter():
            try:
                if str(self.program) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                    mine.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return mine

    def stop(self) -> None:
        """End them, and remove the record."""
        with contextlib.suppress(InputError):  # a test may have damaged the record
            stop_local_aws()
        for process in self.processes():
            process.kill()


def kill(record: ProcessRecord) -> None:
    """SIGKILL, and wait until the process is no more than a number."""
    process = psutil.Process(record.pid)
    process.kill()
    psutil.wait_procs([process], timeout=10)


def wait_for(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Wait until something holds that another process brings about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.01)


def record_of(pid: int, *, log: str = os.devnull) -> ProcessRecord:
    """The record of a process that runs now."""
    return ProcessRecord(pid=pid, started=psutil.Process(pid).create_time(), log=log)
