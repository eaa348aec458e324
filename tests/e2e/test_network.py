"""An environment in a VPC, with keys, boundary, role path, tags and retention: deployed, moved, destroyed, adopted.

The first test is the plain one; those that change the network after it run in `make test-all`.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager

import pytest

from tests.e2e import network_project as walled
from tests.e2e.callers import Callers, digits_by_target
from tests.e2e.network_project import BOUNDARY, ENDPOINT, GROUP, NAME, created, inventory, left, live_model
from tests.e2e.project import Project
from tritonstack_local.aws import ACCOUNT, LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FULL = f"{NAME}-{ENDPOINT}"


@pytest.fixture(scope="module")
def aws(project: Project, local_aws: LocalAws) -> LocalAws:
    """The environment deployed into a VPC of two zones."""
    walled.make_boundary(local_aws)
    walled.write(project, network=created("a", "b"))
    project.run("local", "deploy", NAME)
    return local_aws


def calling(project: Project, aws: LocalAws) -> AbstractContextManager[Callers]:
    """A caller while the block runs, none of whose calls may fail."""
    model = project.root / "model_repos" / "digits-onnx"
    return Callers([digits_by_target(aws, endpoint=FULL, target=None, model=model)]).calling()


def test_a_model_in_a_vpc_answers_and_everything_is_as_the_settings_say(project: Project, aws: LocalAws) -> None:
    with calling(project, aws) as callers:
        callers.check(more=10)
    model = live_model(aws)
    assert walled.zones_of(aws, model["VpcConfig"]["Subnets"]) == ["us-east-1a", "us-east-1b"]
    [group] = aws.client("ec2").describe_security_groups(GroupIds=model["VpcConfig"]["SecurityGroupIds"])[
        "SecurityGroups"
    ]
    assert not any(each["IpRanges"] for each in group["IpPermissionsEgress"]), "nothing out to an address"
    assert model["ExecutionRoleArn"].startswith(f"arn:aws:iam::{ACCOUNT}:role/team/triton/")
    there = inventory(aws)
    roles = [aws.client("iam").get_role(RoleName=name)["Role"] for name in there["role"]]
    assert len(roles) == 5
    assert {(each["Path"], each["PermissionsBoundary"]["PermissionsBoundaryArn"]) for each in roles} == {
        ("/team/triton/", BOUNDARY)
    }
    [key] = there["key"]
    groups = {each["logGroupName"]: each for each in aws.client("logs").describe_log_groups()["logGroups"]}
    for name, days in ((GROUP, 30), (f"/tritonstack/{NAME}/network", 30)):
        assert (groups[name]["retentionInDays"], groups[name]["kmsKeyId"]) == (days, key)
    arn = groups[GROUP]["arn"].removesuffix(":*")
    tagged = aws.client("logs").list_tags_for_resource(resourceArn=arn)["tags"]
    tags = {"team": "platform", "tritonstack:environment": NAME, "tritonstack:endpoint": ENDPOINT}
    assert tags.items() <= tagged.items(), "by the function that makes it: CloudFormation's tags do not reach it"
    of_functions = [each for name, each in groups.items() if f"{NAME}-serving" in name]
    assert {each["retentionInDays"] for each in of_functions} == {14}
    sagemaker = aws.client("sagemaker")
    endpoint = sagemaker.describe_endpoint(EndpointName=FULL)
    capture = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])["DataCaptureConfig"]
    assert (capture["EnableCapture"], capture["KmsKeyId"]) == (True, key)
    assert capture["DestinationS3Uri"].endswith(f"/captured/{ENDPOINT}/")
    assert {"Key": "team", "Value": "platform"} in sagemaker.list_tags(ResourceArn=endpoint["EndpointArn"])["Tags"]


@pytest.mark.long
def test_a_zone_more_and_isolation_replace_the_model_and_no_call_fails(project: Project, aws: LocalAws) -> None:
    before, endpoint = live_model(aws), aws.client("sagemaker").describe_endpoint(EndpointName=FULL)
    walled.write(project, network=created("a", "b", "c"), isolated=True)
    with calling(project, aws):
        project.run("local", "deploy", NAME)
    after = live_model(aws)
    assert after["ModelName"] != before["ModelName"]
    assert (before["EnableNetworkIsolation"], after["EnableNetworkIsolation"]) == (False, True)
    assert walled.zones_of(aws, after["VpcConfig"]["Subnets"]) == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert set(before["VpcConfig"]["Subnets"]) < set(after["VpcConfig"]["Subnets"])
    assert after["VpcConfig"]["SecurityGroupIds"] == before["VpcConfig"]["SecurityGroupIds"]
    same = aws.client("sagemaker").describe_endpoint(EndpointName=FULL)
    assert same["CreationTime"] == endpoint["CreationTime"], "the endpoint was updated, not made anew"
    assert inventory(aws)["model"] == {after["ModelName"]}


@pytest.mark.long
def test_a_zone_is_left_and_then_taken_away(project: Project, aws: LocalAws) -> None:
    wide = inventory(aws)["subnet"]
    walled.write(project, network=created("a", "b", "c", leave="b"), isolated=True)
    with calling(project, aws):
        project.run("local", "deploy", NAME)
    left_one = live_model(aws)
    assert walled.zones_of(aws, left_one["VpcConfig"]["Subnets"]) == ["us-east-1a", "us-east-1c"]
    assert inventory(aws)["subnet"] == wide
    walled.write(project, network=created("a", "c"), isolated=True)
    project.run("local", "deploy", NAME)
    assert inventory(aws)["subnet"] == set(left_one["VpcConfig"]["Subnets"])
    assert live_model(aws) == left_one, "nothing moved"


@pytest.mark.long
def test_preflight_says_that_a_network_cannot_be_taken_away_in_one_step(project: Project, aws: LocalAws) -> None:
    imported, _ = walled.imported(aws)
    joined = live_model(aws)["VpcConfig"]
    walled.write(project, network=f"{{imported: {imported}}}", isolated=True)
    [said] = left_network(project)
    assert (said["subject"], said["outcome"]) == (FULL, "fails")
    assert all(part in said["found"] for part in (*joined["Subnets"], *joined["SecurityGroupIds"]))
    zones = [zone[-1] for zone in walled.zones_of(aws, joined["Subnets"])]
    walled.write(project, network=created(*zones, more=f"imported: {imported}, join: imported"), isolated=True)
    [said] = left_network(project)
    assert (said["subject"], said["outcome"]) == (f"{NAME}-network", "passes")


def left_network(project: Project) -> list[dict[str, str]]:
    """What preflight says of it; of the rest nothing but the prefix list, which is not the local AWS's, may fail."""
    results = json.loads(project.run("preflight", NAME, "--local", "--json", expect=1).stdout)["results"]
    assert {each["check"] for each in results if each["outcome"] != "passes"} <= {"left-network", "prefix-list"}
    return [each for each in results if each["check"] == "left-network"]


@pytest.mark.long
def test_a_created_network_is_left_for_an_imported_one_while_a_caller_calls(project: Project, aws: LocalAws) -> None:
    imported, taken = walled.imported(aws)
    there = inventory(aws)
    walled.write(project, network=created("a", "c", more=f"imported: {imported}, join: imported"))
    with calling(project, aws):
        project.run("local", "deploy", NAME)
        assert live_model(aws)["VpcConfig"] == taken
        assert there["subnet"] <= inventory(aws)["subnet"], "the old fleet was in them to its end"
        walled.write(project, network=f"{{imported: {imported}}}")
        project.run("local", "deploy", NAME)
    now = inventory(aws)
    for kind in ("vpc", "subnet", "security group", "route table", "vpc endpoint", "flow log"):
        assert there[kind], kind
        assert now[kind] == set(), kind
    assert live_model(aws)["VpcConfig"] == taken


@pytest.mark.long
def test_an_environment_leaves_its_network_for_none(project: Project, aws: LocalAws) -> None:
    walled.write(project, network="null")
    with calling(project, aws):
        project.run("local", "deploy", NAME)
        assert "VpcConfig" not in live_model(aws)
        cloudformation = aws.client("cloudformation")
        cloudformation.delete_stack(StackName=f"{NAME}-network")  # as docs/operations.md says: the app knows it no more
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=f"{NAME}-network", WaiterConfig={"Delay": 1})
    assert not any("/_network/" in name for name in inventory(aws)["parameter"])


@pytest.mark.long
def test_destroying_leaves_what_is_retained_and_a_second_deployment_adopts_the_log_group(
    project: Project, aws: LocalAws
) -> None:
    project.run("local", "destroy", NAME)
    retained = left(aws)
    assert {kind: len(names) for kind, names in retained.items()} == {"bucket": 2, "key": 1, "log group": 1}
    assert retained["log group"] == {GROUP}
    [key] = retained["key"]
    before = described_group(aws)
    walled.write(project, network=created("a", "b"), retain=False, key_arn=key)
    project.run("local", "deploy", NAME)
    with calling(project, aws) as callers:
        callers.check(more=10)
    after = described_group(aws)
    assert after["creationTime"] == before["creationTime"], "adopted, not made"
    assert (after["retentionInDays"], after["kmsKeyId"]) == (30, key)
    assert inventory(aws)["key"] == {key}, "with a key of one's own none is made"
    project.run("local", "destroy", NAME)
    assert left(aws) == {"bucket": retained["bucket"], "key": {key}}, "the group went with the stack that owned it last"


def described_group(aws: LocalAws) -> dict[str, object]:
    """The endpoint's log group."""
    [group] = aws.client("logs").describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]
    return dict(group)
