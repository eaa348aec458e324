"""Facts of an account that preflight reads: quotas and images. All values are constructed."""

from __future__ import annotations

import functools
import hashlib
import logging
import re
import types
from collections.abc import Iterator
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import load_build_machines
from tritonstack_local.emulator.ministack_adapter import ecr
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, get_region, json_response, request_scope
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import JsonService

logger = logging.getLogger("tritonstack.emulator")

# --- Service Quotas ---
# Names are AWS's, values are constructed, since nothing limits the local AWS. Codes are AWS's where this project has
# them, else made from the name, so that they stay the same.

Request = dict[str, Any]
ENDPOINT_INSTANCES, JOB_INSTANCES, ALL_INSTANCES, BUILDS, GPU_BUILDS = 20, 4, 50, 20, 4
"""The constructed values: of a type for endpoints and for processing jobs, of all types, of builds at once."""

_KNOWN_CODES = {
    "Number of instances across active endpoints": "L-7A3DF611",
    "Number of instances across all processing jobs": "L-F311B08F",
    "Concurrently running builds for Linux GPU Small environment": "L-F1FE1B52",
    "Concurrently running builds for Linux GPU Large environment": "L-D906BEE7",
}
_CPU_SIZES = ("Small", "Medium", "Large", "XLarge", "2XLarge")
_PAGE = 100
_API = "Service Quotas API reference"


def _list(request: Request) -> dict[str, Any]:
    """One page; the next page's token is the place that it begins at."""
    service = request["ServiceCode"]
    names = {"sagemaker": _sagemaker, "codebuild": _codebuild}.get(service)
    if names is None:
        raise RefusedError(
            "NoSuchResourceException", f"The local AWS has no quotas of service {service}", source=_API, status=404
        )
    rows = list(names(get_region()))
    start = int(request.get("NextToken") or 0)
    end = start + int(request.get("MaxResults") or _PAGE)
    more = {"NextToken": str(end)} if end < len(rows) else {}
    return {"Quotas": [_quota(service, name, value) for name, value in rows[start:end]], **more}


def _sagemaker(region: str) -> Iterator[tuple[str, int]]:
    for name, row in sorted(load_catalogue().instances.items()):
        if region in row.regions:
            yield f"{name} for endpoint usage", ENDPOINT_INSTANCES
    for machine in load_build_machines().machines:
        if machine.kind == "processing" and region in machine.regions:
            yield machine.quota, JOB_INSTANCES
    yield "Number of instances across active endpoints", ALL_INSTANCES
    yield "Number of instances across all processing jobs", ALL_INSTANCES


def _codebuild(region: str) -> Iterator[tuple[str, int]]:
    for size in _CPU_SIZES:
        yield f"Concurrently running builds for Linux/{size} environment", BUILDS
    if any(machine.kind == "codebuild" and region in machine.regions for machine in load_build_machines().machines):
        for size in ("Small", "Large"):
            yield f"Concurrently running builds for Linux GPU {size} environment", GPU_BUILDS


def _quota(service: str, name: str, value: int) -> dict[str, Any]:
    code = _KNOWN_CODES.get(name) or f"L-{hashlib.sha256(name.encode()).hexdigest()[:8].upper()}"
    return {
        "ServiceCode": service,
        "ServiceName": f"{service} (constructed by the local AWS)",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": float(value),
        "Adjustable": True,
    }


# --- Triton images in AWS's ECR accounts ---
# The catalogue's releases, under a digest that is constructed from the tag; nothing can be pulled.

ServiceResponse = tuple[int, dict[str, str], Any]


@functools.cache
def _put_images(region: str) -> None:
    catalogue = load_catalogue()
    for release in catalogue.releases_in(region):
        registry, _, image = catalogue.image_uri(release=release, region=region).partition("/")
        repository, _, tag = image.partition(":")
        digest = f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"
        made = {"imageId": {"imageDigest": digest, "imageTag": tag}, "imageDigest": digest, "imageTags": [tag]}
        with request_scope(registry.partition(".")[0], region):
            ecr.repositories()[repository] = {"repositoryName": repository}
            ecr.images()[repository] = [*ecr.images().get(repository, []), made]


def install() -> None:
    """Add services, operations and the images of AWS's accounts to MiniStack's, once a process."""
    quotas = types.SimpleNamespace(list_service_quotas=_list, list_aws_default_service_quotas=_list)
    JsonService(quotas, service="service-quotas", target_prefix="ServiceQuotasV20190624").install()
    # The local AWS has no prices: every operation of the Price List is refused by name.
    JsonService(service="pricing", target_prefix="AWSPriceListService").install()
    theirs = ecr.batch_get_image.current

    def batch_get_image(request: dict[str, Any]) -> ServiceResponse:
        _put_images(get_region())
        with request_scope(request.get("registryId") or get_account_id(), get_region()):
            answer: ServiceResponse = theirs(request)
        return answer

    ecr.batch_get_image.replace(batch_get_image)
    described = ecr.describe_images.current

    def describe_images(request: dict[str, Any]) -> ServiceResponse:
        name = request.get("repositoryName", "")
        answer: ServiceResponse = described(request)
        if re.fullmatch(r"cdk-[a-z0-9]+-container-assets-\d{12}-[a-z0-9-]+", name):
            # As if pushed, so that the CDK's command line does not build it with Docker: no image runs here.
            logger.warning("an image of %s is not built: the local AWS serves with its own Triton", name)
            tags = [each["imageTag"] for each in request.get("imageIds", ())]
            answer = json_response({"imageDetails": [{"repositoryName": name, "imageTags": tags}]})
        return answer

    ecr.describe_images.replace(describe_images)
