"""What services of the local AWS write about themselves to CloudWatch: rules, builds and queues.

Sources: EventBridge user guide, "Monitoring Amazon EventBridge"; CodeBuild user guide, "CodeBuild CloudWatch metrics";
SQS developer guide, "Available CloudWatch metrics". Only what an alarm or a graph of this project reads is written.
"""

from __future__ import annotations

from typing import Any

from ministack.core.responses import request_scope
from ministack.services import eventbridge, sqs

from tritonstack import aws_names
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import metric_store
from tritonstack_local.emulator.codebuild.build import Build

_FAILED = frozenset({"FAILED", "TIMED_OUT"})
"""``FailedBuilds`` are those that failed "because of client error or a timeout"."""
_MINUTE = 60


def count_invocations() -> None:
    """Have every event that a rule hands to a target counted: ``Invocations`` by ``RuleName``. Once a process."""
    theirs = eventbridge._invoke_target

    def invoke(target: dict[str, Any], event: dict[str, Any], rule: dict[str, Any], view: Any = None) -> None:
        theirs(target, event, rule, view)
        metric_store.record(aws_names.EVENTS, aws_names.INVOCATIONS, 1, "Count", {aws_names.RULE_NAME: rule["Name"]})

    eventbridge._invoke_target = invoke


def count_build(build: Build) -> None:
    """Write of a build that has ended; a stopped one neither failed nor succeeded."""
    of = {aws_names.PROJECT_NAME: build.plan.project}
    metric_store.record(aws_names.CODEBUILD, aws_names.BUILDS, 1, "Count", of)
    metric_store.record(aws_names.CODEBUILD, aws_names.BUILD_DURATION, clock.now() - build.start, "Seconds", of)
    ends = {aws_names.SUCCEEDED_BUILDS: build.status == "SUCCEEDED", aws_names.FAILED_BUILDS: build.status in _FAILED}
    for name, holds in ends.items():
        if holds:
            metric_store.record(aws_names.CODEBUILD, name, 1, "Count", of)


class QueueDepths:
    """How many messages wait in each queue, once a minute."""

    def __init__(self) -> None:
        """Nothing written yet."""
        self._written: dict[str, int] = {}

    def write(self) -> None:
        """Write of this minute what was not written yet; called before each evaluation of the alarms."""
        minute = int(clock.now() // _MINUTE)
        for (account, region, _), queue in list(sqs._queues._data.items()):
            arn = queue["attributes"]["QueueArn"]
            if self._written.get(arn) == minute:
                continue
            self._written[arn] = minute
            sqs._refresh_counts(queue)
            waiting = int(queue["attributes"]["ApproximateNumberOfMessages"])
            with request_scope(account, region):
                metric_store.record(
                    aws_names.QUEUES,
                    aws_names.VISIBLE_MESSAGES,
                    waiting,
                    "Count",
                    {aws_names.QUEUE_NAME: queue["name"]},
                )
