"""The key of an encrypted topic, and which services its policy lets publish."""

from __future__ import annotations

import importlib
import json
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import Inbox, Watching
from tests.tritonstack_local.emulator.running import Emulator, parameter, wait_until

SOURCE = {"StringEquals": {"aws:SourceAccount": "123456789012"}}
BOTH = ["kms:Decrypt", "kms:GenerateDataKey"]


def deployed_topic(
    aws: Emulator, inbox: Inbox, name: str, statements: list[dict[str, Any]], *, key: bool = True
) -> str:
    """A topic under a key with such a policy, whose messages come into the inbox; its ARN."""
    account = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::123456789012:root"}, "Action": "kms:*"}
    policy = {"Version": "2012-10-17", "Statement": [{"Resource": "*", **each} for each in (account, *statements)]}
    under = {"KmsMasterKeyId": {"Fn::GetAtt": ["Key", "Arn"]}} if key else {}
    resources = {
        "Key": {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": policy}},
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": name, **under}},
    }
    aws.deploy(name, resources)
    arn = aws.physical(name, "Topic")
    aws.client("sns").subscribe(TopicArn=arn, Protocol="sqs", Endpoint=inbox.arn)
    return arn


def service(name: str, *actions: str, **more: Any) -> dict[str, Any]:
    """A statement that allows a service."""
    return {"Effect": "Allow", "Principal": {"Service": f"{name}.amazonaws.com"}, "Action": list(actions), **more}


@pytest.fixture
def inbox(aws: Emulator, name: str) -> Inbox:
    """A queue of this test."""
    return Inbox(aws, f"{name}-inbox")


@pytest.mark.parametrize(
    ("statement", "delivered"),
    [
        (service("events", "kms:GenerateDataKey*", "kms:Decrypt"), True),
        (service("events", *BOTH, Condition=SOURCE), False),
        (service("events", "kms:Decrypt"), False),
    ],
    ids=["by pattern", "asked for the source", "half allowed"],
)
def test_eventbridge_publishes_where_the_key_lets_it_in_without_a_source(
    aws: Emulator, inbox: Inbox, name: str, statement: dict[str, Any], delivered: bool
) -> None:
    events = aws.client("events")
    topics = [
        deployed_topic(aws, inbox, name, [statement]),
        deployed_topic(aws, inbox, f"{name}-plain", [], key=False),  # the control: it comes after the other
    ]
    events.put_rule(Name=name, EventPattern=json.dumps({"source": [name]}))
    for number, topic in enumerate(topics):
        events.put_targets(Rule=name, Targets=[{"Id": str(number), "Arn": topic}])
    events.put_events(Entries=[{"Source": name, "DetailType": "any", "Detail": "{}"}])
    taken: list[dict[str, Any]] = []

    def received() -> set[str]:
        taken.extend(inbox.take())
        return {each["TopicArn"] for each in taken}

    assert wait_until(received, lambda found: topics[1] in found) == {*topics[1 - delivered :]}
    assert (f"event not delivered to {topics[0]}: the policy of arn:aws:kms:" in aws.log.read_text()) is not delivered


def test_an_alarm_calls_with_its_source_and_the_log_reports_what_the_key_refused(
    aws: Emulator, inbox: Inbox, name: str
) -> None:
    watching = Watching(aws, name)
    alarms = {"ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:us-east-1:123456789012:alarm:{watching.name}*"}}
    allowed = service("cloudwatch", *BOTH, Condition=SOURCE | alarms)
    refused = service("cloudwatch", *BOTH, Condition={"StringEquals": {"aws:SourceAccount": "999999999999"}})
    topics = [deployed_topic(aws, inbox, f"{name}-{i}", [each]) for i, each in enumerate((allowed, refused))]
    watching.write(9)
    watching.put(AlarmActions=topics)
    watching.evaluated()
    assert [each["TopicArn"] for each in inbox.wait()] == topics[:1]
    assert "does not allow cloudwatch.amazonaws.com kms:Decrypt and kms:GenerateDataKey" in aws.log.read_text()


def test_a_topic_keeps_and_loses_its_key_with_its_template(aws: Emulator, inbox: Inbox, name: str) -> None:
    topic = deployed_topic(aws, inbox, name, [])
    attributes = aws.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]
    assert attributes["KmsMasterKeyId"].startswith("arn:aws:kms:us-east-1:123456789012:key/")
    aws.update_stack(name, {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": name}}})
    aws.settled(name)
    assert "KmsMasterKeyId" not in aws.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]


KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.fixture(scope="module")
def log_group() -> ModuleType:
    return importlib.import_module("lambda.endpoint_log.handler")


def test_a_group_that_was_retained_is_adopted_with_new_retention_and_key_and_given_back(
    aws: Emulator, name: str, log_group: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function of an endpoint's log group, on the local AWS's services, in stack operations in progress."""
    in_progress = SimpleNamespace(stack_status="DELETE_IN_PROGRESS", require=lambda: None)
    monkeypatch.setattr(log_group, "Operation", lambda *_: in_progress)
    services = importlib.import_module("lambda.shared.clients").Aws(aws.client)
    assert aws.deploy(name, {"Parameter": parameter()}) == "CREATE_COMPLETE"
    group, arn = f"/aws/sagemaker/Endpoints/{name}", "arn:aws:logs:us-east-1:123456789012:log-group:"
    logs = aws.client("logs")

    def send(request: str, **changes: str) -> str:
        properties = {"LogGroupName": group, "LogGroupArn": f"{arn}{group}", "RetentionInDays": "30", "KmsKeyId": KEY}
        given = properties | {"Retain": "true"} | changes
        stack = aws.settled(name)["StackId"]
        done: str = log_group.apply({"RequestType": request, "StackId": stack, "ResourceProperties": given}, services)
        return done

    def described() -> list[tuple[object, object]]:
        found = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        return [(each.get("retentionInDays"), each.get("kmsKeyId")) for each in found]

    assert (send("Create"), send("Delete"), described()) == ("made", "kept", [(30, KEY)])
    assert send("Create", RetentionInDays="90", Retain="false") == "adopted"
    assert described() == [(90, KEY)]
    assert [send("Delete", Retain="false") for _ in range(2)] == ["given back", "kept"]
    assert described() == [(None, None)]  # as before the first stack
    logs.delete_log_group(logGroupName=group)
    assert send("Create", Retain="false") == "made"
    assert [send("Delete", Retain="false") for _ in range(2)] == ["deleted", "deleted"]
    assert described() == []


def test_the_key_of_a_group_that_is_not_there_is_refused_and_one_can_be_taken_away(aws: Emulator, name: str) -> None:
    logs = aws.client("logs")
    with pytest.raises(logs.exceptions.ResourceNotFoundException):
        logs.associate_kms_key(logGroupName=name, kmsKeyId=KEY)
    logs.create_log_group(logGroupName=name, kmsKeyId=KEY)
    logs.disassociate_kms_key(logGroupName=name)
    [group] = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    assert "kmsKeyId" not in group
