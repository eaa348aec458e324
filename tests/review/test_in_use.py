"""What another stack's endpoint still runs in when it goes."""

from __future__ import annotations

from typing import Any

from tests.review.small import Template, of, resource, serving, stack
from tritonstack.review.change import Effect, ResourceChange
from tritonstack.review.compare import compare

SSM = "AWS::SSM::Parameter::Value<AWS::EC2::Subnet::Id>"
PARAMETERS = {"Parameters": {"Subnet": {"Type": SSM, "Default": "/dev/subnet"}}}


def network(cidr: str = "10.0.0.0/20", *, told: Any = None) -> Template:
    """A VPC with two subnets, of which a parameter tells the first."""
    return {
        "Vpc": resource("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"}),
        "Subnet": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}, "CidrBlock": cidr}),
        "Other": resource("AWS::EC2::Subnet", {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.16.0/20"}),
        "Told": resource("AWS::SSM::Parameter", {"Name": "/dev/subnet", "Value": told or {"Ref": "Subnet"}}),
    }


def joined(reads: str = "Subnet") -> Template:
    """An endpoint whose containers are in the subnet that the parameter tells."""
    template = serving()
    template["Model"]["Properties"]["VpcConfig"] = {"Subnets": [{"Ref": reads}], "SecurityGroupIds": ["sg-1"]}
    return template


def changes(before: Template, after: Template, *, reads: str = "Subnet") -> dict[str, ResourceChange]:
    """Logical id → change, of the network's stack."""
    fleet = stack(joined(reads), name="serving", sections=PARAMETERS)
    old, new = (of(stack(each, name="network"), fleet) for each in (before, after))
    [environment] = compare(old, new).environments
    return {each.logical_id: each for one in environment.stacks if one.name == "network" for each in one.resources}


def test_a_subnet_that_goes_under_a_fleet_of_another_stack_is_said_to_be_left_behind() -> None:
    found = changes(network(), {"Told": network(told="subnet-1")["Told"]})
    assert {name: each.effect for name, each in found.items() if name != "Told"} == {
        "Vpc": Effect.REMOVED,
        "Subnet": Effect.REMOVED,
        "Other": Effect.REMOVED,
    }
    for name in ("Subnet", "Vpc"):
        assert found[name].reasons[-1].startswith("It is left behind: the fleet of dev-serving, which")
    assert not found["Other"].reasons, "nobody runs in it"


def test_the_old_one_of_a_replaced_subnet_is_left_behind() -> None:
    found = changes(network(), network("10.0.32.0/20"))
    assert found["Subnet"].effect is Effect.REPLACED
    assert found["Subnet"].reasons[-1].startswith("The old one is left behind: the fleet of dev-serving")
    assert "Vpc" not in found


def test_a_subnet_in_which_no_endpoint_runs_goes() -> None:
    found = changes(network(), {"Told": network(told="subnet-1")["Told"]}, reads="Another")
    assert found["Subnet"].effect is Effect.REMOVED
    assert not found["Subnet"].reasons
