"""The Python environment that a model of Triton's Python backend brings along: made for the release's Python, packed.

The backend (``src/pb_env.cc`` and ``src/stub_launcher.cc`` of triton-inference-server/python_backend) unpacks the
.tar.gz that ``EXECUTION_ENV_PATH`` names, sources its ``bin/activate`` in bash and starts its stub with its ``lib`` put
first in LD_LIBRARY_PATH. The stub embeds the Python it was built with, so packages must be for that minor version.

Two ways lead to such a file. Where a conda channel can be reached, an environment with a Python of its own is made and
packed (conda-pack). Elsewhere wheels for that Python are put into a folder whose ``activate`` makes it a virtual
environment of the image's own Python.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tritonstack.archives.conda_environment import find_conda, make_conda_environment
from tritonstack.archives.packing import PackResult, pack
from tritonstack.archives.partial import partial_folder
from tritonstack.archives.pinned_requirements import read_requirements
from tritonstack.archives.wheel_environment import make_wheel_environment, packages_in
from tritonstack.errors import InputError, Problem

MARK = "environment.json"
"""What a packed environment says of itself; it lies at its root."""

Report = Callable[[str], None]
Way = Literal["wheels", "conda-pack"]


class EnvironmentPart(Protocol):
    """The recipe's ``execution_environment``."""

    @property
    def requirements(self) -> str:
        """The lock file's name in the model folder."""
        ...


@dataclass(frozen=True, kw_only=True)
class PackedEnvironment:
    """A packed environment.

    Attributes:
        path: the .tar.gz.
        python: the minor version that it is for (``3.10``).
        packages: name → version.
        way: how it was made: ``wheels`` or ``conda-pack``.
        hashed: every package was checked against a hash of the lock file.
        bytes: the file's size.
        sha256: the file's SHA-256 sum.
        unpacked_bytes: what it takes when Triton unpacks it, as a tar file.
    """

    path: Path
    python: str
    packages: Mapping[str, str]
    way: Way
    hashed: bool
    bytes: int
    sha256: str
    unpacked_bytes: int


def make_execution_environment(
    folder: Path,
    recipe_part: EnvironmentPart,
    python: str,
    target: Path,
    report: Report = lambda _text: None,
) -> PackedEnvironment:
    """Make and pack a model's execution environment.

    Args:
        folder: the model folder, which holds the lock file.
        recipe_part: the recipe's ``execution_environment``.
        python: the minor version of the release's Python (``3.10``; see the catalogue).
        target: the file to write; it appears whole or not at all.
        report: told what is being done.

    Raises:
        InputError: the lock file is missing or pins not everything; the version is not one.
        WorkFailedError: packages could not be fetched, for example because there is no wheel for that Python.
    """
    _check_version(python)
    requirements = read_requirements(folder / recipe_part.requirements)
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
        _check_packages(packages, requirements.path)
        mark = {"python": python, "way": way, "packages": packages}
        (place / MARK).write_text(json.dumps(mark, indent=1, sort_keys=True) + "\n")
        packed = _pack(place, target, report)
        shutil.rmtree(place)
    return PackedEnvironment(
        path=packed.archive,
        python=python,
        packages=packages,
        way=way,
        hashed=requirements.hashed,
        bytes=packed.bytes,
        sha256=packed.sha256,
        unpacked_bytes=packed.tar_bytes,
    )


def _check_version(python: str) -> None:
    major, _, minor = python.partition(".")
    if major != "3" or not minor.isdigit():
        raise InputError([Problem(found=f"Python {python!r}", allowed="a minor version such as 3.10")])


def _check_packages(packages: Mapping[str, str], file: Path) -> None:
    """The backend itself imports NumPy: without it not even the stub starts."""
    if "numpy" not in packages:
        found = f"{len(packages)} packages without numpy"
        raise InputError([Problem(file=str(file), found=found, allowed="numpy, which the Python backend imports")])


def _pack(place: Path, target: Path, report: Report) -> PackResult:
    total = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) or 1
    done = 0

    def progress(read: int) -> None:
        nonlocal done
        done += read
        report(f"packing {target.name}: {100 * done // total} %")

    return pack(place, target, progress=progress)
