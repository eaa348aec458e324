"""Images that endpoints and builds pull from ECR."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonstack.preflight.subject import About, PreflightResult, Subject

_ECR_URI = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?/(?P<repository>[^:@]+)"
    r"(:(?P<tag>[^@]+)|@(?P<digest>sha256:[0-9a-f]{64}))"
)
_MEDIA_TYPES = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)


def check_image(subject: Subject) -> Iterator[PreflightResult]:
    """The images that endpoints and builds pull are in ECR: BatchGetImage in the image's account, as a pull does."""
    environment = subject.environment
    uris = {endpoint.image_uri(environment.region) for endpoint in environment.endpoints}
    uris |= {build.builder.image for build in subject.served.engines.builds}
    if subject.builds_on_deploy:
        uris.add(environment.builds.image)
    for uri in sorted(uris):
        image = _ECR_URI.fullmatch(uri)
        if image is not None:  # else it is of another registry: CodeBuild's own
            about = About(check="image", subject=uri, needed="an image of that tag or digest that may be pulled")
            yield from about.look(_image, subject, image)


def _image(about: About, subject: Subject, image: re.Match[str]) -> PreflightResult:
    answer = subject.calls.ask(
        "ecr",
        "batch_get_image",
        absent=("RepositoryNotFoundException",),
        region=image["region"],
        registryId=image["account"],
        repositoryName=image["repository"],
        imageIds=[{"imageTag": image["tag"]} if image["tag"] else {"imageDigest": image["digest"]}],
        acceptedMediaTypes=list(_MEDIA_TYPES),
    )
    advice = "Name a release whose image AWS has there (the catalogue lists them), or set `image:` to your own copy."
    if answer is None:
        return about.fails(f"account {image['account']} has no repository {image['repository']}", advice=advice)
    if not answer.get("images"):
        reasons = ", ".join(failure.get("failureCode", "") for failure in answer.get("failures", ()))
        return about.fails(f"no such image ({reasons or 'none found'})", advice=advice)
    digest = answer["images"][0].get("imageId", {}).get("imageDigest", "an image without a digest")
    return about.passes(str(digest))
