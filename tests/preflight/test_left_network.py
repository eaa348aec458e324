"""A network that is taken away in one step is told while a fleet is in it, and in two steps never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.fakes import DENIED, Answer, RefusalError, pages
from tests.preflight.subjects import results_of, served
from tests.preflight.test_stacks import stacks
from tritonstack.preflight.ec2 import check_left_network

VPC, A, B, GROUP = "vpc-0c", "subnet-0a", "subnet-0b", "sg-0c"
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
CREATED = {"cidr": "10.20.0.0/16", "zones": ZONES[:2], "nat": "one"}
IMPORTED = {
    "vpc_id": "vpc-01",
    "subnets": {"us-east-1a": "subnet-01", "us-east-1b": "subnet-02"},
    "security_group_ids": ["sg-01"],
}
OF_SETTINGS: dict[str, Any] = {"s3_prefix_list_id": "pl-1"}


def account(*, model: dict[str, Any] | None, group_vpc: str = VPC) -> dict[str, Answer]:
    """A created network of two zones, and one endpoint whose model has this VpcConfig."""
    rows = [
        {"SubnetId": name, "VpcId": VPC, "AvailabilityZone": zone, "CidrBlock": f"10.20.{number}.0/24"}
        for number, (name, zone) in enumerate(((A, ZONES[0]), (B, ZONES[1])))
    ]
    return {
        **stacks(AWS_EC2_Subnet=[A, B], AWS_EC2_SecurityGroup=[GROUP]),
        "ec2.DescribeSubnets": {"Subnets": rows},
        "ec2.DescribeSecurityGroups": {"SecurityGroups": [{"GroupId": GROUP, "VpcId": group_vpc}]},
        "sagemaker.ListEndpoints": pages(
            "Endpoints", [{"EndpointName": "other-test-e0"}], [{"EndpointName": "test-old"}]
        ),
        "sagemaker.DescribeEndpoint": {"EndpointName": "test-old", "EndpointConfigName": "c"},
        "sagemaker.DescribeEndpointConfig": {"ProductionVariants": [{"VariantName": "v", "ModelName": "m"}]},
        "sagemaker.DescribeModel": {"ModelName": "m"} if model is None else {"ModelName": "m", "VpcConfig": model},
    }


INSIDE = {"Subnets": [A, B], "SecurityGroupIds": [GROUP]}
OUTSIDE = {"Subnets": ["subnet-01", "subnet-02"], "SecurityGroupIds": ["sg-01"]}


@pytest.mark.parametrize(
    ("network", "gone"),
    [
        ({"imported": IMPORTED}, [A, B, GROUP]),
        ({"created": {**CREATED, "zones": [ZONES[0], ZONES[2]]}}, [B]),
        ({"created": {**CREATED, "cidr": "10.40.0.0/16"}}, [A, B, GROUP]),
    ],
)
def test_what_a_fleet_is_in_and_the_settings_have_no_more_fails(
    tmp_path: Path, network: dict[str, Any], gone: list[str]
) -> None:
    what = served(tmp_path, network={**OF_SETTINGS, **network})
    found = results_of(check_left_network, what, account(model=INSIDE))
    assert list(found) == ["test-old"], (
        "endpoints that left the file have a fleet still, other environments' do not count"
    )
    assert found["test-old"].outcome == "fails"
    assert [part for part in (A, B, GROUP) if part in found["test-old"].found] == gone
    assert "leave_zones" in found["test-old"].advice
    left = results_of(check_left_network, what, account(model=OUTSIDE))
    assert left["test-old"].outcome == "passes", "the second of the two deployments"
    assert results_of(check_left_network, what, account(model=None))["test-old"].outcome == "passes"


@pytest.mark.parametrize(
    "network",
    [
        {"created": CREATED},
        {"created": {**CREATED, "zones": ZONES, "leave_zones": [ZONES[1]]}},
        {"created": CREATED, "imported": IMPORTED, "join": "imported"},
        {"created": CREATED, "join": "nothing"},
    ],
)
def test_the_first_of_two_deployments_takes_nothing_away(tmp_path: Path, network: dict[str, Any]) -> None:
    what = served(tmp_path, network={**OF_SETTINGS, **network})
    found = results_of(check_left_network, what, account(model=INSIDE))
    assert {name: result.outcome for name, result in found.items()} == {"test-network": "passes"}


@pytest.mark.parametrize(("named", "outcome"), [([], "passes"), (["sg-01"], "fails")])
def test_a_group_that_was_made_in_an_imported_vpc_goes_once_groups_are_named(
    tmp_path: Path, named: list[str], outcome: str
) -> None:
    imported = {**IMPORTED, "security_group_ids": named}
    what = served(tmp_path, network={**OF_SETTINGS, "imported": imported})
    answers = account(model={"Subnets": ["subnet-01", "subnet-02"], "SecurityGroupIds": [GROUP]}, group_vpc="vpc-01")
    answers |= stacks(AWS_EC2_SecurityGroup=[GROUP])
    [result] = results_of(check_left_network, what, answers).values()
    assert result.outcome == outcome


def test_without_a_network_nothing_is_asked_and_without_its_stack_nothing_goes(tmp_path: Path) -> None:
    assert results_of(check_left_network, served(tmp_path), {}) == {}
    found = results_of(check_left_network, served(tmp_path, network={"imported": IMPORTED}), stacks(None))
    assert found["test-network"].outcome == "passes"


def test_a_model_that_may_not_be_seen_is_unknown_and_an_endpoint_that_is_gone_passes(tmp_path: Path) -> None:
    what = served(tmp_path, network={"imported": IMPORTED})
    denied = results_of(check_left_network, what, account(model=INSIDE) | {"sagemaker.DescribeModel": DENIED})
    assert (denied["test-old"].outcome, denied["test-old"].permission) == ("unknown", "sagemaker:DescribeModel")
    gone = account(model=INSIDE) | {"sagemaker.DescribeEndpoint": RefusalError("ValidationException")}
    assert results_of(check_left_network, what, gone)["test-old"].outcome == "passes"
