"""Prices of instances: of types in the catalogue, plausible, each with its source, and none without a source."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.data_file import read_data
from tritonstack.catalogue.price_file import ListedPrice, PriceFile, RegionPrices, project_prices
from tritonstack.catalogue.prices import ANY_REGION, hosting_price, service_price, service_prices
from tritonstack.errors import InputError
from tritonstack_capacity.price_list import price_file_text

REGIONS = read_data("hosting_prices.json")["regions"]
ROWS = [(region, name) for region, rows in REGIONS.items() for name in rows]


@pytest.mark.parametrize(("region", "name"), ROWS, ids=map("-".join, ROWS))
def test_a_price_is_of_a_type_that_the_region_hosts_and_names_its_source(region: str, name: str) -> None:
    instance = load_catalogue().instance(name)
    assert instance is not None
    assert region in instance.regions
    price = hosting_price(instance_type=name, region=region)
    assert price is not None
    assert 0.3 < price.usd_per_hour / instance.gpu_count < 12
    assert len(price.source) > 10
    assert price.date is None or re.fullmatch(r"20\d\d-\d\d(-\d\d)?", price.date)
    assert price.component in ("hosting", "batch transform", "not stated")


def test_an_unknown_price_is_none_not_a_guess() -> None:
    assert hosting_price(instance_type="ml.g6.xlarge", region="us-east-1") is None  # the sources disagree
    assert hosting_price(instance_type="ml.g5.16xlarge", region="us-west-2") is None  # the sources disagree
    assert hosting_price(instance_type="ml.g4dn.xlarge", region="eu-central-1") is None  # no source


SERVICES = [(name, region) for name, regions in service_prices().items() for region in regions]


@pytest.mark.parametrize(("name", "region"), SERVICES, ids=[f"{name}-{region}" for name, region in SERVICES])
def test_a_price_besides_instances_has_a_unit_a_source_and_an_existing_region(name: str, region: str) -> None:
    assert region == ANY_REGION or region in load_catalogue().regions
    price = service_price(name=name, region=region)
    assert price is not None
    assert 0 < price.usd <= 3
    assert price.unit in {"hour", "month"}
    assert len(price.source) > 10
    assert price.date is None or re.fullmatch(r"20\d\d-\d\d-\d\d", price.date)
    assert {each.unit for each in service_prices()[name].values()} == {price.unit}


def test_a_price_besides_instances_is_of_its_region_or_of_all() -> None:
    assert service_price(name="nat-gateway", region="af-south-1") is None
    assert service_price(name="kms-key", region="af-south-1") == service_price(name="kms-key", region="us-east-1")


def own_prices(project: Path, usd: float, *, name: str = "ml.g4dn.xlarge", region: str = "us-east-1") -> Path:
    row = ListedPrice(usd_per_hour=usd, sku="A", usage_type=f"USE1-Host:{name}", effective="2026-11-01")
    prices = RegionPrices(published="2026-11-20T02:56:06Z", version="1", types={name: row})
    file = project / "prices.json"
    file.write_text(price_file_text(PriceFile(regions={region: prices})))
    return file


def test_a_project_s_own_file_goes_before_the_catalogue_and_leaves_the_rest_to_it(tmp_path: Path) -> None:
    own_prices(tmp_path, 9.0)
    found = hosting_price(instance_type="ml.g4dn.xlarge", region="us-east-1", own=project_prices(tmp_path))
    assert found is not None
    assert (found.usd_per_hour, found.component, found.source, found.date) == (
        9.0, "hosting", "AWS Price List", "2026-11-20",
    )  # fmt: skip
    assert found.short == "on-demand list price of 2026-11-20"
    for name, region in (("ml.g4dn.2xlarge", "us-east-1"), ("ml.g4dn.xlarge", "us-east-2")):
        carried = hosting_price(instance_type=name, region=region)
        assert carried is not None
        assert hosting_price(instance_type=name, region=region, own=project_prices(tmp_path)) == carried
    assert hosting_price(instance_type="ml.g4dn.xlarge", region="us-east-1") != found


def test_a_file_that_was_written_anew_is_read_anew_and_one_that_went_is_gone(tmp_path: Path) -> None:
    def usd() -> float:
        found = hosting_price(instance_type="ml.g4dn.xlarge", region="us-east-1", own=project_prices(tmp_path))
        assert found is not None
        return found.usd_per_hour

    assert usd() == 0.7364
    file = own_prices(tmp_path, 9.0)
    assert usd() == 9.0
    own_prices(tmp_path, 8.0)
    os.utime(file, ns=(1, 1))  # whatever the clock's steps are
    assert usd() == 8.0
    file.unlink()
    assert usd() == 0.7364


def test_a_wrong_file_is_wrong_input_not_a_missing_price(tmp_path: Path) -> None:
    own_prices(tmp_path, 9.0).write_text("{}")
    with pytest.raises(InputError, match="regions"):
        hosting_price(instance_type="ml.g4dn.xlarge", region="us-east-1", own=project_prices(tmp_path))
