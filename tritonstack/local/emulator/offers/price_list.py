"""GetProducts of the Price List, for instance types of SageMaker's endpoints.

A stand-in: it has a product for each type and region of the catalogue, without a price.
"""

from __future__ import annotations

import json
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack.local.emulator.json_service import JsonService
from tritonstack.local.emulator.refusal import RefusedError

_SERVICE = "AmazonSageMaker"
_LEAST_TYPES = {"TERM_MATCH", "EQUALS"}


def price_list_service() -> JsonService:
    """The Price List's one operation here; nothing is kept."""
    return JsonService(
        service="pricing",
        target_prefix="AWSPriceListService",
        operations={"GetProducts": _products},
        forget=lambda: None,
    )


def _products(request: dict[str, Any]) -> dict[str, Any]:
    """Products of SageMaker's hosting that match every filter; one page."""
    wanted = {row["Field"]: row["Value"] for row in request.get("Filters", ())}
    other = [row["Type"] for row in request.get("Filters", ()) if row["Type"] not in _LEAST_TYPES]
    if request["ServiceCode"] != _SERVICE or other:
        raise RefusedError(
            "InvalidParameterException",
            f"The local AWS has products of {_SERVICE} alone, and filters {', '.join(sorted(_LEAST_TYPES))}",
            source="tritonstack.local.emulator",
        )
    products = (
        {"instanceName": name, "regionCode": region, "component": "Hosting", "servicecode": _SERVICE}
        for name, row in sorted(load_catalogue().instances.items())
        for region in sorted(row.regions)
    )
    found = [product for product in products if wanted.items() <= product.items()]
    listed = [json.dumps({"product": {"attributes": product}}) for product in found[: request.get("MaxResults", 100)]]
    return {"FormatVersion": "aws_v1", "PriceList": listed}
