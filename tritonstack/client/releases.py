"""From a model's name to its current archive, through the release records in SSM.

A record ``/tritonstack/<environment>/<endpoint>/<model>`` holds the digest of the model's current archive.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.cache import TimedCache
from tritonstack.client.errors import AmbiguousModelError, ReleaseLookupError, UnknownModelError
from tritonstack.errors import InputError, Problem
from tritonstack.naming import NAME_PATTERN, ArchiveName, parameter_prefix, release_parameter

RECORD_SECONDS = 60.0
_ALLOWED = "[endpoint/]model or endpoint/model.<16 hexadecimal digits>.tar.gz; names are of a-z, 0-9 and -"


@dataclass(frozen=True, kw_only=True)
class ModelReference:
    """How a caller names a model. With a digest it names one archive and no record is read."""

    endpoint: str | None
    model: str
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> ModelReference:
        """Read ``[endpoint/]model`` or ``endpoint/<archive>``.

        Raises:
            InputError: it is neither.
        """
        endpoint, slash, rest = text.rpartition("/")
        archive = ArchiveName.parse(rest)
        model = archive.model if archive else rest
        names = [model, *([endpoint] if slash else [])]
        if not all(re.fullmatch(NAME_PATTERN, name) for name in names) or (archive and not slash):
            raise InputError([Problem(field="model's name", found=repr(text), allowed=_ALLOWED)])
        return cls(endpoint=endpoint if slash else None, model=model, digest=archive.digest if archive else None)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A model's archive behind an endpoint (the endpoint's own name, without its environment)."""

    endpoint: str
    model: str
    digest: str

    @property
    def archive(self) -> ArchiveName:
        """The archive's name: what TargetModel is in multi-model mode."""
        return ArchiveName(model=self.model, digest=self.digest)


class ReleaseRecords:
    """The current archives of one environment's models, each read at most once a minute. Thread safe.

    Where SSM cannot be reached, a record that was read before is used a little longer.
    """

    def __init__(
        self,
        *,
        environment: str,
        ssm: Callable[[], Any],
        now: Callable[[], float],
        seconds: float = RECORD_SECONDS,
    ) -> None:
        """Takes a function that gives the boto3 SSM client, a monotonic clock, and how long a record is good."""
        self._environment = environment
        self._ssm = ssm
        self._one: TimedCache[tuple[str, str], str] = TimedCache(
            seconds=seconds, now=now, stale_errors=(ReleaseLookupError,)
        )
        self._all: TimedCache[str, Mapping[tuple[str, str], str]] = TimedCache(
            seconds=seconds, now=now, stale_errors=(ReleaseLookupError,)
        )

    def resolve(self, reference: ModelReference, *, loaded_since: float = float("-inf")) -> Release:
        """The archive that ``reference`` names, from records read at ``loaded_since`` (monotonic seconds) or later.

        Raises:
            UnknownModelError: there is no such record.
            AmbiguousModelError: no endpoint is named, and several have the model.
            ReleaseLookupError: the records cannot be read.
        """
        if reference.endpoint is None:
            return self._search(reference.model, loaded_since)
        endpoint, model, digest = reference.endpoint, reference.model, reference.digest
        if digest is None:
            digest = self._one.get(
                (endpoint, model), lambda: self._read_one(endpoint, model), loaded_since=loaded_since
            )
        return Release(endpoint=endpoint, model=model, digest=digest)

    def all(self, *, loaded_since: float = float("-inf")) -> tuple[Release, ...]:
        """Every current release of the environment, by endpoint and model.

        Raises:
            ReleaseLookupError: the records cannot be read.
        """
        records = self._all.get("", self._read_all, loaded_since=loaded_since)
        return tuple(Release(endpoint=e, model=m, digest=digest) for (e, m), digest in sorted(records.items()))

    def unknown_archive(self, release: Release) -> UnknownModelError:
        """The error for an archive that does not exist, with the current ones of its model as far as they are known."""
        try:
            current = [f"{one.endpoint}/{one.archive}" for one in self.all() if one.model == release.model]
        except ReleaseLookupError:
            current = []
        found = f"{release.archive}, which was never published for endpoint {release.endpoint!r}"
        allowed = f"an archive in the bucket; current: {', '.join(current) or 'none that is known'}"
        return UnknownModelError([Problem(field="model's name", found=found, allowed=allowed)])

    def _search(self, model: str, loaded_since: float) -> Release:
        releases = self.all(loaded_since=loaded_since)
        found = [release for release in releases if release.model == model]
        if not found:
            raise self._unknown(model, [release.model for release in releases])
        if len(found) > 1:
            candidates = ", ".join(f"{release.endpoint}/{release.model}" for release in found)
            raise AmbiguousModelError(
                [
                    Problem(
                        field="model's name",
                        found=f"{model!r}, which {len(found)} endpoints of environment {self._environment!r} serve",
                        allowed=f"one of {candidates}",
                    )
                ]
            )
        return found[0]

    def _read_one(self, endpoint: str, model: str) -> str:
        name = release_parameter(environment=self._environment, endpoint=endpoint, model=model)
        try:
            return str(self._ssm().get_parameter(Name=name)["Parameter"]["Value"])
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "ParameterNotFound":
                raise self._unknown(f"{endpoint}/{model}", self._known_names()) from error
            raise ReleaseLookupError(f"the release record {name} cannot be read: {error}") from error
        except BotoCoreError as error:
            raise ReleaseLookupError(f"the release record {name} cannot be read: {error}") from error

    def _read_all(self) -> Mapping[tuple[str, str], str]:
        prefix = parameter_prefix(self._environment)
        records: dict[tuple[str, str], str] = {}
        try:
            pages = self._ssm().get_paginator("get_parameters_by_path").paginate(Path=prefix, Recursive=True)
            for page in pages:
                for parameter in page["Parameters"]:
                    parts = parameter["Name"].removeprefix(prefix).split("/")
                    if len(parts) == 2 and not parts[0].startswith("_"):
                        records[parts[0], parts[1]] = parameter["Value"]
        except ClientError as error:
            raise ReleaseLookupError(
                f"the release records under {prefix} cannot be listed: {error}\n"
                "  do: name the endpoint too (endpoint/model), which needs no permission to list"
            ) from error
        except BotoCoreError as error:
            raise ReleaseLookupError(f"the release records under {prefix} cannot be listed: {error}") from error
        return records

    def _known_names(self) -> list[str]:
        """For a message only: what could have been meant, as far as this caller may know."""
        try:
            return [f"{release.endpoint}/{release.model}" for release in self.all()]
        except ReleaseLookupError:
            return []

    def _unknown(self, name: str, known: list[str]) -> UnknownModelError:
        variants = sorted({model for model in known if model.startswith(f"{name}-")})
        near = variants or difflib.get_close_matches(name, known, n=5, cutoff=0.4)
        if known:
            allowed = f"a model with a release record, such as {', '.join(near or sorted(set(known))[:10])}"
        else:
            allowed = "a model with a release record; this environment shows none"
        found = f"{name!r}, of which environment {self._environment!r} has no release record"
        advice = "" if variants else "check the environment's name and that its serving stack is deployed"
        return UnknownModelError([Problem(field="model's name", found=found, allowed=allowed, advice=advice)])
