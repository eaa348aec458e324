"""Hosting products of a region from the AWS Price List: asked for page by page, each read into a price or a doubt."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pydantic_core
from pydantic import BaseModel, Field, ValidationError

from tritonstack.catalogue.price_file import DATE_LENGTH, TIME_PATTERN
from tritonstack.catalogue.prices import CONSTRUCTED_VERSION
from tritonstack.errors import WorkFailedError
from tritonstack.read_only_aws import ReadOnlyCalls

# The Price List Query API answers with a list of texts, each the JSON document of one product (Billing user guide,
# "Using the AWS Price List Query API"). Its attributes and terms are data without a published schema; those that are
# read here are what public copies of the list show.
COMPONENT = "Hosting"
CURRENCY = "USD"
HOUR = "Hrs"
REGION = "AWS Region"
_PRICE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12})?")


@dataclass(frozen=True, kw_only=True)
class HostingProduct:
    """What an instance type costs in a region.

    Attributes:
        instance_type: ``ml.g4dn.xlarge``.
        region: its code.
        sku: the product's.
        usage_type: what a bill calls it (``USE1-Host:ml.g4dn.xlarge``).
        usd_per_hour: above 0.
        effective: since when (``2026-09-01``).
        published: when AWS published the list (``2026-09-20T02:56:06Z``).
        version: of the list.
    """

    instance_type: str
    region: str
    sku: str
    usage_type: str
    usd_per_hour: Decimal
    effective: str
    published: str
    version: str

    @property
    def constructed(self) -> bool:
        """Whether the local AWS made it up."""
        return self.version == CONSTRUCTED_VERSION


class UnclearProductError(Exception):
    """A product whose price cannot be told without a guess.

    Attributes:
        instance_type: as far as the document tells.
        why: in words.
    """

    def __init__(self, instance_type: str | None, why: str) -> None:
        """Takes the attributes."""
        super().__init__(why)
        self.instance_type = instance_type
        self.why = why


class _Dimension(BaseModel):
    unit: str
    price: dict[str, str] = Field(alias="pricePerUnit")
    begin: str = Field(default="0", alias="beginRange")
    end: str = Field(default="Inf", alias="endRange")


class _Term(BaseModel):
    effective: str = Field(alias="effectiveDate", pattern=TIME_PATTERN)
    dimensions: dict[str, _Dimension] = Field(alias="priceDimensions")


class _Terms(BaseModel):
    on_demand: dict[str, _Term] = Field(default={}, alias="OnDemand")


class _Attributes(BaseModel):
    component: str = ""
    instance_type: str | None = Field(default=None, alias="instanceName")
    region: str = Field(default="", alias="regionCode")
    location_type: str = Field(default=REGION, alias="locationType")
    usage_type: str = Field(default="", alias="usagetype")


class _Product(BaseModel):
    sku: str = Field(min_length=1)
    attributes: _Attributes


class _Head(BaseModel):
    product: _Product


class _Document(_Head):
    terms: _Terms
    version: str = Field(min_length=1)
    published: str = Field(alias="publicationDate", pattern=TIME_PATTERN)


def read_product(text: str, *, region: str) -> HostingProduct | None:
    """The product in a document of the list; None where it is nothing that an endpoint's instances are billed by.

    Raises:
        UnclearProductError: no such document, or a price that is none, or that is not the only one.
    """
    try:
        raw = pydantic_core.from_json(text)
    except ValueError as error:
        raise UnclearProductError(None, f"the document is no JSON: {error}") from error
    try:
        attributes = _Head.model_validate(raw).product.attributes
        name = attributes.instance_type
        if name is None or not _bills_instances(attributes, name=name, region=region):
            return None
        document = _Document.model_validate(raw)
    except ValidationError as error:
        one = error.errors()[0]
        why = f"{'.'.join(map(str, one['loc'])) or 'document'}: {one['msg']}"
        raise UnclearProductError(_name(raw), why) from error
    term, dimension = _only_price(name, document)
    return HostingProduct(
        instance_type=name,
        region=region,
        sku=document.product.sku,
        usage_type=attributes.usage_type,
        usd_per_hour=_usd(name, dimension),
        effective=term.effective[:DATE_LENGTH],
        published=document.published,
        version=document.version,
    )


def _name(raw: Any) -> str | None:
    """The instance type of a document that may be anything."""
    for key in ("product", "attributes", "instanceName"):
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw if isinstance(raw, str) and raw else None


def _bills_instances(attributes: _Attributes, *, name: str, region: str) -> bool:
    """Whether hours of endpoints' instances in the region itself are billed by it: Local Zones have their own prices.

    A bill calls them ``Host:ml.g4dn.xlarge``, in most regions behind the region's abbreviation.
    """
    place = (attributes.component, attributes.region, attributes.location_type)
    billed_as = re.search(rf"(^|-)Host:{re.escape(name)}$", attributes.usage_type)
    return place == (COMPONENT, region, REGION) and billed_as is not None


def _only_price(name: str, document: _Document) -> tuple[_Term, _Dimension]:
    terms = list(document.terms.on_demand.values())
    if len(terms) != 1:
        raise UnclearProductError(name, f"{len(terms)} on-demand terms (SKU {document.product.sku}), not one")
    dimensions = list(terms[0].dimensions.values())
    if len(dimensions) != 1:
        raise UnclearProductError(name, f"{len(dimensions)} prices in its on-demand term (SKU {document.product.sku})")
    return terms[0], dimensions[0]


def _usd(name: str, dimension: _Dimension) -> Decimal:
    if dimension.unit != HOUR:
        raise UnclearProductError(name, f"a price by {dimension.unit!r}, not by {HOUR!r}")
    if (dimension.begin, dimension.end) != ("0", "Inf"):
        raise UnclearProductError(name, f"a price from {dimension.begin} to {dimension.end} hours alone")
    text = dimension.price.get(CURRENCY)
    if text is None:
        raise UnclearProductError(name, f"a price in {', '.join(sorted(dimension.price)) or 'no currency'}, not in USD")
    if not _PRICE.fullmatch(text):
        raise UnclearProductError(name, f"a price of {text!r}, which is no amount")
    if not Decimal(text):
        raise UnclearProductError(name, "a price of 0 USD, which no instance costs")
    return Decimal(text)


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
