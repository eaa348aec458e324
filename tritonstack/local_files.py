"""Files that commands make on this machine: environments, state of the local AWS, builds, caches; their sizes, their
removal. None of them is a source: the same commands make them again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rich.filesize import decimal

from tritonstack import local_aws, paths
from tritonstack.errors import InputError, Problem, WorkFailedError
from tritonstack.paths import CHECKOUT, LocalPaths

Kind = Literal["state", "builds", "temporary", "caches", "environments"]
"""In the order of removal: environments last, as a clone's hold the interpreter that removes."""
KINDS: tuple[Kind, ...] = get_args(Kind)

STATE = (
    "running.json", "deployed.json", "lock", "deployment.lock", "logs", "emulator", "runtime", "cdk-home", "cdk.out",
    "empty", "bench", "dashboard-*.html",
)  # fmt: skip
BUILDS = ("archives", "dev-archives", "exports", "sources", "client-files", "convert")
"""Names below :attr:`LocalPaths.root`. Nothing else there is touched: TRITONSTACK_HOME may be anybody's folder."""
CACHES = (".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".coverage", ".coverage.*", "htmlcov")
BYTECODE = "__pycache__"


@dataclass(frozen=True, kw_only=True)
class MadeFiles:
    """Files and folders of one kind, removed together."""

    kind: Kind
    what: str  # in words, for a list
    paths: tuple[Path, ...]
    bytes: int  # on the disk; a file with several names counts once

    @property
    def place(self) -> str:
        """Where they are: one path, or the folder that holds them, their number and the first one's name."""
        if len(self.paths) == 1:
            return _shown(self.paths[0])
        return f"{_shown(Path(os.path.commonpath(self.paths)))}: {len(self.paths)} ({self.paths[0].name}, …)"


def require_project() -> Path:
    """The folder that ``.envs``, ``node_modules`` and ``.local`` are made in.

    Raises InputError: it is no project; ``.local`` of a home folder, for one, belongs to other programs.
    """
    root = paths.REPOSITORY
    if CHECKOUT is None and not (root / "environments").is_dir():
        problem = Problem(
            file=str(root),
            found="no folder environments/, so no project",
            allowed="the folder of a project, as `tritonstack init` makes it",
            advice=f"cd <project>, or export {paths.PROJECT_VARIABLE}=<project>; then the same command again",
        )
        raise InputError([problem])
    return root


def made_files(kinds: Collection[Kind] = KINDS) -> tuple[list[MadeFiles], list[Path]]:
    """What commands made, in the order of removal; and what is left out as git tracks files in it."""
    root = paths.REPOSITORY
    found = [group for group in _groups(root) if group[0] in kinds and group[2]]
    tracked = _tracked(root, [path for _, _, members in found for path in members])
    counted: set[tuple[int, int]] = set()
    made = [
        MadeFiles(kind=kind, what=what, paths=untracked, bytes=sum(_disk_bytes(each, counted) for each in untracked))
        for kind, what, members in found
        if (untracked := tuple(each for each in members if each not in tracked))
    ]
    return made, sorted(tracked)


def size_lines(made: Sequence[MadeFiles]) -> list[str]:
    """A line on each, with its size, and their sum."""
    rows = [(decimal(each.bytes), each.what, each.place) for each in made]
    rows.append((decimal(sum(each.bytes for each in made)), "together", ""))
    size, what = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [f"  {row[0]:>{size}}  {row[1]:{what}}  {row[2]}".rstrip() for row in rows]


def remove(made: MadeFiles) -> None:
    """Remove files; of a link the link alone. Raises WorkFailedError: something cannot be removed."""
    for path in made.paths:
        try:
            if path.is_symlink() or not path.is_dir():
                path.unlink(missing_ok=True)
            elif made.kind == "temporary":
                path.rmdir()  # empty when it was listed: what a process put there since stays
            else:
                shutil.rmtree(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if made.kind == "temporary":
                continue
            where = os.fsdecode(error.filename or path)
            raise WorkFailedError(f"{where}: {error.strerror}; everything before it in the list is removed") from error
    parent = made.paths[0].parent
    if parent == LocalPaths.from_environment().root and parent.is_dir() and not any(parent.iterdir()):
        parent.rmdir()


def _groups(root: Path) -> Iterator[tuple[Kind, str, tuple[Path, ...]]]:
    local = LocalPaths.from_environment().root
    yield "state", "state and logs of the local AWS", _present(local, STATE)
    yield "builds", "archives, exports, fetched weights", _present(local, BUILDS)
    yield "builds", "synthesised templates", _present(root, ("cdk.out",))
    package = local_aws.installed()
    if package is not None:
        yield "temporary", "shared memory of servers that have ended", tuple(package.left_regions())
        yield "temporary", "empty folders of Triton's Python backend", tuple(package.left_environment_folders())
    yield "caches", "caches of tests and checks", (*_present(root, CACHES), *_bytecode(root))
    yield "environments", "the CDK command line", _present(root, ("node_modules",))
    yield "environments", "Python environments", _present(root, (".envs",))


def _present(folder: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    return tuple(path for pattern in patterns for path in sorted(folder.glob(pattern)))


def _bytecode(root: Path) -> Iterator[Path]:
    """Compiled Python below the project, but for hidden folders and environments."""
    for folder, names, _ in os.walk(root):
        if BYTECODE in names:
            yield Path(folder, BYTECODE)
        names[:] = [name for name in names if not name.startswith(".") and name not in (BYTECODE, "node_modules")]


def _tracked(root: Path, candidates: Sequence[Path]) -> set[Path]:
    """Those of ``candidates`` that are, or hold, files that git tracks; none where there is no git or repository."""
    inside = [path for path in candidates if path.is_relative_to(root)]
    if not inside:
        return set()
    names = {path.relative_to(root): path for path in inside}
    # A hook's variables would name another repository than the project's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "ls-files", "-z", "--", *(f":(literal){name}" for name in names)]
    try:
        listed = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return set()
    files = [Path(os.fsdecode(name)) for name in listed.split(b"\0") if name]
    return {path for name, path in names.items() if any(file.is_relative_to(name) for file in files)}


def _disk_bytes(path: Path, counted: set[tuple[int, int]]) -> int:
    """Bytes that a file, or a folder with all in it, takes on the disk; links are not followed.

    ``counted``: device and inode of files that were counted before.
    """
    total, waiting = 0, [path]
    while waiting:
        entry = waiting.pop()
        try:
            status = entry.lstat()
            if (key := (status.st_dev, status.st_ino)) not in counted:
                counted.add(key)
                total += status.st_blocks * 512
            if entry.is_dir() and not entry.is_symlink():
                waiting += entry.iterdir()
        except OSError:  # removed meanwhile, or another user's
            continue
    return total


def _shown(path: Path) -> str:
    """A path from the working folder where it is below it."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) and path != here else str(path)


def refuse_while_running() -> None:
    """Raise InputError while the local AWS or another process of the project's environments runs.

    The message names the command that ends each.
    """
    package = local_aws.installed()
    if package is None:
        return
    running = {each.end: each for each in reversed(package.running_processes(paths.REPOSITORY / ".envs"))}
    if running:
        allowed = "nothing that runs in the environments"
        raise InputError(
            Problem(field=f"process {each.pid}", found=each.command, allowed=allowed, advice=each.end)
            for each in reversed(running.values())
        )
