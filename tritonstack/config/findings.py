"""What a check finds: a place in the file, what stands there, what may stand there, and what to do."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tritonstack.config.yaml_source import Location, YamlDocument, read_yaml
from tritonstack.errors import InputError, Problem

LONGEST_SHOWN = 120
_PARTS = re.compile(r"\[[0-9]+\]|[^.\[]+")
LONGEST_NUMBER_BITS = 4096


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong, before it is known in which file and line.

    Attributes:
        location: path of keys and indices (``("endpoints", 0, "release")``).
        found: what stands there.
        allowed: what may stand there.
        advice: what to do, where that does not follow.
    """

    location: Location
    found: str
    allowed: str
    advice: str = ""


def path_text(location: Location) -> str:
    """``("endpoints", 0, "release")`` → ``endpoints[0].release``."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """A value as it would be written in YAML, cut where it is long."""
    if value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, dict):
        text = f"a mapping with {len(value)} keys" if value else "an empty mapping"
    elif isinstance(value, list | tuple):
        text = f"a list of {len(value)}" if value else "an empty list"
    elif isinstance(value, int) and value.bit_length() > LONGEST_NUMBER_BITS:
        text = f"a number of {value.bit_length()} bits"  # Python refuses to write it in decimal
    else:
        text = str(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text)} characters)"


def to_problems(*, findings: Iterable[Finding], path: Path, document: YamlDocument | None = None) -> list[Problem]:
    """The findings as problems, in the order of the file; ``environments/dev.yaml:12`` where the line is known.

    Without ``document`` the file is read for its lines, if it is there.
    """
    placed = []
    document = document or _document(path)
    for finding in findings:
        line = document.line(finding.location) if document else None
        problem = Problem(
            file=f"{path}:{line}" if line else str(path),
            field=path_text(finding.location),
            found=finding.found,
            allowed=finding.allowed,
            advice=finding.advice,
        )
        placed.append((line or 0, problem.field, problem))
    return [problem for _, _, problem in sorted(placed, key=lambda item: item[:2])]


def with_lines(problems: Iterable[Problem], path: Path) -> list[Problem]:
    """The problems, each that is about a field of the file at ``path`` with its line."""
    document = _document(path)
    placed = []
    for problem in problems:
        field = tuple(int(part[1:-1]) if part[0] == "[" else part for part in _PARTS.findall(problem.field))
        line = document.line(field) if document is not None and problem.file == str(path) else None
        placed.append(problem if line is None else dataclasses.replace(problem, file=f"{path}:{line}"))
    return placed


def _document(path: Path) -> YamlDocument | None:
    try:
        return read_yaml(path) if path.is_file() else None
    except InputError:
        return None
