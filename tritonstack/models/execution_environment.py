"""Python environments that models of Triton's Python backend bring along: pinned, made of wheels or by conda, kept."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal

from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.inputs import sha256_of, short_digest
from tritonstack.models.packing import pack_reporting
from tritonstack.models.programs import REPOSITORY, Report
from tritonstack.models.recipe import ExecutionEnvironment
from tritonstack.paths import setup_command

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


def make_wheel_environment(requirements: Path, *, python: str, target: Path) -> None:
    """Put wheels for ``python`` (``3.10``) into ``target``, and an ``activate`` that works wherever it lies.

    Nothing is compiled, and no interpreter of that version is needed. The same lock file gives the same bytes.

    Raises :class:`WorkFailedError` where a package is not pinned with a hash or cannot be fetched, with the installer's
    output.
    """
    site = target / "lib" / f"python{python}" / "site-packages"
    site.mkdir(parents=True)
    command = [
        *(str(installer()), "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"),
        *("--target", str(site), "--python", sys.executable),
        *("--python-version", python, "--python-platform", PLATFORM),
        *("--require-hashes", "--link-mode", "copy", "--no-config", "-r", str(requirements.resolve())),
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
        raise InputError([Problem(file=place, found="nothing", allowed="the installer", advice=setup_command())])
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
        raise WorkFailedError(f"{what} could not be made; output of {Path(command[0]).name}:\n{lines}")


def installer_variables() -> dict[str, str]:
    """This process's variables without credentials; pip's settings of wheels and certificates count for uv too."""
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


def make_conda_environment(requirements: Path, *, python: str, conda: Path, target: Path, work: Path) -> None:
    """Make an environment with Python ``python`` and the lock file's packages, and lay it out for moving in ``target``.

    conda-pack gives a folder here, not its own .tar.gz: the project's packer gives the same bytes for the same content.
    Python itself and the libraries below it are the channel's newest of that version: only the packages are pinned.

    Raises :class:`WorkFailedError` where one of the programs fails, with its output.
    """
    prefix = work / "conda"
    what = f"the execution environment for Python {python}"
    create = ["create", "--yes", "--quiet", "--prefix", str(prefix), "--override-channels", "--channel", channel()]
    variables = installer_variables() | {"PYTHONNOUSERSITE": "True"}
    run([str(conda), *create, f"python={python}", "libgcc-ng"], what=what, variables=variables)
    install = ["pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy", "--no-config"]
    source = ["--require-hashes", "-r", str(requirements.resolve())]
    run([str(installer()), *install, "--python", str(prefix / "bin" / "python"), *source], what=what)
    target.rmdir()
    packing = ["--quiet", "--prefix", str(prefix), "--output", str(target), "--format", "no-archive"]
    command = [str(installer()), "tool", "run", "--from", _CONDA_PACK, "--with", "setuptools<81", "conda-pack"]
    run([*command, *packing], what=what)
    shutil.rmtree(prefix)


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


# The backend (``src/pb_env.cc`` and ``src/stub_launcher.cc`` of triton-inference-server/python_backend) unpacks the
# .tar.gz that ``EXECUTION_ENV_PATH`` names, sources its ``bin/activate`` in bash and starts its stub with its ``lib``
# put first in LD_LIBRARY_PATH. The stub embeds the Python it was built with, so packages must be for that minor
# version.
#
# Two ways lead to such a file. Where a conda channel can be reached, an environment with a Python of its own is made
# and packed (conda-pack). Elsewhere wheels for that Python are put into a folder whose ``activate`` makes it a virtual
# environment of the image's own Python.
MARK = "environment.json"
"""Description of a packed environment, at its root: Python, way, packages."""

Way = Literal["wheels", "conda-pack"]


@dataclass(frozen=True, kw_only=True)
class PackedEnvironment:
    """A packed environment."""

    path: Path  # the .tar.gz
    python: str  # the minor version that it is for (``3.10``)
    packages: Mapping[str, str]  # name → version
    way: Way  # how it was made: ``wheels`` or ``conda-pack``
    bytes: int  # the file's size


def make_execution_environment(
    folder: Path,
    recipe_part: ExecutionEnvironment,
    python: str,
    target: Path,
    report: Report = lambda _text: None,
) -> PackedEnvironment:
    """Make and pack a model's execution environment into ``target``, which appears whole or not at all.

    ``folder``: the model folder, which holds the lock file. ``python``: the minor version of the release's Python
    (``3.10``). Raises :class:`InputError` where the packages lack numpy, which the Python backend imports;
    :class:`WorkFailedError` where a package is not pinned with a hash, or has no wheel for that Python.
    """
    requirements = folder / recipe_part.requirements
    conda = find_conda()
    with partial_folder(target.parent, name=f".{target.name}") as work:
        place = work / "environment"
        place.mkdir()
        if conda is None:
            report(f"execution environment for Python {python} out of wheels")
            make_wheel_environment(requirements, python=python, target=place)
        else:
            report(f"execution environment for Python {python} with {conda.name} and conda-pack")
            make_conda_environment(requirements, python=python, conda=conda, target=place, work=work)
        way: Way = "wheels" if conda is None else "conda-pack"
        packages = packages_in(place / "lib" / f"python{python}" / "site-packages")
        if "numpy" not in packages:  # the backend itself imports it: without it not even the stub starts
            found = f"{len(packages)} packages without numpy"
            allowed = "numpy, which the Python backend imports"
            raise InputError([Problem(file=str(requirements), found=found, allowed=allowed)])
        mark = {"python": python, "way": way, "packages": packages}
        (place / MARK).write_text(json.dumps(mark, indent=1, sort_keys=True) + "\n")
        packed = pack_reporting(place, target, name=target.name, report=report)
        shutil.rmtree(place)
    return PackedEnvironment(
        path=packed.archive,
        python=python,
        packages=packages,
        way=way,
        bytes=packed.bytes,
    )


def kept_environment(
    folder: Path, part: ExecutionEnvironment, *, python: str, work: Path, report: Report
) -> PackedEnvironment:
    """The packed environment of a Python model, made now or by an earlier build.

    ``work`` keeps it as ``<folder>.python-<version>.<digest>.tar.gz``, and what it holds next to it. Raises as
    :func:`make_execution_environment`.
    """
    requirements = folder / part.requirements
    if not requirements.is_file():
        problem = Problem(file=str(requirements), found="no such file", allowed="a pinned requirements file")
        raise InputError([problem])
    digest = short_digest({"requirements": sha256_of(requirements), "python": python})
    packed = work / f"{folder.resolve().name}.python-{python}.{digest}.tar.gz"
    described = packed.with_suffix(".json")
    try:
        kept = PackedEnvironment(**{**json.loads(described.read_text()), "path": packed})
        if packed.stat().st_size == kept.bytes:
            return kept
    except (OSError, ValueError, TypeError):
        pass  # not made yet, or half
    work.mkdir(parents=True, exist_ok=True)
    made = make_execution_environment(folder, part, python, packed, report)
    temporary = described.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(made) | {"path": packed.name, "packages": dict(made.packages)}))
    temporary.replace(described)
    return made
