"""Stack operations as CloudFormation runs them: events, operation ids, failed rollbacks."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.docs.pages import CodeBlock, code_blocks
from tests.tritonstack_local.emulator.running import REPOSITORY, Emulator, parameter
from tests.tritonstack_local.emulator.scaled_endpoint import ScaledEndpoint
from tests.tritonstack_local.emulator.test_faults import send

PAGE, HEADING = "docs/troubleshooting.md", "A rollback that failed"
REFUSED = {"status": 400, "code": "ValidationException"}  # a denied request would be repeated for a minute
T4, A10G = "g4dn-xlarge", "ml.g5.12xlarge"


def documented() -> tuple[CodeBlock, CodeBlock, CodeBlock]:
    """The page's blocks: what failed, going on, going on without."""
    found, on, without = (block for block in code_blocks(PAGE) if block.heading == HEADING)
    return found, on, without


def run(block: CodeBlock, aws: Emulator, **variables: str) -> str:
    """Output of a documented block, run unchanged but for the AWS CLI's wait, which polls every 30 s."""
    commands = "\n".join(line for line in block.commands.splitlines() if " wait " not in line)
    programs = f"{REPOSITORY / '.envs' / 'main' / 'bin'}:{os.environ['PATH']}"
    environment = {
        "PATH": programs, "HOME": os.environ["HOME"], "AWS_ENDPOINT_URL": aws.url, "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_PAGER": "", **variables,
    }  # fmt: skip
    ended = subprocess.run(
        ["bash", "-euc", commands], env=environment, text=True, capture_output=True, timeout=120, check=False
    )
    assert ended.returncode == 0, f"{block}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def rolled_back(aws: Emulator, stack: str) -> dict[str, str]:
    """Logical id → reason, of what failed in the rollback of a stack, as the page's first block prints it."""
    lines = [line.split("\t") for line in run(documented()[0], aws, STACK=stack).splitlines()]
    names = [line[0] for line in lines]
    forth = names.index("Later")  # the update's own failure, which the rollback follows
    return {name: reason for name, _, status, reason in lines[:forth] if status == "UPDATE_FAILED" and name != stack}


@pytest.fixture
def stuck(fleets: Emulator, name: str) -> Iterator[ScaledEndpoint]:
    """A change of type that failed late, and on whose way back Application Auto Scaling refuses the function."""
    endpoint = ScaledEndpoint(fleets, name)
    assert endpoint.deploy("in_service") == "CREATE_COMPLETE", fleets.failures(name)
    endpoint.scale(3)
    endpoint.start(instance_type=A10G, broken_later=True)
    forth = endpoint.pending()
    fleets.report(name, forth, "in_service")
    while (back := endpoint.pending()) == forth:
        pass
    assert send(fleets, "POST", {**REFUSED, "operation": "RegisterScalableTarget", "times": 50})[0] == 200
    fleets.report(name, back, "in_service")
    assert fleets.settled(name)["StackStatus"] == "UPDATE_ROLLBACK_FAILED"
    yield endpoint
    send(fleets, "DELETE")


@pytest.mark.parametrize("way", ["fixed", pytest.param("skipped", marks=pytest.mark.long)])
def test_the_page_leads_out_of_a_rollback_that_failed(stuck: ScaledEndpoint, way: str) -> None:
    aws, stack = stuck.emulator, stuck.name
    with pytest.raises(ClientError, match="UPDATE_ROLLBACK_FAILED"):
        stuck.start(startup=700)
    assert (stuck.live[0], stuck.targets) == (T4, {}), "it serves, and is not scaled"
    if way == "fixed":  # scaled meanwhile
        [register] = (block for block in code_blocks(PAGE) if block.heading == "A variant that is no longer scaled")
        send(aws, "DELETE")
        run(register, aws, ENDPOINT=stack, MINIMUM="1", MAXIMUM="6")
        assert stuck.targets == {T4: (1, 6)}
    failed = rolled_back(aws, stack)
    assert list(failed) == [one for one in failed if "ScalingAfter" in one]
    assert all(str(REFUSED["code"]) in reason for reason in failed.values())

    send(aws, "DELETE")  # what denied it is fixed
    _, on, without = documented()
    if way == "fixed":
        run(on, aws, STACK=stack)
    else:
        [resource] = failed
        run(without, aws, STACK=stack, RESOURCE=resource)
        skipped = [
            event["ResourceStatusReason"]
            for event in stuck.stacks.describe_stack_events(StackName=stack)["StackEvents"]
            if event["LogicalResourceId"] == resource and "skipped" in event.get("ResourceStatusReason", "")
        ]
        assert len(skipped) == 1
    assert aws.settled(stack)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert (stuck.live, stuck.targets) == ((T4, 3), {T4: (1, 6)})
    assert stuck.deploy("in_service", startup=700) == "UPDATE_COMPLETE"


def test_a_fleet_that_got_no_instances_on_the_way_back_is_started_when_there_are_some(
    fleets: Emulator, name: str
) -> None:
    endpoint = ScaledEndpoint(fleets, name)
    assert endpoint.deploy("in_service") == "CREATE_COMPLETE", fleets.failures(name)
    send(fleets, "POST", {"instance_type": "ml.g4dn.xlarge", "short_of": "capacity", "times": 1})
    assert endpoint.deploy("in_service", instance_type=A10G, broken_later=True) == "UPDATE_ROLLBACK_FAILED"
    failed = rolled_back(fleets, name)
    assert ["Endpoint" in one for one in failed] == [True], "nothing that depends on the endpoint was come to"
    assert "InsufficientInstanceCapacity" in str(failed)
    assert endpoint.live[0] == "g5-12xlarge", "what serves goes on serving"
    endpoint.stacks.continue_update_rollback(StackName=name)
    assert endpoint.finish("in_service") == "UPDATE_ROLLBACK_COMPLETE"
    assert (endpoint.live[0], endpoint.targets, list(endpoint.policies)) == (T4, {T4: (1, 6)}, [T4])


NEVER_MADE = {"Type": "AWS::CloudFormation::WaitCondition", "Properties": {"Handle": "none", "Timeout": "43201"}}


def test_each_operation_and_each_rollback_has_an_id_of_its_own(aws: Emulator, name: str) -> None:
    assert aws.deploy(name, {"First": parameter()}) == "CREATE_COMPLETE"
    for number in range(2):
        broken = {"First": parameter(), f"Second{number}": parameter(), "Wait": NEVER_MADE}
        assert aws.deploy(name, broken) == "UPDATE_ROLLBACK_COMPLETE"
    operations = operations_of(aws, name)
    assert len({operation for operation, _ in operations}) == len(operations) == 5
    statuses = [status for _, status in operations]
    update, rollback = "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"
    assert statuses == ["CREATE_IN_PROGRESS", update, rollback, update, rollback]


def operations_of(aws: Emulator, stack: str) -> list[tuple[str, str]]:
    """The operations' ids, oldest first, and with which status of the stack each began."""
    events: list[dict[str, Any]] = aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    assert all(event["OperationId"] for event in events)
    groups = groupby(reversed(events), key=lambda event: str(event["OperationId"]))
    return [(operation, next(group)["ResourceStatus"]) for operation, group in groups]


def events(aws: Emulator, stack: str) -> list[tuple[str, str]]:
    """Logical id and status of every event of a stack's resources, oldest first."""
    found = aws.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
    return [
        (each["LogicalResourceId"], each["ResourceStatus"])
        for each in reversed(found)
        if each["LogicalResourceId"] != stack
    ]


def test_a_resource_that_an_update_leaves_as_it_is_has_no_event(aws: Emulator, name: str) -> None:
    follows = parameter({"Fn::GetAtt": ["Changed", "Value"]})
    aws.create_stack(name, {"Changed": parameter("1"), "Follows": follows, "Left": parameter("1")})
    assert aws.settled(name)["StackStatus"] == "CREATE_COMPLETE"
    before = len(events(aws, name))
    aws.update_stack(name, {"Changed": parameter("2"), "Follows": follows, "Left": parameter("1")})
    assert aws.settled(name)["StackStatus"] == "UPDATE_COMPLETE"
    assert events(aws, name)[before:] == [
        ("Changed", "UPDATE_IN_PROGRESS"),
        ("Changed", "UPDATE_COMPLETE"),
        ("Follows", "UPDATE_IN_PROGRESS"),
        ("Follows", "UPDATE_COMPLETE"),
    ]
    aws.update_stack(name, {"Changed": parameter("2"), "Follows": follows, "Left": parameter("3")})
    assert aws.settled(name)["StackStatus"] == "UPDATE_COMPLETE"
    assert events(aws, name)[-2:] == [("Left", "UPDATE_IN_PROGRESS"), ("Left", "UPDATE_COMPLETE")]


def test_what_an_update_could_not_delete_is_no_longer_the_stack_s(aws: Emulator, name: str) -> None:
    """User guide, "Troubleshooting CloudFormation": "Resource removed from stack but not deleted"."""
    bucket, kept = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}}, parameter("1")
    s3 = aws.client("s3")
    assert aws.deploy(name, {"Bucket": bucket, "Kept": kept}) == "CREATE_COMPLETE"
    s3.put_object(Bucket=name, Key="a", Body=b"1")
    assert aws.deploy(name, {"Kept": kept}) == "UPDATE_COMPLETE"
    cloudformation = aws.client("cloudformation")
    last = cloudformation.describe_stack_events(StackName=name)["StackEvents"][:2]
    assert [each["ResourceStatus"] for each in last] == ["UPDATE_COMPLETE", "DELETE_FAILED"]
    assert last[0]["ResourceStatusReason"] == "Update successful. One or more resources could not be deleted."
    [left] = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    assert left["LogicalResourceId"] == "Kept"
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    assert s3.list_objects_v2(Bucket=name)["KeyCount"] == 1, "it is nobody's now"


def test_a_parameter_of_ssm_is_described_by_its_name_there_with_what_it_resolved_to(aws: Emulator, name: str) -> None:
    aws.client("ssm").put_parameter(Name=f"/{name}/vpc-id", Value="vpc-1", Type="String")
    declared = {"Vpc": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": f"/{name}/vpc-id"}}
    own = {"Plain": {"Type": "String", "Default": "as given"}}
    template = {"Parameters": declared | own, "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    client = aws.client("cloudformation")
    client.create_stack(StackName=name, TemplateBody=json.dumps(template))
    for request in ({"StackName": name}, {}):
        [stack] = [each for each in client.describe_stacks(**request)["Stacks"] if each["StackName"] == name]
        rows = {each.pop("ParameterKey"): tuple(each.values()) for each in stack["Parameters"]}
        assert rows == {"Vpc": (f"/{name}/vpc-id", "vpc-1"), "Plain": ("as given",)}


def test_templates_and_dashboards_beyond_aws_quotas_are_refused(aws: Emulator, name: str) -> None:
    many = {f"P{number}": parameter() for number in range(501)}
    with pytest.raises(ClientError, match="Number of resources, 501, is greater than maximum allowed, 500"):
        aws.create_stack(name, many)
    metrics = [["AWS/SageMaker", f"M{number}"] for number in range(100)]
    widget = {"type": "metric", "properties": {"region": "us-east-1", "metrics": metrics}}
    body = {"widgets": [widget] * 26}
    cloudwatch = aws.client("cloudwatch")
    with pytest.raises(ClientError, match="2600 metrics of a dashboard, and AWS allows 2500"):
        cloudwatch.put_dashboard(DashboardName=name, DashboardBody=json.dumps(body))
    body["widgets"].pop()
    cloudwatch.put_dashboard(DashboardName=name, DashboardBody=json.dumps(body))


def test_a_function_whose_variables_exceed_lambda_s_four_kilobytes_is_refused(aws: Emulator, name: str) -> None:
    """Lambda developer guide, "Lambda quotas"; so it is by a stack and by a caller."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return None\n")
    function: dict[str, Any] = {
        "FunctionName": name,
        "Runtime": "python3.12",
        "Handler": "index.handler",
        "Role": "arn:aws:iam::000000000000:role/any",
        "Code": {"ZipFile": code.getvalue()},
    }
    lambdas = aws.client("lambda")
    with pytest.raises(ClientError, match="exceeded the 4KB limit"):
        lambdas.create_function(**function, Environment={"Variables": {"A": "v" * 4090}})
    lambdas.create_function(**function, Environment={"Variables": {"A": "v" * 4080}})
    with pytest.raises(ClientError, match="exceeded the 4KB limit"):
        lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": {"A": "v" * 4096}})
