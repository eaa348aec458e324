"""State changes of builds reach Lambdas through EventBridge rules."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.tritonstack_local.emulator.building import (
    bucket,
    buildspec,
    logged,
    make_project,
    make_service_role,
    run,
)
from tests.tritonstack_local.emulator.running import PYTHON, REPOSITORY, Emulator, make_function, wait_until

# Keeps each event under its id; fails the first so many times that it sees one.
KEEPER = """
    import json
    import os

    import boto3

    def handler(event, context):
        ssm = boto3.client("ssm")
        base = "/" + os.environ["NAME"]
        try:
            seen = int(ssm.get_parameter(Name=base + "/seen")["Parameter"]["Value"])
        except ssm.exceptions.ParameterNotFound:
            seen = 0
        ssm.put_parameter(Name=base + "/seen", Value=str(seen + 1), Type="String", Overwrite=True)
        if seen < int(os.environ["FAILURES"]):
            raise ValueError("not yet")
        boto3.client("s3").put_object(Bucket=os.environ["NAME"], Key=event["id"], Body=json.dumps(event))
"""


def _listen(emulator: Emulator, name: str, *, failures: int = 0, statuses: tuple[str, ...] = ()) -> None:
    """A rule for the project ``name`` whose target is a Lambda that keeps the events in a bucket of that name."""
    bucket(emulator, name)
    function = make_function(emulator, name, KEEPER, NAME=name, FAILURES=str(failures))
    detail: dict[str, Any] = {"project-name": [name], **({"build-status": list(statuses)} if statuses else {})}
    pattern = {"source": ["aws.codebuild"], "detail-type": ["CodeBuild Build State Change"], "detail": detail}
    rules = emulator.client("events")
    rules.put_rule(Name=name, EventPattern=json.dumps(pattern))
    rules.put_targets(Rule=name, Targets=[{"Id": "keeper", "Arn": function}])


def _kept(emulator: Emulator, name: str, *, count: int) -> list[dict[str, Any]]:
    """The events, by status, once there are so many."""
    store = emulator.client("s3")
    found = wait_until(
        lambda: store.list_objects_v2(Bucket=name).get("Contents", []), lambda entries: len(entries) >= count
    )
    events = [json.loads(store.get_object(Bucket=name, Key=one["Key"])["Body"].read()) for one in found]
    return sorted(events, key=lambda event: str(event["detail"]["build-status"] != "IN_PROGRESS"))


def test_every_status_change_reaches_the_lambda_of_a_matching_rule(aws: Emulator, name: str) -> None:
    _listen(aws, name)
    make_project(aws, name, buildspec("exit 7"))
    build = run(aws, name, environmentVariablesOverride=[{"name": "TRITONSTACK_WAIT", "value": "staging/w.json"}])
    began, finished = _kept(aws, name, count=2)
    assert (began["source"], began["detail-type"]) == ("aws.codebuild", "CodeBuild Build State Change")
    assert began["resources"] == finished["resources"] == [build["arn"]]
    assert began["detail"]["build-status"] == "IN_PROGRESS"
    assert not began["detail"]["additional-information"]["build-complete"]
    detail = finished["detail"]
    assert (detail["build-status"], detail["project-name"], detail["build-id"]) == ("FAILED", name, build["arn"])
    assert (detail["current-phase"], detail["current-phase-context"], detail["version"]) == ("COMPLETED", "[]", "1")
    information = detail["additional-information"]
    assert (information["timeout-in-minutes"], information["build-number"]) == (60, 1)
    assert information["logs"]["group-name"] == build["logs"]["groupName"]
    assert information["logs"]["stream-name"] == build["logs"]["streamName"]
    assert information["logs"]["deep-link"].startswith(
        "https://console.aws.amazon.com/cloudwatch/home?region=us-east-1"
    )
    assert information["environment"]["environment-variables"] == [
        {"name": "TRITONSTACK_WAIT", "value": "staging/w.json", "type": "PLAINTEXT"}
    ]


def test_event_that_no_attempt_takes_goes_to_the_failure_destination(aws: Emulator, name: str) -> None:
    _listen(aws, name, failures=100, statuses=("SUCCEEDED",))
    queues = aws.client("sqs")
    queue = queues.create_queue(QueueName=name)["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    aws.client("lambda").put_function_event_invoke_config(
        FunctionName=name, MaximumRetryAttempts=1, DestinationConfig={"OnFailure": {"Destination": arn}}
    )
    make_project(aws, name, buildspec("true"))
    build = run(aws, name)
    wait_until(lambda: _seen(aws, name), lambda seen: seen >= 1)
    _advance_until_seen(aws, name, 2)
    [message] = wait_until(lambda: queues.receive_message(QueueUrl=queue).get("Messages", []), bool)
    assert json.loads(message["Body"])["requestPayload"]["detail"]["build-id"] == build["arn"]
    assert _seen(aws, name) == 2


def _seen(emulator: Emulator, name: str) -> int:
    """How often the Lambda saw an event."""
    ssm = emulator.client("ssm")
    try:
        return int(ssm.get_parameter(Name=f"/{name}/seen")["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return 0


def _advance_until_seen(emulator: Emulator, name: str, count: int) -> None:
    """Move the clock on minute by minute: the wait begins some time after the failure was seen."""

    def look() -> int:
        emulator.advance(60)
        return _seen(emulator, name)

    wait_until(look, lambda seen: seen >= count)


def test_project_of_a_template_keeps_its_settings(aws: Emulator, name: str) -> None:
    make_service_role(aws)
    codebuild = aws.client("codebuild")
    properties = {
        "Name": name,
        "ServiceRole": "arn:aws:iam::123456789012:role/builder",
        "Source": {"Type": "NO_SOURCE", "BuildSpec": json.dumps(buildspec("echo $A", "echo ready"))},
        "Artifacts": {"Type": "NO_ARTIFACTS"},
        "Cache": {"Type": "NO_CACHE"},
        "EncryptionKey": "alias/aws/s3",
        "Environment": {
            "Type": "LINUX_CONTAINER",
            "Image": "aws/codebuild/standard:7.0",
            "ComputeType": "BUILD_GENERAL1_SMALL",
            "ImagePullCredentialsType": "CODEBUILD",
            "PrivilegedMode": False,
            "EnvironmentVariables": [{"Name": "A", "Type": "PLAINTEXT", "Value": "from the template"}],
        },
        "LogsConfig": {"CloudWatchLogs": {"Status": "ENABLED", "GroupName": f"/builds/{name}"}},
        "TimeoutInMinutes": 600,
        "QueuedTimeoutInMinutes": 60,
        "Tags": [{"Key": "team", "Value": "platform"}],
        "VpcConfig": {"VpcId": "vpc-1", "Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
        "Visibility": "PRIVATE",
    }
    template = {"Project": {"Type": "AWS::CodeBuild::Project", "Properties": properties}}
    assert aws.deploy(name, template) == "CREATE_COMPLETE", aws.failures(name)
    [project] = codebuild.batch_get_projects(names=[name])["projects"]
    assert project["logsConfig"] == {"cloudWatchLogs": {"status": "ENABLED", "groupName": f"/builds/{name}"}}
    assert (project["timeoutInMinutes"], project["queuedTimeoutInMinutes"]) == (600, 60)
    assert project["vpcConfig"]["vpcId"] == "vpc-1"
    build = run(aws, name)
    assert build["buildStatus"] == "SUCCEEDED"
    assert build["logs"]["groupName"] == f"/builds/{name}"
    logged(aws, build["id"], "from the template")

    del properties["LogsConfig"]
    properties["TimeoutInMinutes"] = 30
    assert aws.deploy(name, template) == "UPDATE_COMPLETE", aws.failures(name)
    [project] = codebuild.batch_get_projects(names=[name])["projects"]
    assert "logsConfig" not in project
    build = run(aws, name)
    assert (build["logs"]["groupName"], build["timeoutInMinutes"]) == (f"/aws/codebuild/{name}", 30)
    assert aws.delete_stack(name) == "DELETE_COMPLETE"
    assert codebuild.batch_get_projects(names=[name])["projectsNotFound"] == [name]


# Replaces the Lambda, which fails the given number of times, and the wait, which moves the clock instead.
SCRIPT = """
import json
import sys

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.ministack_adapter import lambda_functions

attempts, waits, sent = [], [], []

def execute(record, event):
    attempts.append(event)
    return {"error": len(attempts) <= failures, "body": "no"}

def wait_for(happened, deadline):
    waits.append(round(deadline.remaining))
    clock.advance(deadline.remaining)
    return happened()

lambda_functions.execute_function = execute
lambda_functions.route_async_failure = lambda arn, *rest: sent.append(arn)
clock.wait_for = wait_for
for failures, settings in json.loads(sys.argv[1]):
    for each in (attempts, waits, sent):
        each.clear()
    service_events._deliver("name", {"config": {}, "event_invoke_config": settings}, {"a": 1})
    print(json.dumps([len(attempts), waits, sent]))
"""
QUEUE = {"DestinationConfig": {"OnFailure": {"Destination": "arn:queue"}}}


def test_function_that_fails_is_invoked_again_after_one_minute_and_two() -> None:
    cases: list[tuple[int, dict[str, Any], list[Any]]] = [
        (0, QUEUE, [1, [], []]),
        (1, QUEUE, [2, [60], []]),
        (9, QUEUE, [3, [60, 120], ["arn:queue"]]),
        (9, {"MaximumRetryAttempts": 1}, [2, [60], []]),
        (9, {**QUEUE, "MaximumRetryAttempts": 0}, [1, [], ["arn:queue"]]),
        (9, {**QUEUE, "MaximumEventAgeInSeconds": 100}, [2, [60], ["arn:queue"]]),
    ]
    ran = subprocess.run(
        [PYTHON, "-c", SCRIPT, json.dumps([case[:2] for case in cases])],
        env={"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    printed = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
    assert printed == [expected for _, _, expected in cases]
