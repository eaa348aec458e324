"""Servers of ours that run without a record, as after ``rm -rf .local``: known by what they were started with."""

from __future__ import annotations

from pathlib import Path

import psutil

from tritonstack.paths import LocalPaths
from tritonstack_local.processes import ProcessRecord

_PARTS = (
    ("tritonstack_local.runtime", "the SageMaker runtime", "runtime"),
    ("tritonstack_local.emulator", "the AWS emulator", "emulator"),
)


def running_parts(paths: LocalPaths) -> dict[str, ProcessRecord]:
    """The processes that were started for exactly this state folder, by name, the runtime first.

    The runtime names its folder in its arguments, the emulator in its variables; other users' processes tell neither.
    """
    found: dict[str, ProcessRecord] = {}
    processes = list(psutil.process_iter())
    for module, name, short in _PARTS:
        for process in processes:
            if (started := _started_for(process, module, paths)) is not None:
                log = str(paths.logs / f"{short}.log")
                label = name if name not in found else f"{name} ({process.pid})"
                found[label] = ProcessRecord(pid=process.pid, started=started, log=log)
    return found


def listener_on(port: int) -> str | None:
    """Who listens on a TCP port, as ``process 12 (python -m http.server)``; None where that cannot be seen."""
    try:
        for one in psutil.net_connections(kind="tcp"):
            if one.status == psutil.CONN_LISTEN and one.laddr[1:] == (port,) and one.pid:
                return f"process {one.pid} ({' '.join(psutil.Process(one.pid).cmdline())[:160]})"
    except psutil.Error:
        return None
    return None


def _started_for(process: psutil.Process, module: str, paths: LocalPaths) -> float | None:
    """When the process started, if it runs ``module`` for this state folder; else None."""
    try:
        arguments = process.cmdline()
        if module not in arguments or arguments[arguments.index(module) - 1] != "-m":
            return None
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        folders = [process.environ().get("STATE_DIR"), _after("--state", arguments)]
        ours = {paths.runtime, paths.emulator / "state"}
        return process.create_time() if any(one and Path(one) in ours for one in folders) else None
    except psutil.Error:
        return None


def _after(option: str, arguments: list[str]) -> str | None:
    return arguments[arguments.index(option) + 1] if option in arguments[:-1] else None
