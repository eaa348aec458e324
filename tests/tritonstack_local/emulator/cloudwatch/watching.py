"""What the tests of alarms do: write metrics at the emulator's time, put alarms, look at them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from tests.tritonstack_local.emulator.running import Emulator, wait_until

PERIOD = 60


class Watching:
    """One metric namespace that no other test has, in an emulator whose clock is at the beginning of a minute."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        """``name`` is that of the namespace and of the alarm."""
        self.emulator, self.name = emulator, name
        self.cloudwatch = emulator.client("cloudwatch")
        emulator.advance(PERIOD - self.now() % PERIOD + 0.5)
        while not 2 < self._ahead() % PERIOD < 58:  # else a slow response would shift it by a minute
            emulator.advance(3)
        self.start = int(self.now() // PERIOD * PERIOD)

    def _ahead(self) -> float:
        return self.now() - time.time() + 0.5

    @property
    def shifted_start(self) -> int:
        """``start`` in a caller's time: the emulator shifts it by the whole minutes that its clock is ahead."""
        return self.start - int(self._ahead() // PERIOD * PERIOD)

    def now(self) -> float:
        """The emulator's time."""
        return float(self.emulator.get("/_tritonstack/clock")["now"])

    def write(
        self, *values: float, minutes_ago: int = 1, metric: str = "Errors", of: Mapping[str, str] | None = None
    ) -> None:
        """Values in one of the minutes before ``start``; ``of`` are dimensions."""
        datum: dict[str, Any] = {
            "MetricName": metric,
            "Timestamp": self.shifted_start - minutes_ago * PERIOD + 5,
            "Dimensions": [{"Name": key, "Value": value} for key, value in (of or {}).items()],
            "Values": list(values),
        }
        self.cloudwatch.put_metric_data(Namespace=self.name, MetricData=[datum])

    def put(self, name: str = "", **changed: Any) -> None:
        """An alarm on the sum of Errors in a minute: more than 5 is too much. None takes a member away."""
        settings: Mapping[str, Any] = {
            "AlarmName": name or self.name,
            "Namespace": self.name,
            "MetricName": "Errors",
            "Statistic": "Sum",
            "Period": PERIOD,
            "EvaluationPeriods": 1,
            "Threshold": 5,
            "ComparisonOperator": "GreaterThanThreshold",
            **changed,
        }
        self.cloudwatch.put_metric_alarm(**{key: value for key, value in settings.items() if value is not None})

    def put_math(self, expression: str, *, metrics: Mapping[str, Any], **changed: Any) -> None:
        """An alarm on an expression; ``metrics`` are Ids and names, or names with dimensions."""
        of_one = dict.fromkeys(("Namespace", "MetricName", "Statistic", "Period"))
        queries = [{"Id": "e1", "Expression": expression, "ReturnData": True}]
        queries += [{**self.query(key, metric), "ReturnData": False} for key, metric in metrics.items()]
        self.put(**{**of_one, "Metrics": queries, **changed})

    def query(
        self,
        identifier: str,
        metric: str,
        *,
        stat: str = "Sum",
        period: int = PERIOD,
        of: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """A MetricDataQuery; ``of`` are dimensions."""
        shown = [{"Name": key, "Value": value} for key, value in (of or {}).items()]
        what = {"Namespace": self.name, "MetricName": metric, "Dimensions": shown}
        return {"Id": identifier, "MetricStat": {"Metric": what, "Period": period, "Stat": stat}}

    def pass_minutes(self, minutes: int = 1) -> None:
        """Move the clock on; the alarms are evaluated when this comes back."""
        self.emulator.advance(minutes * PERIOD)
        self.start += minutes * PERIOD

    def evaluated(self) -> None:
        """Have the alarms evaluated now, without waiting for it."""
        self.emulator.advance(0)

    def alarm(self, name: str = "") -> dict[str, Any]:
        """The alarm as described."""
        response = self.cloudwatch.describe_alarms(
            AlarmNames=[name or self.name], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        [found] = response["MetricAlarms"] + response["CompositeAlarms"]
        return dict(found)

    def state(self, name: str = "") -> str:
        """The state after an evaluation now."""
        self.evaluated()
        return str(self.alarm(name)["StateValue"])


class Inbox:
    """A queue, its sources, and the messages that came in."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        """A queue of that name."""
        self._emulator, self._sqs = emulator, emulator.client("sqs")
        self._url = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        attributes = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])
        self.arn = attributes["Attributes"]["QueueArn"]

    def topic(self, name: str) -> str:
        """An SNS topic whose messages come here; its ARN."""
        sns = self._emulator.client("sns")
        arn = str(sns.create_topic(Name=name)["TopicArn"])
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=self.arn)
        return arn

    def rule(self, name: str, pattern: dict[str, Any]) -> None:
        """An EventBridge rule whose events come here."""
        events = self._emulator.client("events")
        events.put_rule(Name=name, EventPattern=json.dumps(pattern))
        events.put_targets(Rule=name, Targets=[{"Id": "inbox", "Arn": self.arn}])

    def take(self) -> list[dict[str, Any]]:
        """What came in and was not taken yet."""
        messages = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages", [])
        for message in messages:
            self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in messages]

    def wait(self) -> list[dict[str, Any]]:
        """As ``take``, once there is something."""
        taken: list[dict[str, Any]] = wait_until(self.take, bool)
        return taken
