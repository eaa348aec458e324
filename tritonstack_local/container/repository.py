"""Files that the server finds: its backends, execution environments, and a model folder that loads without a GPU."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack.disk import link_or_copy
from tritonstack.errors import WorkFailedError
from tritonstack.model_files import marked_plan
from tritonstack.models.pbtxt import Message, PbtxtError, Scalar, parse, quoted, to_text
from tritonstack.paths import REPOSITORY, setup_command
from tritonstack.untrusted.tar_reading import first_match

# The stub of the Python backend embeds one minor version of Python. The local server's need not be the release's, and
# an archive that is built for this machine carries no environment at all.
PARAMETER = "EXECUTION_ENV_PATH"
MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
FOLDER = "tritonstack-environment"
STUB = "triton_python_backend_stub"
ENVIRONMENT_NOTE = "execution environment"
"""Beginning of the line on one that another stands in for."""
_PYTHON = re.compile(r"^(?:\./)?(?:lib|bin)/python(3\.\d+)(?:/.*)?$")
_LIBRARY = re.compile(r"^(?:\./)?lib/libpython(3\.\d+)\.so\.1\.0$")
"""The library of a Python that others embed, as the backend's stub does: conda's have it, virtual environments none."""
_NUMPY_2 = re.compile(r"^(?:\./)?lib/python3\.\d+/site-packages/numpy-((?:[2-9]|[1-9][0-9])[.0-9]*)\.dist-info")
_MOST_FILES = 500_000
"""Of an execution environment, among which one is looked for."""

_ACTIVATE = """\
# Made by tritonstack: sourced by Triton's Python backend in place of the model's own execution environment.
echo {note} >&2
PATH={programs}:"$PATH"
"""


def with_local_environment(
    text: str,
    model: Path,
    *,
    archive: Path,
    environment: Path,
    python: str,
    stubs: Path,
    release: str | None,
    file: str,
) -> tuple[str, str | None]:
    """A configuration whose execution environment is one that the local server can run.

    Where the archive carries one for the server's Python, it is used and nothing changes. One of another Python that
    brings that Python's shared library, as conda's do, is used too: the server takes the stub for it from the model's
    directory. A path that exists in no container stays, and both servers refuse it: a relative one, which the server
    looks for in its own working directory, and one outside the model's directory that the archive does not have.
    Otherwise a folder is made in the model's directory whose ``activate`` puts ``environment`` first on PATH and names
    the stand-in in the container's log, which is where ``tritonstack local status`` has it from.

    Raises ConfigSyntaxError: the text cannot be read.

    Args:
        text: the configuration.
        model: the model's directory.
        archive: the folder that the model's archive was unpacked into.
        environment: the virtual environment that takes its place.
        python: the minor version of the local server's Python.
        stubs: the Python backend's helper programs, a folder for each minor version.
        release: the requested Triton release, if there is one.
        file: the configuration's name, for errors.

    Returns:
        the configuration, and a line on the stand-in; None without one.
    """
    named = string_parameter(text, PARAMETER, file=file)
    if named is None or not named.startswith(("/", f"{MODEL_DIRECTORY}/")):
        return text, None
    packed = _packed(named, model, archive=archive)
    carried = packed_python(packed) if packed else None
    if packed and carried is None:
        return text, None
    new_numpy = _in_environment(packed, _NUMPY_2) if packed else None
    if packed and carried == python and not new_numpy:
        return text, None
    if packed and not new_numpy and (stubs / str(carried) / STUB).is_file() and _in_environment(packed, _LIBRARY):
        # Source: triton-inference-server/python_backend, README, "Building Custom Python Backend Stub".
        (model / STUB).unlink(missing_ok=True)
        shutil.copy(stubs / str(carried) / STUB, model / STUB)
        return text, None
    if not packed and _is_beside(named):
        return text, None
    wanted = f"its Python {carried}" if carried else _release_python(release)
    if new_numpy:
        wanted += f" and NumPy {new_numpy}: the local Triton reads arrays of NumPy 1 alone"
    note = f"{ENVIRONMENT_NOTE} {Path(named).name}: {_shown(environment)}, Python {python} in place of {wanted}"
    _write_activate(model, environment, note=note)
    return with_parameter(text, PARAMETER, f"{MODEL_DIRECTORY}/{FOLDER}"), note


def packed_python(path: Path) -> str | None:
    """The minor version that an execution environment is for: a folder, or a .tar.gz, which is read no further than
    its first file of Python. None where it has none or cannot be read: Triton then reports the error.
    """
    if path.is_dir():
        names = (f"lib/{entry.name}" for entry in sorted(path.glob("lib/python3.*")))
        return next((match[1] for name in names if (match := _PYTHON.fullmatch(name))), None)
    return first_match(path, _PYTHON)


def _in_environment(packed: Path, pattern: re.Pattern[str]) -> str | None:
    """The first group of the first file's name of an execution environment, a folder or a .tar.gz, that matches."""
    if packed.is_dir():
        names = (str(path.relative_to(packed)) for path in packed.glob("lib/**/*"))
        return next((match[1] for name in names if (match := pattern.match(name))), None)
    return first_match(packed, pattern, most_members=_MOST_FILES)


def _packed(named: str, model: Path, *, archive: Path) -> Path | None:
    """The environment that the archive carries; None where there is none."""
    place = model / named.removeprefix(f"{MODEL_DIRECTORY}/")
    return place if place.exists() and place.resolve().is_relative_to(archive.resolve()) else None


def _is_beside(named: str) -> bool:
    """Whether a path leads out of the model's directory."""
    return os.path.normpath(named.removeprefix(f"{MODEL_DIRECTORY}/")).startswith("..")


def _release_python(release: str | None) -> str:
    found = load_catalogue().release(release) if release else None
    return f"the release's {found.python}" if found else "the release's own"


def _shown(environment: Path) -> str:
    if environment.is_relative_to(REPOSITORY):
        return str(environment.relative_to(REPOSITORY))
    return str(environment)


def _write_activate(model: Path, environment: Path, *, note: str) -> None:
    line = f"tritonstack stand-in: {note} (model {model.name})"
    if not (environment / "bin" / "python3").exists():
        # The process starts all the same, and fails at its first import. An activate that fails is waited for in vain.
        line = f"{_shown(environment)} is missing, which is to stand in: {setup_command(environment.name)}"
    place = model / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    (place / "bin").mkdir(parents=True)
    programs = shlex.quote(str(environment / "bin"))
    (place / "bin" / "activate").write_text(_ACTIVATE.format(note=shlex.quote(line), programs=programs))


BACKENDS = Path(__file__).resolve().parents[1] / "backends"
STAND_INS = ("onnxruntime", "pytorch", "tensorrt", "dali", "tensorflow")


@dataclass(frozen=True, kw_only=True)
class TritonFiles:
    """Paths of the installed server and of its backends' dependencies."""

    triton: Path  # the files of the wheel ``nvidia-pytriton``
    python: Path  # the virtual environment that the Python backend takes its packages from
    # the virtual environment with torch; may be missing, then the pytorch backend reports how to install it
    torch: Path
    dali: Path  # the same for DALI
    tensorflow: Path  # the same for TensorFlow

    @classmethod
    def of_repository(cls, environments: Path = REPOSITORY / ".envs") -> TritonFiles:
        """The environments that ``scripts/setup.py`` makes."""
        return cls(
            triton=environments / "triton",
            python=environments / "backends",
            torch=environments / "torch",
            dali=environments / "dali",
            tensorflow=environments / "tensorflow",
        )

    @property
    def server(self) -> Path:
        """The server's program."""
        return self.triton / "pytriton" / "tritonserver" / "bin" / "tritonserver"

    @property
    def caches(self) -> Path:
        """The response cache's implementations."""
        return self.triton / "pytriton" / "tritonserver" / "caches"

    @property
    def python_version(self) -> str:
        """The minor version of the Python backend's interpreter, such as ``3.11``."""
        return ".".join(self._configuration()["version"].split(".")[:2])

    @property
    def stub(self) -> Path:
        """The Python backend's helper program for that version."""
        return self.stubs / self.python_version / STUB

    @property
    def stubs(self) -> Path:
        """A folder for each minor version of Python with the helper program for it."""
        return self.triton / "pytriton" / "tritonserver" / "python_backend_stubs"

    def process_environment(self) -> dict[str, str]:
        """The variables of the server and the Python backend; none of the caller's."""
        # A Python that was built with a shared library of its own is embedded with exactly that one.
        own_library = Path(self._configuration()["home"]).parent / "lib"
        folders = [self.triton / "nvidia_pytriton.libs"]
        if (own_library / f"libpython{self.python_version}.so.1.0").is_file():
            folders.append(own_library)
        return {
            "PATH": os.pathsep.join([str(self.python / "bin"), "/usr/local/bin", "/usr/bin", "/bin"]),
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders)),
            "LANG": "C.UTF-8",
            "PYTHONNOUSERSITE": "True",
            "TRITONSTACK_TORCH_SITE": self._site(self.torch),
            "TRITONSTACK_DALI_SITE": self._site(self.dali),
            "TRITONSTACK_TENSORFLOW_SITE": self._site(self.tensorflow),
        }

    def _site(self, environment: Path) -> str:
        return str(environment / "lib" / f"python{self.python_version}" / "site-packages")

    def check(self) -> None:
        """Find out before the first start whether the server can run here.

        Raises WorkFailedError: the server or the backends' environment is missing, or the shared library of Python
        is, or NumPy is too new; the message names what to install.
        """
        for path in (self.server, self.python / "bin" / "python"):
            if not path.exists():
                raise WorkFailedError(f"{path} is missing. Install it: {setup_command('triton', 'backends')}")
        if not self.stub.is_file():
            raise WorkFailedError(
                f"the Triton wheel brings no Python backend for Python {self.python_version}, the version of "
                f"{self.python}. Make the environments with another one: make PYTHON=python3.12 demo"
            )
        self._check_numpy()
        # The program ends at once without arguments; with a library missing it does not even start.
        trial = subprocess.run([self.stub], env=self.process_environment(), capture_output=True, text=True, check=False)
        missing = re.search(r"error while loading shared libraries: (\S+):", trial.stderr)
        if missing:
            package = f"libpython{self.python_version}" if "libpython" in missing[1] else "the package that brings it"
            raise WorkFailedError(
                f"Triton's Python backend needs the shared library {missing[1]}, which is not on this machine. "
                f"Install it: sudo apt-get install {package}"
            )

    def _check_numpy(self) -> None:
        """Refuse NumPy 2: the Python backend was compiled before it and reads every array as its first element."""
        for found in self.python.glob("lib/python3*/site-packages/numpy-*.dist-info"):
            version = found.name.removeprefix("numpy-").removesuffix(".dist-info")
            if int(version.split(".")[0]) >= 2:
                raise WorkFailedError(
                    f"NumPy {version} is in {self.python}: the Python backend of this Triton was compiled for NumPy 1 "
                    "and gives wrong arrays with NumPy 2, without an error. Pin numpy==1.26.4 in "
                    "requirements/backends.in, then: make lock && python3 scripts/setup.py backends"
                )

    def _configuration(self) -> Mapping[str, str]:
        """The virtual environment's ``pyvenv.cfg``: ``home`` is the folder of the interpreter it was made from."""
        lines = (self.python / "pyvenv.cfg").read_text().splitlines()
        pairs = (line.partition("=") for line in lines if "=" in line)
        return {key.strip(): value.strip() for key, _, value in pairs}


_DUMPS = """
# Added by tritonstack. Every process of a Python model imports this file before the model's program.
import faulthandler
import signal

faulthandler.enable(file=2)
faulthandler.register(signal.SIGUSR1, file=2)
"""
"""Code of each model's process: a crash in compiled code, and SIGUSR1, write its calls into the server's log."""


def prepare_backends(folder: Path, files: TritonFiles) -> None:
    """Make ``folder`` the server's backend directory: NVIDIA's Python backend and this project's CPU stand-ins.

    Files are hard links or copies: the server refuses a backend behind a symbolic link that leads elsewhere.
    """
    shutil.rmtree(folder, ignore_errors=True)
    native = files.triton / "pytriton" / "tritonserver" / "backends" / "python"
    shutil.copytree(native, folder / "python", copy_function=link_or_copy)
    link_or_copy(files.stub, folder / "python" / files.stub.name)
    utilities = folder / "python" / "triton_python_backend_utils.py"
    text = utilities.read_text(encoding="utf-8")
    utilities.unlink()  # a link to the wheel's, which stays
    utilities.write_text(f"{text}\n{_DUMPS}", encoding="utf-8")
    for name in (*STAND_INS, "common"):
        shutil.copytree(BACKENDS / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(marked_plan.__file__, folder / "common" / "tritonstack_marked_plan.py")


def check_shell_path(folder: Path) -> None:
    """Refuse a folder that the Python backend cannot start its helper program from.

    It gives a shell the program and its arguments without quotes and, where that fails, waits for ever (seen with
    release 24.10).

    Raises WorkFailedError: the path has a space or a character that means something to a shell.
    """
    if not re.fullmatch(r"[\w./+@%=:,-]+", str(folder)):
        raise WorkFailedError(
            f"Triton's Python backend cannot run from {str(folder)!r}: it gives the path to a shell without quotes. "
            "Set TRITONSTACK_HOME to a folder whose path has letters, digits and none of the shell's characters"
        )


def prepare_model_data(
    folder: Path, *, release: str | None = None, files: TritonFiles | None = None
) -> tuple[str, ...]:
    """Let an unpacked archive load here: without a GPU, and with the local server's Python.

    Every ``config.pbtxt`` has its instances on the CPU afterwards, and names an execution environment only where there
    is one for that Python: the archive's own, or in its place the environment with torch. The rest of each file
    stays the same. Idempotent.

    Raises ConfigSyntaxError: a ``config.pbtxt`` is not protobuf text.

    Args:
        folder: where the archive was unpacked: one model, or several in a folder each.
        release: the requested Triton release, if there is one; it gives the Python version of the real image.
        files: where the server is installed; default: this repository's environments.

    Returns:
        what was changed, a line for each change.
    """
    files = files or TritonFiles.of_repository()
    changes = []
    for config in sorted([*folder.glob("config.pbtxt"), *folder.glob("*/config.pbtxt")]):
        name = str(config.relative_to(folder))
        text = config.read_bytes().decode("utf-8", "surrogateescape")
        served = without_gpus(text, file=name)
        if served != text:
            changes.append(f"{name}: instances on the CPU, since there is no GPU")
        if PARAMETER in served:
            served, note = with_local_environment(
                served,
                config.parent,
                archive=folder,
                environment=files.torch,
                python=files.python_version,
                stubs=files.stubs,
                release=release,
                file=name,
            )
            changes += [f"{name}: {note}"] if note else []
        if served != text:
            temporary = config.with_name(".config.pbtxt.new")
            temporary.write_bytes(served.encode("utf-8", "surrogateescape"))
            temporary.replace(config)
    return tuple(changes)


# --- Edits of config.pbtxt: the rest of a file keeps its meaning ---
# Source of the fields' meaning: model_config.proto of triton-inference-server/common (ModelInstanceGroup).

_ON_GPU = ("KIND_GPU", 1)
_AUTOMATIC = ("KIND_AUTO", 0, None)


class ConfigSyntaxError(WorkFailedError):
    """A ``config.pbtxt`` that is not protobuf text; the message names the file and the line."""


def without_gpus(text: str, *, file: str = "config.pbtxt") -> str:
    """The configuration with its instances on the CPU, as many as it has on one GPU.

    ``kind: KIND_GPU`` becomes ``KIND_CPU``, and ``gpus`` goes. Without a count Triton makes one instance on each
    GPU but two on a CPU, so ``count: 1`` is written. A group that is on the CPU stays, and so does
    ``KIND_MODEL``, which leaves the device to the backend. ``file``: for the error.

    Raises ConfigSyntaxError: the text cannot be read.
    """
    config = _parsed(text, file)
    fields = tuple(
        replace(field, value=_on_cpu(field.value))
        if field.name == "instance_group" and isinstance(field.value, Message)
        else field
        for field in config.fields
    )
    platform = config.last("platform")
    is_ensemble = isinstance(platform, Scalar) and platform.value == "ensemble"
    if not config.all("instance_group") and not is_ensemble and not config.all("ensemble_scheduling"):
        fields += parse("instance_group { count: 1 kind: KIND_CPU }").fields
    return text if fields == config.fields else to_text(replace(config, fields=fields))


def _on_cpu(group: Message) -> Message:
    kind = group.last("kind")
    value = kind.value if isinstance(kind, Scalar) else None
    if value not in (*_ON_GPU, *_AUTOMATIC):
        return group
    gone = ("gpus", "kind") if value in _ON_GPU else ("gpus",)
    fields = [field for field in group.fields if field.name not in gone]
    fields += parse("kind: KIND_CPU").fields if value in _ON_GPU else ()
    fields += () if group.all("count") else parse("count: 1").fields
    return replace(group, fields=tuple(fields))


def string_parameter(text: str, key: str, *, file: str = "config.pbtxt") -> str | None:
    """The ``string_value`` of a parameter; None without one. Raises :class:`ConfigSyntaxError`."""
    for field in _parsed(text, file).fields:
        value = field.value.last("value") if isinstance(field.value, Message) and _is_parameter(field, key) else None
        string = value.last("string_value") if isinstance(value, Message) else None
        if isinstance(string, Scalar):
            return str(string.value)
    return None


def with_parameter(text: str, key: str, value: str) -> str:
    """The configuration with another ``string_value`` of a parameter, at its end."""
    config = parse(text)
    others = tuple(field for field in config.fields if not _is_parameter(field, key))
    entry = parse(f"parameters {{ key: {quoted(key)} value {{ string_value: {quoted(value)} }} }}")
    return to_text(replace(config, fields=others + entry.fields))


def _is_parameter(field: Any, key: str) -> bool:
    named = field.value.last("key") if field.name == "parameters" and isinstance(field.value, Message) else None
    return isinstance(named, Scalar) and named.value == key


def _parsed(text: str, file: str) -> Message:
    try:
        return parse(text)
    except PbtxtError as error:
        raise ConfigSyntaxError(f"{file}: {error}") from error
