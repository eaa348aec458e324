"""What follows a change of state: SNS messages; and composite alarms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.tritonstack_local.emulator.cloudwatch.watching import Inbox, Watching
from tests.tritonstack_local.emulator.running import Emulator

POLICY = (
    "arn:aws:autoscaling:us-east-1:123456789012:scalingPolicy:local:resource/sagemaker/endpoint/e/variant/v"
    ":policyName/p"
)


@pytest.fixture
def inbox(aws: Emulator, name: str) -> Inbox:
    """A queue of this test."""
    return Inbox(aws, f"{name}-inbox")


def test_a_topic_gets_the_message_of_a_metric_alarm(watching: Watching, inbox: Inbox) -> None:
    topic = inbox.topic(watching.name)
    watching.write(9, of={"EndpointName": "e"})
    watching.put(
        Dimensions=[{"Name": "EndpointName", "Value": "e"}], AlarmActions=[topic], AlarmDescription="Runbook: look."
    )
    watching.evaluated()
    [notification] = inbox.wait()
    assert notification["Subject"] == f'ALARM: "{watching.name}" in us-east-1'
    message = json.loads(notification["Message"])
    alarm = watching.alarm()
    assert {key: message[key] for key in ("AlarmName", "AlarmArn", "AlarmDescription", "AWSAccountId", "Region")} == {
        "AlarmName": watching.name,
        "AlarmArn": alarm["AlarmArn"],
        "AlarmDescription": "Runbook: look.",
        "AWSAccountId": "123456789012",
        "Region": "us-east-1",
    }
    assert (message["OldStateValue"], message["NewStateValue"]) == ("INSUFFICIENT_DATA", "ALARM")
    assert message["NewStateReason"] == alarm["StateReason"]
    watching.pass_minutes(0)
    assert inbox.take() == [], "once a change"


def test_each_state_has_actions_of_its_own(watching: Watching, aws: Emulator) -> None:
    boxes = {kind: Inbox(aws, f"{watching.name}-{kind}") for kind in ("ok", "alarm", "none")}
    topics = {kind: box.topic(f"{watching.name}-{kind}") for kind, box in boxes.items()}
    watching.put(OKActions=[topics["ok"]], AlarmActions=[topics["alarm"]], InsufficientDataActions=[topics["none"]])
    watching.write(0)
    watching.evaluated()
    boxes["ok"].wait()
    watching.pass_minutes(10)
    boxes["none"].wait()
    assert boxes["alarm"].take() == []


def test_other_actions_are_recognised_and_reported_as_not_executed(watching: Watching) -> None:
    missing = f"arn:aws:sns:us-east-1:123456789012:{watching.name}-missing"
    watching.write(9)
    watching.put(AlarmActions=[POLICY, missing])
    watching.evaluated()
    log = watching.emulator.log.read_text()
    assert f"action {POLICY} is not executed: the local AWS executes no such action" in log
    assert f"action {missing} is not executed: there is no such topic" in log


# Composite alarms ---------------------------------------------------------------------------------------------------


class Family:
    """Two metric alarms, set by hand, and composite alarms over them."""

    def __init__(self, watching: Watching) -> None:
        """The children are in OK."""
        self.watching = watching
        self.one, self.two = f"{watching.name}-one", f"{watching.name}-two"
        for child in (self.one, self.two):
            watching.put(child)
            self.set(child, "OK")

    def set(self, child: str, state: str) -> None:
        """SetAlarmState."""
        self.watching.cloudwatch.set_alarm_state(AlarmName=child, StateValue=state, StateReason="by hand")

    def put(self, rule: str, name: str = "", **more: Any) -> None:
        """PutCompositeAlarm; ``{0}`` and ``{1}`` are the children."""
        rule = rule.format(f'"{self.one}"', self.two)
        self.watching.cloudwatch.put_composite_alarm(AlarmName=name or self.watching.name, AlarmRule=rule, **more)


@pytest.fixture
def family(watching: Watching) -> Family:
    """Composite alarms of this test."""
    return Family(watching)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (" OR ".join(["ALARM({0})"] * 101), "more than 100 alarms, it names 101"),
        ("ALARM({0})".ljust(10_300), "length less than or equal to 10240"),
    ],
)
def test_a_rule_over_cloudwatch_s_limits_is_refused(family: Family, rule: str, sentence: str) -> None:
    """API reference, PutCompositeAlarm: AlarmRule."""
    with pytest.raises(ClientError, match=sentence):
        family.put(rule)


@pytest.mark.parametrize(
    ("rule", "firing"),
    [
        ("(ALARM({0}) OR INSUFFICIENT_DATA({0})) AND OK({1})", [("ALARM", "OK")]),
        ("ALARM({0}) OR ALARM({1}) AND FALSE", [("ALARM", "OK"), ("ALARM", "ALARM")]),
        ("NOT (ALARM({0}) OR FALSE)", [("OK", "OK"), ("OK", "ALARM")]),
    ],
)
def test_a_composite_alarm_follows_its_rule(family: Family, rule: str, firing: list[tuple[str, str]]) -> None:
    family.put(rule)
    found = []
    for one in ("OK", "ALARM"):
        for two in ("OK", "ALARM"):
            family.set(family.one, one)
            family.set(family.two, two)
            if family.watching.alarm()["StateValue"] == "ALARM":
                found.append((one, two))
    assert sorted(found) == sorted(firing)


def test_a_composite_alarm_follows_data_and_notifies_its_topic(family: Family, inbox: Inbox) -> None:
    watching = family.watching
    family.put("ALARM({0}) AND ALARM({1})", AlarmActions=[inbox.topic(watching.name)])
    assert watching.alarm()["StateValue"] == "OK"
    watching.pass_minutes()
    watching.write(9)
    assert watching.state() == "ALARM"
    message = json.loads(inbox.wait()[0]["Message"])
    assert (message["NewStateValue"], message["AlarmRule"]) == (
        "ALARM",
        f'ALARM("{family.one}") AND ALARM({family.two})',
    )
    alarm = watching.alarm()
    assert " transitioned to ALARM at " in alarm["StateReason"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("ALARM(nobody)", "alarms .*nobody. in the alarm rule do not exist"),
        ("ALARM({0}) XOR ALARM({1})", "Error in AlarmRule"),
        ("ALARM({0}", "Error in AlarmRule"),
    ],
)
def test_invalid_rules_are_refused(family: Family, rule: str, words: str) -> None:
    with pytest.raises(ClientError, match=words):
        family.put(rule)


# Listing ------------------------------------------------------------------------------------------------------------
