"""A relocatable folder of wheels for a Python that need not be on this machine."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

from tritonstack.archives.pinned_requirements import Requirements
from tritonstack.archives.programs import REPOSITORY
from tritonstack.errors import InputError, Problem, WorkFailedError

PLATFORM = "x86_64-manylinux_2_28"
"""Every Triton image of the catalogue has a newer C library: Ubuntu 20.04 has 2.31. Python wheels are made for 2.28."""

# Made by the installer for the machine it runs on: other bytes elsewhere, and of no use in the container.
_OF_THE_INSTALLER = ("bin", ".lock")
_OF_THE_INSTALL = ("direct_url.json", "uv_cache.json", "REQUESTED", "INSTALLER")

# The stub ignores PYTHONPATH: it initialises Python isolated (seen with release 24.10). What it does take its packages
# from is a virtual environment whose python3 is the first on PATH. Where the environment lies and where Python does is
# known only in the container: so it becomes a virtual environment when it is activated.
_ACTIVATE = """\
# Sourced by Triton's Python backend before it starts the model's process.
_environment="$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")/.." && pwd -P)"
_python="$(readlink -f -- "$(command -v python3)")"
if [[ "$("$_python" --version)" != "Python {python}."* ]]; then
    echo "execution environment: it is for Python {python}, but $_python is $("$_python" --version)" >&2
fi
if [[ ! -e "$_environment/pyvenv.cfg" ]]; then
    ln -sfn "$_python" "$_environment/bin/python3"
    printf 'home = %s\ninclude-system-site-packages = false\n' "$(dirname -- "$_python")" > "$_environment/pyvenv.$$"
    mv "$_environment/pyvenv.$$" "$_environment/pyvenv.cfg"
fi
export PATH="$_environment/bin:$PATH" PYTHONNOUSERSITE=True
unset _environment _python
"""


def make_wheel_environment(requirements: Requirements, *, python: str, target: Path) -> None:
    """Put wheels for ``python`` (``3.10``) into ``target``, and an ``activate`` that works wherever it lies.

    Nothing is compiled, and no interpreter of that version is needed. The same lock file gives the same bytes.

    Raises :class:`WorkFailedError` where a package cannot be fetched, with what the installer says.
    """
    site = target / "lib" / f"python{python}" / "site-packages"
    site.mkdir(parents=True)
    command = [
        *(str(installer()), "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"),
        *("--target", str(site), "--python", sys.executable),
        *("--python-version", python, "--python-platform", PLATFORM),
        *(["--require-hashes"] if requirements.hashed else []),
        *("--link-mode", "copy", "--no-config", "-r", str(requirements.path.resolve())),
    ]
    run(command, what=f"the execution environment for Python {python}")
    _tidy(site)
    (target / "bin").mkdir()
    (target / "bin" / "activate").write_text(activate_script(python))


def activate_script(python: str) -> str:
    """The ``bin/activate`` of an environment for ``python`` (``3.10``) whose packages lie in ``lib/python3.10``."""
    return _ACTIVATE.format(python=python)


def packages_in(site: Path) -> dict[str, str]:
    """The packages of a ``site-packages``: name → version, sorted by name."""
    found = {package.metadata["Name"].lower(): package.version for package in distributions(path=[str(site)])}
    return dict(sorted(found.items()))


def installer() -> Path:
    """``uv``, as ``scripts/setup.py`` installed it. Raises :class:`InputError` where it is not there."""
    found = sorted((REPOSITORY / ".envs").glob("uv-*/bin/uv"))
    if not found:
        place = str(REPOSITORY / ".envs" / "uv-…")
        raise InputError([Problem(file=place, found="nothing", allowed="the installer", advice="make setup")])
    return found[-1]


def run(command: list[str], *, what: str, variables: Mapping[str, str] | None = None) -> None:
    """Run an installer. Raises :class:`WorkFailedError` with its last lines where it fails."""
    ended = subprocess.run(
        command,
        env=variables if variables is not None else installer_variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode:
        lines = "\n".join(f"  {line}" for line in ended.stdout.strip().splitlines()[-20:])
        raise WorkFailedError(f"{what} could not be made; {Path(command[0]).name} says:\n{lines}")


def installer_variables() -> dict[str, str]:
    """This process's variables without credentials; what pip is told of wheels and certificates, uv is told too."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "AWS_"))}
    if "PIP_FIND_LINKS" in variables:
        variables.setdefault("UV_FIND_LINKS", variables["PIP_FIND_LINKS"].replace(" ", ","))
    if "PIP_CERT" in variables:
        variables.setdefault("SSL_CERT_FILE", variables["PIP_CERT"])
    variables.setdefault("UV_HTTP_TIMEOUT", "180")
    return variables


def _tidy(site: Path) -> None:
    """Remove what the installer made for this machine, and the records of it."""
    for path in sorted(site.glob("bin/*")):
        path.unlink()
    for name in _OF_THE_INSTALLER:
        place = site / name
        if place.is_dir():
            place.rmdir()
        else:
            place.unlink(missing_ok=True)
    for record in site.glob("*.dist-info/RECORD"):
        for name in _OF_THE_INSTALL:
            (record.parent / name).unlink(missing_ok=True)
        _rewrite(record, site)


def _rewrite(record: Path, site: Path) -> None:
    """Keep of a package's list of files, sorted, those that are there: some libraries read it."""
    with record.open(newline="", encoding="utf-8") as stream:
        rows = sorted(row for row in csv.reader(stream) if row and (site / row[0]).is_file())
    with record.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
