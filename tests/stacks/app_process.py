"""The app in a process of its own, as the CDK command line starts it, with neither credentials nor a network."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

GATE: dict[str, Any] = {"@aws-cdk/core:validateAgainstDefaultRules": True}
"""What has CDK's validator hold every rule of its own against the templates, and a finding be an error."""
NO_NETWORK_IN_PYTHON = """
import socket

def refuse(*_args, **_keywords):
    raise OSError("synthesis reached for the network")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""
NO_NETWORK_IN_NODE = """
const refuse = () => { throw new Error('synthesis reached for the network'); };
require('net').Socket.prototype.connect = refuse;
require('dns').lookup = refuse;
"""


def run_app(
    outdir: Path, *, context: dict[str, Any] | None = None, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``app.py`` into ``outdir`` with cdk.json's context and this one's.

    The process has no AWS variable, no home and no warning about Node's age. Any connection that it tries fails it.
    """
    guard = outdir.parent / f"{outdir.name}-guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(NO_NETWORK_IN_PYTHON)
    (guard / "no-network.js").write_text(NO_NETWORK_IN_NODE)
    given = {**json.loads((ROOT / "cdk.json").read_text())["context"], **(context or {})}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_", "JSII_"))}
    return subprocess.run(
        [sys.executable, str(ROOT / "app.py")],
        cwd=guard,
        env={
            **environment,
            "PYTHONPATH": f"{guard}{os.pathsep}{ROOT}",
            "NODE_OPTIONS": f"--require {guard / 'no-network.js'}",
            "CDK_OUTDIR": str(outdir),
            "CDK_CONTEXT_JSON": json.dumps(given),
            "CDK_VALIDATION": "false",
            **(variables or {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def files_under(folder: Path) -> dict[str, bytes]:
    """Path within the folder → content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that the first test of a run fills, in whichever of its processes, and that later ones only read."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / name, shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of a try that failed
            make(folder)  # in its place: what the pipeline synthesises names its folder
            done.touch()
    return folder


def committed_assembly(factory: pytest.TempPathFactory) -> Path:
    """The cloud assembly of every committed environment, with its validation report. Only to be read."""

    def make(folder: Path) -> None:
        ran = run_app(folder, context=GATE, variables={"CDK_VALIDATION": "true", "PYTHONHASHSEED": "1", "TZ": "UTC"})
        assert (ran.returncode, ran.stderr) == (0, "")

    return made_once(factory, "committed", make)
