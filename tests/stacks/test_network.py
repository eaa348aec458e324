"""The network stack, and what the others take from it."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.stage import EnvironmentStage
from tests.constructs_lib.templates import allowed, flat, of_type, properties, template_of
from tests.engines.engine_environments import A10G, T4, served_engines, write_models
from tests.stacks.engine_stages import stage_of
from tests.stacks.environments import DIGITS, SINGLE, environment, serving_template, stage

CREATED: dict[str, Any] = {
    "created": {"cidr": "10.20.0.0/16", "zones": ["us-east-1a", "us-east-1c"], "nat": "each"},
    "s3_prefix_list_id": "pl-1a",
}
SUBNETS = {"us-east-1a": "subnet-1", "us-east-1b": "subnet-2"}
IMPORTED: dict[str, Any] = {"imported": {"vpc_id": "vpc-1", "subnets": SUBNETS, "security_group_ids": ["sg-1", "sg-2"]}}


def network_template(made: EnvironmentStage) -> dict[str, Any]:
    assert made.network is not None
    return template_of(made.network)


@pytest.fixture(scope="module")
def created() -> EnvironmentStage:
    return stage(environment({**DIGITS, "network_isolation": True}, SINGLE, network=CREATED))


@pytest.fixture(scope="module")
def template(created: EnvironmentStage) -> dict[str, Any]:
    return network_template(created)


def values(template: dict[str, Any]) -> dict[str, Any]:
    """Name → value of the parameters in Systems Manager by which other stacks find the network."""
    found = [each["Properties"] for each in of_type(template, "AWS::SSM::Parameter").values()]
    return {each["Name"]: flat(each["Value"]) for each in found if "/_network/" in each["Name"]}


def test_private_subnets_have_no_route_to_the_internet_but_through_nat(template: dict[str, Any]) -> None:
    routes = [each["Properties"] for each in of_type(template, "AWS::EC2::Route").values()]
    private = [each for each in routes if "Private" in flat(each["RouteTableId"])]
    assert len(private) == 2
    assert all("NatGatewayId" in each and "GatewayId" not in each for each in private)
    assert len({flat(each["NatGatewayId"]) for each in private}) == 2


@pytest.mark.parametrize(("nat", "gateways"), [(False, 0), ("one", 1)])
def test_nat_gateways_are_as_many_as_the_setting(nat: str | bool, gateways: int) -> None:
    network = {**CREATED, "created": {**CREATED["created"], "nat": nat}}
    made = network_template(stage(environment(network=network)))
    assert len(of_type(made, "AWS::EC2::NatGateway")) == gateways
    assert bool(of_type(made, "AWS::EC2::InternetGateway")) is bool(nat)
    assert len(of_type(made, "AWS::EC2::Subnet")) == 2 + gateways


def blocks(template: dict[str, Any]) -> dict[str, str]:
    found = of_type(template, "AWS::EC2::Subnet").values()
    return {
        each["Properties"]["AvailabilityZone"]: each["Properties"]["CidrBlock"]
        for each in found
        if not any(tag["Value"].split("/")[-1].startswith("Public") for tag in each["Properties"]["Tags"])
    }


def test_a_zone_that_is_added_moves_no_other(template: dict[str, Any]) -> None:
    more = {**CREATED, "created": {**CREATED["created"], "zones": ["us-east-1b", "us-east-1c", "us-east-1a"]}}
    grown = blocks(network_template(stage(environment(network=more))))
    assert {zone: grown[zone] for zone in blocks(template)} == blocks(template)


def test_blocks_lie_within_the_range_and_apart(template: dict[str, Any]) -> None:
    subnets = [each["Properties"] for each in of_type(template, "AWS::EC2::Subnet").values()]
    found = [ipaddress.IPv4Network(each["CidrBlock"]) for each in subnets]
    assert len(found) == 4
    assert not any(each["MapPublicIpOnLaunch"] for each in subnets)
    assert all(each.subnet_of(ipaddress.IPv4Network("10.20.0.0/16")) for each in found)
    assert not any(one.overlaps(other) for one in found for other in found if one is not other)


def groups(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = of_type(template, "AWS::EC2::SecurityGroup").values()
    return {each["Properties"]["GroupDescription"].split(" ")[0].rstrip(":"): each["Properties"] for each in found}


def test_containers_reach_s3_and_the_endpoints_and_nothing_else(template: dict[str, Any]) -> None:
    [rule] = groups(template)["Containers"]["SecurityGroupEgress"]
    assert (rule["DestinationPrefixListId"], rule["FromPort"], rule["ToPort"]) == ("pl-1a", 443, 443)
    rules = [each["Properties"] for each in of_type(template, "AWS::EC2::SecurityGroupEgress").values()]
    assert {flat(each["DestinationSecurityGroupId"]) for each in rules} == {
        f"${{{name}.GroupId}}"
        for name in of_type(template, "AWS::EC2::SecurityGroup")
        if name.startswith("NetworkEndpointsGroup")
    }
    assert all("SecurityGroupIngress" not in groups(template)[name] for name in ("Containers", "Builds"))


def test_only_builds_reach_the_internet_and_only_with_a_nat_gateway(template: dict[str, Any]) -> None:
    def open_(of: dict[str, dict[str, Any]]) -> set[str]:
        return {
            name
            for name, each in of.items()
            if any(rule.get("CidrIp") == "0.0.0.0/0" for rule in each["SecurityGroupEgress"])
        }

    assert open_(groups(template)) == {"Builds"}
    closed = {**CREATED, "created": {**CREATED["created"], "nat": False}}
    assert open_(groups(network_template(stage(environment(network=closed))))) == set()


def test_endpoints_take_https_from_the_environments_groups_alone_and_start_nothing(template: dict[str, Any]) -> None:
    group = groups(template)["Interface"]
    assert all("CidrIp" not in rule and rule["FromPort"] == 443 for rule in group["SecurityGroupIngress"])
    assert len(group["SecurityGroupIngress"]) == 2
    [nowhere] = group["SecurityGroupEgress"]
    assert nowhere["CidrIp"] == "255.255.255.255/32"


def endpoints(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Service → properties of its VPC endpoint."""
    found = of_type(template, "AWS::EC2::VPCEndpoint").values()
    return {
        each["Properties"]["ServiceName"].removeprefix("com.amazonaws.us-east-1."): each["Properties"] for each in found
    }


def test_every_flow_is_logged_under_the_key_and_for_a_set_time(
    created: EnvironmentStage, template: dict[str, Any]
) -> None:
    flows = properties(template, "AWS::EC2::FlowLog")
    assert (flows["TrafficType"], flows["ResourceType"]) == ("ALL", "VPC")
    group = properties(template, "AWS::Logs::LogGroup")
    assert (group["LogGroupName"], group["RetentionInDays"]) == ("/tritonstack/dev/network", 90)
    assert flows["LogGroupName"] == group["LogGroupName"]
    assert "KmsKeyId" in group
    key = json.dumps(properties(template_of(created.artifacts), "AWS::KMS::Key")["KeyPolicy"])
    assert "log-group:/tritonstack/dev/network" in key


def test_isolation_is_each_endpoints_own(created: EnvironmentStage) -> None:
    isolated = {
        name: properties(template_of(stack), "AWS::SageMaker::Model").get("EnableNetworkIsolation")
        for name, stack in created.serving.items()
    }
    assert isolated == {"digits": True, "single": None}


@pytest.mark.parametrize("owner", [None, "222222222222"])
def test_the_arns_of_shared_subnets_carry_their_owners_account(owner: str | None) -> None:
    """And interfaces, security groups the account's own (VPC user guide, "Share your VPC subnets")."""
    shared = {"imported": {**IMPORTED["imported"], "owner_account": owner}}
    account = owner or "123456789012"
    statements = {each["Sid"]: json.dumps(each) for each in allowed(serving_template(DIGITS, network=shared))}
    made, lent = statements["MakeInterfaces"], statements["LendInterfaces"]
    for text in (made, lent, statements["RemoveInterfaces"]):
        assert set(re.findall(r"ec2:us-east-1:([0-9]+):subnet/", text)) == {account}
    assert set(re.findall(r"ec2:us-east-1:([0-9]+):(?:security-group|network-interface)/", made)) == {"123456789012"}


def test_another_network_makes_a_policy_next_to_the_old_one(created: EnvironmentStage) -> None:
    """The old fleet's interfaces lie in the old subnets, and are removed with the old policy."""

    def policies(template: dict[str, Any]) -> set[str]:
        return {name for name in of_type(template, "AWS::IAM::Policy") if name.startswith("ExecutionRole")}

    here = policies(template_of(created.serving["digits"]))
    there = policies(serving_template(DIGITS, network=IMPORTED))
    assert not here & there & policies(serving_template(DIGITS))
    assert len(here | there | policies(serving_template(DIGITS))) == 3


def unreferenced(template: dict[str, Any]) -> list[str]:
    """Parameters that nothing in a template refers to: CloudFormation's validation warns of them (W2001)."""
    rest = json.dumps({name: part for name, part in template.items() if name != "Parameters"})
    return [name for name in template.get("Parameters", {}) if f'"{name}"' not in rest and f"${{{name}}}" not in rest]


@pytest.mark.parametrize("endpoints", [False, True])
def test_no_stack_of_an_imported_network_has_a_parameter_that_nothing_refers_to(*, endpoints: bool) -> None:
    network = {"imported": {**TAKEN, "endpoints": endpoints}, "s3_prefix_list_id": "pl-1"}
    made = stage(environment(DIGITS, network=network))
    stacks = [made.network, made.artifacts, made.builds, *made.serving.values()]
    templates = [template_of(each) for each in stacks if each is not None]
    assert any("AWS::SSM::Parameter::Value<String>" in json.dumps(each) for each in templates)
    assert [unreferenced(each) for each in templates] == [[]] * len(templates)


def test_of_an_imported_network_with_groups_nothing_is_made() -> None:
    template = network_template(stage(environment(network=IMPORTED)))
    assert {each["Type"] for each in template["Resources"].values()} == {"AWS::SSM::Parameter"}
    head = "/tritonstack/dev/_network"
    assert values(template) == {
        f"{head}/vpc-id": "vpc-1",
        f"{head}/subnet-us-east-1a": "subnet-1",
        f"{head}/subnet-us-east-1b": "subnet-2",
        f"{head}/security-group-0": "sg-1",
        f"{head}/security-group-1": "sg-2",
        f"{head}/builds-security-group-0": "sg-1",
        f"{head}/builds-security-group-1": "sg-2",
    }


def test_an_imported_network_gets_endpoints_and_a_group_where_it_has_none() -> None:
    imported = {"vpc_id": "vpc-1", "subnets": SUBNETS, "route_table_ids": ["rtb-1"], "endpoints": True}
    template = network_template(stage(environment(network={"imported": imported, "s3_prefix_list_id": "pl-1"})))
    assert endpoints(template)["s3"]["RouteTableIds"] == ["rtb-1"]
    assert endpoints(template)["ssm"]["SubnetIds"] == ["subnet-1", "subnet-2"]
    assert set(groups(template)) == {"Containers", "Interface"}
    assert of_type(template, "AWS::EC2::VPC") == {}


TAKEN = {"vpc_id": "vpc-1", "subnets": SUBNETS, "route_table_ids": ["rtb-1"], "endpoints": True}


@pytest.fixture(scope="module")
def between() -> EnvironmentStage:
    """On the way from a created network to an imported one."""
    return stage(environment(DIGITS, network={**CREATED, "imported": TAKEN, "join": "imported"}))


def without_parameters(template: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in template["Resources"].items() if each["Type"] != "AWS::SSM::Parameter"}


def test_on_the_way_to_another_network_everything_of_the_created_one_stays_as_it_is(
    between: EnvironmentStage, template: dict[str, Any]
) -> None:
    """The old fleet still is in it: its subnets, groups and endpoints must outlive that fleet."""
    there = without_parameters(network_template(between))
    assert {name: there.get(name) for name in without_parameters(template)} == without_parameters(template)
    new = set(there) - set(without_parameters(template))
    assert new
    assert all(name.startswith("NetworkImported") for name in new)


def test_on_the_way_models_join_the_imported_network(between: EnvironmentStage) -> None:
    given = values(network_template(between))
    assert given["/tritonstack/dev/_network/vpc-id"] == "vpc-1"
    assert given["/tritonstack/dev/_network/subnet-us-east-1b"] == "subnet-2"
    assert given["/tritonstack/dev/_network/security-group-0"].startswith("${NetworkImportedContainers")
    config = properties(template_of(between.serving["digits"]), "AWS::SageMaker::Model")["VpcConfig"]
    assert len(config["Subnets"]) == 2


def test_while_a_network_is_removed_models_are_in_no_vpc_and_the_network_stays(template: dict[str, Any]) -> None:
    leaving = stage(environment(DIGITS, network={**CREATED, "join": "nothing"}))
    assert without_parameters(network_template(leaving)) == without_parameters(template)
    assert "VpcConfig" not in properties(template_of(leaving.serving["digits"]), "AWS::SageMaker::Model")
    assert "ec2:CreateNetworkInterface" not in json.dumps(template_of(leaving.serving["digits"]))


ENGINES_NETWORK = (
    "network: {created: {cidr: 10.1.0.0/16, zones: [us-east-1a, us-east-1b], nat: one}, s3_prefix_list_id: pl-1}"
)


@pytest.fixture(scope="module")
def building(tmp_path_factory: pytest.TempPathFactory) -> EnvironmentStage:
    folder = tmp_path_factory.mktemp("engines")
    write_models(folder)
    return stage_of(served_engines(folder, A10G, T4, header=ENGINES_NETWORK), folder)


def test_builds_in_the_network_get_the_endpoints_of_what_they_call(building: EnvironmentStage) -> None:
    template = network_template(building)
    assert set(endpoints(template)) == {
        "s3", "sagemaker.runtime", "ssm", "codebuild", "sagemaker.api", "logs", "ecr.api", "ecr.dkr",
    }  # fmt: skip
    sids = {each["Sid"] for each in endpoints(template)["s3"]["PolicyDocument"]["Statement"]}
    assert sids == {"OwnArtifacts", "ImageLayers", "BuildSource"}


def test_builds_run_in_the_network_by_default_with_a_group_of_their_own(building: EnvironmentStage) -> None:
    assert building.builds is not None
    template = template_of(building.builds)
    defaults = {name: each.get("Default", "") for name, each in template["Parameters"].items()}
    projects = of_type(template, "AWS::CodeBuild::Project").values()
    assert len(projects) == 2
    for project in projects:
        [group] = project["Properties"]["VpcConfig"]["SecurityGroupIds"]
        assert defaults[group["Ref"]].endswith("/_network/builds-security-group-0")
    assert building.network in building.builds.dependencies


def test_builds_stay_outside_the_network_where_the_setting_is_off(tmp_path: Path) -> None:
    write_models(tmp_path)
    header = f"{ENGINES_NETWORK}\nbuilds: {{outside_network: true}}"
    made = stage_of(served_engines(tmp_path, A10G, header=header), tmp_path)
    assert made.builds is not None
    assert "VpcConfig" not in json.dumps(template_of(made.builds))
    assert set(endpoints(network_template(made))) == {"s3", "sagemaker.runtime", "ssm"}
