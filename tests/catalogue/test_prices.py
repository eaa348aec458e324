"""Prices of instances: of known types, plausible, each with its source, and none where sources are silent."""

from __future__ import annotations

import pytest

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.prices import hosting_price

REGIONS = read_data("hosting_prices.json")["regions"]
ROWS = [(region, name, row) for region, rows in REGIONS.items() for name, row in rows.items()]


@pytest.mark.parametrize(("region", "name", "row"), ROWS, ids=[f"{region}-{name}" for region, name, _ in ROWS])
def test_a_price_is_of_a_type_that_the_region_hosts_and_names_its_source(
    region: str, name: str, row: dict[str, object]
) -> None:
    instance = load_catalogue().instance(name)
    assert instance is not None
    assert region in instance.regions
    price = hosting_price(instance_type=name, region=region)
    assert price is not None
    assert 0.3 < price.usd_per_hour / instance.gpu_count < 12
    assert len(price.source) > 10
    assert price.usd_per_hour == row["usd_per_hour"]


def test_an_unknown_price_is_none_not_a_guess() -> None:
    assert hosting_price(instance_type="ml.g6.xlarge", region="us-east-1") is None  # the sources disagree
    assert hosting_price(instance_type="ml.g4dn.xlarge", region="eu-central-1") is None  # no source


def test_a_larger_type_of_a_family_costs_more() -> None:
    prices = [hosting_price(instance_type=f"ml.g4dn.{size}xlarge", region="us-east-1") for size in ("", "2", "4", "8")]
    figures = [each.usd_per_hour for each in prices if each is not None]
    assert len(figures) == 4
    assert figures == sorted(figures)
