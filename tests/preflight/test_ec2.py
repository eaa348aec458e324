"""Networks of your own, and the network that is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fake_aws import DENIED, AwsError, Response, pages
from tests.preflight.subjects import ACCOUNT, results_of, served
from tritonstack.preflight.ec2 import check_left_network, check_subnet

A, B = "subnet-0a", "subnet-0b"
OTHERS = "222222222222"
"""An account that shares its subnets."""
IMPORTED = {
    "vpc_id": "vpc-01",
    "subnets": {"us-east-1a": A, "us-east-1b": B},
    "security_group_ids": ["sg-01"],
    "route_table_ids": ["rtb-01"],
}
NETWORK = {"imported": IMPORTED}


def subnets(*, owner: str = ACCOUNT, **rows: tuple[str, str, int]) -> dict[str, Response]:
    """EC2 with these subnets: id (``_`` for ``-``) → VPC, zone, free addresses."""

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        (name,) = request["Filters"][0]["Values"]
        row = rows.get(name.replace("-", "_"))
        if row is None:
            return {"Subnets": []}
        where = {"VpcId": row[0], "AvailabilityZone": row[1], "AvailableIpAddressCount": row[2]}
        return {"Subnets": [{"SubnetId": name, "OwnerId": owner, **where}]}

    return {"ec2.DescribeSubnets": respond}


def test_subnets_need_an_address_an_instance_the_new_fleet_included(tmp_path: Path) -> None:
    what = served(tmp_path, {"initial_instance_count": 3}, network=NETWORK)  # 3 + 3, over two subnets
    enough = subnets(subnet_0a=("vpc-01", "us-east-1a", 3), subnet_0b=("vpc-01", "us-east-1b", 2))
    found = results_of(check_subnet, what, enough)
    assert {name: result.outcome for name, result in found.items()} == {A: "passes", B: "fails"}
    assert "3 free addresses" in found[B].needed


@pytest.mark.parametrize("row", [("vpc-02", "us-east-1a", 99), ("vpc-01", "us-east-1c", 99)])
def test_a_subnet_of_another_vpc_or_zone_fails(tmp_path: Path, row: tuple[str, str, int]) -> None:
    responses = subnets(subnet_0a=row, subnet_0b=("vpc-01", "us-east-1b", 99))
    found = results_of(check_subnet, served(tmp_path, network=NETWORK), responses)
    assert {name: result.outcome for name, result in found.items()} == {A: "fails", B: "passes"}


@pytest.mark.parametrize(
    ("state", "owner", "outcome", "advice"),
    [
        (None, ACCOUNT, "passes", ""),
        (OTHERS, OTHERS, "passes", ""),
        (None, OTHERS, "fails", f'Write network.imported.owner_account: "{OTHERS}".'),
        ("333333333333", OTHERS, "fails", f'Write network.imported.owner_account: "{OTHERS}".'),
        (OTHERS, ACCOUNT, "fails", "Remove network.imported.owner_account."),
    ],
)
def test_the_owner_of_shared_subnets_is_named_for_the_roles_policies(
    tmp_path: Path, state: str | None, owner: str, outcome: str, advice: str
) -> None:
    what = served(tmp_path, network={"imported": {**IMPORTED, "owner_account": state}})
    responses = subnets(owner=owner, subnet_0a=("vpc-01", "us-east-1a", 99), subnet_0b=("vpc-01", "us-east-1b", 99))
    found = results_of(check_subnet, what, responses)
    assert {each.outcome for each in found.values()} == {outcome}
    assert all(advice in (each.advice or "") for each in found.values())


def test_a_subnet_that_is_gone_fails_and_one_that_may_not_be_seen_is_unknown(tmp_path: Path) -> None:
    what = served(tmp_path, network=NETWORK)
    assert {each.outcome for each in results_of(check_subnet, what, subnets()).values()} == {"fails"}
    denied = {"ec2.DescribeSubnets": AwsError("UnauthorizedOperation")}
    found = results_of(check_subnet, what, denied)
    assert {(each.outcome, each.permission) for each in found.values()} == {("unknown", "ec2:DescribeSubnets")}


VPC, GROUP = "vpc-0c", "sg-0c"
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
CREATED = {"cidr": "10.20.0.0/16", "zones": ZONES[:2], "nat": "one"}
IMPORTED_NETWORK = {
    "vpc_id": "vpc-01",
    "subnets": {"us-east-1a": "subnet-01", "us-east-1b": "subnet-02"},
    "security_group_ids": ["sg-01"],
}
OF_SETTINGS: dict[str, Any] = {"s3_prefix_list_id": "pl-1"}


def account(*, model: dict[str, Any] | None, group_vpc: str = VPC) -> dict[str, Response]:
    """A created network of two zones, and one endpoint whose model has this VpcConfig."""
    rows = [
        {"SubnetId": name, "VpcId": VPC, "AvailabilityZone": zone, "CidrBlock": f"10.20.{number}.0/24"}
        for number, (name, zone) in enumerate(((A, ZONES[0]), (B, ZONES[1])))
    ]
    made = [
        {"ResourceType": kind, "PhysicalResourceId": name, "ResourceStatus": "CREATE_COMPLETE"}
        for kind, name in (("AWS::EC2::Subnet", A), ("AWS::EC2::Subnet", B), ("AWS::EC2::SecurityGroup", GROUP))
    ]
    return {
        "cloudformation.ListStackResources": pages("StackResourceSummaries", made[:1], made[1:]),
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
        ({"imported": IMPORTED_NETWORK}, [A, B, GROUP]),
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
    assert "`join`" in found["test-old"].advice
    left = results_of(check_left_network, what, account(model=OUTSIDE))
    assert left["test-old"].outcome == "passes", "the second of the two deployments"
    assert results_of(check_left_network, what, account(model=None))["test-old"].outcome == "passes"


@pytest.mark.parametrize(
    "network",
    [
        {"created": CREATED},
        {"created": CREATED, "imported": IMPORTED_NETWORK, "join": "imported"},
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
    imported = {**IMPORTED_NETWORK, "security_group_ids": named}
    what = served(tmp_path, network={**OF_SETTINGS, "imported": imported})
    responses = account(model={"Subnets": ["subnet-01", "subnet-02"], "SecurityGroupIds": [GROUP]}, group_vpc="vpc-01")
    [result] = results_of(check_left_network, what, responses).values()
    assert result.outcome == outcome


def test_without_a_network_no_request_is_sent_and_without_its_stack_nothing_is_removed(tmp_path: Path) -> None:
    assert results_of(check_left_network, served(tmp_path), {}) == {}
    what = served(tmp_path, network={"imported": IMPORTED_NETWORK})
    none = AwsError("ValidationError", "Stack with id x does not exist")
    found = results_of(check_left_network, what, {"cloudformation.ListStackResources": none})
    assert found["test-network"].outcome == "passes"


def test_a_model_that_may_not_be_seen_is_unknown_and_an_endpoint_that_is_gone_passes(tmp_path: Path) -> None:
    what = served(tmp_path, network={"imported": IMPORTED_NETWORK})
    denied = results_of(check_left_network, what, account(model=INSIDE) | {"sagemaker.DescribeModel": DENIED})
    assert (denied["test-old"].outcome, denied["test-old"].permission) == ("unknown", "sagemaker:DescribeModel")
    gone = account(model=INSIDE) | {"sagemaker.DescribeEndpoint": AwsError("ValidationException")}
    assert results_of(check_left_network, what, gone)["test-old"].outcome == "passes"
