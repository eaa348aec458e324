"""Documents in the form of the AWS Price List, made for tests: no figure of them is AWS's."""

from __future__ import annotations

import json
from typing import Any

PUBLISHED, VERSION = "2026-11-20T02:56:06Z", "20261120025606"
TYPE, REGION = "ml.g4dn.xlarge", "us-east-1"


def document(
    name: str = TYPE,
    usd: str = "0.5000000000",
    *,
    region: str = REGION,
    sku: str | None = None,
    published: str = PUBLISHED,
    **attributes: str,
) -> dict[str, Any]:
    """One hosting product with one on-demand term; ``attributes`` replace the product's."""
    sku = sku or f"SKU-{name}-{region}"
    rate = {
        "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        "unit": "Hrs",
        "beginRange": "0",
        "endRange": "Inf",
        "description": f"${usd} per Hosting {name} hour",
        "appliesTo": [],
        "pricePerUnit": {"USD": usd},
    }
    term = {
        "sku": sku,
        "offerTermCode": "JRTCKXETXF",
        "effectiveDate": "2026-11-01T00:00:00Z",
        "priceDimensions": {str(rate["rateCode"]): rate},
        "termAttributes": {},
    }
    return {
        "product": {
            "productFamily": "ML Instance",
            "sku": sku,
            "attributes": {
                "servicecode": "AmazonSageMaker",
                "component": "Hosting",
                "instanceName": name,
                "instanceType": f"{name}-Hosting",
                "regionCode": region,
                "locationType": "AWS Region",
                "usagetype": f"USE1-Host:{name}",
                "operation": "RunInstance",
                **attributes,
            },
        },
        "serviceCode": "AmazonSageMaker",
        "terms": {"OnDemand": {f"{sku}.JRTCKXETXF": term}},
        "version": "".join(each for each in published if each.isdigit()),
        "publicationDate": published,
    }


def text(name: str = TYPE, usd: str = "0.5000000000", **more: Any) -> str:
    """The document as a string of GetProducts' response."""
    return json.dumps(document(name, usd, **more))


def dimension(one: dict[str, Any]) -> dict[str, Any]:
    """The only price of a product."""
    [term] = one["terms"]["OnDemand"].values()
    [found] = term["priceDimensions"].values()
    assert isinstance(found, dict)
    return found
