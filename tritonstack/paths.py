"""Paths of files in a checkout or a wheel, of the project and of the state folder.

Files outside packages are next to the packages in a checkout and inside this package in a wheel
(``setup.py`` lists them).
"""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tritonstack.errors import InputError, Problem

PACKAGE = Path(__file__).resolve().parent
CARRIED = "_repository"
"""The folder of this package that only a wheel has."""
CHECKOUT: Path | None = None if (PACKAGE / CARRIED).is_dir() else PACKAGE.parent
"""The repository; None where this is an installed wheel."""
LIBRARY = PACKAGE.parent
"""Folder of the packages: the repository, or a ``site-packages``."""
HOME_VARIABLE = "TRITONSTACK_HOME"
PROJECT_VARIABLE = "TRITONSTACK_PROJECT"


def repository_path(name: str) -> Path:
    """A file or folder by its path in the repository (``lambda``, ``schemas/releases.schema.json``)."""
    return (CHECKOUT or PACKAGE / CARRIED) / name


def is_project(folder: Path) -> bool:
    """Whether a folder has ``environments/`` with a YAML file or next to ``model_repos/``, or is this repository.

    The copy of the repository that a build in CodeBuild starts from has ``model_repos/`` alone.
    """
    environments = folder / "environments"
    beside = (folder / "model_repos").is_dir()
    return folder == CHECKOUT or (environments.is_dir() and (beside or any(environments.glob("*.yaml"))))


def find_project() -> Path | None:
    """TRITONSTACK_PROJECT if set, else the nearest project from the working folder upwards; None: there is none."""
    named = os.environ.get(PROJECT_VARIABLE)
    if named:
        return Path(named).resolve()
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if is_project(folder)), None)


def project_folder() -> Path:
    """Folder of ``environments/`` and ``model_repos/``.

    Raises InputError: the working folder is in no project, or TRITONSTACK_PROJECT names no folder.
    """
    found, named = find_project(), os.environ.get(PROJECT_VARIABLE)
    if found is None:
        problem = Problem(
            file=str(Path.cwd()),
            found="no project: neither this folder nor one above it holds environments/*.yaml",
            allowed="the folder of a project, or one inside it",
            advice=f"cd <your project>, or set {PROJECT_VARIABLE}=<its folder>; a new one: tritonstack init my-serving",
        )
        raise InputError([problem])
    if not found.is_dir():
        what = "a file" if found.exists() else "no such folder"
        problem = Problem(
            field=PROJECT_VARIABLE,
            found=f"{named} ({what})",
            allowed="the folder of a project",
            advice=f"unset {PROJECT_VARIABLE}, or make the project: tritonstack init {shlex.quote(str(found))}",
        )
        raise InputError([problem])
    return found


def machine_folder() -> Path:
    """Parent of ``.envs/`` and ``node_modules/``: the repository; of an installed wheel the project's folder.

    Outside of any project that is the working folder.
    """
    return CHECKOUT or find_project() or Path.cwd()


REPOSITORY = machine_folder()
"""The repository; of an installed wheel the project's folder."""


def link_to(target: Path, link: Path) -> None:
    """Make ``link`` a symbolic link to ``target``, whatever it led to; other processes see one or the other."""
    if link.is_symlink() and link.readlink() == target:
        return
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def setup_command(*names: str) -> str:
    """Command that makes environments, without ``names`` the usual ones."""
    if CHECKOUT is None:
        return " ".join(("tritonstack setup", *names))
    return f"python3 scripts/setup.py {' '.join(names)}" if names else "make setup"


@dataclass(frozen=True)
class LocalPaths:
    """The folders of one local AWS. ``root`` is ``.local`` in the project unless TRITONSTACK_HOME is set."""

    root: Path

    @classmethod
    def from_environment(cls) -> LocalPaths:
        """The folders that TRITONSTACK_HOME, or the project, determines; outside of any project the repository does."""
        named = os.environ.get(HOME_VARIABLE)
        return cls(Path(named).resolve() if named else (find_project() or REPOSITORY) / ".local")

    @property
    def record(self) -> Path:
        """Process ids and ports of the running local AWS."""
        return self.root / "running.json"

    @property
    def deployed(self) -> Path:
        """Deployed environments and their endpoints."""
        return self.root / "deployed.json"

    @property
    def logs(self) -> Path:
        """Logs of the local AWS, its runtime and of the CDK."""
        return self.root / "logs"

    @property
    def emulator(self) -> Path:
        """The emulator's state and temporary files."""
        return self.root / "emulator"

    @property
    def runtime(self) -> Path:
        """The runtime's fleets: unpacked models, Triton's logs."""
        return self.root / "runtime"

    @property
    def archives(self) -> Path:
        """Built archives and their manifests."""
        return self.root / "archives"

    @property
    def cdk_home(self) -> Path:
        """The CDK command line's cache, apart from the user's own."""
        return self.root / "cdk-home"

    def assembly(self, environment: str) -> Path:
        """The synthesised templates of one environment."""
        return self.root / "cdk.out" / environment


def environment_file(name: str) -> Path:
    """The settings of an environment of the project."""
    return project_folder() / "environments" / f"{name}.yaml"


def write_text(path: Path, text: str) -> None:
    """As :func:`write_bytes`, in UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file under a temporary name next to it, then move it: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def environment_python(name: str) -> Path:
    """The interpreter of one of the environments that ``scripts/setup.py`` makes."""
    return REPOSITORY / ".envs" / name / "bin" / "python"


def cdk_program() -> Path:
    """The CDK command line, pinned in package.json."""
    return REPOSITORY / "node_modules" / ".bin" / "cdk"
