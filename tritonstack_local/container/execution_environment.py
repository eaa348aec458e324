"""Locally an environment of the local server's Python serves where a config.pbtxt names one of the release's Python.

The stub of the Python backend embeds one minor version of Python. The local server's need not be the release's, and an
archive that is built for this machine carries no environment at all.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tarfile
import zlib
from pathlib import Path

from tritonstack.catalogue import load_catalogue
from tritonstack.paths import REPOSITORY
from tritonstack_local.container.pbtxt import StringParameter, string_parameters, with_value

PARAMETER = "EXECUTION_ENV_PATH"
MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
FOLDER = "tritonstack-environment"
_PYTHON = re.compile(r"(?:\./)?(?:lib|bin)/python(3\.\d+)(?:/.*)?")

_ACTIVATE = """\
# Made by tritonstack: sourced by Triton's Python backend in place of the model's own execution environment.
echo {note} >&2
PATH={programs}:"$PATH"
"""


def with_local_environment(
    text: str, model: Path, *, environment: Path, python: str, release: str | None, file: str
) -> tuple[str, str | None]:
    """A configuration whose execution environment is one for the local server's Python.

    Where the model carries one for that Python, it is used and nothing changes. Otherwise a folder is made in the
    model's directory whose ``activate`` puts ``environment`` first on PATH and names the stand-in in the container's
    log, which is where ``tritonstack local status`` has it from.

    Args:
        text: the configuration.
        model: the model's directory.
        environment: the virtual environment that stands in.
        python: the minor version of the local server's Python.
        release: the Triton release asked for, if it is known.
        file: the configuration's name, for errors.

    Returns:
        the configuration, and what stands in for what: None where nothing does.

    Raises:
        ConfigSyntaxError: the text cannot be read.
    """
    named = next((one for one in string_parameters(text, file=file) if one.key == PARAMETER), None)
    if named is None:
        return text, None
    packed = _own(named, model)
    carried = packed_python(packed) if packed else None
    if packed and carried in (python, None):
        return text, None
    wanted = f"its Python {carried}" if carried else _release_python(release)
    note = (
        f"execution environment {Path(named.value).name}: {_shown(environment)}, Python {python} in place of {wanted}"
    )
    _write_activate(model, environment, note=note)
    return with_value(text, named, f"{MODEL_DIRECTORY}/{FOLDER}"), note


def packed_python(path: Path) -> str | None:
    """The minor version that an execution environment is for: a folder, or a .tar.gz, which is read no further than
    its first file of Python. None where it has none or cannot be read: Triton then says what is wrong with it.
    """
    if path.is_dir():
        names = (f"lib/{entry.name}" for entry in sorted(path.glob("lib/python3.*")))
        return next((match[1] for name in names if (match := _PYTHON.fullmatch(name))), None)
    try:
        with tarfile.open(path, "r|gz") as archive:
            return next((match[1] for member in archive if (match := _PYTHON.fullmatch(member.name))), None)
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        return None


def _own(named: StringParameter, model: Path) -> Path | None:
    """The environment that the model carries itself; None where there is none."""
    inside = named.value.removeprefix(f"{MODEL_DIRECTORY}/")
    place = model / inside
    return place if place.exists() and place.resolve().is_relative_to(model.resolve()) else None


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
        line = f"{_shown(environment)} is missing, which is to stand in: python3 scripts/setup.py {environment.name}"
    place = model / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    (place / "bin").mkdir(parents=True)
    programs = shlex.quote(str(environment / "bin"))
    (place / "bin" / "activate").write_text(_ACTIVATE.format(note=shlex.quote(line), programs=programs))
