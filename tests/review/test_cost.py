"""What endpoints cost an hour, on both sides of a change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.review.small import Template, of, resource, serving, stack
from tritonstack.review.changes import compare
from tritonstack.review.cost import CostChange, cost_changes
from tritonstack.review.prices import PriceBook, Prices
from tritonstack.review.snapshot import EnvironmentSnapshot

BOOK = PriceBook(overrides={"ml.g4dn.xlarge": Decimal("0.7364"), "ml.g5.xlarge": Decimal("1.5")})
PRICES = Prices(before=BOOK, after=BOOK)
G5 = {"InstanceType": "ml.g5.xlarge"}
NOBODYS = {"InstanceType": "ml.nobody.xlarge"}


def target(minimum: Any, maximum: Any, *schedules: dict[str, int], endpoint: str = "dev-digits") -> Template:
    actions = [
        {"ScheduledActionName": str(number), "ScalableTargetAction": each} for number, each in enumerate(schedules)
    ]
    properties = {
        "MinCapacity": minimum,
        "MaxCapacity": maximum,
        "ResourceId": f"endpoint/{endpoint}/variant/g4dn-xlarge",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        **({"ScheduledActions": actions} if actions else {}),
    }
    return {"Target": resource("AWS::ApplicationAutoScaling::ScalableTarget", properties)}


def environment(*resources: Template) -> EnvironmentSnapshot:
    stacks = [stack(each, name=f"serving-{number}") for number, each in enumerate(resources)]
    return of(*stacks).environments["dev"]


def cost(before: Template | None, after: Template | None, prices: Prices = PRICES) -> CostChange:
    old, new = (None if each is None else environment(each) for each in (before, after))
    change = None if old is None or new is None else compare(of(*old.stacks.values()), of(*new.stacks.values()))
    [found] = cost_changes(old, new, prices=prices, change=change.environments[0] if change else None)
    return found


def ends(change: CostChange) -> tuple[Decimal | None, Decimal | None]:
    assert change.after is not None
    return change.after.minimum.usd_per_hour, change.after.maximum.usd_per_hour


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
    ],
)
def test_both_ends_are_read_from_the_template(template: Template, expected: tuple[str, str]) -> None:
    assert ends(cost(None, template)) == tuple(map(Decimal, expected))
