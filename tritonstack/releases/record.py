"""Release records as Systems Manager keeps them: the value now, the values before, and what their writers noted.

A record's description is its *note*, one JSON object that the writer of the value left: deployments and their rollbacks
do it in ``lambda/activation``, ``tritonstack rollback`` does it here.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.aws_session import Session
from tritonstack.client.releases import Release
from tritonstack.errors import WorkFailedError
from tritonstack.models.bucket import code_of
from tritonstack.naming import release_parameter

Writer = Literal["deployment", "restored", "rollback", "unknown"]
"""A deployment; CloudFormation, which undid one; ``tritonstack rollback``; or somebody who left no note."""

_WRITERS: dict[str, Writer] = {writer: writer for writer in get_args(Writer)}
_READERS = 8


@dataclass(frozen=True, kw_only=True)
class Version:
    """One value that a record had.

    Attributes:
        number: counted by Systems Manager from 1.
        digest: the value.
        time: when it was written, with its time zone.
        writer: who wrote it.
        platform: of the endpoint at that time (``24.09-t4``), None where no note tells.
        commit: where the model's inputs come from: 40 hexadecimal digits, ``uncommitted``, or ``unknown``.
    """

    number: int
    digest: str
    time: dt.datetime
    writer: Writer
    platform: str | None
    commit: str


@dataclass(frozen=True, kw_only=True)
class Record:
    """A model's release record.

    Attributes:
        endpoint: the endpoint's name in its environment.
        model: the model's name.
        versions: newest first; none where the record is gone.
    """

    endpoint: str
    model: str
    versions: tuple[Version, ...]

    @property
    def digest(self) -> str | None:
        """The current value, None where there is no record."""
        return self.versions[0].digest if self.versions else None

    @property
    def digests(self) -> tuple[str, ...]:
        """Every value that it had, the one that was written last first, each once."""
        return tuple(dict.fromkeys(version.digest for version in self.versions))

    def last(self, digest: str) -> Version | None:
        """The newest version with this value."""
        return next((version for version in self.versions if version.digest == digest), None)


def read_record(session: Session, *, environment: str, endpoint: str, model: str) -> Record:
    """One model's record with its history. Raises :class:`WorkFailedError` where SSM refuses."""
    return _read(session.client("ssm"), environment=environment, endpoint=endpoint, model=model)


def read_records(session: Session, *, environment: str, releases: Iterable[Release]) -> tuple[Record, ...]:
    """The records of these models, several at once, in their order. Raises :class:`WorkFailedError` as above."""
    ssm = session.client("ssm")

    def read(release: Release) -> Record:
        return _read(ssm, environment=environment, endpoint=release.endpoint, model=release.model)

    with ThreadPoolExecutor(_READERS) as pool:
        return tuple(pool.map(read, releases))


def write_record(session: Session, record: Record, digest: str, *, environment: str, platform: str) -> None:
    """Move a record to a digest, as a rollback. Raises :class:`WorkFailedError` where SSM refuses."""
    earlier = record.last(digest)
    note = {
        "writer": "rollback",
        "digest": digest,
        "before": record.digest,
        "platform": platform,
        "commit": earlier.commit if earlier else "unknown",
    }
    name = release_parameter(environment=environment, endpoint=record.endpoint, model=record.model)
    text = json.dumps(note, separators=(",", ":"))
    try:
        session.client("ssm").put_parameter(Name=name, Value=digest, Description=text, Type="String", Overwrite=True)
    except (ClientError, BotoCoreError) as error:
        raise WorkFailedError(f"could not write the release record {name}: {error}") from error


def _read(ssm: Any, *, environment: str, endpoint: str, model: str) -> Record:
    name = release_parameter(environment=environment, endpoint=endpoint, model=model)
    rows: list[dict[str, Any]] = []
    try:
        for page in ssm.get_paginator("get_parameter_history").paginate(Name=name):
            rows += page["Parameters"]
    except (ClientError, BotoCoreError) as error:
        if code_of(error) != "ParameterNotFound":
            raise WorkFailedError(f"could not read the history of {name}: {error}") from error
    versions = sorted(map(_version, rows), key=lambda version: version.number, reverse=True)
    return Record(endpoint=endpoint, model=model, versions=tuple(versions))


def _version(row: dict[str, Any]) -> Version:
    note = _note(row.get("Description", ""), digest=row["Value"])
    return Version(
        number=row["Version"],
        digest=row["Value"],
        time=row["LastModifiedDate"],
        writer=_WRITERS.get(note.get("writer", ""), "unknown"),
        platform=note.get("platform"),
        commit=note.get("commit", "unknown"),
    )


def _note(text: str, *, digest: str) -> dict[str, str]:
    """A description as a note; empty where it is none, or of another value: who writes without one leaves the old."""
    try:
        note = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(note, dict) or note.get("digest") != digest:
        return {}
    return {name: value for name, value in note.items() if isinstance(value, str)}
