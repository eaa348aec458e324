"""GetProducts of the Price List, for instance types of SageMaker's endpoints.

A stand-in: it has a product for each type and region of the catalogue, at a price that is constructed and no price of
AWS's, as the version of the list says.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tritonstack.catalogue import InstanceType, load_catalogue
from tritonstack.catalogue.prices import CONSTRUCTED_VERSION
from tritonstack_local.emulator.json_service import JsonService
from tritonstack_local.emulator.refusal import RefusedError

_SERVICE = "AmazonSageMaker"
_LEAST_TYPES = {"TERM_MATCH", "EQUALS"}
_PAGE = 100
_PUBLISHED = "2000-01-01T00:00:00Z"
USD_A_GPU, USD_A_VCPU = 1.0, 0.01
"""The constructed price of an hour: so much for each GPU and each vCPU of an instance."""


def price_list_service() -> JsonService:
    """The Price List's one operation here; nothing is kept."""
    return JsonService(
        service="pricing",
        target_prefix="AWSPriceListService",
        operations={"GetProducts": _products},
        forget=lambda: None,
    )


def _products(request: dict[str, Any]) -> dict[str, Any]:
    """One page of SageMaker's hosting products that match every filter; a token is the place that a page begins at."""
    wanted = {row["Field"]: row["Value"] for row in request.get("Filters", ())}
    other = [row["Type"] for row in request.get("Filters", ()) if row["Type"] not in _LEAST_TYPES]
    if request["ServiceCode"] != _SERVICE or other:
        raise RefusedError(
            "InvalidParameterException",
            f"The local AWS has products of {_SERVICE} alone, and filters {', '.join(sorted(_LEAST_TYPES))}",
            source="tritonstack_local.emulator",
        )
    products = (
        (row, _attributes(row, region))
        for _, row in sorted(load_catalogue().instances.items())
        for region in sorted(row.regions)
    )
    found = [(row, attributes) for row, attributes in products if wanted.items() <= attributes.items()]
    start = int(request.get("NextToken") or 0)
    end = start + int(request.get("MaxResults") or _PAGE)
    page = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(_document(*each)) for each in found[start:end]]}
    return page | ({"NextToken": str(end)} if end < len(found) else {})


def _attributes(row: InstanceType, region: str) -> dict[str, str]:
    return {
        "servicecode": _SERVICE,
        "servicename": "Amazon SageMaker (constructed by the local AWS)",
        "component": "Hosting",
        "instanceName": row.name,
        "instanceType": f"{row.name}-Hosting",
        "regionCode": region,
        "locationType": "AWS Region",
        "usagetype": f"{region}-Host:{row.name}",
        "operation": "RunInstance",
    }


def _document(row: InstanceType, attributes: dict[str, str]) -> dict[str, Any]:
    """A product in the Price List's own form, with one on-demand term."""
    sku = hashlib.sha256(attributes["usagetype"].encode()).hexdigest()[:16].upper()
    term, rate = f"{sku}.CONSTRUCTED", f"{sku}.CONSTRUCTED.HOUR"
    usd = USD_A_GPU * row.gpu_count + USD_A_VCPU * row.vcpu
    dimension = {
        "rateCode": rate,
        "unit": "Hrs",
        "beginRange": "0",
        "endRange": "Inf",
        "description": "constructed by the local AWS",
        "pricePerUnit": {"USD": f"{usd:.10f}"},
        "appliesTo": [],
    }
    offer = {"sku": sku, "effectiveDate": _PUBLISHED, "priceDimensions": {rate: dimension}, "termAttributes": {}}
    return {
        "product": {"productFamily": "ML Instance", "sku": sku, "attributes": attributes},
        "serviceCode": _SERVICE,
        "terms": {"OnDemand": {term: offer}},
        "version": CONSTRUCTED_VERSION,
        "publicationDate": _PUBLISHED,
    }
