"""Make the environments that this project runs in, from the pinned files in requirements/.

    python3 scripts/setup.py main emulator triton backends exporters node
    python3 scripts/setup.py lock

Standard library only: it runs before any environment exists. An environment is made anew when its lock file or the
interpreter changed, under a temporary name first, so that an interrupted run leaves nothing half-made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVS = ROOT / ".envs"
REQUIREMENTS = ROOT / "requirements"
UV_VERSION = "0.13.8"
VIRTUAL = ("main", "emulator", "backends", "exporters", "torch", "dali")
STAMP = ".made-from"


class SetupError(Exception):
    """What is missing on this machine, said with what to install."""


def main(names: list[str]) -> int:
    """Make each named environment. Returns the exit code."""
    try:
        check_machine(names)
        if names == ["lock"]:
            lock()
            return 0
        for name in names:
            make(name)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"setup: {' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
        return 1
    return 0


def check_machine(names: list[str]) -> None:
    """Refuse a machine that cannot run the project, before anything is installed."""
    if sys.version_info < (3, 11):
        raise SetupError(f"Python {sys.version.split()[0]} found, 3.11 or newer needed: make PYTHON=python3.12 demo")
    if "node" in names:
        node = shutil.which("node")
        if node is None or shutil.which("npm") is None:
            raise SetupError("node and npm are needed for the CDK command line (Node 20 or newer); none is on PATH")
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        if int(version.lstrip("v").split(".")[0]) < 20:
            raise SetupError(f"Node {version} found, 20 or newer needed")


def make(name: str) -> None:
    """Make one environment unless it stands already, made from the same lock file by the same interpreter."""
    if name == "node":
        wanted, folder, maker = fingerprint(ROOT / "package-lock.json"), ROOT / "node_modules", make_node
    elif name == "triton":
        wanted, folder, maker = fingerprint(REQUIREMENTS / "triton.txt"), ENVS / "triton", make_triton
    elif name in VIRTUAL:
        wanted, folder, maker = fingerprint(REQUIREMENTS / f"{name}.txt"), ENVS / name, make_virtual
    else:
        raise SetupError(f"no environment is called {name!r}; there are {', '.join((*VIRTUAL, 'triton', 'node'))}")
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    started = time.monotonic()
    print(f"setup: {name} …", end=" ", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    maker(name, folder)
    temporary = stamp.with_suffix(".new")
    temporary.write_text(wanted)
    temporary.replace(stamp)
    print(f"{time.monotonic() - started:.0f} s", flush=True)


def fingerprint(lock_file: Path) -> str:
    """What an environment was made from: its lock file's digest and the interpreter."""
    digest = hashlib.sha256(lock_file.read_bytes()).hexdigest()
    return f"{digest} {sys.version.split()[0]} {ROOT}\n"


def make_virtual(name: str, folder: Path) -> None:
    """A virtual environment with exactly what its lock file names."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    uv_pip(
        "install",
        "--python",
        str(folder / "bin" / "python"),
        "--compile-bytecode",
        "--no-deps",
        *(["--require-hashes"] if name != "torch" else []),
        "-r",
        str(REQUIREMENTS / f"{name}.txt"),
    )
    if name == "main":
        # The project itself, by path: `tritonstack` on PATH without a build step.
        site = next(folder.glob("lib/python3*/site-packages"))
        (site / "tritonstack-here.pth").write_text(f"{ROOT}\n")
        script = folder / "bin" / "tritonstack"
        script.write_text(f"#!{folder / 'bin' / 'python'}\nfrom tritonstack.cli import main\n\nmain()\n")
        script.chmod(0o755)


def make_triton(_name: str, folder: Path) -> None:
    """The server's files; without its requirements, which are for its Python interface and pin old packages."""
    folder.mkdir(parents=True)
    uv_pip("install", "--target", str(folder), "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS / "triton.txt"))


def make_node(_name: str, _folder: Path) -> None:
    """The CDK command line, from package-lock.json."""
    subprocess.run(["npm", "ci", "--silent", "--no-fund", "--no-audit"], cwd=ROOT, check=True)


def uv_pip(*arguments: str) -> None:
    """Run ``uv pip``. Where pip is told of extra folders of wheels, uv is told of them too."""
    environment = dict(os.environ)
    if "PIP_FIND_LINKS" in environment:
        environment.setdefault("UV_FIND_LINKS", environment["PIP_FIND_LINKS"].replace(" ", ","))
    environment.setdefault("UV_HTTP_TIMEOUT", "180")
    subprocess.run([str(uv()), "pip", *arguments, "--quiet"], env=environment, check=True, cwd=ROOT)


def uv() -> Path:
    """The installer: ``uv``, from its own pinned wheel."""
    folder = ENVS / f"uv-{UV_VERSION}"
    program = folder / "bin" / "uv"
    if not program.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run(
            [
                str(folder / "bin" / "pip"),
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
                "-r",
                str(REQUIREMENTS / "uv.txt"),
            ],
            check=True,
        )
    return program


def lock() -> None:
    """Resolve every requirements/*.in into a pinned and hashed *.txt, without any address in it."""
    for source in sorted(REQUIREMENTS.glob("*.in")):
        if source.stem in ("torch",):
            continue  # pinned by hand: the CPU build and the registry's build of one version differ in their hash
        extra = ["--no-deps"] if source.stem in ("triton",) else ["--universal", "--python-version", "3.11"]
        target = source.with_suffix(".txt")
        print(f"lock: {target.relative_to(ROOT)}")
        uv_pip(
            "compile",
            *extra,
            "--generate-hashes",
            "--no-emit-index-url",
            "--no-emit-find-links",
            "--no-header",
            "--no-annotate",
            "--upgrade",
            str(source.relative_to(ROOT)),
            "-o",
            str(target.relative_to(ROOT)),
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
