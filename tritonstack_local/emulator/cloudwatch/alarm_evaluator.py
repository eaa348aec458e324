"""Alarms as they are kept, their repeated evaluation, and the actions of a change of state."""

from __future__ import annotations

import functools
import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import botocore.session
from ministack.core.arn import ArnParseError, parse_arn
from ministack.core.responses import get_account_id, get_region, request_scope
from ministack.services import cloudwatch, sns

from tritonstack_local.emulator import kms_keys, service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_evaluation, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import (
    ALARM,
    COMPARISONS,
    INSUFFICIENT_DATA,
    OK,
    Criteria,
    Observation,
    iso,
)
from tritonstack_local.emulator.cloudwatch.metric_math import ExpressionError, Series, Span, statistic

logger = logging.getLogger("tritonstack.emulator.alarms")

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
    """Metric alarms of the request's account and region."""
    return list(cloudwatch._alarms.values())


def composite_alarms() -> list[Alarm]:
    """Composite alarms of the request's account and region."""
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
    """Accounts and regions with alarms."""
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


# Sources: CloudWatch user guide, "Alarm events and EventBridge" (events) and "Alarm actions". AWS shows no full SNS
# message; its members here are those that published receivers of such messages read (UNVERIFIED).
#
# An SNS topic is published to. The alarms of target tracking are followed by ``target_tracking``. Any other action (a
# scaling policy of another kind, a Lambda function, EC2, Systems Manager) is recognised and not executed: the log and
# the alarm's history say so.
_ACTIONS = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
_STATISTICS = {
    "Average": "AVERAGE", "Sum": "SUM", "Minimum": "MINIMUM", "Maximum": "MAXIMUM", "SampleCount": "SAMPLE_COUNT",
}  # fmt: skip


def notify(alarm: Alarm, before: dict[str, Any]) -> None:
    """Emit the event of a change of state and execute the alarm's actions. Not to be called with the lock held."""
    detail = {
        "alarmName": alarm["AlarmName"],
        "configuration": configuration(alarm),
        "previousState": _state(before),
        "state": _state(alarm),
    }
    service_events.emit("aws.cloudwatch", "CloudWatch Alarm State Change", detail, [alarm["AlarmArn"]])
    actions = alarm.get(_ACTIONS[alarm["StateValue"]]) or []
    if not alarm.get("ActionsEnabled", True):
        return
    for action in actions:
        _execute(action, alarm, before)


def _state(alarm: dict[str, Any]) -> dict[str, Any]:
    found = {"value": alarm["StateValue"], "reason": alarm["StateReason"]}
    if alarm.get("StateReasonData"):
        found["reasonData"] = alarm["StateReasonData"]
    return {**found, "timestamp": iso(alarm["StateUpdatedTimestamp"])}


def configuration(alarm: Alarm) -> dict[str, Any]:
    """``configuration`` of an event."""
    found: dict[str, Any] = {"description": alarm["AlarmDescription"]} if alarm.get("AlarmDescription") else {}
    if is_composite(alarm):
        return {**found, "alarmRule": alarm["AlarmRule"]}
    if "Metrics" in alarm:
        return {**found, "metrics": [_metric_of(query) for query in alarm["Metrics"]]}
    stat = {"period": alarm["Period"], "stat": alarm.get("Statistic") or alarm.get("ExtendedStatistic")}
    read = {"MetricStat": {"Metric": alarm, "Period": stat["period"], "Stat": stat["stat"]}, "ReturnData": True}
    return {**found, "metrics": [_metric_of({"Id": str(uuid.uuid5(uuid.NAMESPACE_URL, alarm["AlarmArn"])), **read})]}


def _metric_of(query: dict[str, Any]) -> dict[str, Any]:
    found = {"id": query["Id"], "returnData": query.get("ReturnData", True)}
    if "Expression" in query:
        label = {"label": query["Label"]} if "Label" in query else {}
        return {**found, "expression": query["Expression"], **label}
    stat = query["MetricStat"]
    dimensions = {one["Name"]: one["Value"] for one in stat["Metric"].get("Dimensions", [])}
    metric = {"dimensions": dimensions, "name": stat["Metric"]["MetricName"], "namespace": stat["Metric"]["Namespace"]}
    return {**found, "metricStat": {"metric": metric, "period": stat["Period"], "stat": stat["Stat"]}}


def _execute(action: str, alarm: Alarm, before: dict[str, Any]) -> None:
    try:
        service = parse_arn(action).service
    except ArnParseError:
        service = ""
    if service == "autoscaling" and alarm["AlarmName"].startswith("TargetTracking-"):
        return
    if service == "sns" and sns._topic_by_arn_any_scope(action):
        source = {"aws:SourceArn": alarm["AlarmArn"], "aws:SourceAccount": get_account_id()}
        refusal = kms_keys.publishing_refusal(action, service="cloudwatch.amazonaws.com", source=source)
        if refusal is not None:
            logger.warning("alarm %s: not published to %s: %s", alarm["AlarmName"], action, refusal)
            _record_action(action, alarm, error=refusal)
            return
        text = json.dumps(message(alarm, before))
        subject = f'{alarm["StateValue"]}: "{alarm["AlarmName"]}" in {_named_region(get_region())}'[:100]
        sns._fanout(action, str(uuid.uuid4()), text, subject)
        _record_action(action, alarm, error=None)
    else:
        error = "there is no such topic" if service == "sns" else "the local AWS executes no such action"
        logger.warning("alarm %s: action %s is not executed: %s", alarm["AlarmName"], action, error)
        _record_action(action, alarm, error=error)


def _record_action(action: str, alarm: Alarm, *, error: str | None) -> None:
    words = "Failed to execute" if error else "Successfully executed"
    data = {"actionState": "Failed" if error else "Succeeded", "notificationResource": action}
    add_history(alarm, "Action", f"{words} action {action}", {**data, **({"error": error} if error else {})})


def message(alarm: Alarm, before: dict[str, Any]) -> dict[str, Any]:
    """The SNS message."""
    found = {
        "AlarmName": alarm["AlarmName"],
        "AlarmDescription": alarm.get("AlarmDescription"),
        "AWSAccountId": get_account_id(),
        "AlarmConfigurationUpdatedTimestamp": iso(alarm["AlarmConfigurationUpdatedTimestamp"]),
        "NewStateValue": alarm["StateValue"],
        "NewStateReason": alarm["StateReason"],
        "StateChangeTime": iso(alarm["StateUpdatedTimestamp"]),
        "Region": _named_region(get_region()),
        "AlarmArn": alarm["AlarmArn"],
        "OldStateValue": before["StateValue"],
        "OKActions": alarm.get("OKActions", []),
        "AlarmActions": alarm.get("AlarmActions", []),
        "InsufficientDataActions": alarm.get("InsufficientDataActions", []),
    }
    if is_composite(alarm):
        return {**found, "AlarmRule": alarm["AlarmRule"]}
    return {**found, "Trigger": _trigger(alarm)}


def _trigger(alarm: Alarm) -> dict[str, Any]:
    common = {
        "Period": alarm.get("Period"),
        "EvaluationPeriods": alarm["EvaluationPeriods"],
        "DatapointsToAlarm": alarm.get("DatapointsToAlarm"),
        "ComparisonOperator": alarm["ComparisonOperator"],
        "Threshold": alarm["Threshold"],
        "TreatMissingData": alarm["TreatMissingData"],
        "EvaluateLowSampleCountPercentile": "",
    }
    common = {name: value for name, value in common.items() if value is not None}
    if "Metrics" in alarm:
        return {**common, "Metrics": [_lower_dimensions(query) for query in alarm["Metrics"]]}
    extended = alarm.get("ExtendedStatistic")
    statistic = (
        {"StatisticType": "ExtendedStatistic", "ExtendedStatistic": extended}
        if extended
        else {"StatisticType": "Statistic", "Statistic": _STATISTICS[alarm["Statistic"]]}
    )
    dimensions = [{"value": one["Value"], "name": one["Name"]} for one in alarm.get("Dimensions", [])]
    what = {"MetricName": alarm["MetricName"], "Namespace": alarm["Namespace"], "Unit": alarm.get("Unit")}
    return {**what, **statistic, "Dimensions": dimensions, **common}


def _lower_dimensions(query: dict[str, Any]) -> dict[str, Any]:
    if "MetricStat" not in query:
        return query
    metric = query["MetricStat"]["Metric"]
    dimensions = [{"value": one["Value"], "name": one["Name"]} for one in metric.get("Dimensions", [])]
    return {**query, "MetricStat": {**query["MetricStat"], "Metric": {**metric, "Dimensions": dimensions}}}


@functools.cache
def _named_region(region: str) -> str:
    """Botocore's name of a region (``US East (N. Virginia)``)."""
    data = botocore.session.get_session().get_component("data_loader").load_data("endpoints")
    names = {name: str(one["description"]) for part in data["partitions"] for name, one in part["regions"].items()}
    return names.get(region, region)


# Composite alarms are those of the user guide's "Creating a composite alarm"; MiniStack reads and computes their
# rules.
_BEFORE = ("StateValue", "StateReason", "StateReasonData", "StateUpdatedTimestamp")


@dataclass
class Changes:
    """Changes made with the lock held, whose actions follow once it is free."""

    _made: list[tuple[Alarm, dict[str, Any]]] = field(default_factory=list)

    def set(self, alarm: Alarm, state: str, reason: str, data: str | None) -> None:
        """Set an alarm's state; where it is another than before, note it and look at the composite alarms above."""
        self._set(alarm, state, reason, data, path=frozenset())

    def _set(self, alarm: Alarm, state: str, reason: str, data: str | None, *, path: frozenset[str]) -> None:
        before = {name: alarm[name] for name in _BEFORE if name in alarm}
        now = clock.now()
        alarm.update(StateValue=state, StateReason=reason, StateUpdatedTimestamp=now)
        alarm.pop("StateReasonData", None)
        if data:
            alarm["StateReasonData"] = data
        if state == before["StateValue"]:
            return
        alarm["StateTransitionedTimestamp"] = now
        add_history(
            alarm,
            "StateUpdate",
            f"Alarm updated from {before['StateValue']} to {state}",
            {"version": "1.0", "oldState": _shown(before), "newState": _shown(alarm)},
        )
        self._made.append((dict(alarm), before))
        self._parents(alarm, path | {alarm["AlarmName"]})

    def _parents(self, child: Alarm, path: frozenset[str]) -> None:
        """A composite alarm that is on the path already is part of a circle, whose evaluation ends there."""
        for parent in composite_alarms():
            if parent["AlarmName"] in path or child["AlarmName"] not in cloudwatch._composite_children(parent):
                continue
            state = rule_state(parent)
            if state != parent["StateValue"]:
                at = datetime.fromtimestamp(child["StateUpdatedTimestamp"], tz=UTC)
                reason = f"{child['AlarmArn']} transitioned to {child['StateValue']} at {at:%A %d %B, %Y %H:%M:%S} UTC"
                self._set(parent, state, reason, triggering(child), path=path)

    def follow(self) -> None:
        """Send the events and execute the actions. Not to be called with the lock held."""
        for alarm, before in self._made:
            notify(alarm, before)


def make(change: Callable[[Changes], None]) -> None:
    """Make changes with the lock held, and then what follows them."""
    changes = Changes()
    with metrics.lock:
        change(changes)
    changes.follow()


def rule_state(alarm: Alarm) -> str:
    """The state that a composite alarm's rule evaluates to."""
    return ALARM if cloudwatch._rule_true(cloudwatch._parse_alarm_rule(alarm["AlarmRule"])) else OK


def triggering(child: Alarm) -> str:
    """StateReasonData of a composite alarm."""
    state = {"value": child["StateValue"], "timestamp": iso(child["StateUpdatedTimestamp"])}
    return json.dumps({"triggeringAlarms": [{"arn": child["AlarmArn"], "state": state}]})


def _shown(alarm: dict[str, Any]) -> dict[str, Any]:
    found = {"stateValue": alarm["StateValue"], "stateReason": alarm["StateReason"]}
    if alarm.get("StateReasonData"):
        found["stateReasonData"] = alarm["StateReasonData"]
    return found


# CloudWatch evaluates once a minute, and every ten seconds where the period is below a minute (user guide, "Evaluating
# an alarm"). What it looks at ends at the last whole minute, or whole period below a minute, as the times in the
# guide's sample events show. Here the same range is looked at more often, so that data which come late count sooner.
_MINUTE = 60
_TIDY_SECONDS = 3600.0
_SEEN = "_seen"
"""What an alarm was evaluated on last: until that changes there is nothing new to find."""


class AlarmEvaluator:
    """One thread for all alarms of all accounts and regions."""

    def __init__(self, *, seconds: float, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Looks every ``seconds``, of the system's time, and calls ``before`` and ``after`` around it."""
        self._seconds, self._before, self._after = seconds, before, after
        self._stop = threading.Event()

    def start(self) -> None:
        """Evaluate from now on."""
        clock.on_advance(self.evaluate_all)
        threading.Thread(target=self._run, name="alarms", daemon=True).start()

    def stop(self) -> None:
        """Evaluate no more on its own."""
        self._stop.set()

    def _run(self) -> None:
        tidy = clock.deadline(_TIDY_SECONDS)
        while not self._stop.wait(self._seconds):
            self.evaluate_all()
            if tidy.passed:
                metrics.forget_old()
                tidy = clock.deadline(_TIDY_SECONDS)

    def evaluate_all(self) -> None:
        """Every alarm once, at the clock's time, with what comes before and after."""
        self._surely(self._before)
        self._evaluate_alarms()
        self._surely(self._after)

    def _surely(self, call: Callable[[], None]) -> None:
        """An error here is no reason to evaluate no more."""
        try:
            call()
        except Exception:
            logger.exception("%s failed", call)

    def _evaluate_alarms(self) -> None:
        for account, region in list(scopes()):
            with request_scope(account, region):
                changes = Changes()
                try:
                    with metrics.lock:
                        for alarm in metric_alarms():
                            evaluate(alarm, changes)
                    changes.follow()
                except Exception:
                    # No reason to evaluate no more: the thread lives as long as the emulator.
                    logger.exception("alarms of %s in %s were not evaluated to the end", account, region)


def evaluate(alarm: Alarm, changes: Changes) -> None:
    """Evaluate one metric alarm now and change its state by the verdict."""
    period = alarm_evaluation.period(alarm)
    step = min(period, _MINUTE)
    end = int(clock.now() // step * step)
    basis = (end, metrics.writes())
    if alarm.get(_SEEN) == basis or (HELD in alarm and end <= alarm[HELD]):
        return
    criteria = _criteria(alarm)
    span = Span(start=end - criteria.range_points * period, end=end, period=period)
    try:
        series = _series(alarm, span)
    except ExpressionError as error:
        _fail(alarm, str(error), changes)
        return
    alarm[_SEEN] = basis
    alarm.pop("EvaluationState", None)
    if HELD in alarm and not series.points:
        return
    alarm.pop(HELD, None)
    points = [series.points.get(time) for time in span.times()]
    verdict = alarm_evaluation.evaluate(points, criteria)
    if verdict.state in (None, alarm["StateValue"]):
        return
    seen = Observation(times=span.times(), points=points, verdict=verdict, at=clock.now())
    state = str(verdict.state)
    changes.set(alarm, state, alarm_evaluation.sentence(alarm, seen, state), alarm_evaluation.data(alarm, seen))


def _criteria(alarm: Alarm) -> Criteria:
    relation, threshold = COMPARISONS[alarm["ComparisonOperator"]][0], alarm["Threshold"]
    periods = int(alarm["EvaluationPeriods"])
    return Criteria(
        breaches=lambda value: relation(value, threshold),
        periods=periods,
        to_alarm=int(alarm.get("DatapointsToAlarm", periods)),
        missing=str(alarm.get("TreatMissingData", "missing")),
    )


def _series(alarm: Alarm, span: Span) -> Series:
    """The points of the range; raises ``ExpressionError`` where an expression gives no series."""
    if "Metrics" in alarm:
        results = metrics.Results(metrics.read(alarm["Metrics"]), start=span.start, end=span.end)
        [shown] = [query for query in results.queries if query.shown]
        return results.shown(shown)
    stat = statistic(alarm.get("Statistic") or alarm["ExtendedStatistic"])
    return metrics.series(metric_of(alarm), span, stat, label="", unit=alarm.get("Unit"))


def metric_of(alarm: Alarm) -> metrics.Metric:
    """The metric of an alarm on a single metric."""
    dimensions = metrics.dimensions(alarm.get("Dimensions"))
    return metrics.Metric(namespace=alarm["Namespace"], name=alarm["MetricName"], dimensions=dimensions)


def _fail(alarm: Alarm, error: str, changes: Changes) -> None:
    """EVALUATION_ERROR: "configuration errors in alarm setup", with a reason (user guide, "Alarm evaluation")."""
    alarm["EvaluationState"] = "EVALUATION_ERROR"
    if HELD not in alarm and alarm["StateValue"] != INSUFFICIENT_DATA:
        changes.set(alarm, INSUFFICIENT_DATA, f"Evaluation error: {error}", None)
