"""The Price List of the local AWS: constructed prices in the real one's form, and `capacity prices update` on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from click.testing import CliRunner, Result

from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.catalogue import load_catalogue
from tritonstack.catalogue.price_file import read_price_file
from tritonstack.catalogue.prices import CONSTRUCTED_VERSION
from tritonstack_capacity.commands import prices
from tritonstack_capacity.price_list import read_product
from tritonstack_local.aws import LocalAws
from tritonstack_local.processes import ProcessRecord

REGION = "eu-west-1"
FILTERS = [
    {"Type": "TERM_MATCH", "Field": field, "Value": value}
    for field, value in {"regionCode": REGION, "component": "Hosting"}.items()
]


def ask(aws: Emulator) -> dict[str, Any]:
    answer = aws.client("pricing").get_products(ServiceCode="AmazonSageMaker", Filters=FILTERS)
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def test_an_answer_has_the_service_s_shape_and_comes_in_pages(aws: Emulator) -> None:
    shape = botocore.session.get_session().get_service_model("pricing").operation_model("GetProducts").output_shape
    assert shape is not None
    whole = ask(aws)
    report = ParamValidator().validate(whole, shape)
    assert not report.has_errors(), report.generate_report()
    assert "NextToken" not in whole
    paginator = aws.client("pricing").get_paginator("get_products")
    pages = list(paginator.paginate(ServiceCode="AmazonSageMaker", Filters=FILTERS, PaginationConfig={"PageSize": 10}))
    assert [len(page["PriceList"]) for page in pages[:-1]] == [10] * (len(pages) - 1)
    assert [one for page in pages for one in page["PriceList"]] == whole["PriceList"]


def test_every_type_of_the_region_has_a_price_that_reports_it_is_constructed(aws: Emulator) -> None:
    found = [read_product(text, region=REGION) for text in ask(aws)["PriceList"]]
    hosted = {row.name: row for row in load_catalogue().instances.values() if REGION in row.regions}
    assert {product.instance_type for product in found if product} == set(hosted)
    for product in found:
        assert product is not None
        assert product.version == CONSTRUCTED_VERSION
        row = hosted[product.instance_type]
        assert float(product.usd_per_hour) == pytest.approx(row.gpu_count + row.vcpu / 100)
    assert all(
        "constructed" in json.loads(text)["product"]["attributes"]["servicename"] for text in ask(aws)["PriceList"]
    )


def test_an_update_from_the_local_aws_is_named_constructed_wherever_it_is_read(
    aws: Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    none = ProcessRecord(pid=0, started=0.0, log="")
    local = LocalAws(emulator_port=aws.port, runtime_port=0, emulator=none, runtime=none)
    monkeypatch.setattr("tritonstack_capacity.commands.prices.require_local_aws", lambda: local)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(prices.command, [*arguments, "--region", REGION], standalone_mode=False)

    first = run("update", "--local")
    assert first.return_value == 0, first.output
    assert "The local AWS answered: its prices are constructed" in first.output
    assert read_price_file(tmp_path / "prices.json").regions[REGION].constructed
    before = (tmp_path / "prices.json").read_bytes()
    assert run("update", "--local").return_value == 0
    assert (tmp_path / "prices.json").read_bytes() == before
    assert "[1] constructed by the local AWS, no price of AWS's" in run("list").output
