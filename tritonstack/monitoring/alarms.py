"""Alarms of an environment: metrics, thresholds, severities, and the runbook section of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tritonstack import aws_names
from tritonstack.config import Thresholds
from tritonstack.monitoring.graphs import BuildProjects, Variant, cost_per_hour, number, project_metric
from tritonstack.monitoring.metric import Metric, Series

Severity = Literal["critical", "warning"]
"""critical: callers fail, somebody is woken. warning: it will not stay well, somebody looks by daylight."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning")
Comparison = Literal["GreaterThanThreshold", "GreaterThanOrEqualToThreshold", "LessThanThreshold"]
MissingData = Literal["breaching", "notBreaching", "ignore"]
"""What minutes without data count as (API reference: PutMetricAlarm). ``missing``, CloudWatch's default, is not among
them: nobody is told of INSUFFICIENT_DATA."""


@dataclass(frozen=True, kw_only=True)
class AlarmKind:
    """One thing that goes wrong; its heading in docs/operations.md is ``heading``."""

    heading: str
    severity: Severity

    @property
    def anchor(self) -> str:
        """The heading's anchor, as GitHub and GitLab make it; also part of the alarm's name."""
        return re.sub(r"[^a-z0-9-]", "", self.heading.lower().replace(" ", "-"))


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """One alarm.

    Attributes:
        kind: what goes wrong.
        subject: where: the endpoint's name at SageMaker, or what is built.
        says: the condition as a sentence, with its figures.
        series: what is looked at.
        comparison: with ``threshold``.
        threshold: in the unit of the series.
        period: seconds that one value covers.
        periods: values that are looked at.
        needed: how many of them must be beyond the threshold.
        missing: what a period without data counts as.
    """

    kind: AlarmKind
    subject: str
    says: str
    series: Series
    comparison: Comparison
    threshold: float
    period: int
    periods: int
    needed: int
    missing: MissingData

    @property
    def name(self) -> str:
        """The alarm's name, for those who read it at night: ``prod-digits-server-errors``."""
        return f"{self.subject}-{self.kind.anchor}"

    def description(self, *, runbooks: str) -> str:
        """What the alarm tells: the condition, and the paragraph that says what to do."""
        return f"{self.subject}: {self.says} Runbook: {runbooks}#{self.kind.anchor}"


SERVER_ERRORS = AlarmKind(heading="Server errors", severity="critical")
MODEL_ERRORS = AlarmKind(heading="Model errors", severity="warning")
LATENCY = AlarmKind(heading="Latency", severity="warning")
CACHE_THRASHING = AlarmKind(heading="Cache thrashing", severity="warning")
DISK_NEARLY_FULL = AlarmKind(heading="Disk nearly full", severity="critical")
GPU_MEMORY_NEARLY_FULL = AlarmKind(heading="GPU memory nearly full", severity="critical")
AT_MAXIMUM = AlarmKind(heading="At maximum instances", severity="warning")
NO_TRAFFIC = AlarmKind(heading="No traffic", severity="critical")
BUILD_FAILED = AlarmKind(heading="Build failed", severity="warning")
UNDELIVERED = AlarmKind(heading="Undelivered build events", severity="warning")
NOT_CLEANED_UP = AlarmKind(heading="Load test not cleaned up", severity="warning")
OVER_BUDGET = AlarmKind(heading="Cost over budget", severity="warning")
KINDS = (
    SERVER_ERRORS,
    MODEL_ERRORS,
    LATENCY,
    CACHE_THRASHING,
    DISK_NEARLY_FULL,
    GPU_MEMORY_NEARLY_FULL,
    AT_MAXIMUM,
    NO_TRAFFIC,
    BUILD_FAILED,
    UNDELIVERED,
    NOT_CLEANED_UP,
    OVER_BUDGET,
)
"""Every kind that some environment can have."""


MINUTE, FIVE_MINUTES = 60, 300


def endpoint_alarms(variant: Variant, thresholds: Thresholds, *, at_maximum_rule: str | None) -> Iterator[Alarm]:
    """The alarms of one endpoint, as its mode has data for them.

    Args:
        variant: the endpoint's.
        thresholds: of this endpoint.
        at_maximum_rule: the name of the rule that the scaling event at the maximum matches; None without scaling.
    """
    yield _errors(
        variant,
        kind=SERVER_ERRORS,
        metric=aws_names.INVOCATION_5XX_ERRORS,
        what="calls end with 5XX",
        percent=thresholds.server_error_percent,
        count=thresholds.server_errors,
    )
    yield _errors(
        variant,
        kind=MODEL_ERRORS,
        metric=aws_names.INVOCATION_MODEL_ERRORS,
        what="calls are answered with an error by the container",
        percent=thresholds.model_error_percent,
        count=thresholds.model_errors,
    )
    yield _latency(variant, thresholds)
    if variant.has_cache:
        yield _cache_thrashing(variant, thresholds)
    if not variant.settings.multi_model:
        yield from _filling(variant, thresholds)
    if at_maximum_rule is not None:
        yield _at_maximum(variant, at_maximum_rule)
    if thresholds.no_traffic_minutes is not None:
        yield _no_traffic(variant, minutes=thresholds.no_traffic_minutes)
    if thresholds.budget_usd_per_hour is not None and variant.price is not None:
        yield _over_budget(variant, budget=thresholds.budget_usd_per_hour, usd_per_hour=variant.price.usd_per_hour)


def build_alarms(environment: str, projects: BuildProjects, *, undelivered_queue: str) -> Iterator[Alarm]:
    """One for each project that deployments build with, and one for the queue of events that came to nothing."""
    for _, what, project in projects.named():
        yield Alarm(
            kind=BUILD_FAILED,
            subject=f"{environment}-{what}",
            says="a build failed, and a deployment may have waited for it.",
            series=Series.of("failed", "failed builds", project_metric(project, aws_names.FAILED_BUILDS, "Sum")),
            comparison="GreaterThanOrEqualToThreshold",
            threshold=1,
            period=FIVE_MINUTES,
            periods=1,
            needed=1,
            missing="notBreaching",  # CodeBuild writes when a build ends: nothing written is nothing failed
        )
    yield _waiting(
        undelivered_queue,
        kind=UNDELIVERED,
        subject=environment,
        says="an event that a build has ended reached no function, or the function failed on it.",
    )


def load_test_alarm(environment: str, *, undelivered_queue: str) -> Alarm:
    """The alarm on the queue of load tests that ended and that nobody could clean up after."""
    return _waiting(
        undelivered_queue,
        kind=NOT_CLEANED_UP,
        subject=environment,
        says="a load test has ended, and what it made could not be removed: its jobs' endpoints may run on, and cost.",
    )


def _waiting(queue: str, *, kind: AlarmKind, subject: str, says: str) -> Alarm:
    """On as long as a dead-letter queue, by its name, holds an event."""
    return Alarm(
        kind=kind,
        subject=subject,
        says=says,
        series=Series.of(
            "waiting",
            "events in the dead-letter queue",
            Metric(
                namespace=aws_names.QUEUES,
                name=aws_names.VISIBLE_MESSAGES,
                dimensions=((aws_names.QUEUE_NAME, queue),),
                statistic="Maximum",
            ),
        ),
        comparison="GreaterThanOrEqualToThreshold",
        threshold=1,
        period=FIVE_MINUTES,
        periods=1,
        needed=1,
        # SQS writes of a queue that was used within six hours: what waits in one that nobody uses still waits.
        missing="ignore",
    )


def _errors(variant: Variant, *, kind: AlarmKind, metric: str, what: str, percent: float, count: int) -> Alarm:
    return Alarm(
        kind=kind,
        subject=variant.endpoint_name,
        says=f"{number(percent)} % or more of a minute's {what}, {count} at least, in 3 of 5 minutes.",
        series=Series(
            key="share",
            label="% of calls",
            metrics={
                "errors": variant.calls(metric, "Sum"),
                "invocations": variant.calls(aws_names.INVOCATIONS, "Sum"),
            },
            expression=f"IF(errors >= {count}, 100 * errors / invocations, 0)",
        ),
        comparison="GreaterThanOrEqualToThreshold",
        threshold=percent,
        period=MINUTE,
        periods=5,
        needed=3,
        missing="notBreaching",  # a minute without a call has no errors; that nobody calls is another alarm
    )


def _latency(variant: Variant, thresholds: Thresholds) -> Alarm:
    limit = thresholds.p99_latency_ms
    return Alarm(
        kind=LATENCY,
        subject=variant.endpoint_name,
        says=f"one call in a hundred takes more than {number(limit)} ms in the model, in 3 of 5 minutes.",
        series=Series(
            key="milliseconds",
            label="p99 of the model, ms",
            metrics={"microseconds": variant.calls(aws_names.MODEL_LATENCY, "p99")},
            expression="microseconds / 1000",
        ),
        comparison="GreaterThanThreshold",
        threshold=limit,
        period=MINUTE,
        periods=5,
        needed=3,
        missing="notBreaching",  # no call, none slow; calls that never reach the model are server errors
    )


def _cache_thrashing(variant: Variant, thresholds: Thresholds) -> Alarm:
    hit, wait = thresholds.cache_hit_percent, thresholds.loading_wait_ms
    return Alarm(
        kind=CACHE_THRASHING,
        subject=variant.endpoint_name,
        says=f"for 15 minutes fewer than {number(hit)} % of calls found their model loaded, and the others waited more "
        f"than {number(wait)} ms for it.",
        series=Series(
            key="both",
            label="1 where both hold",
            metrics={
                "hit": variant.calls(aws_names.MODEL_CACHE_HIT, "Average"),
                "wait": variant.calls(aws_names.MODEL_LOADING_WAIT_TIME, "Average"),
            },
            # A low ratio alone is every quiet minute's; a long wait alone is every new model's.
            expression=f"IF(hit < {number(hit / 100)} AND wait > {number(wait * 1000)}, 1, 0)",
        ),
        comparison="GreaterThanOrEqualToThreshold",
        threshold=1,
        period=FIVE_MINUTES,
        periods=3,
        needed=3,  # a new fleet is cold, and warm after minutes
        missing="notBreaching",  # nothing called, or nothing waited for
    )


def _filling(variant: Variant, thresholds: Thresholds) -> Iterator[Alarm]:
    instance = variant.settings.instance
    full = (
        (DISK_NEARLY_FULL, aws_names.DISK_UTILIZATION, "disk", thresholds.disk_percent, 1),
        (
            GPU_MEMORY_NEARLY_FULL,
            aws_names.GPU_MEMORY_UTILIZATION,
            "GPU memory",
            thresholds.gpu_memory_percent,
            instance.gpu_count,
        ),
    )
    for kind, metric, what, percent, parts in full:
        yield Alarm(
            kind=kind,
            subject=variant.endpoint_name,
            says=f"an instance's {what} is {number(percent)} % full or more, for 15 minutes.",
            series=_per_part(metric=variant.instance(metric, "Maximum"), label=f"{what}, %", parts=parts),
            comparison="GreaterThanOrEqualToThreshold",
            threshold=percent,
            period=FIVE_MINUTES,
            periods=3,
            needed=3,
            missing="ignore",  # an instance that does not report is neither full nor empty: what was known stands
        )


def _per_part(*, metric: Metric, label: str, parts: int) -> Series:
    if parts == 1:
        return Series.of("full", label, metric)
    return Series(key="full", label=label, metrics={"sum": metric}, expression=f"sum / {parts}")


def _at_maximum(variant: Variant, rule: str) -> Alarm:
    return Alarm(
        kind=AT_MAXIMUM,
        subject=variant.endpoint_name,
        says="scaling reached the largest number of instances that it may start; more load finds no more of them.",
        series=Series.of(
            "reached",
            "times that scaling reached the maximum",
            Metric(
                namespace=aws_names.EVENTS,
                name=aws_names.INVOCATIONS,
                dimensions=((aws_names.RULE_NAME, rule),),
                statistic="Sum",
            ),
        ),
        comparison="GreaterThanOrEqualToThreshold",
        threshold=1,
        period=FIVE_MINUTES,
        periods=1,
        needed=1,
        missing="notBreaching",  # EventBridge writes the metric only where an event matched
    )


def _no_traffic(variant: Variant, *, minutes: int) -> Alarm:
    return Alarm(
        kind=NO_TRAFFIC,
        subject=variant.endpoint_name,
        says=f"nobody called it for {minutes} minutes.",
        series=Series.of("calls", "calls", variant.calls(aws_names.INVOCATIONS, "Sum")),
        comparison="LessThanThreshold",
        threshold=1,
        period=MINUTE,
        periods=minutes,
        needed=minutes,
        missing="breaching",  # SageMaker writes no Invocations for a minute without one: that is what is looked for
    )


def _over_budget(variant: Variant, *, budget: float, usd_per_hour: float) -> Alarm:
    return Alarm(
        kind=OVER_BUDGET,
        subject=variant.endpoint_name,
        says=f"its instances cost more than {number(budget)} USD an hour at {number(usd_per_hour)} USD each, for 15 "
        "minutes.",
        series=cost_per_hour(variant, usd_per_hour=usd_per_hour),
        comparison="GreaterThanThreshold",
        threshold=budget,
        period=FIVE_MINUTES,
        periods=3,
        needed=3,
        missing="ignore",  # instances are counted by their calls: without calls they cost what they did
    )
