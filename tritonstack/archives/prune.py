"""Objects of the bucket that no release record and no kept history refers to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.archives.bucket import ArtifactBucket, StoredArchive
from tritonstack.aws.session import Session, code_of
from tritonstack.errors import WorkFailedError
from tritonstack.naming import inputs_key, release_parameter

DEFAULT_HISTORY = 5
DEFAULT_GRACE_HOURS = 24.0


@dataclass(frozen=True, kw_only=True)
class Unneeded:
    """One archive to delete, and the keys to delete with it, the archive's first."""

    archive_key: str
    bytes: int
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class UnneededArchives:
    """Archives to delete, and how many archives stay."""

    bucket: str
    unneeded: tuple[Unneeded, ...]
    kept: int


class Pruning:
    """Finds and deletes the unneeded archives of one environment's bucket."""

    def __init__(self, environment: str, *, session: Session) -> None:
        """Raises InputError where the environment's artifacts are not deployed."""
        self.environment = environment
        self.bucket = ArtifactBucket(environment=environment, session=session)
        self.ssm = session.client("ssm")

    def find(self, *, history: int = DEFAULT_HISTORY, grace_hours: float = DEFAULT_GRACE_HOURS) -> UnneededArchives:
        """The unneeded archives: those that neither a release record nor its last ``history`` earlier values name.

        Archives younger than ``grace_hours`` stay: they may be published and not activated yet. Inputs go with the last
        archive of their digest. Raises :class:`WorkFailedError` where AWS refuses.
        """
        stored = list(self.bucket.archives())
        named: dict[tuple[str, str], frozenset[str]] = {}
        for item in stored:
            owner = (item.place.endpoint, item.name.model)
            if owner not in named:
                named[owner] = self._named(*owner, history)
        oldest_kept = dt.datetime.now(dt.UTC) - dt.timedelta(hours=grace_hours)
        going = [
            item
            for item in stored
            if item.name.digest not in named[item.place.endpoint, item.name.model] and item.modified < oldest_kept
        ]
        staying = {item.name.digest for item in stored if item not in going}
        return UnneededArchives(
            bucket=self.bucket.name,
            unneeded=tuple(self._unneeded(going, staying)),
            kept=len(stored) - len(going),
        )

    def delete(self, found: UnneededArchives) -> None:
        """Delete what was found: archives first, so that no archive is ever without its manifest."""
        groups = sorted(((index, key) for item in found.unneeded for index, key in enumerate(item.keys)))
        self.bucket.delete([key for _, key in groups])

    def _named(self, endpoint: str, model: str, history: int) -> frozenset[str]:
        """The digests of a model's record: its current value and the last ``history`` before it."""
        name = release_parameter(environment=self.environment, endpoint=endpoint, model=model)
        values: list[dict[str, Any]] = []
        try:
            for page in self.ssm.get_paginator("get_parameter_history").paginate(Name=name):
                values += page["Parameters"]
        except (ClientError, BotoCoreError) as error:
            if code_of(error) == "ParameterNotFound":
                return frozenset()
            raise WorkFailedError(f"could not read the history of {name}: {error}") from error
        newest = sorted(values, key=lambda value: value["Version"], reverse=True)
        return frozenset(value["Value"] for value in newest[: history + 1])

    def _unneeded(self, going: list[StoredArchive], staying: set[str]) -> Iterator[Unneeded]:
        last_of = {item.name.digest: item for item in going}
        for item in going:
            archive = item.place.archive(item.name)
            client_files = [row["Key"] for row in self.bucket.keys(item.place.client_file(item.name, ""))]
            keys = [archive, item.place.manifest(item.name), *client_files]
            if item.name.digest not in staying and last_of[item.name.digest] is item:
                keys.append(inputs_key(digest=item.name.digest))
            yield Unneeded(archive_key=archive, bytes=item.bytes, keys=tuple(keys))
