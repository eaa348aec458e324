"""Prices of SageMaker hosting from the AWS Price List: requested, read strictly, kept in a project's prices.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic_core
from pydantic import BaseModel, Field, ValidationError

from tritonstack.aws.read_only import ReadOnlyCalls
from tritonstack.catalogue.price_file import (
    DATE_LENGTH,
    TIME_PATTERN,
    ListedPrice,
    PriceFile,
    RegionPrices,
)
from tritonstack.errors import WorkFailedError

# The Price List Query API returns a list of strings, each the JSON document of one product (Billing user guide,
# "Using the AWS Price List Query API"). Its attributes and terms are data without a published schema; those that are
# read here are what public copies of the list show.
COMPONENT = "Hosting"
CURRENCY = "USD"
HOUR = "Hrs"
REGION = "AWS Region"
_PRICE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,12})?")


@dataclass(frozen=True, kw_only=True)
class HostingProduct:
    """An instance type's price in a region, and the list that it is from."""

    instance_type: str  # ``ml.g4dn.xlarge``
    price: ListedPrice
    published: str  # when AWS published the list (``2026-09-20T02:56:06Z``)
    version: str  # of the list


class UnclearProductError(Exception):
    """A product without one clear price.

    Attributes:
        instance_type: if the document has one.
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

    Raises UnclearProductError: no such document, or a price that is none, or that is not the only one.
    """
    try:
        raw = pydantic_core.from_json(text)
    except ValueError as error:
        raise UnclearProductError(None, f"the document is no JSON: {error}") from error
    try:
        attributes = _Head.model_validate(raw).product.attributes
        name = attributes.instance_type
        # Local Zones have their own prices. A bill calls hours of endpoints' instances ``Host:ml.g4dn.xlarge``, in most
        # regions behind the region's abbreviation.
        place = (attributes.component, attributes.region, attributes.location_type)
        if name is None or place != (COMPONENT, region, REGION):
            return None
        if re.search(rf"(^|-)Host:{re.escape(name)}$", attributes.usage_type) is None:
            return None
        document = _Document.model_validate(raw)
    except ValidationError as error:
        one = error.errors()[0]
        why = f"{'.'.join(map(str, one['loc'])) or 'document'}: {one['msg']}"
        raise UnclearProductError(_name(raw), why) from error
    term, dimension = _only_price(name, document)
    return HostingProduct(
        instance_type=name,
        price=ListedPrice(
            usd_per_hour=_usd(name, dimension),
            sku=document.product.sku,
            usage_type=attributes.usage_type,
            effective=term.effective[:DATE_LENGTH],
        ),
        published=document.published,
        version=document.version,
    )


def _name(raw: Any) -> str | None:
    """The instance type of a document that may be anything."""
    for key in ("product", "attributes", "instanceName"):
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw if isinstance(raw, str) and raw else None


def _only_price(name: str, document: _Document) -> tuple[_Term, _Dimension]:
    terms = list(document.terms.on_demand.values())
    if len(terms) != 1:
        raise UnclearProductError(name, f"{len(terms)} on-demand terms (SKU {document.product.sku}), not one")
    dimensions = list(terms[0].dimensions.values())
    if len(dimensions) != 1:
        raise UnclearProductError(name, f"{len(dimensions)} prices in its on-demand term (SKU {document.product.sku})")
    return terms[0], dimensions[0]


def _usd(name: str, dimension: _Dimension) -> float:
    if dimension.unit != HOUR:
        raise UnclearProductError(name, f"a price by {dimension.unit!r}, not by {HOUR!r}")
    if (dimension.begin, dimension.end) != ("0", "Inf"):
        raise UnclearProductError(name, f"a price from {dimension.begin} to {dimension.end} hours alone")
    text = dimension.price.get(CURRENCY)
    if text is None:
        raise UnclearProductError(name, f"a price in {', '.join(sorted(dimension.price)) or 'no currency'}, not in USD")
    if not _PRICE.fullmatch(text):
        raise UnclearProductError(name, f"a price of {text!r}, which is no amount")
    if not float(text):
        raise UnclearProductError(name, "a price of 0 USD, which no instance costs")
    return float(text)


API_REGION = "us-east-1"
"""One of the three where the Price List Query API answers, each for every region (Billing user guide, "Using the AWS
Price List Query API")."""
SERVICE_CODE = "AmazonSageMaker"
PAGE = 100
"""The most products of a page (Price List API reference, GetProducts)."""


def hosting_documents(calls: ReadOnlyCalls, *, region: str) -> tuple[str, ...]:
    """The documents of every hosting product in ``region``, as the API gives them.

    Raises:
        NotKnownError: no permission, no credentials, no network, throttled to the last.
        WorkFailedError: the list has nothing for the region.
    """
    wanted = {"regionCode": region, "component": COMPONENT}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    asked: dict[str, Any] = {"ServiceCode": SERVICE_CODE, "Filters": filters, "FormatVersion": "aws_v1"}
    found = tuple(calls.pages("pricing", "get_products", "PriceList", MaxResults=PAGE, **asked))
    if not found:
        raise WorkFailedError(
            f"the Price List has no hosting product in {region}: nothing is written\n"
            "  do: run it again later, or set `prices:` in the environment files"
        )
    return found


SHOWN = 500
"""Characters of reasons, where every product has one."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """The file's new prices, and what of the lists is not among them."""

    prices: PriceFile
    delisted: tuple[str, ...]  # types that the file has and the list no longer has: "us-east-1 ml.g4dn.xlarge"
    refused: tuple[str, ...]  # prices that are not clear, each with region, type if there is one, and reason


def updated(old: PriceFile | None, answers: Mapping[str, Sequence[str]], *, types: Sequence[str]) -> Update:
    """The file with the Price List's prices.

    Regions that were not requested stay unchanged. So does a type that the list no longer has, or not clearly: it keeps
    the date of its own list, and is marked where the list no longer has it.

    ``types`` are looked up besides those that the file has.

    Raises:
        WorkFailedError: no product of a region is one that its endpoints' instances are clearly billed by.
    """
    regions = dict(old.regions) if old is not None else {}
    delisted: list[str] = []
    refused: list[str] = []
    for region, documents in sorted(answers.items()):
        known = regions.get(region)
        read = _Read.of(documents, region=region)
        wanted = sorted({*types, *(known.types if known else ())})
        new = regions[region] = _region(known, read, wanted=wanted)
        delisted += [f"{region} {name}" for name, row in new.types.items() if not row.listed]
        refused += [f"{region}: {why}" for why in read.nameless]
        refused += [f"{region} {name}: {why}" for name in wanted if (why := read.refusal(name))]
    return Update(prices=PriceFile(regions=regions), delisted=tuple(delisted), refused=tuple(refused))


@dataclass(frozen=True, kw_only=True)
class _Read:
    """A region's documents, read: clear products and reasons by type, and reasons without one."""

    products: Mapping[str, Sequence[HostingProduct]]
    unclear: Mapping[str, Sequence[str]]
    nameless: Sequence[str]

    @classmethod
    def of(cls, documents: Sequence[str], *, region: str) -> _Read:
        products: dict[str, list[HostingProduct]] = {}
        unclear: dict[str, list[str]] = {}
        nameless: list[str] = []
        for text in documents:
            try:
                product = read_product(text, region=region)
            except UnclearProductError as error:
                name = error.instance_type
                (nameless if name is None else unclear.setdefault(name, [])).append(error.why)
                continue
            if product is not None:
                products.setdefault(product.instance_type, []).append(product)
        if not products:
            reasons = "; ".join((*nameless, *(why for whys in unclear.values() for why in whys)))
            raise WorkFailedError(
                f"none of the Price List's {len(documents)} products of {region} is clearly what an hour of an "
                f"endpoint's instance costs: nothing is written\n  {reasons[:SHOWN] or 'they are of other things'}"
            )
        return cls(products=products, unclear=unclear, nameless=nameless)

    @property
    def newest(self) -> HostingProduct:
        """The product that the Price List published last."""
        every = (product for products in self.products.values() for product in products)
        return max(every, key=lambda product: (product.published, product.version))

    def refusal(self, name: str) -> str:
        """Why the price of a type is not clear; empty where it is, or where there is none."""
        found, reasons = self.products.get(name, ()), [*self.unclear.get(name, ())]
        if len(found) > 1:
            listed = ", ".join(f"SKU {each.price.sku} at {each.price.usd_per_hour:.12g} USD" for each in found)
            reasons.append(f"{len(found)} products: {listed}")
        return "; ".join(reasons)


def _region(known: RegionPrices | None, read: _Read, *, wanted: Iterable[str]) -> RegionPrices:
    newest = read.newest
    rows: dict[str, ListedPrice] = {}
    for name in wanted:
        found, refused = read.products.get(name, ()), read.refusal(name)
        if found and not refused:
            rows[name] = found[0].price
        elif known is not None and name in known.types:
            row = known.types[name]
            rows[name] = row.model_copy(
                update={"published": row.published or known.published, "listed": row.listed if refused else False}
            )
    return RegionPrices(published=newest.published, version=newest.version, types=rows)


def price_file_text(prices: PriceFile) -> str:
    """The file's text: the same for the same prices, whatever the order in which they came."""
    document = prices.model_dump(exclude_defaults=True)
    regions = {
        region: {**found, "types": dict(sorted(found["types"].items()))}
        for region, found in sorted(document["regions"].items())
    }
    head = {"schema_version": prices.schema_version, "source": prices.source, "currency": prices.currency}
    return json.dumps({**head, "regions": regions}, indent=2, ensure_ascii=False) + "\n"
