"""The wheel, built from a copy of the tree and installed where the checkout is not."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
TREES = (
    *("constructs_lib", "docs", "lambda", "requirements", "schemas", "scripts", "stacks"),
    *("tritonstack", "tritonstack_capacity", "tritonstack_local"),
    "tests/examples",
)
"""Tests too, so that they could come into the wheel."""
FILES = ("MANIFEST.in", "README.md", "cdk.json", "package-lock.json", "package.json", "pyproject.toml", "setup.py")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info")


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, beside the packages of the main one."""

    source: Path  # the tree that the wheel was built from
    wheel: Path  # the wheel
    folder: Path  # the environment's

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Its own ``site-packages``."""
        return next(self.folder.glob("lib/python3*/site-packages"))

    def run(self, *command: str, folder: Path, variables: Mapping[str, str] | None = None, expect: int = 0) -> str:
        """What a command of this environment prints; an interpreter is started by ``python3``."""
        path = f"{self.folder / 'bin'}:{REPOSITORY / 'node_modules' / '.bin'}:{os.environ['PATH']}"
        ours = {"PATH": path, "CDK_VALIDATION": "false", "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20"}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHONPATH"))}
        return run(command, folder=folder, variables={**inherited, **ours, **(variables or {})}, expect=expect)


def run(command: Sequence[str], *, folder: Path, variables: Mapping[str, str] | None = None, expect: int = 0) -> str:
    """What a command prints on either stream; anything but the exit code ``expect`` fails the test."""
    ended = subprocess.run(
        list(command), cwd=folder, env=variables, text=True, stdin=subprocess.DEVNULL, timeout=250,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert ended.returncode == expect, f"$ {' '.join(command)}\nexit code {ended.returncode}\n{ended.stdout}"
    return ended.stdout


def install(folder: Path) -> Installed:
    """Copy the tree, build source distribution and wheel of it as ``uv build`` does, and install the wheel."""
    source = folder / "source"
    for tree in TREES:
        shutil.copytree(REPOSITORY / tree, source / tree, ignore=LEFT_OUT)
    for file in FILES:
        shutil.copy(REPOSITORY / file, source / file)
    [uv] = sorted((REPOSITORY / ".envs").glob("uv-*/bin/uv"))[-1:]
    isolated = ["--offline", "--quiet", "--python", sys.executable]
    run([str(uv), "build", "--no-build-isolation", *isolated, "-o", str(folder / "dist")], folder=source)
    [wheel] = (folder / "dist").glob("*.whl")
    environment = folder / "environment"
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)], folder=folder)
    installed = Installed(source=source, wheel=wheel, folder=environment)
    main = next((REPOSITORY / ".envs" / "main").glob("lib/python3*/site-packages"))
    # A path file of a path file's folder is not read: so the one that leads to the checkout is without effect here.
    (installed.packages / "main.pth").write_text(f"{main}\n")
    run(
        [str(uv), "pip", "install", "--no-deps", "--offline", "--quiet", "--python", str(installed.python), str(wheel)],
        folder=folder,
    )
    return installed


def from_the_indexes(wheel: Path) -> str:
    """Shell lines for ``pip install 'tritonstack[cdk,local]'`` in an active environment, and for what a test needs.

    What the lock files pin comes from the cache of the package indexes; then the built wheel, whose own requirements
    must be met by that: what is not there would have to be fetched.
    """
    [uv] = sorted((REPOSITORY / ".envs").glob("uv-*/bin/uv"))[-1:]
    install = f"{shlex.quote(str(uv))} pip install --offline --quiet"
    locks = [REPOSITORY / "requirements" / name for name in ("main.txt", "development.txt")]
    locked = " ".join(f"-r {shlex.quote(str(lock))}" for lock in locks)
    wanted = shlex.quote(f"tritonstack[cdk,local] @ {wheel.as_uri()}")
    return f"{install} --no-deps --no-build {locked}\n{install} {wanted}"


def installed_alone(wheel: Path, folder: Path, *, extra: str = "") -> Installed:
    """An environment with the wheel and what it and one of its extras require, as pip would install them.

    The distributions are links into the main environment, so that no network is needed; nothing else is there.
    """
    environment = folder / "environment"
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)], folder=folder)
    alone = Installed(source=REPOSITORY, wheel=wheel, folder=environment)
    [uv] = sorted((REPOSITORY / ".envs").glob("uv-*/bin/uv"))[-1:]
    command = ["pip", "install", "--no-deps", "--offline", "--quiet", "--python", str(alone.python), str(wheel)]
    run([str(uv), *command], folder=folder)
    main = next((REPOSITORY / ".envs" / "main").glob("lib/python3*/site-packages"))
    [own] = distributions(path=[str(alone.packages)])
    for needed in _required(own, {extra} if extra else set(), {}, str(main)).values():
        for top in {each.parts[0] for each in needed.files or () if each.parts[0] not in ("..", "__pycache__")}:
            if not (alone.packages / top).exists():
                (alone.packages / top).symlink_to(main / top)
    return alone


def _required(
    dist: Distribution, extras: set[str], found: dict[str, Distribution], path: str
) -> dict[str, Distribution]:
    """Every distribution that one requires, with those that they require, by its name."""
    for requirement in map(Requirement, dist.requires or ()):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": each}) for each in {"", *extras}):
            continue
        if (name := canonicalize_name(requirement.name)) not in found:
            found[name] = next(iter(distributions(name=requirement.name, path=[path])))
            _required(found[name], requirement.extras, found, path)
    return found
