"""What the Price List's answers make of the file: what is new, another, gone or unclear, and what stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.price_list.documents import PUBLISHED, REGION, TYPE, VERSION, document, text
from tests.tritonstack_capacity.price_list.test_product import paths, replaced
from tritonstack.catalogue.price_file import ListedPrice, PriceFile, RegionPrices, price_file_text
from tritonstack.catalogue.prices import CONSTRUCTED_VERSION, carried_prices
from tritonstack.errors import WorkFailedError
from tritonstack_capacity.price_list import Change, Update, updated

OLDER = "2026-10-01T00:00:00Z"
OTHER = "ml.g5.16xlarge"
"""A type without a price in the catalogue's us-east-1."""


def run(*documents: str, old: PriceFile | None = None, types: Iterable[str] = (TYPE, OTHER)) -> Update:
    return updated(old, {REGION: documents}, types=tuple(types))


def kinds(found: Update) -> dict[str, str]:
    return {change.instance_type: change.kind for change in found.changes}


def change_of(found: Update, name: str) -> Change:
    [change] = [change for change in found.changes if change.instance_type == name]
    return change


def row(found: Update | PriceFile, name: str) -> ListedPrice:
    prices = found.prices if isinstance(found, Update) else found
    return prices.regions[REGION].types[name]


def test_the_first_file_has_every_price_and_tells_it_from_the_catalogue_s() -> None:
    found = run(text(TYPE, "0.7500000000"), text(OTHER, "5.12"))
    assert found.prices.regions[REGION] == RegionPrices(
        published=PUBLISHED,
        version=VERSION,
        types={
            TYPE: ListedPrice(
                usd_per_hour=0.75, sku=f"SKU-{TYPE}-{REGION}", usage_type=f"USE1-Host:{TYPE}", effective="2026-11-01"
            ),
            OTHER: ListedPrice(
                usd_per_hour=5.12, sku=f"SKU-{OTHER}-{REGION}", usage_type=f"USE1-Host:{OTHER}", effective="2026-11-01"
            ),
        },
    )
    assert kinds(found) == {TYPE: "changed", OTHER: "new"}
    before, after = change_of(found, TYPE).before, change_of(found, TYPE).after
    assert before is not None
    assert after is not None
    assert (before.usd_per_hour, before.date, before.component) == (0.7364, "2025-02-03", "not stated")
    assert (after.usd_per_hour, after.date, after.component) == (0.75, "2026-11-20", "hosting")
    assert change_of(found, OTHER).before is None


def test_the_same_list_in_another_order_gives_the_same_bytes() -> None:
    first = run(text(TYPE), text(OTHER, "5.12"))
    second = run(text(OTHER, "5.12"), text(TYPE), old=first.prices)
    assert price_file_text(second.prices) == price_file_text(first.prices)
    assert kinds(second) == {TYPE: "unchanged", OTHER: "unchanged"}


def test_a_type_that_the_list_has_no_longer_stays_with_the_date_of_its_list() -> None:
    old = run(text(TYPE, "0.5", published=OLDER), text(OTHER, "5.12", published=OLDER)).prices
    found = run(text(TYPE, "0.5"), old=old)
    assert kinds(found) == {TYPE: "unchanged", OTHER: "not listed"}
    assert row(found, OTHER) == row(old, OTHER).model_copy(update={"published": OLDER, "listed": False})
    price = found.prices.prices()[REGION, OTHER]
    assert (price.date, price.source) == ("2026-10-01", "AWS Price List, listed no longer")
    assert "listed no longer" in price.short
    again = run(text(TYPE, "0.5"), old=found.prices)
    assert price_file_text(again.prices) == price_file_text(found.prices)
    back = run(text(TYPE, "0.5"), text(OTHER, "5.5"), old=again.prices)
    assert (row(back, OTHER).usd_per_hour, row(back, OTHER).listed, row(back, OTHER).published) == (5.5, True, None)


def test_what_the_catalogue_alone_knows_and_the_list_lacks_is_told() -> None:
    found = run(text(OTHER, "5.12"))
    assert kinds(found) == {TYPE: "not listed", OTHER: "new"}
    assert TYPE not in found.prices.regions[REGION].types
    assert change_of(found, TYPE).before == change_of(found, TYPE).after == carried_prices()[REGION, TYPE]


def test_two_products_of_a_type_are_refused_and_neither_is_taken() -> None:
    old = run(text(TYPE, "0.5", published=OLDER)).prices
    found = run(text(TYPE, "0.6", sku="A"), text(TYPE, "0.7", sku="B"), text(OTHER, "5.12"), old=old)
    assert kinds(found) == {TYPE: "refused", OTHER: "new"}
    assert change_of(found, TYPE).why == "2 products: SKU A at 0.6 USD, SKU B at 0.7 USD"
    assert row(found, TYPE) == row(old, TYPE).model_copy(update={"published": OLDER})


@pytest.mark.parametrize(
    ("documents", "words"),
    [
        (["no JSON"], "the document is no JSON"),
        ([text(TYPE, "0.0")], "a price of 0 USD"),
        ([text(TYPE, usagetype=f"USE1-Other:{TYPE}")], "they are of other things"),
    ],
)
def test_an_answer_without_a_single_clear_price_is_failed_work(documents: list[str], words: str) -> None:
    with pytest.raises(WorkFailedError, match=words) as failed:
        run(*documents, old=run(text(TYPE)).prices)
    assert f"none of the Price List's 1 products of {REGION}" in str(failed.value)


def test_a_document_that_does_not_tell_what_it_is_of_is_told_and_the_others_are_taken() -> None:
    found = run(text(TYPE), "no JSON")
    assert kinds(found) == {TYPE: "changed"}
    assert [line.split(":")[0] for line in found.unreadable] == [REGION]


def test_regions_that_were_not_asked_stay() -> None:
    old = updated(None, {"eu-west-3": [text(region="eu-west-3")]}, types=[TYPE]).prices
    found = run(text(TYPE), old=old)
    assert sorted(found.prices.regions) == ["eu-west-3", REGION]
    assert found.prices.regions["eu-west-3"] == old.regions["eu-west-3"]


def test_constructed_prices_are_no_loss_and_never_look_like_aws_s() -> None:
    one = document(OTHER, "9.0", published="2000-01-01T00:00:00Z")
    old = run(json.dumps({**one, "version": CONSTRUCTED_VERSION})).prices
    assert old.regions[REGION].constructed
    price = old.prices()[REGION, OTHER]
    assert (price.source, price.date) == ("constructed by the local AWS, no price of AWS's", None)
    assert price.short == "constructed by the local AWS, no price of AWS's"
    found = run(text(TYPE), old=old)
    assert set(found.prices.regions[REGION].types) == {TYPE}
    assert not found.prices.regions[REGION].constructed


@given(
    st.lists(
        st.tuples(
            st.sampled_from(paths(document())),
            st.none() | st.text() | st.integers() | st.sampled_from(["0", "Inf", "1.5", REGION, TYPE, OTHER]),
        ),
        max_size=4,
    )
)
def test_no_answer_breaks_an_update_and_no_price_is_ever_zero(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    documents = [text(TYPE), text(OTHER, "5.12")]
    for path, value in changes:
        documents.append(json.dumps(replaced(document(), path, value)))
    old = run(text(TYPE, "0.9", published=OLDER)).prices
    found = run(*documents, old=old)
    assert all(price.usd_per_hour > 0 for price in found.prices.prices().values())
    assert found.prices.prices()[REGION, TYPE].usd_per_hour in (0.5, 0.9)
    assert PriceFile.model_validate_json(price_file_text(found.prices)) == found.prices
