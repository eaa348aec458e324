"""Python environments that models of Triton's Python backend bring along: pinned wheels, packed once and kept.

The environment of a release has its Python; the local Triton has another one, and gets the same lock file installed
for that.

The backend (``src/pb_env.cc`` and ``src/stub_launcher.cc`` of triton-inference-server/python_backend) unpacks the
.tar.gz that ``EXECUTION_ENV_PATH`` names, sources its ``bin/activate`` in bash and starts its stub with its ``lib`` put
first in LD_LIBRARY_PATH. The stub embeds the Python it was built with, so packages must be for that minor version.
"""

from __future__ import annotations

import csv
import json
import mmap
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tritonstack.archives.installer import last_lines, run_installer
from tritonstack.archives.packing import pack_reporting
from tritonstack.archives.programs import LOCAL_ENVIRONMENT, Report, environment_version, require_environment
from tritonstack.disk import partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.models.digest import sha256_of, short_digest
from tritonstack.models.recipe import ExecutionEnvironment
from tritonstack.paths import environment_python, write_text

PLATFORM = "x86_64-manylinux_2_28"
"""Every Triton image of the catalogue has a newer C library: Ubuntu 20.04 has 2.31. Python wheels are made for 2.28."""

DESCRIPTION = "environment.json"
"""Python and packages of a packed environment, at its root."""

_OF_THE_INSTALL = ("direct_url.json", "uv_cache.json", "REQUESTED", "INSTALLER")
"""Files beside a package's list of files that the installer makes for this machine: other bytes elsewhere."""

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


TORCH = "torch"
"""The package, and the environment under ``.envs/`` that has a build of it for the CPU."""
_FOR_A_GPU = re.compile(r"torch|triton|nvidia-(?!ml-py$).+|cuda-.+")
"""Packages of PyTorch's build for CUDA, of gigabytes: here ``.envs/torch`` stands in for them."""
TORCH_SITE = "TRITONSTACK_TORCH_SITE"
"""Variable of the local server's process: the packages of ``.envs/torch``."""
_TORCH_PATH = ("tritonstack-torch.pth", f'import os, sys; sys.path.append(os.environ.get("{TORCH_SITE}", ""))\n')
"""A file among the packages, and its line, which Python's module ``site`` runs when it starts."""


@dataclass(frozen=True, kw_only=True)
class PackedEnvironment:
    path: Path  # the .tar.gz
    python: str  # the minor version that it is for (``3.10``)
    packages: Mapping[str, str]  # name → version
    for_torch: tuple[str, ...] = ()  # those with parts that are compiled for one build of PyTorch


class NoWheelError(WorkFailedError):
    """A package of a lock file has no wheel for a Python; a network that failed or another hash is no such error."""


_NO_WHEEL = re.compile(r"no wheels? with a matching|no usable wheels|does not satisfy Python|is not compatible with")
"""What uv 0.13 prints of it, where a line is broken at any space."""


@dataclass(frozen=True, kw_only=True)
class LocalEnvironment:
    """What a Python model's packages are in the local Triton: one of both is None, or both where PyTorch's environment
    has all of them and stands in."""

    packed: PackedEnvironment | None = None
    lacking: str | None = None  # why there is none: a package without a wheel for its Python


def local_environment(folder: Path, part: ExecutionEnvironment, *, work: Path, report: Report) -> LocalEnvironment:
    """The packages of a model's lock file for the Python of the local Triton, packed.

    Of PyTorch's build for CUDA ``.envs/torch`` stands in. Raises :class:`InputError` where there is no lock file, or it
    names PyTorch and that environment is not made yet.
    """
    requirements = _lock_file(folder, part)
    python = environment_version(LOCAL_ENVIRONMENT)
    names = locked_names(requirements, python=python)
    if TORCH in names:
        require_environment(TORCH)
        if {name for name in names if not _FOR_A_GPU.fullmatch(name)} <= _packages_of_torch():
            return LocalEnvironment()
    if python is None:
        return LocalEnvironment()  # the proof reports that the local Triton is not set up
    without = _FOR_A_GPU if TORCH in names else None
    try:
        packed = kept_environment(folder, part, python=python, work=work, report=report, without=without)
    except NoWheelError as error:
        return LocalEnvironment(lacking=f"the lock file gives no environment for the local Triton's {python}: {error}")
    if without is not None and packed.for_torch:
        compiled = ", ".join(packed.for_torch)
        return LocalEnvironment(
            lacking=f"{compiled}: compiled for the lock file's build of PyTorch; .envs/torch, which stands in for "
            "that, is another build, without CUDA"
        )
    return LocalEnvironment(packed=packed)


def locked_names(requirements: Path, *, python: str | None = None) -> frozenset[str]:
    """Names of a lock file's packages, as the index spells them; none where it is not there.

    ``python``: those that a Python of this minor version on Linux takes; None: those of any.
    """
    entries = _entries(requirements) if requirements.is_file() else ()
    found = (requirement for requirement, _ in entries if requirement is not None)
    return frozenset(canonicalize_name(each.name) for each in found if python is None or _applies(each, python=python))


def _applies(requirement: Requirement, *, python: str) -> bool:
    """Whether an entry of a lock file is for a Python of a minor version in Triton's image."""
    machine = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}
    here = {"python_version": python, "python_full_version": f"{python}.0", "implementation_name": "cpython"}
    return requirement.marker is None or requirement.marker.evaluate({**machine, **here})


def _entries(requirements: Path) -> Iterator[tuple[Requirement | None, str]]:
    """The entries of a lock file, each with its text, hashes included; None for what is no requirement."""
    for text in re.split(r"(?m)^(?=[A-Za-z0-9])", requirements.read_text(encoding="utf-8")):
        try:
            yield Requirement(re.sub(r"(\s+--hash=\S+|\s*\\$|\s+#.*$)", "", text, flags=re.MULTILINE).strip()), text
        except InvalidRequirement:
            yield None, text  # the installer reports it


def _packages_of_torch() -> set[str]:
    """Names of the packages in ``.envs/torch``."""
    site = next((environment_python(TORCH).parents[1] / "lib").glob("python3*/site-packages"), None)
    found = distributions(path=[str(site)]) if site else ()
    return {canonicalize_name(package.metadata["Name"]) for package in found}


def _lock_file(folder: Path, part: ExecutionEnvironment) -> Path:
    requirements = folder / part.requirements
    if not requirements.is_file():
        problem = Problem(file=str(requirements), found="no such file", allowed="a pinned requirements file")
        raise InputError([problem])
    return requirements


def kept_environment(
    folder: Path,
    part: ExecutionEnvironment,
    *,
    python: str,
    work: Path,
    report: Report,
    without: re.Pattern[str] | None = None,
) -> PackedEnvironment:
    """The packed environment of a Python model, made now or by an earlier build.

    ``work`` keeps it as ``<folder>.python-<version>.<digest>.tar.gz``, and its packages next to it. ``without``: names
    of packages that are left out. Raises :class:`InputError` where there is no lock file; else as
    :func:`make_execution_environment`.
    """
    requirements = _lock_file(folder, part)
    inputs = {"requirements": sha256_of(requirements), "python": python}
    digest = short_digest(inputs | ({"without": without.pattern} if without else {}))
    packed = work / f"{folder.resolve().name}.python-{python}.{digest}.tar.gz"
    described = packed.with_suffix(".json")  # written last
    if packed.is_file() and described.is_file():
        found = json.loads(described.read_text())
        if "for_torch" in found:  # else of an earlier version
            return PackedEnvironment(
                path=packed, python=python, packages=found["packages"], for_torch=tuple(found["for_torch"])
            )
    made = make_execution_environment(requirements, python=python, target=packed, report=report, without=without)
    write_text(described, json.dumps({"packages": made.packages, "for_torch": made.for_torch}))
    return made


def make_execution_environment(
    requirements: Path,
    *,
    python: str,
    target: Path,
    report: Report = lambda _text: None,
    without: re.Pattern[str] | None = None,
) -> PackedEnvironment:
    """Make and pack the environment of a lock file into ``target``, which appears whole or not at all.

    ``python``: the minor version of the release's Python (``3.10``); no interpreter of it is needed, and nothing is
    compiled. The same lock file gives the same bytes. Raises :class:`InputError` where the packages lack numpy;
    :class:`WorkFailedError` where a package is not pinned with a hash, cannot be fetched, or has no wheel for that
    Python, with the installer's output.
    """
    report(f"execution environment for Python {python}")
    with partial_folder(target.parent, name=f".{target.name}") as work:
        place = work / "environment"
        site = place / "lib" / f"python{python}" / "site-packages"
        site.mkdir(parents=True)
        wanted = requirements
        if without is not None and any(map(without.fullmatch, locked_names(requirements))):
            wanted = work / "requirements.txt"
            left = (text for each, text in _entries(requirements) if each is None or not without.fullmatch(each.name))
            wanted.write_text("".join(left), encoding="utf-8")
            name, line = _TORCH_PATH
            (site / name).write_text(line, encoding="utf-8")
        _install(wanted, site, python=python)
        _tidy(site)
        found = {package.metadata["Name"].lower(): package.version for package in distributions(path=[str(site)])}
        packages = dict(sorted(found.items()))
        if "numpy" not in packages:  # the backend itself imports it: without it not even the stub starts
            problem = Problem(
                file=str(requirements),
                found=f"{len(packages)} packages without numpy",
                allowed="numpy, which the Python backend imports",
            )
            raise InputError([problem])
        (place / "bin").mkdir()
        (place / "bin" / "activate").write_text(activate_script(python))
        described = {"python": python, "packages": packages}
        (place / DESCRIPTION).write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")
        pack_reporting(place, target, name=target.name, report=report)
        for_torch = tuple(sorted(_compiled_for_torch(site)))
        shutil.rmtree(place)
    return PackedEnvironment(path=target, python=python, packages=packages, for_torch=for_torch)


def activate_script(python: str) -> str:
    """The ``bin/activate`` of an environment for ``python`` (``3.10``) whose packages are in ``lib/python3.10``."""
    return _ACTIVATE.format(python=python)


def _compiled_for_torch(site: Path) -> Iterator[str]:
    """Packages in ``site``, but for PyTorch itself, with a library that needs PyTorch's own."""
    for package in distributions(path=[str(site)]):
        name = canonicalize_name(package.metadata["Name"])
        libraries = [site / file for file in package.files or () if ".so" in file.suffixes]
        if not _FOR_A_GPU.fullmatch(name) and any(map(_needs_torch, libraries)):
            yield name


def _needs_torch(library: Path) -> bool:
    """Whether a shared library names PyTorch's among those that it needs, which stand as text in it (elf(5))."""
    if not library.is_file() or library.is_symlink() or not library.stat().st_size:
        return False
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in (b"libtorch", b"libc10"))


def _install(requirements: Path, site: Path, *, python: str) -> None:
    """Put a lock file's wheels into ``site``."""
    ended = run_installer(
        *("pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"),
        *("--target", str(site), "--python", sys.executable),
        *("--python-version", python, "--python-platform", PLATFORM),
        *("--require-hashes", "--link-mode", "copy", "--no-config", "-r", str(requirements.resolve())),
    )
    if ended.returncode:
        message = f"the execution environment for Python {python} could not be made; {last_lines(ended)}"
        no_wheel = _NO_WHEEL.search(" ".join(ended.stdout.split()))
        raise (NoWheelError if no_wheel else WorkFailedError)(message)


def _tidy(site: Path) -> None:
    """Remove what the installer made for this machine: programs, its lock, and the records of both.

    A package's list of files stays, sorted, without what is gone: some libraries read it.
    """
    shutil.rmtree(site / "bin", ignore_errors=True)
    (site / ".lock").unlink(missing_ok=True)
    for record in site.glob("*.dist-info/RECORD"):
        for name in _OF_THE_INSTALL:
            (record.parent / name).unlink(missing_ok=True)
        with record.open(newline="", encoding="utf-8") as stream:
            rows = sorted(row for row in csv.reader(stream) if row and (site / row[0]).is_file())
        with record.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows(rows)
