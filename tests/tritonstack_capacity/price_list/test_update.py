"""Documents of the Price List, and the price file that they give: new, removed, unclear and unchanged prices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.cases import cases
from tests.tritonstack_capacity.price_list.documents import REGION, TYPE, dimension, document, text
from tritonstack.catalogue.price_file import ListedPrice, PriceFile
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.price_list import (
    HostingProduct,
    UnclearProductError,
    Update,
    price_file_text,
    read_product,
    updated,
)

OLDER = "2026-10-01T00:00:00Z"
OTHER = "ml.g5.16xlarge"


def run(*documents: str, old: PriceFile | None = None, types: Iterable[str] = (TYPE, OTHER)) -> Update:
    return updated(old, {REGION: documents}, types=tuple(types))


def row(found: Update | PriceFile, name: str) -> ListedPrice:
    prices = found.prices if isinstance(found, Update) else found
    return prices.regions[REGION].types[name]


def test_a_type_that_the_list_has_no_longer_stays_with_the_date_of_its_list() -> None:
    old = run(text(TYPE, "0.5", published=OLDER), text(OTHER, "5.12", published=OLDER)).prices
    found = run(text(TYPE, "0.5"), old=old)
    assert found.delisted == (f"{REGION} {OTHER}",)
    assert row(found, OTHER) == row(old, OTHER).model_copy(update={"published": OLDER, "listed": False})
    price = found.prices.prices()[REGION, OTHER]
    assert (price.date, price.source) == ("2026-10-01", "AWS Price List, listed no longer")
    assert "listed no longer" in price.short
    again = run(text(TYPE, "0.5"), old=found.prices)
    assert price_file_text(again.prices) == price_file_text(found.prices)
    back = run(text(TYPE, "0.5"), text(OTHER, "5.5"), old=again.prices)
    assert (row(back, OTHER).usd_per_hour, row(back, OTHER).listed, row(back, OTHER).published) == (5.5, True, None)


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (["no JSON"], "the document is no JSON"),
        ([text(TYPE, "0.0")], "a price of 0 USD"),
        ([text(TYPE, usagetype=f"USE1-Other:{TYPE}")], "they are of other things"),
    ],
)
def test_a_response_without_a_single_clear_price_is_failed_work(documents: list[str], words: str) -> None:
    with pytest.raises(WorkFailedError, match=words) as failed:
        run(*documents, old=run(text(TYPE)).prices)
    assert f"none of the Price List's 1 products of {REGION}" in str(failed.value)


Document = dict[str, Any]


def read(one: Any) -> HostingProduct | None:
    return read_product(json.dumps(one), region=REGION)


@cases("attributes")
def test_what_no_endpoint_s_instances_are_billed_by_is_left_out(attributes: dict[str, str]) -> None:
    assert read(document(**attributes)) is None


def test_storage_of_endpoints_is_left_out() -> None:
    storage = document(usagetype="USE1-Host:VolumeUsage.gp2")
    del storage["product"]["attributes"]["instanceName"]
    assert read(storage) is None


def _no_terms(one: Document) -> None:
    one["terms"] = {"Reserved": one["terms"]["OnDemand"]}


def _two_terms(one: Document) -> None:
    [term] = one["terms"]["OnDemand"].values()
    one["terms"]["OnDemand"]["other"] = term


def _two_tiers(one: Document) -> None:
    [term] = one["terms"]["OnDemand"].values()
    first = dimension(one)
    term["priceDimensions"]["next"] = {**first, "beginRange": "100"}
    first["endRange"] = "100"


def _of(**fields: Any) -> Callable[[Document], None]:
    def change(one: Document) -> None:
        dimension(one).update(fields)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_no_terms, "0 on-demand terms"),
        (_two_terms, "2 on-demand terms"),
        (_two_tiers, "2 prices in its on-demand term"),
        (_of(unit="Quantity"), "a price by 'Quantity', not by 'Hrs'"),
        (_of(beginRange="10"), "a price from 10 to Inf hours alone"),
        (_of(endRange="10"), "a price from 0 to 10 hours alone"),
        (_of(pricePerUnit={"CNY": "5.0"}), "a price in CNY, not in USD"),
        (_of(pricePerUnit={}), "a price in no currency"),
        (_of(pricePerUnit={"USD": "0.0000000000"}), "a price of 0 USD, which no instance costs"),
        (_of(pricePerUnit={"USD": "-1"}), "a price of '-1', which is no amount"),
        (_of(pricePerUnit={"USD": "NaN"}), "a price of 'NaN', which is no amount"),
        (_of(pricePerUnit={"USD": "1e3"}), "a price of '1e3', which is no amount"),
        (_of(pricePerUnit={"USD": 1}), "pricePerUnit.USD"),
        (lambda one: one.pop("publicationDate"), "publicationDate: Field required"),
        (lambda one: one.update(publicationDate="yesterday"), "publicationDate: "),
        (lambda one: one.pop("terms"), "terms: Field required"),
    ],
)
def test_a_price_that_is_not_clear_is_refused_by_the_type_s_name(change: Callable[[Document], Any], words: str) -> None:
    one = document()
    change(one)
    with pytest.raises(UnclearProductError) as refused:
        read(one)
    assert refused.value.instance_type == TYPE
    assert words in refused.value.why
