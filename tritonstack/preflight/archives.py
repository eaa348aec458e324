"""Images that endpoints and builds pull from ECR, and archives in the artifact bucket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import InputError, TritonstackError, WorkFailedError
from tritonstack.preflight.subject import About, PreflightResult, Subject
from tritonstack.read_only_aws import NotKnownError, not_known_of

if TYPE_CHECKING:
    from tritonstack.engines.prepare_plan import PreparationPlan
    from tritonstack.models.source import ArchiveSource, BuildChoice
    from tritonstack.naming import ArchiveName


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


_NAMED = 3


def check_archive(subject: Subject) -> Iterator[PreflightResult]:
    """Every archive that endpoints serve, and that records name, is in the bucket, or the deployment makes it."""
    about = About(
        check="archive",
        subject=subject.environment.environment,
        needed="every archive in the bucket, or made by the deployment",
    )
    yield from about.look(_archive, subject)


def _archive(about: About, subject: Subject) -> PreflightResult:
    name = subject.environment.environment
    advice = f"tritonstack prepare {name}, or tritonstack build and tritonstack publish {name}"
    try:
        plan = _plan(subject)
    except InputError:
        if subject.builds_on_deploy:
            return about.passes("no bucket yet: the deployment makes it, then builds every archive")
        return about.fails(
            "no bucket yet, and the deployment builds no archives",
            advice=f"cdk deploy '{name}/artifacts', then {advice}",
        )
    except WorkFailedError as error:
        raise _archive_not_known(error) from error
    missing = [*(copy.name for copy in plan.copies), *(build.name for build in plan.builds)]
    if plan.refused:
        # Inputs that AWS refuses to read are unknown; archives that cannot be built at all are reported first.
        refused = min(plan.refused, key=lambda failure: _aws_error(failure.error) is not None)
        if _aws_error(refused.error) is not None:
            raise _archive_not_known(refused.error) from refused.error
        return about.fails(f"{refused.name} cannot be made: {refused.error}", advice="Mend what it says.")
    if not missing:
        return about.passes(f"{len(plan.there)} there")
    some = ", ".join(str(one) for one in missing[:_NAMED]) + (" …" if len(missing) > _NAMED else "")
    found = f"{len(plan.there)} there, {len(missing)} missing ({some})"
    if subject.builds_on_deploy:
        return about.passes(f"{found}, which the deployment copies ({len(plan.copies)}) or builds")
    return about.fails(found, advice=advice)


def _plan(subject: Subject) -> PreparationPlan:
    """Archives that are there, and those that would be copied or built.

    Raises:
        InputError: the artifacts are not deployed.
        WorkFailedError: S3 or SSM refuses.
    """
    # Imported here: the other checks need none of it, and it takes a while to load.
    from tritonstack.engines.prepare_plan import plan_preparation  # noqa: PLC0415
    from tritonstack.engines.stored_archives import orders_of, source_of_digest  # noqa: PLC0415
    from tritonstack.models.bucket import ArtifactBucket  # noqa: PLC0415

    environment = subject.environment
    bucket = ArtifactBucket(environment=environment.environment, session=subject.calls)
    orders = orders_of(subject.served, environment.endpoints, session=subject.calls)
    with TemporaryDirectory(prefix="tritonstack-preflight-") as folder:

        def source_of(name: ArchiveName, choice: BuildChoice) -> ArchiveSource:
            return source_of_digest(
                name.model,
                name.digest,
                repositories=subject.project / "model_repos",
                bucket=bucket,
                work=Path(folder),
                choice=choice,
            )

        return plan_preparation(orders, bucket=bucket, source_of=source_of, local=subject.local)


def _archive_not_known(error: TritonstackError) -> NotKnownError:
    aws_error = _aws_error(error)
    return NotKnownError(str(error), advice="Run it again.") if aws_error is None else not_known_of(aws_error)


def _aws_error(error: BaseException | None) -> ClientError | BotoCoreError | None:
    """The first error of AWS among the causes of an error; None where there is none."""
    while error is not None:
        if isinstance(error, ClientError | BotoCoreError):
            return error
        error = error.__cause__
    return None
