"""Which digests a model had before: in the snapshots that were committed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tritonstack.review.git import commits_of, contents_of
from tritonstack.review.layout import stack_of
from tritonstack.review.served import sets_of
from tritonstack.review.snapshot import StackSnapshot

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
