"""What a local AWS is made of, in a file: every command finds it, and two never start it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

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
        problem = Problem(
            file=str(paths.record),
            field=where,
            found=f"damaged: {first['msg']}",
            allowed="what `tritonstack local up` wrote",
            advice="end what `pgrep -af tritonstack_local` shows, remove the file, then tritonstack local up",
        )
        raise InputError([problem]) from error


def write_record(paths: LocalPaths, record: RunningRecord) -> None:
    """Put ``record`` in the place of the one before, whole or not at all."""
    temporary = paths.record.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(record), indent=2))
    temporary.replace(paths.record)


def forget_record(paths: LocalPaths) -> None:
    """Nothing runs any more."""
    paths.record.unlink(missing_ok=True)


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
        found, advice = f"{error.filename}: {error.strerror}", f"export {HOME_VARIABLE}=<folder>"
        problem = Problem(field=HOME_VARIABLE, found=found, allowed="a folder that can be written", advice=advice)
        raise InputError([problem]) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another tritonstack local up or down")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
