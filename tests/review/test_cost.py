"""What endpoints cost an hour, on both sides of a change."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.review.projects import commit, git
from tests.review.small import LIVE, SCALING, Template, of, resource, serving, stack, target
from tests.review.test_traffic import CANARY, ROLLING
from tritonstack.catalogue.prices import hosting_price
from tritonstack.errors import InputError
from tritonstack.review.compare import compare
from tritonstack.review.costs.cost_table import CostRow, CostTotals, cost_rows
from tritonstack.review.costs.price_book import PriceBook, Prices, price_book, prices_of
from tritonstack.review.snapshot import NO_ENVIRONMENT, EnvironmentSnapshot

BOOK = PriceBook(overrides={"ml.g4dn.xlarge": Decimal("0.7364"), "ml.g5.xlarge": Decimal("1.5")})
PRICES = Prices(before=BOOK, after=BOOK)
G5 = {"InstanceType": "ml.g5.xlarge"}
NOBODYS = {"InstanceType": "ml.nobody.xlarge"}
POOLS: dict[str, Any] = {
    "InstanceType": None,
    "InstancePools": [
        {"InstanceType": "ml.g4dn.xlarge", "Priority": 2},
        {"InstanceType": "ml.g5.xlarge", "Priority": 1},
    ],
}


OF_REFERENCE = {"Fn::Join": ["", ["endpoint/", {"Fn::GetAtt": ["Endpoint", "EndpointName"]}, "/variant/g4dn-xlarge"]]}


def environment(*resources: Template) -> EnvironmentSnapshot:
    stacks = [stack(each, name=f"serving-{number}") for number, each in enumerate(resources)]
    return of(*stacks).environments["dev"]


def cost(before: Template | None, after: Template | None, prices: Prices = PRICES) -> CostRow:
    old, new = (NO_ENVIRONMENT if each is None else environment(each) for each in (before, after))
    [change] = compare(of(*old.stacks.values()), of(*new.stacks.values()))
    traffic = {(each.stack, each.logical_id): each for one in change.stacks for each in one.traffic}
    return cost_rows(old, new, prices=prices, traffic=traffic)[0]


def ends(change: CostRow) -> tuple[Decimal | None, Decimal | None]:
    assert change.after is not None
    return change.after.idle.usd_per_hour, change.after.most.usd_per_hour


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (serving(), ("0.7364", "0.7364")),
        (serving(variant={"InitialInstanceCount": 3}), ("2.2092", "2.2092")),
        ({**serving(), **target(2, 8)}, ("1.4728", "5.8912")),
        ({**serving(), **target(0, 4)}, ("0", "2.9456")),
        ({**serving(), **target(2, 4, {"MaxCapacity": 10}, {"MinCapacity": 1})}, ("0.7364", "7.364")),
        ({**serving(), **target(2, 4, {"MinCapacity": 6})}, ("1.4728", "4.4184")),
        ({**serving(), **target(2, 8, endpoint="dev-other")}, ("0.7364", "0.7364")),
        ({**serving(), **target(2, 3, resource_id=OF_REFERENCE)}, ("1.4728", "2.2092")),
        ({**serving(variant=LIVE), "Before": SCALING}, ("1.4728", "1.4728")),
        ({**serving(variant=POOLS), **target(1, 4)}, ("0.7364", "6.0")),  # from the cheapest type to the dearest
        ({**serving(variant=LIVE), "Before": SCALING, **target(1, 8)}, ("0.7364", "5.8912")),
    ],
)
def test_both_ends_are_read_from_the_template(template: Template, expected: tuple[str, str]) -> None:
    assert ends(cost(None, template)) == tuple(map(Decimal, expected))


def test_of_pools_the_types_are_in_order_and_one_unknown_price_makes_the_range_unknown() -> None:
    row = cost(None, serving(variant=POOLS))
    assert row.after is not None
    assert row.after.quantity == "1 of ml.g5.xlarge, else ml.g4dn.xlarge"
    pools = [*POOLS["InstancePools"], {**NOBODYS, "Priority": 3}]
    unknown = cost(None, serving(variant={**POOLS, "InstancePools": pools}))
    assert "no price of ml.nobody.xlarge" in " ".join(unknown.sentences)


def outside() -> Template:
    """An endpoint whose configuration is of another stack."""
    template = serving()
    del template["Config"]
    template["Endpoint"]["Properties"]["EndpointConfigName"] = "elsewhere"
    return template


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (serving(variant=NOBODYS), "no price of ml.nobody.xlarge in us-east-1"),
        (serving(variant={"InstanceType": {"Ref": "T"}}), "type of g4dn-xlarge is ${T}, which is known only when"),
        (serving(variant={"InitialInstanceCount": {"Ref": "C"}}), "many instances g4dn-xlarge of dev-digits has: ${C}"),
        (outside(), "the configuration of dev-digits lies outside its template"),
    ],
)
def test_unknown_costs_are_reported_and_have_no_number(template: Template, reason: str) -> None:
    change = cost(None, template)
    assert ends(change) == (None, None)
    assert reason in change.sentences[0]


def test_a_limit_that_is_decided_later_leaves_the_other_end_known() -> None:
    change = cost(None, {**serving(), **target(2, {"Ref": "Most"})})
    assert ends(change)[1] is None
    assert "${Most}" in " ".join(change.sentences)


def test_another_default_of_a_parameter_is_another_unknown_price() -> None:
    """The parameter's value is unknown; that it may change is reported."""
    variant = {"InstanceType": {"Ref": "Type"}, "InitialInstanceCount": {"Ref": "Count"}}
    old, new = (
        of(stack(serving(variant=variant), sections={"Parameters": {"Type": {"Type": "String", "Default": each}}}))
        for each in ("ml.g4dn.xlarge", "ml.g5.xlarge")
    )
    found = cost_rows(old.environments["dev"], new.environments["dev"], prices=PRICES)
    assert not CostTotals.of(found).falls
    assert "is ${Type} (default ml.g5.xlarge), which is known only when" in " ".join(found[0].sentences)


def test_a_blue_green_update_runs_both_fleets_at_once() -> None:
    change = cost({**serving(**CANARY), **target(1, 4)}, {**serving(image="b", **CANARY), **target(1, 4)})
    assert change.sentences == ("While dev-digits is updated both fleets run: at most 5.8912 USD/hour.",)


def test_a_rolling_update_adds_a_batch_and_an_untouched_endpoint_nothing() -> None:
    rolling = cost(serving(**ROLLING), serving(image="b", **ROLLING))
    [sentence] = rolling.sentences
    assert "one more batch of instances" in sentence
    untouched = cost(serving(), {**serving(), "Topic": resource("AWS::SNS::Topic")})
    assert (untouched.sentences, untouched.changed) == ((), False)


def test_a_total_with_an_unknown_part_is_a_lower_bound() -> None:
    found = cost_rows(NO_ENVIRONMENT, environment(serving(), serving(variant=NOBODYS)), prices=PRICES)
    totals = CostTotals.of([each for each in found if each.endpoint])
    assert totals.idle[1].text == "at least 0.7364 USD/hour, plus 1 unknown"
    assert totals.sentence == "0.00 USD/hour → at least 0.7364 USD/hour, plus 1 unknown"


def test_a_price_is_the_environments_own_before_the_catalogues() -> None:
    listed = hosting_price(instance_type="ml.g4dn.xlarge", region="us-east-1")
    assert listed is not None
    found = PriceBook().price("ml.g4dn.xlarge", "us-east-1")
    assert found == Decimal(str(listed.usd_per_hour))
    assert price_book("prices: {ml.g4dn.xlarge: 0.1}", file="dev.yaml").price("ml.g4dn.xlarge", None) == Decimal("0.1")
    assert "`prices: {ml.g4dn.xlarge: …}`" in str(PriceBook().price("ml.g4dn.xlarge", "xx-nowhere-1"))
    assert "is decided when it is deployed" in str(PriceBook().price("ml.g4dn.xlarge", None))


@pytest.mark.parametrize(
    "text", ["prices: {a: [", "prices: {a: x}", "prices: [a]", "[a]", "prices: {a: 0}", "prices: {a: .nan}"]
)
def test_prices_that_cannot_be_read_are_refused_by_their_file(text: str) -> None:
    with pytest.raises(InputError, match=r"dev\.yaml"):
        price_book(text, file="dev.yaml")


def test_each_side_has_the_prices_of_its_own_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    file = tmp_path / "environments" / "dev.yaml"
    file.parent.mkdir()
    file.write_text("prices: {ml.g4dn.xlarge: 1}")
    base = commit(tmp_path, "base")
    file.write_text("prices: {ml.g4dn.xlarge: 2}")
    prices = prices_of("dev", base=base, project=tmp_path)
    assert CostTotals.of([cost(serving(), serving(), prices)]).sentence == "1.00 → 2.00 USD/hour (+100 %)"
    assert prices_of("prod", base=base, project=tmp_path) == Prices()
    assert prices_of("dev", base=None, project=tmp_path).before == PriceBook()


@pytest.mark.parametrize(
    ("metrics", "instances", "rows"),
    [
        ({}, {}, {}),
        ({"EnableEnhancedMetrics": False, "EnableDetailedObservability": False}, {}, {}),
        # With one GPU: CPU, memory, disk, GPU, GPU memory; with requests seven metrics more. 0.3 USD a month each.
        (
            {"EnableEnhancedMetrics": True},
            target(2, 3),
            {
                "CloudWatch metrics by instance and GPU": (
                    "10 to 36",
                    Decimal("0.3") / 730 * 10,
                    Decimal("0.3") / 730 * 36,
                )
            },
        ),
        ({"EnableDetailedObservability": True}, {}, {"detailed observability of endpoints": ("1", None, None)}),
    ],
    ids=["SageMaker's defaults", "nothing", "by instance and GPU", "by the gigabyte"],
)
def test_metrics_that_cost_have_a_row(metrics: dict[str, bool], instances: Template, rows: dict[str, Any]) -> None:
    config = {"MetricsConfig": metrics} if metrics else {}
    environment = of(stack({**serving(config=config), **instances})).environments["dev"]
    found = {each.name: each.after for each in cost_rows(environment, environment, prices=PRICES)[1:]}
    assert {
        name: (line.quantity, line.idle.usd_per_hour, line.most.usd_per_hour)
        for name, line in found.items()
        if line is not None
    } == rows


def test_a_four_gpu_instance_writes_eleven_metrics_of_its_own() -> None:
    config = {"MetricsConfig": {"EnableEnhancedMetrics": True}}
    template = serving(config=config, variant={"InstanceType": "ml.g5.12xlarge"})
    environment = of(stack(template)).environments["dev"]
    rows = {each.name: each.after for each in cost_rows(environment, environment, prices=PRICES)}
    line = rows["CloudWatch metrics by instance and GPU"]
    assert line is not None
    assert line.quantity == "11 to 18"
