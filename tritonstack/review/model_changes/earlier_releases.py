"""Releases of models in earlier commits of a snapshot, which distinguish a rollback from a rebuild."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from tritonstack.review.model_changes.models import EarlierReleases, sets_of
from tritonstack.review.snapshot import (
    StackSnapshot,
    stack_of,
)
from tritonstack.review.stored import commits_of, contents_of
from tritonstack.untrusted.foreign_text import parse_json

MOST_COMMITS = 200
"""How many commits of a snapshot are searched."""


def committed_releases(environment: str, *, base: str, repository: Path) -> EarlierReleases:
    """The release sets in an environment's snapshots that were committed up to a commit, newest first, in words.

    ``repository``: its root, or a folder in it that holds ``snapshots``.
    """

    @cache
    def stacks(stack: str) -> tuple[tuple[str, StackSnapshot], ...]:
        """Commit and snapshot of a stack; files that are no snapshots are passed over."""
        path = f"snapshots/{environment}/{stack}.json"
        commits = commits_of(base, path, repository=repository, most=MOST_COMMITS)
        found = []
        texts = contents_of([(each, path) for each in commits], repository=repository)
        for commit, text in zip(commits, texts, strict=True):
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                if text is not None:
                    found.append((commit, stack_of(stack, parse_json(text), {})))
        return tuple(found)

    def earlier(stack: str, endpoint: str, model: str, digest: str) -> str | None:
        for commit, snapshot in stacks(stack):
            if any(each.endpoint == endpoint and each.models.get(model) == digest for each in sets_of(snapshot)):
                return f"the snapshots of {commit[:12]}"
        return None

    return earlier
