"""What a load test makes in SageMaker: model packages, jobs of Inference Recommender, and what the jobs leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..shared.clients import Aws, unless_missing
from .objects import jobs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .objects import Settings

FINAL = frozenset({"COMPLETED", "FAILED", "STOPPED", "DELETED"})
"""The statuses that a job ends in (API reference: DescribeInferenceRecommendationsJob, ``Status``)."""
ENDING = frozenset({"STOPPING", "DELETING"})
CONFIGURATION = "configuration"
TEST = "load_test"
"""The custom metadata of a package: its configuration, and the test that registered it."""
KINDS = (
    ("Endpoint", "list_endpoints", "delete_endpoint"),
    ("EndpointConfig", "list_endpoint_configs", "delete_endpoint_config"),
    ("Model", "list_models", "delete_model"),
)
"""What jobs make: noun, the operation that lists, the one that deletes; in the order of deletion."""


def start(job: Mapping[str, Any], request: Mapping[str, Any], *, package: str, role: str, aws: Aws) -> None:
    """Start a job with a request that lacks its name, its role and its package."""
    given = {**request["InputConfig"], "ModelPackageVersionArn": package}
    made: dict[str, Any] = {**request, "JobName": job["name"], "RoleArn": role, "InputConfig": given}
    aws.sagemaker.create_inference_recommendations_job(**made)


def describe(name: str, aws: Aws) -> Mapping[str, Any] | None:
    """SageMaker's description of a job; None where there is none."""
    return unless_missing(aws.sagemaker.describe_inference_recommendations_job, JobName=name)


def runs(name: str, aws: Aws) -> bool:
    """Whether a job exists and has not ended."""
    described = describe(name, aws)
    return described is not None and described["Status"] not in FINAL


def stop(name: str, aws: Aws) -> bool:
    """Stop a job; whether it ran. One that ends meanwhile is no failure."""
    described = describe(name, aws)
    if described is None or described["Status"] in FINAL | ENDING:
        return False
    try:
        aws.sagemaker.stop_inference_recommendations_job(JobName=name)
    except ClientError:
        if runs(name, aws):
            raise
    return True


def register(settings: Settings, aws: Aws) -> None:
    """Make the group and the packages that do not exist yet."""
    group = settings["group"]
    if not _has_group(group, aws):
        described = "Load-tested configurations" if lasts(settings) else "Of one load test; goes with it"
        aws.sagemaker.create_model_package_group(ModelPackageGroupName=group, ModelPackageGroupDescription=described)
    found = registered(settings, aws)
    for name, request in settings["packages"].items():
        if name not in found:
            aws.sagemaker.create_model_package(
                **request,
                ModelPackageGroupName=group,
                CustomerMetadataProperties={CONFIGURATION: name, TEST: settings["id"]},
            )


def lasts(settings: Settings) -> bool:
    """Whether the group of packages stays after the test, with a version of each configuration."""
    return bool(settings.get("keep_packages"))


def registered(settings: Settings, aws: Aws) -> dict[str, str]:
    """Configuration → ARN of its package."""
    found: dict[str, str] = {}
    for arn in _arns(settings, aws):
        properties = aws.sagemaker.describe_model_package(ModelPackageName=arn)["CustomerMetadataProperties"]
        if properties.get(TEST) == settings["id"]:  # a lasting group has the versions of other tests, too
            found[properties[CONFIGURATION]] = arn
    return found


def remove_packages(settings: Settings, aws: Aws) -> list[str]:
    """Remove packages and group, unless they last. Returns their ARNs and its name."""
    group = settings["group"]
    if lasts(settings) or not _has_group(group, aws):
        return []
    sagemaker: Any = aws.sagemaker
    deletions = [(arn, sagemaker.delete_model_package, {"ModelPackageName": arn}) for arn in _arns(settings, aws)]
    deletions.append((group, sagemaker.delete_model_package_group, {"ModelPackageGroupName": group}))
    return [name for name, operation, named in deletions if unless_missing(operation, **named) is not None]


def _has_group(group: str, aws: Aws) -> bool:
    return unless_missing(aws.sagemaker.describe_model_package_group, ModelPackageGroupName=group) is not None


def _arns(settings: Settings, aws: Aws) -> list[str]:
    """The packages of the group; of a lasting one those that are as young as the test."""
    query = {"ModelPackageGroupName": settings["group"]}
    if lasts(settings):
        query["CreationTimeAfter"] = settings["registered_after"]
    pages: Any = aws.sagemaker.get_paginator("list_model_packages").paginate(**query)
    return [str(one["ModelPackageArn"]) for page in pages for one in page["ModelPackageSummaryList"]]


def remove_leftovers(settings: Settings, aws: Aws) -> list[str]:
    """Delete what the jobs of a test left, once none runs. Returns ``Endpoint <name>`` and so on.

    Names of what a job makes begin with the job's, cut to forty characters (API reference:
    CreateInferenceRecommendationsJob, ``JobName``); a job's name is shorter than that. Inference Recommender removes
    its endpoints itself, but one that is left costs as long as it exists.
    """
    removed = []
    sagemaker: Any = aws.sagemaker
    for noun, listing, deletion in KINDS:
        for job in jobs_of(settings):
            for name in list(_names(noun, listing, job, aws)):
                if unless_missing(getattr(sagemaker, deletion), **{f"{noun}Name": name}) is not None:
                    removed.append(f"{noun} {name}")
    return removed


def _names(noun: str, listing: str, job: str, aws: Aws) -> Iterator[str]:
    sagemaker: Any = aws.sagemaker
    for page in sagemaker.get_paginator(listing).paginate(NameContains=job):
        for one in page[f"{noun}s"]:
            name = str(one[f"{noun}Name"])
            if name.lower().startswith(job.lower()):  # NameContains also matches elsewhere in a name
                yield name
