"""Triton releases with known vulnerabilities that a change introduces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonstack.review.endpoints import ENDPOINT, endpoint_name
from tritonstack.review.model_changes.models import sets_of
from tritonstack.review.snapshot import (
    EnvironmentSnapshot,
)

_TAG = re.compile(r":(\d{2}\.(?:0[1-9]|1[0-2]))(?:-|$)")
"""The release in an image's tag: ``…/sagemaker-tritonserver:24.09-py3``."""


def vulnerable_releases(before: EnvironmentSnapshot, after: EnvironmentSnapshot) -> tuple[str, ...]:
    """A sentence for every endpoint that gets vulnerabilities which it did not have, by stack and name.

    A new endpoint is held against the release that it could have in the region: what no image of AWS's fixes is no
    reason to stop a change.
    """
    from tritonstack.catalogue import load_catalogue  # noqa: PLC0415 - its data files, rarely needed

    catalogue = load_catalogue()
    known, found = catalogue.vulnerabilities, []
    had = {place: release for place, _, release in _releases(before)}
    for place, region, release in _releases(after):
        stack, endpoint = place
        then = had.get(place)
        best = None if then else catalogue.default_release(region=region if region in catalogue.regions else None)
        earlier = {each.id for each in known(then or best or release)}
        added = [each for each in known(release) if each.id not in earlier]
        if not added:
            continue
        runs = f"runs release {release} instead of {then}: {len(added)} more known vulnerabilities"
        if then is None:
            runs = f"is new on release {release}, which has {len(added)} known vulnerabilities that {best} fixes"
        score = "" if added[0].score is None else f"CVSS {added[0].score}, "
        found.append(f"{stack}: {endpoint} {runs}, the gravest {added[0].id} ({score}fixed in {added[0].fixed_in})")
    return tuple(found)


def _releases(environment: EnvironmentSnapshot) -> Iterator[tuple[tuple[str, str], str | None, str]]:
    """Stack and endpoint, the region, and the release: the release set's, else the one in the image's tag."""
    for _, stack in sorted(environment.stacks.items()):
        sets = {each.logical_id: each.platform.release for each in sets_of(stack)}
        models = [each.properties.get("PrimaryContainer", {}) for each in stack.of_type("AWS::SageMaker::Model")]
        tagged = {match[1] for each in models if (match := _TAG.search(str(each.get("Image", ""))))}
        of_image = tagged.pop() if len(tagged) == 1 else None
        for endpoint in stack.of_type(ENDPOINT):
            release = sets.get(endpoint.logical_id) or of_image
            if release is not None:
                yield (stack.name, endpoint_name(endpoint)), stack.region, release
