"""An environment with a Python of its own, made with conda and packed with conda-pack."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from tritonstack.archives.pinned_requirements import Requirements
from tritonstack.archives.wheel_environment import installer, installer_variables, run

CHANNEL = "https://conda.anaconda.org/conda-forge"
CHANNEL_VARIABLE = "TRITONSTACK_CONDA_CHANNEL"
"""Another address of the channel, or ``none``: never use conda."""

_PROGRAMS = ("micromamba", "mamba", "conda")
_CONDA_PACK = "conda-pack==0.8.1"
_PROBE_SECONDS = 5.0


def find_conda() -> Path | None:
    """The program to make environments with; None where there is none, or no channel can be reached."""
    if channel() == "none":
        return None
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    return Path(program) if program and _reachable(channel()) else None


def channel() -> str:
    """The channel's address."""
    return os.environ.get(CHANNEL_VARIABLE, CHANNEL).rstrip("/")


def make_conda_environment(requirements: Requirements, *, python: str, conda: Path, target: Path, work: Path) -> None:
    """Make an environment with Python ``python`` and the lock file's packages, and lay it out for moving in ``target``.

    conda-pack gives a folder here, not its own .tar.gz: the project's packer gives the same bytes for the same content.
    Python itself and the libraries below it are the channel's newest of that version: only the packages are pinned.

    Raises :class:`WorkFailedError` where one of the programs fails, with what it says.
    """
    prefix = work / "conda"
    what = f"the execution environment for Python {python}"
    create = ["create", "--yes", "--quiet", "--prefix", str(prefix), "--override-channels", "--channel", channel()]
    run([str(conda), *create, f"python={python}", "libgcc-ng"], what=what, variables=_variables())
    install = ["pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy", "--no-config"]
    hashes = ["--require-hashes"] if requirements.hashed else []
    source = ["-r", str(requirements.path.resolve())]
    run([str(installer()), *install, *hashes, "--python", str(prefix / "bin" / "python"), *source], what=what)
    target.rmdir()
    packing = ["--quiet", "--prefix", str(prefix), "--output", str(target), "--format", "no-archive"]
    command = [str(installer()), "tool", "run", "--from", _CONDA_PACK, "--with", "setuptools<81", "conda-pack"]
    run([*command, *packing], what=what)
    shutil.rmtree(prefix)


def _variables() -> dict[str, str]:
    return installer_variables() | {"PYTHONNOUSERSITE": "True"}


def _reachable(address: str) -> bool:
    """Whether the channel's list of packages for Linux answers."""
    request = urllib.request.Request(f"{address}/linux-64/repodata.json.zst", method="HEAD")  # noqa: S310  see below
    if not address.startswith(("https://", "http://", "file://")):
        return False
    try:
        with urllib.request.urlopen(request, timeout=_PROBE_SECONDS):  # noqa: S310  one of three kinds of address
            return True
    except (urllib.error.URLError, OSError, ValueError):
        return False
