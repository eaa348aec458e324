"""One document of the Price List: the price that it states, or why none is taken from it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.price_list.documents import REGION, TYPE, dimension, document
from tritonstack_capacity.price_list import HostingProduct, UnclearProductError, read_product

Document = dict[str, Any]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def read(one: Any) -> HostingProduct | None:
    return read_product(json.dumps(one), region=REGION)


def test_a_product_s_price_comes_with_its_list() -> None:
    assert read(document(usd="0.7364000000")) == HostingProduct(
        instance_type=TYPE,
        region=REGION,
        sku=f"SKU-{TYPE}-{REGION}",
        usage_type=f"USE1-Host:{TYPE}",
        usd_per_hour=Decimal("0.7364"),
        effective="2026-11-01",
        published="2026-11-20T02:56:06Z",
        version="20261120025606",
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {"component": "Training"},
        {"component": "hosting"},
        {"regionCode": "us-east-2"},
        {"locationType": "AWS Local Zone"},
        {"usagetype": f"USE1-AsyncInf:{TYPE}"},
        {"usagetype": f"USE1-Host:{TYPE}.more"},
        {"usagetype": f"USE1-ReservedHost:{TYPE}"},
        {"usagetype": "USE1-Host:ml.g4dnxxlarge", "instanceName": TYPE},
    ],
)
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


@pytest.mark.parametrize("said", ["", "no JSON", "[]", "null", "{}", '{"product": []}', "[" * 100_000])
def test_no_product_at_all_is_refused_without_a_name(said: str) -> None:
    with pytest.raises(UnclearProductError) as refused:
        read_product(said, region=REGION)
    assert refused.value.instance_type is None
    assert refused.value.why


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, one in inside for path in paths(one, (*at, key)))]


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """A copy with another value in one place."""
    if not path:
        return by
    copied = copy.copy(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], by)
    return copied


def check(said: str) -> None:
    """A price above zero, nothing, or a reason: no other end."""
    try:
        product = read_product(said, region=REGION)
    except UnclearProductError as error:
        assert error.why
        return
    assert product is None or product.usd_per_hour > 0


@given(st.text())
def test_any_text_ends_in_a_reason_or_in_nothing(said: str) -> None:
    check(said)


@given(st.sampled_from(paths(document())), JSON)
def test_a_document_with_anything_in_any_place_never_breaks_the_reader(path: tuple[Any, ...], value: Any) -> None:
    check(json.dumps(replaced(document(), path, value)))
