"""Alarms of an environment: metrics, thresholds, severities, and the runbook section of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from tritonstack import aws_names
from tritonstack.config import Thresholds
from tritonstack.monitoring.graphs import (
    BuildProjects,
    Variant,
    cost_per_hour,
    instance_metrics,
    number,
    project_metric,
)
from tritonstack.monitoring.metric import Metric, Search, Series

Severity = Literal["critical", "warning"]
"""critical: requests fail, or will within the hour; it pages. warning: to be looked at in working hours."""
SEVERITIES: tuple[Severity, ...] = ("critical", "warning")
Comparison = Literal["GreaterThanThreshold", "GreaterThanOrEqualToThreshold", "LessThanThreshold"]
MissingData = Literal["breaching", "notBreaching", "ignore"]
"""TreatMissingData (API reference: PutMetricAlarm). ``missing``, CloudWatch's default, is not used: nothing notifies of
INSUFFICIENT_DATA."""
MINUTE, FIVE_MINUTES = 60, 300


class AlarmKind(Enum):
    """A kind of alarm: the heading of its runbook in docs/operations.md, and its severity."""

    SERVER_ERRORS = ("Server errors", "critical")
    MODEL_ERRORS = ("Model errors", "warning")
    LATENCY = ("Latency", "warning")
    CACHE_THRASHING = ("Cache thrashing", "warning")
    DISK_NEARLY_FULL = ("Disk nearly full", "critical")
    GPU_MEMORY_NEARLY_FULL = ("GPU memory nearly full", "critical")
    AT_MAXIMUM = ("At maximum instances", "warning")
    NO_TRAFFIC = ("No traffic", "critical")
    BUILD_FAILED = ("Build failed", "warning")
    UNDELIVERED = ("Undelivered build events", "warning")
    NOT_CLEANED_UP = ("Load test not cleaned up", "warning")
    OVER_BUDGET = ("Cost over budget", "warning")

    def __init__(self, heading: str, severity: Severity) -> None:
        self.heading = heading
        self.severity = severity

    @property
    def anchor(self) -> str:
        """The heading's anchor, as GitHub and GitLab make it; also part of the alarm's name."""
        return re.sub(r"[^a-z0-9-]", "", self.heading.lower().replace(" ", "-"))


def alarm_name(subject: str, kind: AlarmKind, *, part: int = 1) -> str:
    """An alarm's physical name. ``part``: the observability stack; those after the first end names in their number.

    So an alarm that moves to another stack has another name there. With one name the new stack would be refused
    ("already exists") until the old one is updated, and the old one's deletion would take the new alarm along.
    """
    return f"{subject}-{kind.anchor}" + (f"-{part}" if part > 1 else "")


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """One alarm."""

    kind: AlarmKind  # its severity and runbook
    subject: str  # the endpoint's name at SageMaker, or what is built
    condition: str  # as a sentence, with its figures
    series: Series  # what is compared
    comparison: Comparison = "GreaterThanOrEqualToThreshold"  # with ``threshold``
    threshold: float = 1  # in the unit of the series
    period: int = FIVE_MINUTES  # seconds
    periods: int = 1  # evaluation periods
    needed: int = 1  # datapoints to alarm
    missing: MissingData  # what a period without data counts as
    part: int = 1  # the observability stack that has it

    @property
    def name(self) -> str:
        """The alarm's physical name: ``prod-digits-server-errors``."""
        return alarm_name(self.subject, self.kind, part=self.part)

    def description(self, *, runbooks: str) -> str:
        """Subject, condition, and the link to the runbook."""
        return f"{self.subject}: {self.condition} Runbook: {runbooks}#{self.kind.anchor}"


def endpoint_alarms(
    variants: Sequence[Variant], thresholds: Thresholds, *, at_maximum_rules: Mapping[str, str], part: int = 1
) -> Iterator[Alarm]:
    """The alarms of one endpoint that have data in its mode.

    Args:
        variants: the endpoint's.
        thresholds: of this endpoint.
        at_maximum_rules: variant's name → the rule that matches its scaling event at the maximum; none without scaling.
        part: the observability stack that has them.
    """
    for variant in variants:
        rule = at_maximum_rules.get(variant.settings.variant_name)
        for alarm in _variant_alarms(variant, thresholds, at_maximum_rule=rule):
            yield replace(alarm, part=part)
    if thresholds.budget_usd_per_hour is not None:
        for alarm in _over_budget(variants, budget=thresholds.budget_usd_per_hour):
            yield replace(alarm, part=part)


def _variant_alarms(variant: Variant, thresholds: Thresholds, *, at_maximum_rule: str | None) -> Iterator[Alarm]:
    yield _errors(
        variant,
        kind=AlarmKind.SERVER_ERRORS,
        metric=aws_names.INVOCATION_5XX_ERRORS,
        what="requests end with 5XX",
        percent=thresholds.server_error_percent,
        count=thresholds.server_errors,
    )
    yield _errors(
        variant,
        kind=AlarmKind.MODEL_ERRORS,
        metric=aws_names.INVOCATION_MODEL_ERRORS,
        what="requests get an error from the container",
        percent=thresholds.model_error_percent,
        count=thresholds.model_errors,
    )
    yield _latency(variant, thresholds)
    if variant.has_cache:
        yield _cache_thrashing(variant, thresholds)
    if not variant.settings.multi_model:
        disk, memory = thresholds.disk_percent, thresholds.gpu_memory_percent
        gpus = variant.settings.instance.gpu_count
        yield _nearly_full(variant, AlarmKind.DISK_NEARLY_FULL, disk, metric=aws_names.DISK_UTILIZATION)
        metric = aws_names.GPU_MEMORY_UTILIZATION
        nearly_full = _nearly_full(variant, AlarmKind.GPU_MEMORY_NEARLY_FULL, memory, metric=metric, parts=gpus)
        yield _of_each_gpu(nearly_full, variant) if variant.enhanced and gpus > 1 else nearly_full
    if at_maximum_rule is not None:
        yield _at_maximum(variant, at_maximum_rule)
    if thresholds.no_traffic_minutes is not None and variant.share:  # without a share no request is no incident
        yield _no_traffic(variant, minutes=thresholds.no_traffic_minutes)


def build_alarms(environment: str, projects: BuildProjects, *, undelivered_queue: str) -> Iterator[Alarm]:
    """One alarm for each build project, and one for the dead-letter queue of build events."""
    for what, project in projects.named():
        yield Alarm(
            kind=AlarmKind.BUILD_FAILED,
            subject=f"{environment}-{what}",
            condition="a build failed (FailedBuilds); a deployment may have waited for it.",
            series=Series.of("failed", "failed builds", project_metric(project, aws_names.FAILED_BUILDS, "Sum")),
            missing="notBreaching",  # CodeBuild writes when a build ends: nothing written is nothing failed
        )
    yield _dead_letters(
        undelivered_queue,
        kind=AlarmKind.UNDELIVERED,
        subject=environment,
        condition="the event of a finished build was not delivered, or the function failed on it.",
    )


def load_test_alarm(environment: str, *, undelivered_queue: str) -> Alarm:
    """The alarm on the dead-letter queue of finished load tests that were not cleaned up."""
    return _dead_letters(
        undelivered_queue,
        kind=AlarmKind.NOT_CLEANED_UP,
        subject=environment,
        condition="a load test ended and was not cleaned up: endpoints of its jobs may still run, and cost.",
    )


def _dead_letters(queue: str, *, kind: AlarmKind, subject: str, condition: str) -> Alarm:
    """An alarm for as long as a dead-letter queue holds an event."""
    waiting = Metric(
        namespace=aws_names.QUEUES,
        name=aws_names.VISIBLE_MESSAGES,
        dimensions=((aws_names.QUEUE_NAME, queue),),
        statistic="Maximum",
    )
    return Alarm(
        kind=kind,
        subject=subject,
        condition=condition,
        series=Series.of("waiting", "events in the dead-letter queue", waiting),
        # SQS writes metrics of queues that were used within six hours: an event that waits longer still waits.
        missing="ignore",
    )


def error_share(errors: str, dimensions: tuple[tuple[str, str], ...], *, count: int) -> Series:
    """Errors in percent of the requests with these dimensions; 0 where there are fewer errors than ``count``."""
    names = {"errors": errors, "invocations": aws_names.INVOCATIONS}
    return Series(
        key="share",
        label="% of requests",
        metrics={
            key: Metric(namespace=aws_names.SAGEMAKER, name=name, dimensions=dimensions, statistic="Sum")
            for key, name in names.items()
        },
        expression=f"IF(errors >= {count}, 100 * errors / invocations, 0)",
    )


def _errors(variant: Variant, *, kind: AlarmKind, metric: str, what: str, percent: float, count: int) -> Alarm:
    return Alarm(
        kind=kind,
        subject=variant.subject,
        condition=f"{number(percent)} % or more of a minute's {what} ({metric}), at least {count}, in 3 of 5 minutes.",
        series=error_share(metric, variant.dimensions, count=count),
        threshold=percent,
        period=MINUTE,
        periods=5,
        needed=3,
        missing="notBreaching",  # a minute without requests has no errors; the absence of requests is another alarm
    )


def _latency(variant: Variant, thresholds: Thresholds) -> Alarm:
    limit = thresholds.p99_latency_ms
    return Alarm(
        kind=AlarmKind.LATENCY,
        subject=variant.subject,
        condition=f"p99 of ModelLatency is above {number(limit)} ms, in 3 of 5 minutes.",
        series=Series(
            key="milliseconds",
            label="p99 of ModelLatency, ms",
            metrics={"microseconds": variant.calls(aws_names.MODEL_LATENCY, "p99")},
            expression="microseconds / 1000",
        ),
        comparison="GreaterThanThreshold",
        threshold=limit,
        period=MINUTE,
        periods=5,
        needed=3,
        missing="notBreaching",  # no request is slow; requests that never reach the model are server errors
    )


def _cache_thrashing(variant: Variant, thresholds: Thresholds) -> Alarm:
    hit, wait = thresholds.cache_hit_percent, thresholds.loading_wait_ms
    return Alarm(
        kind=AlarmKind.CACHE_THRASHING,
        subject=variant.subject,
        condition=f"for 15 minutes ModelCacheHit is below {number(hit)} % and ModelLoadingWaitTime above {number(wait)}"
        " ms: models are unloaded and loaded again.",
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
        periods=3,
        needed=3,  # a new fleet is cold, and warm after minutes
        missing="notBreaching",  # no request, or no load
    )


def _nearly_full(variant: Variant, kind: AlarmKind, percent: float, *, metric: str, parts: int = 1) -> Alarm:
    """``parts``: what the metric is a sum over."""
    used = variant.instance(metric, "Maximum")
    return Alarm(
        kind=kind,
        subject=variant.subject,
        condition=f"{metric} of an instance is {number(percent)} % or more, for 15 minutes.",
        series=Series.of("full", f"{metric}, %", used, parts=parts, total="sum"),
        threshold=percent,
        periods=3,
        needed=3,
        missing="ignore",  # an instance that does not report is neither full nor empty: the last state stays
    )


def _of_each_gpu(alarm: Alarm, variant: Variant) -> Alarm:
    """The same alarm on the fullest GPU, where the sum over an instance's GPUs would hide it."""
    used = variant.instance(aws_names.GPU_MEMORY_UTILIZATION, "Maximum")
    search = Search(metric=used, by=(aws_names.INSTANCE_ID, aws_names.ACCELERATOR_ID))
    return replace(
        alarm,
        condition=alarm.condition.replace("of an instance", "of a GPU"),
        series=replace(
            alarm.series, label=f"{used.name} of the fullest GPU, %", metrics={}, expression=search.greatest
        ),
    )


def _at_maximum(variant: Variant, rule: str) -> Alarm:
    matched = Metric(
        namespace=aws_names.EVENTS,
        name=aws_names.INVOCATIONS,
        dimensions=((aws_names.RULE_NAME, rule),),
        statistic="Sum",
    )
    return Alarm(
        kind=AlarmKind.AT_MAXIMUM,
        subject=variant.subject,
        condition="scaling reached the maximum number of instances; more load starts no further instance.",
        series=Series.of("reached", "times that scaling reached the maximum", matched),
        missing="notBreaching",  # EventBridge writes the metric only where an event matched
    )


def _no_traffic(variant: Variant, *, minutes: int) -> Alarm:
    return Alarm(
        kind=AlarmKind.NO_TRAFFIC,
        subject=variant.subject,
        condition=f"no request (Invocations) for {minutes} minutes.",
        series=Series.of("calls", "requests", variant.calls(aws_names.INVOCATIONS, "Sum")),
        comparison="LessThanThreshold",
        period=MINUTE,
        periods=minutes,
        needed=minutes,
        missing="breaching",  # SageMaker writes no Invocations for a minute without one
    )


def _over_budget(variants: Sequence[Variant], *, budget: float) -> Iterator[Alarm]:
    """The alarm on what all variants of an endpoint cost; none where the price of one is unknown."""
    prices = [each.price.usd_per_hour for each in variants if each.price is not None]
    if len(prices) < len(variants):
        return
    series = cost_per_hour(variants[0], usd_per_hour=prices[0])
    if len(variants) > 1:
        metrics: dict[str, Metric] = {}
        terms = []
        for place, (variant, usd) in enumerate(zip(variants, prices, strict=True)):
            if variant.share:
                metrics |= {f"{name}{place}": metric for name, metric in instance_metrics(variant).items()}
                terms.append(f"{number(usd)} * invocations{place} / share{place}")
            else:  # without requests there is no metric, which would leave no sum
                terms.append(number(usd * variant.settings.initial_instance_count))
        series = replace(series, metrics=metrics, expression=" + ".join(terms))
    each = " and ".join(number(usd) for usd in dict.fromkeys(prices))
    yield Alarm(
        kind=AlarmKind.OVER_BUDGET,
        subject=variants[0].endpoint_name,
        condition=f"its instances cost more than {number(budget)} USD per hour, at {each} USD each, for 15 minutes.",
        series=series,
        comparison="GreaterThanThreshold",
        threshold=budget,
        periods=3,
        needed=3,
        missing="ignore",  # instances are counted by their requests: without requests the cost stays what it was
    )
