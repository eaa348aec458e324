"""Service Quotas, as far as this project asks: the lists of SageMaker's and CodeBuild's quotas.

Stand-ins: names are AWS's, values are constructed, since nothing limits the local AWS. Codes are AWS's where this
project knows them, else made from the name, so that they stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from ministack.core.responses import get_account_id, get_region

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.instances import load_build_machines
from tritonstack_local.emulator.json_service import JsonService
from tritonstack_local.emulator.refusal import RefusedError

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


def service_quotas_service() -> JsonService:
    """Service Quotas' operations by name; nothing of them is kept."""
    return JsonService(
        service="service-quotas",
        target_prefix="ServiceQuotasV20190624",
        operations={"ListServiceQuotas": _list, "ListAWSDefaultServiceQuotas": _list},
        forget=lambda: None,
    )


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
    page = {"Quotas": [_quota(service, name, value) for name, value in rows[start:end]]}
    return page | ({"NextToken": str(end)} if end < len(rows) else {})


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
        "QuotaArn": f"arn:aws:servicequotas:{get_region()}:{get_account_id()}:{service}/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": float(value),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
