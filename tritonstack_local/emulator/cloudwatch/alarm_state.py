"""Alarms as MiniStack keeps them, their history, and the reasons of their states."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudwatch

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import ALARM, COMPARISONS, INSUFFICIENT_DATA, OK, Verdict

# Names that begin with ``_`` are the local AWS's own and never shown.
Alarm = dict[str, Any]
INITIAL = "Unchecked: Initial alarm creation"
HELD = "_held_at"
"""When SetAlarmState set the state that holds until there is data."""
_KEPT_SECONDS = 14 * 24 * 3600  # user guide: "CloudWatch preserves alarm history for two weeks"


def arn(name: str) -> str:
    """The alarm's ARN."""
    return f"arn:aws:cloudwatch:{get_region()}:{get_account_id()}:alarm:{name}"


def metric_alarms() -> list[Alarm]:
    """Those of the request's account and region."""
    return list(cloudwatch._alarms.values())


def composite_alarms() -> list[Alarm]:
    """Those of the request's account and region."""
    return list(cloudwatch._composite_alarms.values())


def find(name: str) -> Alarm | None:
    """The alarm of that name."""
    found: Alarm | None = cloudwatch._alarms.get(name) or cloudwatch._composite_alarms.get(name)
    return found


def is_composite(alarm: Alarm) -> bool:
    """Whether it watches other alarms."""
    return "AlarmRule" in alarm


def kind(alarm: Alarm) -> str:
    """AlarmType."""
    return "CompositeAlarm" if is_composite(alarm) else "MetricAlarm"


def keep(alarm: Alarm) -> None:
    """Store a new or changed alarm."""
    (cloudwatch._composite_alarms if is_composite(alarm) else cloudwatch._alarms)[alarm["AlarmName"]] = alarm


def drop(name: str) -> None:
    """Forget an alarm and its tags; its history stays."""
    cloudwatch._alarms.pop(name, None)
    cloudwatch._composite_alarms.pop(name, None)
    cloudwatch._resource_tags.pop(arn(name), None)


def scopes() -> Iterator[tuple[str, str]]:
    """Account and region of everybody who has alarms."""
    yield from sorted({key[:2] for key in [*cloudwatch._alarms._data, *cloudwatch._composite_alarms._data]})


def add_history(alarm: Alarm, kind_of_item: str, summary: str, data: dict[str, Any]) -> None:
    """One item of history (StateUpdate, ConfigurationUpdate, Action), at this time."""
    entries = cloudwatch._history_entries()
    entries.append(
        {
            "AlarmName": alarm["AlarmName"],
            "AlarmType": kind(alarm),
            "Timestamp": clock.now(),
            "HistoryItemType": kind_of_item,
            "HistorySummary": summary,
            "HistoryData": json.dumps(data),
        }
    )
    while entries[0]["Timestamp"] < clock.now() - _KEPT_SECONDS:
        del entries[0]


def history() -> list[dict[str, Any]]:
    """All items of the request's account and region, the oldest first."""
    return list(cloudwatch._history_entries())


# Source: the events shown in CloudWatch user guide, "Alarm events and EventBridge". The sentences for missing points
# are those that CloudWatch's users report (UNVERIFIED).
_TREATED = {"breaching": "Breaching", "notBreaching": "NonBreaching"}


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was looked at, and when.

    Attributes:
        times: the beginning of each period of the range, the oldest first.
        points: their values; None where one is missing.
        verdict: what they mean.
        at: seconds since the epoch.
    """

    times: Sequence[int]
    points: Sequence[float | None]
    verdict: Verdict
    at: float

    def used(self) -> list[tuple[int, float]]:
        """Time and value of the points that decided, the newest first."""
        found = [(self.times[at], self.points[at] or 0.0) for at in self.verdict.used]
        return found[::-1]


def iso(seconds: float) -> str:
    """``2019-10-02T17:04:40.985+0000``."""
    at = datetime.fromtimestamp(seconds, tz=UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}+0000"


def sentence(alarm: dict[str, Any], seen: Observation, state: str) -> str:
    """StateReason of an alarm that goes to ``state``."""
    used, filled = seen.used(), seen.verdict.filled
    if state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {filled} {_datapoints(filled)} {_were(filled)} unknown."
    treatment = _TREATED.get(alarm.get("TreatMissingData", "missing"))
    if not used and treatment:
        return (
            f"Threshold Crossed: no datapoints were received for {filled} period{'s' * (filled != 1)} and {filled} "
            f"missing {_datapoints(filled)} {_were(filled)} treated as [{treatment}]."
        )
    relation, words = COMPARISONS[alarm["ComparisonOperator"]]
    threshold, periods = alarm["Threshold"], alarm["EvaluationPeriods"]
    to_alarm = alarm.get("DatapointsToAlarm", periods)
    # The points that speak for the new state: the breaching ones for ALARM, the others for OK.
    speaking = [(time, value) for time, value in used if relation(value, threshold) == (state == ALARM)] or used
    shown = ", ".join(f"{value} ({datetime.fromtimestamp(time, tz=UTC):%d/%m/%y %H:%M:%S})" for time, value in speaking)
    least = to_alarm if state == ALARM else periods - to_alarm + 1
    before = OK if state == ALARM else ALARM
    negation = "" if state == ALARM else "not "
    missing = (
        f" and {filled} missing {_datapoints(filled)} {_were(filled)} treated as [{treatment}]"
        if (filled and treatment)
        else ""
    )
    return (
        f"Threshold Crossed: {len(speaking)} out of the last {periods} datapoints [{shown}] {_were(len(speaking))} "
        f"{negation}{words} the threshold ({threshold}){missing} "
        f"(minimum {least} {_datapoints(least)} for {before} -> {state} transition)."
    )


def data(alarm: dict[str, Any], seen: Observation) -> str:
    """StateReasonData, as JSON."""
    used = seen.used()
    statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    found: dict[str, Any] = {"version": "1.0", "queryDate": iso(seen.at)}
    if used:
        found["startDate"] = iso(used[-1][0])
    found |= {"statistic": statistic} if statistic else {}
    found |= {"unit": alarm["Unit"]} if alarm.get("Unit") else {}
    found |= {"period": period(alarm), "recentDatapoints": [value for _, value in reversed(used)]}
    found["threshold"] = alarm["Threshold"]
    found["evaluatedDatapoints"] = [
        {"timestamp": iso(time), **({"value": value} if value is not None else {})}
        for time, value in list(zip(seen.times, seen.points, strict=True))[::-1][: alarm["EvaluationPeriods"]]
    ]
    return json.dumps(found, separators=(",", ":"))


def period(alarm: dict[str, Any]) -> int:
    """The alarm's period in seconds; that of its metrics where it is on an expression."""
    if "Period" in alarm:
        return int(alarm["Period"])
    periods = [query["MetricStat"]["Period"] for query in alarm["Metrics"] if "MetricStat" in query]
    return max(periods) if periods else 60


def _datapoints(count: int) -> str:
    return "datapoint" if count == 1 else "datapoints"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
