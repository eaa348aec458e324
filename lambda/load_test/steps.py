"""The steps: register, start, look, gather, clean up. Each may be repeated."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from . import jobs, leftovers, packages
from .closing import MadeTooLateError, close, making
from .plan import exists, find_plan, job_of, jobs_of, read_plan, write
from .results import gathered, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .plan import Plan
    from .services import Clients, Place

RESULTS, TABLE, CLEANED = "results.json", "measurements.csv", "cleaned.json"
RESERVE_SECONDS = 90.0
"""Of a run's time: for what follows once no job runs any more."""
LOOK_SECONDS = 5.0


def register(event: Mapping[str, Any], clients: Clients, place: Place) -> dict[str, Any]:
    """A model package of each configuration, in a group of the test's own. Tells the state machine the jobs."""
    plan = read_plan(clients, place, event["id"])
    with making(clients, place, event["id"]):
        packages.register(plan, clients)
    return {"id": event["id"], "poll_seconds": plan["poll_seconds"], "jobs": jobs_of(plan)}


def start(event: Mapping[str, Any], clients: Clients, place: Place) -> dict[str, Any]:
    """Start one job."""
    plan = read_plan(clients, place, event["id"])
    job = job_of(plan, event["job"])
    with making(clients, place, event["id"]):
        package = packages.registered(plan, clients)[job["configuration"]]
        jobs.start(job, package=package, role=place.job_role, clients=clients)
    return _looked(event, "running")


def look(event: Mapping[str, Any], clients: Clients, place: Place) -> dict[str, Any]:  # noqa: ARG001 - a step's form
    """How far one job is: running or ended."""
    described = jobs.describe(event["job"], clients)
    ended = described is None or described["Status"] in jobs.FINAL
    return _looked(event, "ended" if ended else "running")


def gather(event: Mapping[str, Any], clients: Clients, place: Place) -> dict[str, Any]:
    """Write what the jobs found, as JSON and CSV, and say how many of them failed."""
    plan = read_plan(clients, place, event["id"])
    failed = _gather(event["id"], plan, clients, place, complete=True)
    return {"id": event["id"], "failed": len(failed), "reason": "; ".join(failed)[:2000]}


STEPS: dict[str, Callable[[Mapping[str, Any], Clients, Place], dict[str, Any]]] = {
    "register": register,
    "start": start,
    "look": look,
    "gather": gather,
}


def run(
    event: Mapping[str, Any],
    clients: Clients,
    place: Place,
    *,
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Do the step that an event of the state machine names. What a step made too late is cleaned up once more.

    ``seconds``, ``wait``: as ``clean_up`` has them.
    """
    until = time.monotonic() + seconds
    if event["do"] == "clean_up":
        return clean_up(event, clients, place, seconds=seconds, wait=wait)
    try:
        return STEPS[event["do"]](event, clients, place)
    except MadeTooLateError as late:
        left = until - time.monotonic()  # calls that were throttled have taken their share of the run
        clean_up({"id": event["id"], "why": str(late)}, clients, place, seconds=left, wait=wait)
        raise


def clean_up(
    event: Mapping[str, Any],
    clients: Clients,
    place: Place,
    *,
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Stop what runs, keep what was found, remove what the test made.

    What the test made is removed, for it costs, whatever the bucket and CloudWatch answer; that they failed is raised
    after it.

    Args:
        event: the test's ``id``, and ``why`` in words.
        clients: the services.
        place: where everything is.
        seconds: how long jobs are waited for, from the beginning of the call on.
        wait: waits so many seconds.

    Raises:
        TimeoutError: a job has not ended in time; whoever called does it again.
    """
    test, until = event["id"], time.monotonic() + seconds
    plan = find_plan(clients, place, test)
    if plan is None:
        return {"id": test, "stopped": [], "removed": []}
    why = str(event.get("why", ""))
    try:
        close(clients, place, test, why=why)
    finally:
        stopped = [name for name in jobs_of(plan) if jobs.stop(name, clients)]
        _await_end(jobs_of(plan), clients, until=until, wait=wait)
        try:
            if not exists(clients, place, test, RESULTS):
                _gather(test, plan, clients, place, complete=False)
        finally:
            removed = [*leftovers.remove(plan, clients), *packages.remove(plan, clients)]
            done = {"id": test, "stopped": stopped, "removed": removed}
            if stopped or removed or not exists(clients, place, test, CLEANED):
                write(clients, place, test, CLEANED, json.dumps({**done, "why": why}, indent=1))
    return done


def _gather(test: str, plan: Plan, clients: Clients, place: Place, *, complete: bool) -> list[str]:
    """Write the results; what went wrong, a sentence a job."""
    described = {name: jobs.describe(name, clients) for name in jobs_of(plan)}
    document, failed = gathered(plan, described, clients, complete=complete)
    write(clients, place, test, TABLE, table(plan, described))
    write(clients, place, test, RESULTS, json.dumps(document, indent=1))  # last: it says that the table is there
    return failed


def _await_end(names: list[str], clients: Clients, *, until: float, wait: Callable[[float], None]) -> None:
    while running := [name for name in names if jobs.runs(name, clients)]:
        if time.monotonic() >= until:
            raise TimeoutError(f"{', '.join(running)}: asked to stop, and not ended in the time that this run had")
        wait(LOOK_SECONDS)


def _looked(event: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {"id": event["id"], "job": event["job"], "poll_seconds": event["poll_seconds"], "status": status}
