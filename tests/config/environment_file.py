"""Writes small environment files for tests: one good endpoint, of which a test replaces or adds single lines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tritonstack.config import load_environment
from tritonstack.errors import InputError, Problem

HEADER = {
    "environment": "local",
    "account": '"123456789012"',
    "region": "us-east-1",
    "production": "false",
}
ENDPOINT = {
    "name": "digits",
    "mode": "multi-model",
    "release": '"24.09"',
    "instance_type": "ml.g4dn.xlarge",
    "models": "[digits-onnx]",
}


def environment_text(*, header: str = "", endpoint: str = "", without: Iterable[str] = ()) -> str:
    """An environment file in which lines ``key: value`` replace or join those of the header and of the endpoint.

    ``without`` names required keys to leave out.
    """
    top = _replaced(lines=HEADER, by=header, without=without)
    inner = _replaced(lines=ENDPOINT, by=endpoint, without=without)
    item = "\n".join(f"    {key}: {value}" for key, value in inner.items())
    return "\n".join(f"{key}: {value}" for key, value in top.items()) + f"\nendpoints:\n  -\n{item}\n"


def _replaced(*, lines: dict[str, str], by: str, without: Iterable[str]) -> dict[str, str]:
    changed = dict(lines)
    for line in by.splitlines():
        key, _, value = line.partition(":")
        changed[key.strip()] = value.strip()
    return {key: value for key, value in changed.items() if key not in set(without)}


def problems_of(folder: Path, *, header: str = "", endpoint: str = "", without: Iterable[str] = ()) -> list[Problem]:
    """What is wrong with an environment with these lines; none where it loads."""
    try:
        load_environment(write_environment(folder, header=header, endpoint=endpoint, without=without))
    except InputError as error:
        assert error.exit_code == 2
        return list(error.problems)
    return []


def write_environment(
    folder: Path, *, header: str = "", endpoint: str = "", without: Iterable[str] = (), name: str = "local"
) -> Path:
    """Writes ``environment_text`` to ``<folder>/<name>.yaml``."""
    path = folder / f"{name}.yaml"
    path.write_text(environment_text(header=header, endpoint=endpoint, without=without), encoding="utf-8")
    return path
