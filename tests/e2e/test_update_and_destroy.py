"""An environment in a VPC, with keys, boundary, role path, tags and retention: deployed, changed while callers call,
and destroyed."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.calls import Callers, invoke, target_model
from tests.e2e.conftest import endpoint
from tests.e2e.network_project import ENDPOINT, Walled, created
from tests.e2e.predictions import Deployed
from tests.e2e.project import Project
from tritonstack.paths import cdk_program
from tritonstack.review.assembly import read_assembly
from tritonstack_local import ACCOUNT
from tritonstack_local.aws import LocalAws

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]
NAME = "changing"


@pytest.fixture(scope="module")
def changing(project: Project, local_aws: LocalAws) -> Walled:
    """Two endpoints in a VPC of two zones, deployed."""
    made = Walled(project, local_aws, NAME)
    made.make_boundary()
    write(made, shm=16777216, models=["adds-01"])
    made.deploy()
    return made


def write(changing: Walled, *, shm: int, models: list[str]) -> None:
    """The environment file with settings of a container and one list of models."""
    container = f"container: {{shm_default_bytes: {shm}}}"
    changing.write(network=created("a", "b"), more=endpoint("moving", models, more=container))


def answer(changing: Walled, model: str) -> float:
    """What a model makes of 4, in one try."""
    target = target_model(changing.aws, endpoint="moving", model=model, environment=NAME)
    client = changing.aws.client("sagemaker-runtime")
    return invoke(client, endpoint="moving", target=target, value=4.0, environment=NAME)


def test_models_in_a_vpc_answer_and_everything_is_as_the_settings_say(changing: Walled) -> None:
    aws = changing.aws
    with changing.calling() as callers:
        callers.check(more=10)
    model = changing.live_model()
    assert changing.zones_of(model["VpcConfig"]["Subnets"]) == ["us-east-1a", "us-east-1b"]
    [group] = aws.client("ec2").describe_security_groups(GroupIds=model["VpcConfig"]["SecurityGroupIds"])[
        "SecurityGroups"
    ]
    assert not any(each["IpRanges"] for each in group["IpPermissionsEgress"]), "nothing out to an address"
    assert model["ExecutionRoleArn"].startswith(f"arn:aws:iam::{ACCOUNT}:role/team/triton/")
    there = changing.inventory()
    roles = [aws.client("iam").get_role(RoleName=name)["Role"] for name in there["role"]]
    assert len(roles) > 5
    assert {(each["Path"], each["PermissionsBoundary"]["PermissionsBoundaryArn"]) for each in roles} == {
        ("/team/triton/", changing.boundary)
    }
    [key] = there["key"]
    groups = {each["logGroupName"]: each for each in aws.client("logs").describe_log_groups()["logGroups"]}
    for name, days in ((changing.log_group, 30), (f"/tritonstack/{NAME}/network", 30)):
        assert (groups[name]["retentionInDays"], groups[name]["kmsKeyId"]) == (days, key)
    arn = groups[changing.log_group]["arn"].removesuffix(":*")
    tagged = aws.client("logs").list_tags_for_resource(resourceArn=arn)["tags"]
    tags = {"team": "platform", "tritonstack:environment": NAME, "tritonstack:endpoint": ENDPOINT}
    assert tags.items() <= tagged.items(), "by the function that makes it: CloudFormation's tags do not reach it"
    of_functions = [each for name, each in groups.items() if f"{NAME}-serving" in name]
    assert {each["retentionInDays"] for each in of_functions} == {14}
    sagemaker = aws.client("sagemaker")
    described = sagemaker.describe_endpoint(EndpointName=changing.endpoint)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    capture = config["DataCaptureConfig"]
    assert (capture["EnableCapture"], capture["KmsKeyId"]) == (True, key)
    assert capture["DestinationS3Uri"].endswith(f"/captured/{ENDPOINT}/")
    assert {"Key": "team", "Value": "platform"} in sagemaker.list_tags(ResourceArn=described["EndpointArn"])["Tags"]


def test_a_changed_environment_is_deployed_as_reviewed_and_no_request_fails_meanwhile(
    changing: Walled, tmp_path: Path
) -> None:
    sagemaker = changing.aws.client("sagemaker")
    assembly = changing.project.root / ".local" / "cdk.out" / NAME
    copytree(assembly, tmp_path / "before")
    deployed = Deployed(changing.aws, read_assembly(tmp_path / "before"))
    before = sagemaker.describe_endpoint(EndpointName=f"{NAME}-moving")

    def call() -> None:
        assert answer(changing, "adds-01") == 5.0

    with Callers([call, call]).calling():
        write(changing, shm=33554432, models=["adds-01", "adds-02"])
        changing.deploy()
    after = sagemaker.describe_endpoint(EndpointName=f"{NAME}-moving")
    assert after["EndpointStatus"] == "InService"
    assert after["CreationTime"] == before["CreationTime"]
    assert after["EndpointConfigName"] != before["EndpointConfigName"]
    config = sagemaker.describe_endpoint_config(EndpointConfigName=after["EndpointConfigName"])
    model = sagemaker.describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    assert model["PrimaryContainer"]["Environment"]["SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE"] == "33554432"
    assert answer(changing, "adds-02") == 6.0
    now = read_assembly(assembly)
    assert {each.stack_name for each in deployed.change(now).stacks} == {f"{NAME}-serving-moving"}
    assert deployed.wrong(now) == []


def test_destroy_leaves_what_is_retained_and_nothing_else(changing: Walled) -> None:
    before = changing.inventory()
    assert [kind for kind, names in before.items() if not names] == [], "nothing of a kind was there to be removed"
    assembly = changing.project.root / ".local" / "cdk.out" / NAME
    changing.project.execute(  # as a person types it, with the variables of ``tritonstack local env``
        [str(cdk_program()), "destroy", "--app", str(assembly), "--force", "--no-notices", f"{NAME}/*"],
        variables=changing.aws.variables(),
        timeout=300,
    )
    left = changing.left()
    assert left.keys() == {"bucket", "key", "log group"}
    assert all(names <= before[kind] for kind, names in left.items())
    assert {kind: len(names) for kind, names in left.items()} == {"bucket": 2, "key": 1, "log group": 2}
    [archives] = [name for name in left["bucket"] if "archives" in name]
    assert changing.aws.client("s3").list_objects_v2(Bucket=archives, Prefix="endpoints/moving/")["KeyCount"] == 2
    client = changing.aws.client("sagemaker-runtime")
    with pytest.raises(client.exceptions.ClientError):
        client.invoke_endpoint(EndpointName=f"{NAME}-moving", ContentType="application/json", Body=b"{}")
