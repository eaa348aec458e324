"""The output of ``engine_step.py``, read with distrust, and why an engine was not built."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tritonstack.errors import WorkFailedError
from tritonstack.models.inputs import sha256_of

RESULT = "result.json"
_LARGEST_RESULT = 1 << 20


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Gpu(_Part):
    """The GPU that built."""

    name: str
    compute_capability: str | None
    driver: str


class Trtexec(_Part):
    """The trtexec that built."""

    tensorrt: str
    stand_in: bool


class FileRecord(_Part):
    """A file of the output folder."""

    name: str
    bytes: int = Field(ge=0)
    sha256: str


class StepResult(_Part):
    """``result.json`` of a step that built."""

    outcome: Literal["built"]
    release: str
    trtexec: Trtexec
    gpu: Gpu
    durations: dict[str, float]
    image: dict[str, str]
    files: dict[str, FileRecord]


@dataclass(frozen=True, kw_only=True)
class PlannedMachine:
    """What a job was planned for.

    Attributes:
        release: the Triton release.
        tensorrt: the versions that its image may have, each as far as it is known.
        gpu: the GPU's name.
        compute_capability: its compute capability.
    """

    release: str
    tensorrt: tuple[str, ...]
    gpu: str
    compute_capability: str

    @classmethod
    def of_job(cls, path: Path) -> PlannedMachine:
        """What ``job.json`` says."""
        job = json.loads(path.read_text())
        return cls(
            release=job["release"],
            tensorrt=tuple(job["tensorrt"]),
            gpu=job["gpu"]["name"],
            compute_capability=job["gpu"]["compute_capability"],
        )


def read_result(output: Path, *, planned: PlannedMachine, what: str) -> StepResult:
    """The result of a step that built what was planned.

    Its files are there as it names them; whoever uses one checks its digest when it reads it.

    Raises:
        WorkFailedError: there is no result, the step failed, another machine or TensorRT built than planned, or a file
            is missing.
    """
    content = _content(output / RESULT, what)
    if content.get("outcome") != "built":
        raise WorkFailedError(_failure(content, what))
    try:
        result = StepResult.model_validate(content)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise WorkFailedError(f"{what}: {output / RESULT} is not as the engine step writes it: {wrong}") from error
    _refuse_other_machine(result, planned, what)
    for key in ("plan", "outputs"):
        if key not in result.files:
            raise WorkFailedError(f"{what}: {output / RESULT} names no {key}")
    return result


def file_of(result: StepResult, key: str, output: Path) -> Path:
    """Where a file of the result lies. Raises :class:`WorkFailedError` for a name that is no plain file's there."""
    name = result.files[key].name
    path = output / name
    if name in ("", ".", "..") or "/" in name or "\\" in name or path.is_symlink() or not path.is_file():
        raise WorkFailedError(f"{output}: {RESULT} names {name!r} as its {key}, and there is no such file")
    return path


def refuse_changed(result: StepResult, key: str, path: Path) -> None:
    """Raise :class:`WorkFailedError` unless a file, or a copy of it, is what the step wrote."""
    record = result.files[key]
    size = path.stat().st_size
    if size != record.bytes or sha256_of(path) != record.sha256:
        raise WorkFailedError(
            f"{record.name} is not what the engine step wrote: {size:,} bytes, and it wrote {record.bytes:,} with "
            f"SHA-256 {record.sha256}"
        )


def _content(path: Path, what: str) -> Mapping[str, Any]:
    if not path.is_file() or path.is_symlink():
        raise WorkFailedError(f"{what}: no {RESULT} in {path.parent}: the engine step did not end")
    if path.stat().st_size > _LARGEST_RESULT:
        raise WorkFailedError(f"{what}: {path} has more than {_LARGEST_RESULT:,} bytes: no step writes such a one")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise WorkFailedError(f"{what}: {path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise WorkFailedError(f"{what}: {path} holds no result")
    return content


def _failure(content: Mapping[str, Any], what: str) -> str:
    """Phase, reason and last log lines of a step that failed."""
    lines = content.get("log_tail")
    shown = "".join(f"\n  {line}" for line in lines[-20:]) if isinstance(lines, list) else ""
    return f"{what} failed in its phase {content.get('phase', 'unknown')}: {content.get('reason', 'no reason')}{shown}"


def _refuse_other_machine(result: StepResult, planned: PlannedMachine, what: str) -> None:
    if result.release != planned.release:
        raise WorkFailedError(f"{what}: built with Triton {result.release}, planned for {planned.release}")
    version = result.trtexec.tensorrt
    if not any(f"{version}.".startswith(f"{known}.") for known in planned.tensorrt):
        raise WorkFailedError(f"{what}: built with TensorRT {version}, planned for {' or '.join(planned.tensorrt)}")
    gpu = result.gpu
    same_name = _words(planned.gpu) <= _words(gpu.name)
    if not same_name or gpu.compute_capability not in (None, planned.compute_capability):
        found = f"{gpu.name} (compute capability {gpu.compute_capability})"
        raise WorkFailedError(f"{what}: built on {found}, planned for {planned.gpu} ({planned.compute_capability})")


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower()))


_SAID = re.compile(r"FAILED in phase (?P<phase>\w+): (?P<reason>[^\n]+)")
KEPT_LINES = 20


class EngineFailedError(WorkFailedError):
    """An engine was not built.

    Attributes:
        phase: ``proof`` where the plan does not answer the proof, else ``engine``.
        reason: one sentence.
        log_tail: the last lines of the log, oldest first; empty where there are none.
        link: where the whole log is; empty where there is none.
    """

    def __init__(self, *, reason: str, phase: str = "engine", log_tail: Sequence[str] = (), link: str = "") -> None:
        """Takes the parts of the message."""
        self.phase, self.reason, self.log_tail, self.link = phase, reason, tuple(log_tail), link
        lines = [reason, *(f"  {line}" for line in self.log_tail), *([f"  log: {link}"] if link else [])]
        super().__init__("\n".join(lines))


class EngineStoppedError(EngineFailedError):
    """The engine was given up, since another part of the work failed or somebody asked for it."""

    def __init__(self, *, link: str = "") -> None:
        """``link``: where its log is."""
        super().__init__(reason="stopped before it was built", link=link)


def require_built(output: Path, *, log_tail: Sequence[str] = (), link: str = "") -> None:
    """Raise :class:`EngineFailedError` unless the step built its plan."""
    if _account(output).get("outcome") != "built":
        otherwise = f"the job ended well, and left no {RESULT} of a plan"
        raise engine_failure(output, otherwise=otherwise, log_tail=log_tail, link=link)


def engine_failure(
    output: Path, *, otherwise: str, told: str = "", log_tail: Sequence[str] = (), link: str = ""
) -> EngineFailedError:
    """Why there is no plan. What the step says of its failure comes before what the service says of it.

    Args:
        output: the step's output folder.
        otherwise: the reason where the step left none: the service's.
        told: what the step left for the service to tell, where its output did not come.
        log_tail: the log's last lines, where the step left none.
        link: where the whole log is.
    """
    result = _account(output)
    phase, reason = result.get("phase"), result.get("reason")
    said = _SAID.search(told)
    if reason is None and said is not None:
        phase, reason = said["phase"], said["reason"]
    return EngineFailedError(
        phase="proof" if phase == "proof" else "engine",
        reason=f"{reason} (phase {phase} of the engine step)" if reason else otherwise,
        log_tail=[str(line) for line in result.get("log_tail") or log_tail][-KEPT_LINES:],
        link=link,
    )


def _account(output: Path) -> dict[str, Any]:
    """The step's own account; empty where it left none that can be read."""
    try:
        found = json.loads((output / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
