"""Models that an environment serves by its release sets, and which digests they had in earlier snapshots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tritonstack.naming import Platform
from tritonstack.review.fleets import ENDPOINT
from tritonstack.review.snapshot import EnvironmentSnapshot, Json, Resource, StackSnapshot, assets_in, stack_of
from tritonstack.review.stored import commits_of, contents_of

RECORDS = "Custom::ReleaseRecords"
_MODEL = "AWS::SageMaker::Model"
_DIGEST = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, kw_only=True)
class ServedSet:
    """The release set of one endpoint.

    Attributes:
        stack: its stack's name in the environment.
        document: the set's construct path in its stack.
        endpoint: the endpoint's name in its environment (``digits``); where no release record tells it, its document's
            path.
        logical_id: of the AWS::SageMaker::Endpoint; None where none waits for the set.
        platform: what its archives are for.
        models: model → digest.
        image: of the container; None where it is decided when it is deployed, or outside the stack.
    """

    stack: str
    document: str
    endpoint: str
    logical_id: str | None
    platform: Platform
    models: Mapping[str, str]
    image: str | None


def served_sets(environment: EnvironmentSnapshot | None) -> tuple[ServedSet, ...]:
    """Every release set of an environment, by stack and document."""
    stacks = {} if environment is None else environment.stacks
    return tuple(each for _, stack in sorted(stacks.items()) for each in sets_of(stack))


def sets_of(stack: StackSnapshot) -> Iterator[ServedSet]:
    """The release sets of one stack."""
    for path, document in sorted(stack.documents.items()):
        if not is_release_set(document):
            continue
        records = [each for each in stack.of_type(RECORDS) if path in set(assets_in(dict(each.properties)))]
        endpoint = _endpoint(records, stack)
        yield ServedSet(
            stack=stack.name,
            document=path,
            endpoint=_name(records) or path,
            logical_id=None if endpoint is None else endpoint.logical_id,
            platform=platform_of(document["platform"]),
            models=dict(sorted(document["models"].items())),
            image=_image(stack),
        )


def is_release_set(document: Json) -> bool:
    """Whether a document is the release set of an endpoint."""
    if not isinstance(document, dict) or not isinstance(document.get("platform"), str):
        return False
    models = document.get("models")
    return isinstance(models, dict) and all(
        isinstance(each, str) and _DIGEST.fullmatch(each) for each in models.values()
    )


def platform_of(text: str) -> Platform:
    """``24.09-t4`` as a platform; the GPU in small letters, as keys spell it."""
    release, _, gpu = text.partition("-")
    return Platform(release=release, gpu=gpu.lower())


def _name(records: list[Resource]) -> str | None:
    """``digits`` of ``/tritonstack/prod/digits/``."""
    paths = [each.properties.get("RecordPath") for each in records]
    return next((path.strip("/").rpartition("/")[2] for path in paths if isinstance(path, str)), None)


def _endpoint(records: list[Resource], stack: StackSnapshot) -> Resource | None:
    """The endpoint that the records wait for; the only one of the stack where they name none."""
    endpoints = stack.of_type(ENDPOINT)
    waited = {name for each in records for name in each.attributes.get("DependsOn", [])}
    named = [each for each in endpoints if each.logical_id in waited]
    chosen = named or list(endpoints)
    return chosen[0] if len(chosen) == 1 else None


def _image(stack: StackSnapshot) -> str | None:
    """The image of the stack's containers, where there is one and the template says it."""
    images: set[Any] = {
        str(each.properties.get("PrimaryContainer", {}).get("Image"))
        for each in stack.of_type(_MODEL)
        if isinstance(each.properties.get("PrimaryContainer", {}).get("Image"), str)
    }
    return images.pop() if len(images) == 1 else None


MOST_COMMITS = 200
"""How far back commits of snapshots are looked through."""


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """A release that was before.

    Attributes:
        digest: the model's.
        platform: of its endpoint then (``24.09-t4``); None where nobody noted it.
        where: what tells it: ``the snapshots of 1a2b3c4d5e6f``.
    """

    digest: str
    platform: str | None
    where: str


class EarlierReleases(Protocol):
    """Where earlier releases are looked up."""

    def find(self, *, stack: str, endpoint: str, model: str, digest: str) -> Earlier | None:
        """The last time that a model had a digest, before it has the one that is replaced; None where it never had."""
        ...


class NoHistory:
    """Nothing is known of what was before."""

    def find(self, *, stack: str, endpoint: str, model: str, digest: str) -> Earlier | None:
        """None."""
        del stack, endpoint, model, digest
        return None


@dataclass(frozen=True, kw_only=True)
class CommittedReleases:
    """The release sets in the snapshots that were committed up to a commit; read when they are first asked for.

    Attributes:
        environment: the environment's name.
        base: the commit, whose own snapshots do not count as earlier ones.
        repository: the repository's root, or a folder in it that holds ``folder``.
        folder: the snapshots' folder.
        most: how many commits of a stack's snapshot are looked through, newest first.
    """

    environment: str
    base: str
    repository: Path
    folder: str = "snapshots"
    most: int = MOST_COMMITS
    _stacks: dict[str, tuple[tuple[str, StackSnapshot], ...]] = field(default_factory=dict, compare=False, repr=False)

    def find(self, *, stack: str, endpoint: str, model: str, digest: str) -> Earlier | None:
        """The newest commit before the base whose snapshot of the stack has the digest."""
        if stack not in self._stacks:
            self._stacks[stack] = tuple(self._read(stack))
        for commit, snapshot in self._stacks[stack]:
            for each in sets_of(snapshot):
                if each.endpoint == endpoint and each.models.get(model) == digest:
                    return Earlier(digest=digest, platform=str(each.platform), where=f"the snapshots of {commit[:12]}")
        return None

    def _read(self, stack: str) -> Iterator[tuple[str, StackSnapshot]]:
        """Commit and snapshot of a stack, newest first, each content once; commits of another form are passed over."""
        path = f"{self.folder}/{self.environment}/{stack}.json"
        commits = commits_of(self.base, path, repository=self.repository, most=self.most)
        texts = contents_of([(commit, path) for commit in commits], repository=self.repository)
        for commit, text in zip(commits, texts, strict=True):
            try:
                if text is not None:
                    yield commit, stack_of(stack, json.loads(text), {})
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
