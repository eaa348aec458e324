"""Engines that are built at once, up to a limit, each content once."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Self

from tritonstack.archives.folder import files_below

Run = Callable[[Path], None]
"""Builds an engine into the output folder that it is given."""


class EnginePool:
    """Runs engines in threads, which wait for machines elsewhere.

    When the block ends, whatever still runs is stopped and awaited: ``stop`` is what the runners listen to.
    """

    def __init__(self, outputs: Path, *, limit: int, stop: threading.Event) -> None:
        """``outputs``: the folder for the engines' output folders. ``limit``: how many are built at once."""
        self._outputs, self._stop = outputs, stop
        self._executor = ThreadPoolExecutor(limit, thread_name_prefix="engine")
        self._engines: dict[str, Future[Path]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._stop.set()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def submit(self, key: str, run: Run) -> Future[Path]:
        """Build an engine as soon as a machine is free; its future gives the output folder.

        An engine of the same ``key`` is built once: its copies get the same future.
        """
        if key not in self._engines:
            output = self._outputs / key
            self._engines[key] = self._executor.submit(_into, output, run)
        return self._engines[key]

    def stop(self) -> None:
        """Start no further engine, and give up those that run."""
        self._stop.set()
        for future in self._engines.values():
            future.cancel()


def _into(output: Path, run: Run) -> Path:
    run(output)
    return output


def await_one(futures: Iterable[Future[Path]]) -> None:
    """Wait until one of some futures is done; a signal may end the wait."""
    waiting = {future for future in futures if not future.done()}
    if waiting:
        wait(waiting, return_when=FIRST_COMPLETED)


def job_key(job: Path, *, builder: str) -> str:
    """What an engine is built from, as a short digest: every file of its job, and the machine and image.

    Copies of a model have equal jobs, and one engine serves them all.
    """
    digest = hashlib.sha256(builder.encode())
    for name, path in files_below(job):
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"\n{name} {content}".encode())
    return digest.hexdigest()[:32]
