"""A test's objects in the bucket: its plan, its results, and the note of what was cleaned up."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..shared.clients import is_gone

if TYPE_CHECKING:
    from .services import Clients, Place

PREFIX = "load-tests/"
_ID = re.compile(r"[a-z0-9-]{1,40}")
Plan = dict[str, Any]


def key(test: str, name: str) -> str:
    """The key of an object of a test. Raises ValueError for what is no test's id, so that no key leaves its folder."""
    if not _ID.fullmatch(test):
        raise ValueError(f"{test!r} is no load test's id: lower-case letters, digits and hyphens")
    return f"{PREFIX}{test}/{name}"


def read_plan(clients: Clients, place: Place, test: str) -> Plan:
    """The plan of a test. Raises ValueError where its names are not those that this function may use."""
    answer = clients.s3.get_object(Bucket=place.bucket, Key=key(test, "plan.json"))
    plan: Plan = json.loads(answer["Body"].read())
    wrong = [name for name in (plan["group"], *jobs_of(plan)) if not name.startswith(place.names)]
    if wrong:
        raise ValueError(f"the plan names {wrong[0]}; names of this environment's tests begin with {place.names}")
    return plan


def find_plan(clients: Clients, place: Place, test: str) -> Plan | None:
    """The plan, or None where there is none: then nothing was made either."""
    try:
        return read_plan(clients, place, test)
    except clients.s3.exceptions.ClientError as error:
        if is_gone(error):
            return None
        raise


def jobs_of(plan: Plan) -> list[str]:
    """The names of the jobs of a plan."""
    return [str(job["name"]) for job in plan["jobs"]]


def job_of(plan: Plan, name: str) -> dict[str, Any]:
    """One job of a plan."""
    return next(job for job in plan["jobs"] if job["name"] == name)


def write(clients: Clients, place: Place, test: str, name: str, text: str) -> None:
    """Put an object of a test."""
    kind = "text/csv" if name.endswith(".csv") else "application/json"
    clients.s3.put_object(Bucket=place.bucket, Key=key(test, name), Body=text.encode(), ContentType=kind)


def exists(clients: Clients, place: Place, test: str, name: str) -> bool:
    """Whether a test has an object."""
    try:
        clients.s3.head_object(Bucket=place.bucket, Key=key(test, name))
    except clients.s3.exceptions.ClientError as error:
        if is_gone(error):
            return False
        raise
    return True
