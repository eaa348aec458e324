"""A load test's objects in the bucket: settings, results, and the marks that its clean-up has begun and ended."""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..shared.clients import MISSING_OBJECT, Aws, ignoring

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "load-tests/"
CLOSED = "closed.json"
_ID = re.compile(r"[a-z0-9-]{1,40}")
Settings = dict[str, Any]


class ClosedError(RuntimeError):
    """Nothing more may be made for a test: its clean-up has begun."""


class MadeTooLateError(ClosedError):
    """The clean-up began while a step made something, which it may have missed."""


@dataclass(frozen=True)
class Place:
    """Names of the environment's resources."""

    bucket: str  # of settings, payloads and results
    job_role: str  # that jobs run with
    names: str  # prefix of the names of jobs, of packages and of what jobs make
    lasting_group: str = ""  # of model packages, which outlives tests; "": there is none

    @classmethod
    def of_environment(cls) -> Place:
        """From the function's variables."""
        lasting = os.environ.get("LASTING_GROUP", "")
        return cls(os.environ["ARTIFACT_BUCKET"], os.environ["JOB_ROLE"], os.environ["NAMES"], lasting)


def key(test: str, name: str) -> str:
    """The key of an object of a test. Raises ValueError for an invalid id, so that no key leaves its folder."""
    if not _ID.fullmatch(test):
        raise ValueError(f"{test!r} is no load test's id: lower-case letters, digits and hyphens")
    return f"{PREFIX}{test}/{name}"


def read_settings(aws: Aws, place: Place, test: str) -> Settings:
    """The settings of a test. Raises ValueError for names that this function must not use."""
    found = aws.s3.get_object(Bucket=place.bucket, Key=key(test, "settings.json"))
    settings: Settings = json.loads(found["Body"].read())
    groups = [] if settings["group"] == place.lasting_group else [settings["group"]]
    wrong = [name for name in (*groups, *jobs_of(settings)) if not name.startswith(place.names)]
    if wrong:
        raise ValueError(f"the settings name {wrong[0]}; names of this environment's tests begin with {place.names}")
    return settings


def find_settings(aws: Aws, place: Place, test: str) -> Settings | None:
    """The settings, or None where there is none: then nothing was made."""
    with ignoring(MISSING_OBJECT):
        return read_settings(aws, place, test)
    return None


def jobs_of(settings: Settings) -> list[str]:
    """The names of a test's jobs."""
    return [str(job["name"]) for job in settings["jobs"]]


def write(aws: Aws, place: Place, test: str, name: str, text: str) -> None:
    """Put an object of a test."""
    kind = "text/csv" if name.endswith(".csv") else "application/json"
    aws.s3.put_object(Bucket=place.bucket, Key=key(test, name), Body=text.encode(), ContentType=kind)


def read(aws: Aws, place: Place, test: str, name: str) -> Any:
    """A JSON object of a test; None where there is none."""
    with ignoring(MISSING_OBJECT):
        return json.loads(aws.s3.get_object(Bucket=place.bucket, Key=key(test, name))["Body"].read())
    return None


def exists(aws: Aws, place: Place, test: str, name: str) -> bool:
    """Whether a test has an object."""
    with ignoring(MISSING_OBJECT):
        aws.s3.head_object(Bucket=place.bucket, Key=key(test, name))
        return True
    return False


def close(aws: Aws, place: Place, test: str, *, why: str) -> None:
    """Mark that a test's clean-up has begun, and why.

    A cancelled execution runs no further state, but the step that it had called runs on, and may make packages or a
    job while the clean-up looks for them, or after it. So the clean-up writes this mark before it looks, and a step
    that makes something looks for the mark before and after: one of the two finds what the other did.
    """
    write(aws, place, test, CLOSED, json.dumps({"id": test, "why": why}, indent=1))


@contextmanager
def making(aws: Aws, place: Place, test: str) -> Iterator[None]:
    """Make something for a test in the block; ClosedError before it, or MadeTooLateError after it: then remove it."""
    if exists(aws, place, test, CLOSED):
        raise ClosedError(f"load test {test} is cleaned up: nothing more is made for it")
    try:
        yield
    finally:  # a failure may have made a part of it
        if exists(aws, place, test, CLOSED):
            raise MadeTooLateError(f"load test {test} was cleaned up while a step of it made something")
