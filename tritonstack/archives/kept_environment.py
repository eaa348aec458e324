"""Packed Python environments, made once for each requirements file and Python."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from tritonstack.archives.digest import sha256_of, short_digest
from tritonstack.archives.execution_environment import PackedEnvironment, make_execution_environment
from tritonstack.archives.programs import Report
from tritonstack.archives.recipe import ExecutionEnvironment
from tritonstack.errors import InputError, Problem


def environment_stem(folder: Path, part: ExecutionEnvironment, *, python: str) -> str:
    """What a packed environment's files are called but for their suffixes. The requirements file must be there."""
    digest = short_digest({"requirements": sha256_of(folder / part.requirements), "python": python})
    return f"{folder.resolve().name}.python-{python}.{digest}"


def kept_environment(
    folder: Path, part: ExecutionEnvironment, *, python: str, work: Path, report: Report
) -> PackedEnvironment:
    """The packed environment of a Python model, made now or by an earlier build.

    ``work`` keeps it as ``<folder>.python-<version>.<digest>.tar.gz``, and what it holds beside it. Raises as
    :func:`make_execution_environment`.
    """
    requirements = folder / part.requirements
    if not requirements.is_file():
        problem = Problem(file=str(requirements), found="no such file", allowed="a pinned requirements file")
        raise InputError([problem])
    packed = work / f"{environment_stem(folder, part, python=python)}.tar.gz"
    described = packed.with_suffix(".json")
    try:
        kept = PackedEnvironment(**{**json.loads(described.read_text()), "path": packed})
        if packed.stat().st_size == kept.bytes:
            return kept
    except (OSError, ValueError, TypeError):
        pass  # not made yet, or half
    work.mkdir(parents=True, exist_ok=True)
    made = make_execution_environment(folder, part, python, packed, report)
    temporary = described.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(made) | {"path": packed.name, "packages": dict(made.packages)}))
    temporary.replace(described)
    return made
