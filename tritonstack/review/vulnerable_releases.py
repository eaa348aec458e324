"""Endpoints whose Triton release has known vulnerabilities: which a change adds, and which stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tritonstack.review.fleets import ENDPOINT, name_of
from tritonstack.review.served import sets_of
from tritonstack.review.snapshot import EnvironmentSnapshot, StackSnapshot

_TAG = re.compile(r":(\d{2}\.(?:0[1-9]|1[0-2]))(?:-|$)")
"""The release in an image's tag: ``…/sagemaker-tritonserver:24.09-py3``."""


@dataclass(frozen=True, kw_only=True)
class VulnerableRelease:
    """One endpoint on a release with known vulnerabilities that later releases fix.

    Attributes:
        stack: its stack's name in the environment.
        endpoint: its SageMaker name.
        before: the release that it ran, or None for a new endpoint.
        after: the release that it runs.
        added: how many vulnerabilities it has that it had not.
        total: how many it has.
        gravest: of those added, or of all where none is; with its score and the release that fixes it.
    """

    stack: str
    endpoint: str
    before: str | None
    after: str
    added: int
    total: int
    gravest: str

    @property
    def sentence(self) -> str:
        """What a reader is told."""
        if self.before is None:
            runs = f"is new on release {self.after}, which has {self.total} known vulnerabilities"
        elif self.added:
            runs = f"runs release {self.after} instead of {self.before}: {self.added} more known vulnerabilities"
        elif self.before == self.after:
            runs = f"stays on release {self.after}, which has {self.total} known vulnerabilities"
        else:
            runs = f"runs release {self.after} instead of {self.before}, with {self.total} known vulnerabilities"
        return f"{self.stack}: {self.endpoint} {runs}, the gravest {self.gravest}"


def vulnerable_releases(
    before: EnvironmentSnapshot | None, after: EnvironmentSnapshot | None
) -> tuple[VulnerableRelease, ...]:
    """Every endpoint after the change whose release has some, by stack and name."""
    from tritonstack.catalogue import load_catalogue  # noqa: PLC0415 - its data files, which most need not

    known, had, found = load_catalogue().vulnerabilities, dict(_releases(before)), []
    for (stack, endpoint), release in _releases(after):
        then = had.get((stack, endpoint))
        all_now = known(release)
        earlier = set() if then is None else {each.id for each in known(then)}
        added = [each for each in all_now if each.id not in earlier]
        if not all_now:
            continue
        worst = (added or all_now)[0]
        score = "" if worst.score is None else f"CVSS {worst.score}, "
        found.append(
            VulnerableRelease(
                stack=stack,
                endpoint=endpoint,
                before=then,
                after=release,
                added=len(added),
                total=len(all_now),
                gravest=f"{worst.id} ({score}fixed in {worst.fixed_in})",
            )
        )
    return tuple(found)


def _releases(environment: EnvironmentSnapshot | None) -> Iterator[tuple[tuple[str, str], str]]:
    """Stack and endpoint, and the release: the release set's, else the one that the image's tag names."""
    stacks = {} if environment is None else environment.stacks
    for _, stack in sorted(stacks.items()):
        sets = {each.logical_id: each.platform.release for each in sets_of(stack)}
        for endpoint in stack.of_type(ENDPOINT):
            release = sets.get(endpoint.logical_id) or _release_of_image(stack)
            if release is not None:
                yield (stack.name, name_of(endpoint)), release


def _release_of_image(stack: StackSnapshot) -> str | None:
    """The release of the stack's containers, where their images' tags name one and the same."""
    models = [each.properties.get("PrimaryContainer", {}) for each in stack.of_type("AWS::SageMaker::Model")]
    found = {match[1] for each in models if (match := _TAG.search(str(each.get("Image", ""))))}
    return found.pop() if len(found) == 1 else None
