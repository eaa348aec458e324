"""A job on another machine: started, looked at until it has ended, and stopped where nobody waits for it any more."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Protocol

from tritonstack.archives.programs import Report
from tritonstack.credentials import credentials_ended
from tritonstack.engines.engine_failure import EngineStoppedError
from tritonstack.errors import WorkFailedError

LOST_LOOKS = 20
"""How many looks in a row may fail before a job counts as lost: minutes of a build of hours."""
STOPPING_SECONDS = 60.0
"""How long a stopped job is given to end, before what it has staged is removed."""


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A remote job at one moment.

    Attributes:
        ended: whether it is over.
        succeeded: whether it ended well.
        at: what it is at, or how it ended, in the service's words.
        described: the service's whole description.
    """

    ended: bool
    succeeded: bool
    at: str
    described: dict[str, Any]


class RemoteJob(Protocol):
    """A job that a service runs. Its methods raise :class:`WorkFailedError` where the service refuses."""

    def look(self) -> JobState:
        """Its state now."""
        ...

    def stop(self) -> None:
        """Ask the service to end it."""
        ...

    @property
    def link(self) -> str:
        """Where a person sees it."""
        ...


def await_job(job: RemoteJob, *, stop: threading.Event, interval: float, report: Report, what: str) -> JobState:
    """Look at a job until it has ended.

    Args:
        job: has been started.
        stop: set where the job is to be given up.
        interval: seconds between two looks.
        report: told what the job is at, and for how long it has run.
        what: how the reports name the service.

    Raises:
        EngineStoppedError: it was given up; the job is stopped.
        WorkFailedError: the service does not answer any more, or the credentials have ended for minutes; the job is
            stopped if it can be.
    """
    started, lost = time.monotonic(), 0
    try:
        while not stop.is_set():
            try:
                state, lost = job.look(), 0
            except WorkFailedError as error:
                lost += 1
                if lost > LOST_LOOKS:
                    raise _out_of_sight(error, job, what=what) from error
                report(f"{what}: {error}")
            else:
                if state.ended:
                    return state
                report(f"{what}: {state.at}, {time.monotonic() - started:.0f} s")
            stop.wait(interval)
    except BaseException:
        _stop(job, interval=interval, report=report)
        raise
    _stop(job, interval=interval, report=report)
    raise EngineStoppedError(link=job.link)


def _out_of_sight(error: WorkFailedError, job: RemoteJob, *, what: str) -> WorkFailedError:
    """The error of a job that cannot be looked at any more; with credentials that have ended, nor be stopped."""
    if not credentials_ended(error):
        return error
    where = f": {job.link}" if job.link else ""
    return WorkFailedError(f"{error}\n  {what} could not be stopped and goes on by itself{where}")


def _stop(job: RemoteJob, *, interval: float, report: Report) -> None:
    """Stop a job and wait, for a while, until it writes nothing more."""
    report("stopping it")
    try:
        job.stop()
        until = time.monotonic() + STOPPING_SECONDS
        while not job.look().ended and time.monotonic() < until:
            threading.Event().wait(interval)
    except WorkFailedError as error:
        report(f"it could not be stopped: {error}")
