"""The steps of a load test: register, start, look, gather, clean up. Each may be repeated."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from . import jobs
from .feeding import fed
from .objects import MadeTooLateError, close, exists, find_settings, jobs_of, making, read, read_settings, write
from .results import gathered, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..shared.clients import Aws
    from .objects import Place, Settings

RESULTS, TABLE, CLEANED = "results.json", "measurements.csv", "cleaned.json"
RESERVE_SECONDS = 90.0
"""Time of a run for what follows once no job runs any more."""
LOOK_SECONDS = 5.0


def register(event: Mapping[str, Any], aws: Aws, place: Place) -> dict[str, Any]:
    """Make a model package of each configuration, in a group of the test's own. Returns the jobs."""
    settings = read_settings(aws, place, event["id"])
    with making(aws, place, event["id"]):
        jobs.register(settings, aws)
    return {"id": event["id"], "poll_seconds": settings["poll_seconds"], "jobs": jobs_of(settings)}


def start(event: Mapping[str, Any], aws: Aws, place: Place) -> dict[str, Any]:
    """Start one job, unless it was: by a repeated step, or by the test that this one goes on with.

    A load test that follows a default job is not started before that has ended (``waiting``), and takes what it
    recommends; where it recommends nothing, the load test runs as the settings say.
    """
    settings = read_settings(aws, place, event["id"])
    job = next(job for job in settings["jobs"] if job["name"] == event["job"])
    before = job.get("after")
    request = job["request"]
    there = jobs.describe(job["name"], aws) is not None
    if before is not None and not there:
        described = jobs.describe(before, aws)
        if described is None and not exists(aws, place, event["id"], _note(before)):
            return _status(event, "waiting")
        if described is not None and described["Status"] not in jobs.FINAL:
            return _status(event, "waiting")
        request = fed(job, (described or {}).get("InferenceRecommendations") or ())
    with making(aws, place, event["id"]):
        if not there:
            package = jobs.registered(settings, aws)[job["configuration"]]
            jobs.start(job, request, package=package, role=place.job_role, aws=aws)
    return _status(event, "running")


def not_started(event: Mapping[str, Any], aws: Aws, place: Place) -> dict[str, Any]:
    """Note why a job could not be started: the others go on without it."""
    write(aws, place, event["id"], _note(event["job"]), json.dumps({"why": _reason(str(event["why"]))}))
    return {"id": event["id"], "job": event["job"]}


def _note(job: str) -> str:
    return f"not-started/{job}.json"


def _reason(cause: str) -> str:
    """The message of a failed step: Lambda gives it as JSON with the exception's text."""
    try:
        return str(json.loads(cause)["errorMessage"])[:500]
    except (ValueError, KeyError, TypeError):
        return cause[:500]


def look(event: Mapping[str, Any], aws: Aws, place: Place) -> dict[str, Any]:  # noqa: ARG001 - a step's signature
    """Status of one job: running or ended."""
    described = jobs.describe(event["job"], aws)
    ended = described is None or described["Status"] in jobs.FINAL
    return _status(event, "ended" if ended else "running")


def gather(event: Mapping[str, Any], aws: Aws, place: Place) -> dict[str, Any]:
    """Write the results of the jobs, as JSON and CSV. Returns how many of them failed, and why."""
    settings = read_settings(aws, place, event["id"])
    failed = _gather(event["id"], settings, aws, place, complete=True)
    return {"id": event["id"], "failed": len(failed), "reason": "; ".join(failed)[:2000]}


STEPS: dict[str, Callable[[Mapping[str, Any], Aws, Place], dict[str, Any]]] = {
    "register": register,
    "start": start,
    "not_started": not_started,
    "look": look,
    "gather": gather,
}


def run(event: Mapping[str, Any], aws: Aws, place: Place, *, seconds: float) -> dict[str, Any]:
    """Run the step that an event of the state machine names. What a step made too late is cleaned up again.

    ``seconds``: as of ``clean_up``.
    """
    until = time.monotonic() + seconds
    if event["do"] == "clean_up":
        return clean_up(event, aws, place, seconds=seconds)
    try:
        return STEPS[event["do"]](event, aws, place)
    except MadeTooLateError as late:
        left = until - time.monotonic()  # throttled requests have used some of it
        clean_up({"id": event["id"], "why": str(late)}, aws, place, seconds=left)
        raise


def clean_up(event: Mapping[str, Any], aws: Aws, place: Place, *, seconds: float) -> dict[str, Any]:
    """Stop running jobs, write their results, remove what the test made.

    What the test made is removed, for it costs, even if the bucket or CloudWatch fails; their error is raised after it.

    Args:
        event: the test's ``id``, and ``why`` it is cleaned up.
        aws: the clients.
        place: names of the environment's resources.
        seconds: how long to wait for jobs to end.

    Raises:
        TimeoutError: a job has not ended in time; the caller repeats the step.
    """
    test, until = event["id"], time.monotonic() + seconds
    settings = find_settings(aws, place, test)
    if settings is None:
        return {"id": test, "stopped": [], "removed": []}
    why = str(event.get("why", ""))
    try:
        close(aws, place, test, why=why)
    finally:
        stopped = [name for name in jobs_of(settings) if jobs.stop(name, aws)]
        _await_end(jobs_of(settings), aws, until=until)
        try:
            if not exists(aws, place, test, RESULTS):
                _gather(test, settings, aws, place, complete=False)
        finally:
            removed = [*jobs.remove_leftovers(settings, aws), *jobs.remove_packages(settings, aws)]
            done = {"id": test, "stopped": stopped, "removed": removed}
            if stopped or removed or not exists(aws, place, test, CLEANED):
                write(aws, place, test, CLEANED, json.dumps({**done, "why": why}, indent=1))
    return done


def _gather(test: str, settings: Settings, aws: Aws, place: Place, *, complete: bool) -> list[str]:
    """Write the results. Returns the failures, a sentence a job."""
    described = {name: jobs.describe(name, aws) for name in jobs_of(settings)}
    missing = [name for name, one in described.items() if one is None]
    noted = {name: note["why"] for name in missing if (note := read(aws, place, test, _note(name))) is not None}
    document, failed = gathered(settings, described, aws, complete=complete, not_started=noted)
    write(aws, place, test, TABLE, table(settings, described, document))
    write(aws, place, test, RESULTS, json.dumps(document, indent=1))  # last: it marks that the table exists
    return failed


def _await_end(names: list[str], aws: Aws, *, until: float) -> None:
    while running := [name for name in names if jobs.runs(name, aws)]:
        if time.monotonic() >= until:
            raise TimeoutError(f"{', '.join(running)}: stopped, and not ended in the time that this run had")
        time.sleep(LOOK_SECONDS)


def _status(event: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {"id": event["id"], "job": event["job"], "poll_seconds": event["poll_seconds"], "status": status}
