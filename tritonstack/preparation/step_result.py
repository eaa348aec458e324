"""The engine step's output folder: its result, and the files whose hashes the result has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.errors import WorkFailedError
from tritonstack.models.digest import sha256_of
from tritonstack.untrusted.foreign_text import parse_json

RESULT = "result.json"


class _ResultModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Gpu(_ResultModel):
    """The GPU that built."""

    name: str
    compute_capability: str | None
    driver: str


class Trtexec(_ResultModel):
    """The trtexec that built."""

    tensorrt: str
    stand_in: bool


class FileRecord(_ResultModel):
    """A file of the output folder."""

    bytes: int = Field(ge=0)
    sha256: str


class Measured(_ResultModel):
    """What trtexec measured with one profile: queries a second, and milliseconds of a query by median, p99, …"""

    profile: int = Field(ge=0)
    shapes: dict[str, list[int]]
    throughput: float
    latency: dict[str, float]
    gpu_compute: dict[str, float]


class StepResult(_ResultModel):
    """``result.json`` of a step that built."""

    outcome: Literal["built"]
    release: str
    trtexec: Trtexec
    gpu: Gpu
    durations: dict[str, float]
    image: dict[str, str]
    measurements: list[Measured] = Field(default_factory=list)
    files: dict[str, FileRecord]  # file's name → what the step wrote


def read_result(output: Path, *, what: str) -> StepResult:
    """The result of a step that built. The step itself refuses another machine or TensorRT than was planned.

    Raises :class:`WorkFailedError` where it is not as the step writes it.
    """
    try:
        return StepResult.model_validate_json((output / RESULT).read_bytes())
    except (OSError, ValueError) as error:
        raise WorkFailedError(f"{what}: {output / RESULT} is not as the engine step writes it: {error}") from error


def take_file(result: StepResult, name: str, output: Path, target: Path) -> None:
    """Copy a file of the output. Raises :class:`WorkFailedError` unless the copy has the step's hash."""
    try:
        shutil.copyfile(output / name, target)
        if sha256_of(target) == result.files[name].sha256:
            return
    except (OSError, KeyError) as error:
        raise WorkFailedError(f"{output / name}: the engine step left no such file: {error!r}") from error
    raise WorkFailedError(f"{output / name} is not what the engine step wrote: {target.stat().st_size:,} bytes")


def reported_result(output: Path) -> dict[str, Any]:
    """The step's own account; empty where it left none that can be read."""
    try:
        found = parse_json((output / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
