"""``uv``, which locks and installs the packages of Python models with the user's settings of index and certificates."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tritonstack.errors import InputError, Problem
from tritonstack.paths import REPOSITORY, setup_command

_SHOWN_LINES = 20


def run_installer(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run uv to its end; ``stdout`` has what it printed on either stream. ``text``: its standard input.

    Raises :class:`InputError` where it is not there.
    """
    return subprocess.run(
        [str(installer()), *arguments],
        env=_variables(),
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def last_lines(ended: subprocess.CompletedProcess[str]) -> str:
    """The end of uv's output, for a message."""
    lines = ended.stdout.strip().splitlines()[-_SHOWN_LINES:]
    return "\n".join(["output of uv:", *(f"  {line}" for line in lines)])


def _variables() -> dict[str, str]:
    """The environment of uv: the user's, where pip's settings of wheels and certificates count, too."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "AWS_"))}
    if "PIP_FIND_LINKS" in variables:
        variables.setdefault("UV_FIND_LINKS", variables["PIP_FIND_LINKS"].replace(" ", ","))
    if "PIP_CERT" in variables:
        variables.setdefault("SSL_CERT_FILE", variables["PIP_CERT"])
    variables.setdefault("UV_HTTP_TIMEOUT", "180")
    return variables


def installer() -> Path:
    """``uv``, as ``scripts/setup.py`` installed it. Raises :class:`InputError` where it is not there."""
    found = sorted((REPOSITORY / ".envs").glob("uv-*/bin/uv"))
    if not found:
        place = str(REPOSITORY / ".envs" / "uv-…")
        raise InputError([Problem(file=place, found="nothing", allowed="the installer", advice=setup_command())])
    return found[-1]
