"""The Triton images in AWS's own ECR accounts, as BatchGetImage tells of them.

Stand-ins: the catalogue's releases are there, under a digest that is constructed from the tag; nothing can be pulled.
"""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

from ministack.core.responses import get_region, json_response
from ministack.services import ecr

from tritonstack.catalogue import load_catalogue

Answer = tuple[int, dict[str, str], Any]
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def install() -> None:
    """Answer for AWS's accounts, and hand every other one to MiniStack."""
    others = ecr._batch_get_image

    def batch_get_image(request: dict[str, Any]) -> Answer:
        account, repository = request.get("registryId", ""), request.get("repositoryName", "")
        tags = _images(get_region()).get((account, repository))
        answer: Answer = others(request) if tags is None else _found(request, account, repository, tags)
        return answer

    ecr._batch_get_image = batch_get_image


@functools.cache
def _images(region: str) -> dict[tuple[str, str], frozenset[str]]:
    """(account, repository) → tags, in a region."""
    found: dict[tuple[str, str], set[str]] = {}
    catalogue = load_catalogue()
    for release in catalogue.releases_in(region):
        registry, _, image = catalogue.image_uri(release=release, region=region).partition("/")
        repository, _, tag = image.partition(":")
        found.setdefault((registry.partition(".")[0], repository), set()).add(tag)
    return {key: frozenset(tags) for key, tags in found.items()}


def _found(request: dict[str, Any], account: str, repository: str, tags: frozenset[str]) -> Answer:
    images, failures = [], []
    for image in request.get("imageIds", ()):
        tag = image.get("imageTag")
        if tag in tags:
            digest = f"sha256:{hashlib.sha256(f'{repository}:{tag}'.encode()).hexdigest()}"
            images.append(
                {
                    "registryId": account,
                    "repositoryName": repository,
                    "imageId": {"imageDigest": digest, "imageTag": tag},
                    "imageManifest": json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST}),
                    "imageManifestMediaType": _MANIFEST,
                }
            )
        else:
            failures.append(
                {
                    "imageId": image,
                    "failureCode": "ImageNotFound",
                    "failureReason": "Requested image not found [source: the catalogue of this project]",
                }
            )
    answer: Answer = json_response({"images": images, "failures": failures})
    return answer
