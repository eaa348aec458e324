"""What a local AWS is made of, and what was deployed there, in files: every command finds it, and two never start it.

A local AWS keeps its state in memory: what was deployed is gone with the process that held it. The second file outlives
that process, so that commands report what is gone.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from tritonstack.errors import InputError, Problem
from tritonstack.paths import HOME_VARIABLE, LocalPaths
from tritonstack_local.processes import ProcessRecord


@dataclass(frozen=True, kw_only=True)
class RunningRecord:
    """The ports and the processes of one local AWS. A process is None until it was started."""

    emulator_port: int
    runtime_port: int
    emulator: ProcessRecord | None = None
    runtime: ProcessRecord | None = None

    @property
    def parts(self) -> dict[str, ProcessRecord]:
        """Its processes by name, in the order in which they are stopped: the runtime and its Tritons first."""
        named = {"the SageMaker runtime": self.runtime, "the AWS emulator": self.emulator}
        return {name: process for name, process in named.items() if process is not None}


_RECORD = TypeAdapter(RunningRecord)


def read_record(paths: LocalPaths) -> RunningRecord | None:
    """What was written last, or None where nothing was. Raises InputError: the file holds no record."""
    try:
        return _RECORD.validate_json(paths.record.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(
            [
                Problem(
                    file=str(paths.record),
                    field=where,
                    found=f"damaged: {first['msg']}",
                    allowed="what `tritonstack local up` wrote",
                    advice="end what `pgrep -af tritonstack_local` shows, remove the file, then tritonstack local up",
                )
            ]
        ) from error


def write_record(paths: LocalPaths, record: RunningRecord) -> None:
    """Put ``record`` in the place of the one before, whole or not at all."""
    _write(paths.record, asdict(record))


def forget_record(paths: LocalPaths) -> None:
    """Nothing runs any more."""
    paths.record.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class DeployedRecord:
    """An environment's endpoints, and the emulator that they were deployed to."""

    endpoints: tuple[str, ...]
    emulator: ProcessRecord


_DEPLOYED = TypeAdapter(dict[str, DeployedRecord])


def note_deployed(paths: LocalPaths, endpoints: Mapping[str, Sequence[str]], *, emulator: ProcessRecord) -> None:
    """Remember what is deployed to an emulator: environment → endpoints. What earlier ones held is forgotten."""
    known = {name: each for name, each in _read_deployed(paths).items() if each.emulator == emulator}
    new = {name: DeployedRecord(endpoints=tuple(each), emulator=emulator) for name, each in endpoints.items()}
    _write(paths.deployed, {name: asdict(each) for name, each in {**known, **new}.items()})


def forget_deployed(paths: LocalPaths, environment: str) -> None:
    """An environment was destroyed."""
    left = {name: asdict(each) for name, each in _read_deployed(paths).items() if name != environment}
    _write(paths.deployed, left)


def lost_deployments(paths: LocalPaths) -> dict[str, tuple[str, ...]]:
    """Environments whose emulator has ended, and they with it: environment → endpoints."""
    ended = {name: each for name, each in _read_deployed(paths).items() if not each.emulator.running}
    return {name: each.endpoints for name, each in sorted(ended.items())}


def lost_text(lost: Mapping[str, Sequence[str]]) -> str:
    """Environments with their endpoints, and how to have them again."""
    names = ", ".join(f"{name} ({', '.join(endpoints) or 'no endpoint'})" for name, endpoints in lost.items())
    return f"{names}\n  do:      {'; '.join(f'tritonstack local deploy {name}' for name in lost)}"


def _read_deployed(paths: LocalPaths) -> dict[str, DeployedRecord]:
    """What was noted; nothing where the file is damaged, for it only serves messages."""
    try:
        return _DEPLOYED.validate_json(paths.deployed.read_bytes())
    except (OSError, ValidationError):
        return {}


def _write(file: Path, document: object) -> None:
    """Put ``document`` in the place of the one before, whole or not at all."""
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(document, indent=2))
    temporary.replace(file)


@contextmanager
def exclusive(paths: LocalPaths, *, report: Callable[[str], object], name: str = "lock") -> Iterator[None]:
    """Hold the local AWS's folder alone, so that of two commands one starts or stops and the other waits.

    Raises InputError: nothing can be written there.
    """
    lock = paths.root / name
    try:
        paths.root.mkdir(parents=True, exist_ok=True)
        file = lock.open("a")
    except OSError as error:
        raise InputError(
            [
                Problem(
                    field=HOME_VARIABLE,
                    found=f"{error.filename}: {error.strerror}",
                    allowed="a folder that can be written",
                    advice=f"export {HOME_VARIABLE}=<folder>",
                )
            ]
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another tritonstack local up or down")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
