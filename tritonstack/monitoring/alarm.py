"""What an alarm is: a line held against a threshold, and where it says what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tritonstack.monitoring.metric import Series

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
