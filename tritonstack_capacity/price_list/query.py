"""Asking the AWS Price List for the hosting products of a region, page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritonstack.errors import WorkFailedError
from tritonstack.read_only_aws import ReadOnlyCalls
from tritonstack_capacity.price_list.product import COMPONENT

API_REGIONS = ("us-east-1", "eu-central-1", "ap-south-1")
"""Where the Price List Query API answers, each for every region (Billing user guide, "Using the AWS Price List Query
API")."""
SERVICE_CODE = "AmazonSageMaker"
PAGE = 100
"""The most products of a page (Price List API reference, GetProducts)."""
MOST_PAGES = 200
"""A region has a few hundred hosting products: more pages than this are no end."""


def hosting_documents(
    calls: ReadOnlyCalls, *, region: str, api_region: str, say: Callable[[str], None]
) -> tuple[str, ...]:
    """The documents of every hosting product in ``region``, as the API gives them.

    Args:
        calls: makes the clients, waits where it is throttled, and tells refusals apart.
        region: whose prices.
        api_region: one of ``API_REGIONS``, which is asked.
        say: shows how far it is.

    Raises:
        NotKnownError: no permission, no credentials, no network, throttled to the last.
        WorkFailedError: the list does not end, or has nothing for the region.
    """
    wanted = {"regionCode": region, "component": COMPONENT}
    request: dict[str, Any] = {
        "ServiceCode": SERVICE_CODE,
        "Filters": [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
        "FormatVersion": "aws_v1",
        "MaxResults": PAGE,
    }
    found: list[str] = []
    for _ in range(MOST_PAGES):
        answer = calls.must("pricing", "get_products", region=api_region, **request)
        found += answer.get("PriceList") or []
        say(f"{region}: {len(found)} products")
        token = answer.get("NextToken")
        if not token:
            break
        if token == request.get("NextToken"):
            raise WorkFailedError(f"the Price List answers one page of {region} again and again\n  do: run it again")
        request["NextToken"] = token
    else:
        raise WorkFailedError(f"the Price List has more than {MOST_PAGES} pages for {region}, which are not read")
    if not found:
        raise WorkFailedError(
            f"the Price List has no hosting product in {region}: nothing is written\n"
            "  do: run it again later, or set `prices:` in the environment files"
        )
    return tuple(found)
