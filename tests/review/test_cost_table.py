"""What an environment costs idle and at most, row by row, and what of it is billed by use."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.cases import cases
from tests.constructs_lib.templates import ROOT
from tests.review.reports import report
from tests.review.small import Template, of, resource, serving, stack, target
from tritonstack.catalogue.prices import service_price
from tritonstack.review.change import Level
from tritonstack.review.costs.amounts import HOURS_A_MONTH
from tritonstack.review.costs.cost_table import cost_rows, table_entry, table_of
from tritonstack.review.costs.price_book import PriceBook, Prices, price_book
from tritonstack.review.document import CostRowEntry, CostTableEntry
from tritonstack.review.snapshot import EnvironmentSnapshot
from tritonstack.review.stored import read_snapshots
from tritonstack.review.views.wording import COST_COLUMNS, cost_cells, unknown_prices

REGION = "us-east-1"
NOWHERE = "xx-nowhere-1"
METRIC = {"MetricName": "Invocations", "Namespace": "AWS/SageMaker", "Period": 60}


def environment(resources: Template, *, region: str | None = REGION) -> EnvironmentSnapshot:
    return of(stack(resources, region=region)).environments["dev"]


def table(resources: Template, *, region: str | None = REGION, book: PriceBook | None = None) -> CostTableEntry:
    return table_of(environment(resources, region=region), book=book or PriceBook())


def line(resources: Template, **options: Any) -> CostRowEntry:
    """The only row, or that of the only endpoint."""
    rows = table(resources, **options).rows
    [row] = [each for each in rows if each.name.startswith("endpoint ")] or rows
    return row


def compared(before: Template, after: Template) -> CostTableEntry:
    sides = environment(before), environment(after)
    return table_entry(cost_rows(*sides, prices=Prices()))


def price(name: str, region: str = REGION) -> float:
    found = service_price(name=name, region=region)
    assert found is not None
    return found.usd / (HOURS_A_MONTH if found.unit == "month" else 1)


@cases("kind, properties, name, quantity, billed")
def test_what_is_billed_by_time(
    kind: str, properties: dict[str, Any], name: str, quantity: str, billed: tuple[str, int]
) -> None:
    found = line({"R": resource(kind, properties)})
    assert (found.name, found.quantity_after, found.idle_after) == (name, quantity, found.most_after)
    assert found.idle_after is not None
    assert found.idle_after.usd_per_hour == pytest.approx(billed[1] * price(billed[0]))


@cases("kind, properties")
def test_what_is_free_or_billed_by_use_has_no_row(kind: str, properties: dict[str, Any]) -> None:
    assert table({"R": resource(kind, properties)}).rows == ()


@cases("kind, properties, unknown")
def test_what_has_no_price_is_unknown_and_makes_the_sums_unknown(
    kind: str, properties: dict[str, Any], unknown: str
) -> None:
    found = table({"R": resource(kind, properties), "Nat": resource("AWS::EC2::NatGateway")})
    assert (found.idle_after.usd_per_hour, found.idle_after.at_least) == (None, price("nat-gateway"))
    [name] = found.unknown
    assert unknown in name


def test_a_region_has_its_own_prices_and_without_them_only_global_prices_are_known() -> None:
    resources = {"Nat": resource("AWS::EC2::NatGateway"), "Key": resource("AWS::KMS::Key")}
    found = table(resources, region=NOWHERE)
    assert found.unknown == (f"nat-gateway in {NOWHERE}",)
    assert found.idle_after.at_least == pytest.approx(price("kms-key"))
    assert table(resources, region=None).idle_after.at_least == 0
    elsewhere = table({"Nat": resources["Nat"]}, region="eu-central-1").idle_after
    assert elsewhere.usd_per_hour == price("nat-gateway", "eu-central-1") != price("nat-gateway")


def test_the_environments_own_price_goes_first_in_the_unit_of_the_list() -> None:
    book = price_book("prices: {nat-gateway: 0.5, kms-key: 73}", file="dev.yaml")
    resources = {"Nat": resource("AWS::EC2::NatGateway"), "Key": resource("AWS::KMS::Key")}
    for region in (REGION, NOWHERE):
        assert table(resources, region=region, book=book).idle_after.usd_per_hour == pytest.approx(0.6)


def test_an_endpoint_is_a_row_with_its_fewest_and_its_most_instances() -> None:
    book = PriceBook(overrides={"ml.g4dn.xlarge": Decimal("0.75")})
    found = line({**serving(), **target(2, 8, {"MinCapacity": 1})}, book=book)
    assert (found.name, found.quantity_after) == ("endpoint dev-digits", "1 to 8 of ml.g4dn.xlarge")
    assert [each.usd_per_hour for each in (found.idle_after, found.most_after) if each] == [0.75, 6]


def test_an_added_row_and_one_that_costs_more_are_shown_before_and_after() -> None:
    old = {"Key": resource("AWS::KMS::Key"), "Old": resource("AWS::EC2::EIP")}
    kinds = {"Key": "AWS::KMS::Key", "Nat": "AWS::EC2::NatGateway"}
    entry = compared(old, {name: resource(kind) for name, kind in kinds.items()})
    assert entry.changed
    rows = {cells[0]: cells[1:] for cells in cost_cells(entry)}
    assert rows["NAT gateways"][:3] == ("none → 1", "nothing → 0.045", "nothing → 0.045")
    assert rows["public IPv4 addresses"][:3] == ("1 → none", "0.005 → nothing", "0.005 → nothing")
    assert "KMS keys" not in rows
    assert rows["all"][1] == "0.0064 → 0.0464"
    assert rows["USD/month"][1] == "5 → 34"


def test_all_rows_are_above_their_sums() -> None:
    same = table({"Key": resource("AWS::KMS::Key")})
    assert [cells[0] for cells in cost_cells(same, whole=True)] == ["KMS keys", "all", "USD/month"]
    assert {len(cells) for cells in cost_cells(same, whole=True)} == {len(COST_COLUMNS)}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"Nat": resource("AWS::EC2::NatGateway")}, ["cost besides endpoints 0.0014 → 0.0464 USD/hour"]),
        ({"Alarm": resource("AWS::CloudWatch::Alarm", METRIC)}, []),
        ({"Other": resource("AWS::RDS::DBInstance")}, ["cost besides endpoints 0.0014 USD/hour → at least 0.0014"]),
        ({"Bucket": resource("AWS::S3::Bucket")}, []),
    ],
)
def test_a_verdict_names_additions_besides_endpoints_from_a_cent_an_hour_on(more: Template, words: list[str]) -> None:
    base = {"Key": resource("AWS::KMS::Key")}
    [there] = report(base, {**base, **more}).environments
    phrases = [each for each in there.verdict if each.text.startswith("cost")]
    assert [each.text[: len(word)] for each, word in zip(phrases, words, strict=True)] == words
    assert {each.level for each in phrases} <= {Level.LOOK}
    [back] = report({**base, **more}, base).environments
    assert {each.level for each in back.verdict if each.text.startswith("cost")} <= {Level.PLAIN}


def test_unknown_prices_are_named_next_to_the_table() -> None:
    entry = table({"Nat": resource("AWS::EC2::NatGateway"), "Key": resource("AWS::KMS::Key")}, region=NOWHERE)
    [unknown] = unknown_prices(entry)
    assert f"nat-gateway in {NOWHERE}" in unknown
    assert next(iter(cost_cells(entry)))[2] == "at least 0.0014, plus 1 unknown"
    assert list(unknown_prices(table({}))) == []


@pytest.mark.parametrize("folder", ["snapshots", "snapshots-pipeline"])
def test_every_type_of_the_committed_templates_is_priced_or_listed_as_free(folder: str) -> None:
    for name, committed in read_snapshots(ROOT / folder).environments.items():
        found = table_of(committed, book=PriceBook())
        assert "other resources" not in {each.name for each in found.rows}, name
