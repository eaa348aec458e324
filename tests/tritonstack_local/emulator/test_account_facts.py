"""Facts of an account that preflight reads: quotas and images."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.preflight.quotas import (
    ALL_ENDPOINT_INSTANCES,
    ALL_PROCESSING_INSTANCES,
    codebuild_quota_name,
    endpoint_quota_name,
)

IMAGES = "763104351884"
REPOSITORY = "sagemaker-tritonserver"


def test_an_image_that_the_cdk_would_build_counts_as_pushed_for_no_docker_engine_is_here(aws: Emulator) -> None:
    name, tag = "cdk-hnb659fds-container-assets-123456789012-us-east-1", {"imageTag": "0" * 64}
    ecr = aws.client("ecr")
    [found] = ecr.describe_images(repositoryName=name, imageIds=[tag])["imageDetails"]
    assert found["imageTags"] == ["0" * 64]
    with pytest.raises(ClientError, match="RepositoryNotFound"):
        ecr.describe_images(repositoryName="own", imageIds=[tag])


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    """The code of a refusal."""
    return str(error.value.response["Error"]["Code"])


def quotas(aws: Emulator, service: str, operation: str = "list_service_quotas", page: int = 100) -> dict[str, float]:
    """Every quota of a service, page by page."""
    pages = (
        aws.client("service-quotas")
        .get_paginator(operation)
        .paginate(ServiceCode=service, PaginationConfig={"PageSize": page})
    )
    return {row["QuotaName"]: row["Value"] for part in pages for row in part["Quotas"]}


def test_quotas_have_awss_names_and_come_in_pages(aws: Emulator) -> None:
    whole = quotas(aws, "sagemaker")
    assert {
        "ml.g4dn.xlarge for endpoint usage": 20.0,
        "ml.g4dn.xlarge for processing job usage": 4.0,
        "Number of instances across active endpoints": 50.0,
        "Number of instances across all processing jobs": 50.0,
    }.items() <= whole.items()
    assert quotas(aws, "sagemaker", page=3) == whole
    assert quotas(aws, "sagemaker", operation="list_aws_default_service_quotas") == whole
    assert {
        "Concurrently running builds for Linux GPU Small environment",
        "Concurrently running builds for Linux/Large environment",
    } <= quotas(aws, "codebuild").keys()


def test_quotas_that_preflight_reads_are_there(aws: Emulator) -> None:
    hosting = {endpoint_quota_name("ml.g4dn.xlarge"), ALL_ENDPOINT_INSTANCES, ALL_PROCESSING_INSTANCES}
    assert hosting <= quotas(aws, "sagemaker").keys()
    builds = {
        codebuild_quota_name(f"BUILD_GENERAL1_{size}", gpu=gpu) for size, gpu in (("SMALL", True), ("LARGE", False))
    }
    assert builds <= quotas(aws, "codebuild").keys()


def image(aws: Emulator, tag: str, *, account: str = IMAGES, repository: str = REPOSITORY) -> dict[str, Any]:
    """BatchGetImage's response for one tag."""
    response: dict[str, Any] = aws.client("ecr").batch_get_image(
        registryId=account, repositoryName=repository, imageIds=[{"imageTag": tag}]
    )
    return response


def test_the_catalogues_images_are_there_and_others_are_not(aws: Emulator) -> None:
    found = image(aws, "24.09-py3")["images"][0]
    assert found["imageId"]["imageTag"] == "24.09-py3"
    assert found["imageId"]["imageDigest"].startswith("sha256:")
    missing = image(aws, "99.01-py3")
    assert missing["images"] == []
    assert missing["failures"][0]["failureCode"] == "ImageNotFound"
    with pytest.raises(ClientError) as error:
        image(aws, "24.09-py3", account="111122223333")
    assert code(error) == "RepositoryNotFoundException"
