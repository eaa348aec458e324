"""Alarms as they are kept, their repeated evaluation, and the actions of a change of state."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_evaluation, metrics
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import (
    COMPARISONS,
    EXTRA_POINTS,
    INSUFFICIENT_DATA,
    Criteria,
    iso,
)
from tritonstack_local.emulator.cloudwatch.metric_math import ExpressionError, Series, Span
from tritonstack_local.emulator.faults import logged_faults
from tritonstack_local.emulator.ministack_adapter import cloudwatch, sns
from tritonstack_local.emulator.ministack_adapter.core import (
    arn_parse_error,
    get_account_id,
    get_region,
    parse_arn,
    places_of,
    request_scope,
)
from tritonstack_local.emulator.service_events import publishing_refusal

logger = logging.getLogger("tritonstack.emulator.alarms")

Alarm = dict[str, Any]
held_since: dict[str, float] = {}
"""ARN → when SetAlarmState set the state that holds until there is data."""
seen: dict[str, tuple[int, int]] = {}
"""ARN → what the alarm was evaluated on last: until that changes there is nothing new to find."""


def arn(name: str) -> str:
    return f"arn:aws:cloudwatch:{get_region()}:{get_account_id()}:alarm:{name}"


def find(name: str) -> Alarm | None:
    found: Alarm | None = cloudwatch.alarms().get(name) or cloudwatch.composite_alarms().get(name)
    return found


# Sources: CloudWatch user guide, "Alarm actions". AWS shows no full SNS message; its members here are those that
# published receivers of such messages read (UNVERIFIED).
# An SNS topic is published to. Scaling policies look at their alarms themselves (``target_tracking``,
# ``step_scaling``). Any other action (Lambda, EC2, Systems Manager) is recognised and not executed: the log has it.
_ACTIONS = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}
scaling_policies: list[Callable[[str], bool]] = []
"""Whether there is a scaling policy of an ARN, which follows its alarms itself; from Application Auto Scaling."""
_changed: list[tuple[Alarm, str]] = []
"""Alarms as they changed, and their states before; the actions follow once the lock is free."""


def note_change(alarm: Alarm, before: str, *_new: str) -> None:
    """Have the actions of a changed alarm follow."""
    _changed.append((dict(alarm), before))


def follow() -> None:
    """Execute the actions of what changed. Not to be called with the lock held."""
    with metrics.lock:
        made = _changed[:]
        _changed.clear()
    for alarm, before in made:
        region, account = alarm["AlarmArn"].split(":")[3:5]
        with request_scope(account, region):
            for action in alarm[_ACTIONS[alarm["StateValue"]]] if alarm["ActionsEnabled"] else ():
                with logged_faults(f"action {action} of alarm {alarm['AlarmName']}"):
                    _execute(action, alarm, before)


def _execute(action: str, alarm: Alarm, before: str) -> None:
    try:
        service = parse_arn(action).service
    except arn_parse_error():
        service = ""
    if service == "autoscaling" and any(known(action) for known in scaling_policies):
        return
    if service == "sns" and sns.topic_by_arn_any_scope(action):
        # A topic's default policy lets in what acts for its owner: an alarm of the account, and not EventBridge.
        account = get_account_id()
        source = {"aws:SourceArn": alarm["AlarmArn"], "aws:SourceAccount": account, "aws:SourceOwner": account}
        refusal = publishing_refusal(action, service="cloudwatch.amazonaws.com", source=source)
        if refusal is not None:
            logger.warning("alarm %s: not published to %s: %s", alarm["AlarmName"], action, refusal)
            return
        text = json.dumps(message(alarm, before))
        subject = f'{alarm["StateValue"]}: "{alarm["AlarmName"]}" in {get_region()}'[:100]
        sns.fanout(action, str(uuid.uuid4()), text, subject)
    else:
        error = "there is no such topic" if service == "sns" else "the local AWS executes no such action"
        logger.warning("alarm %s: action %s is not executed: %s", alarm["AlarmName"], action, error)


def message(alarm: Alarm, before: str) -> dict[str, Any]:
    found = {
        "AlarmName": alarm["AlarmName"],
        "AlarmDescription": alarm.get("AlarmDescription"),
        "AWSAccountId": get_account_id(),
        "AlarmConfigurationUpdatedTimestamp": iso(alarm["AlarmConfigurationUpdatedTimestamp"]),
        "NewStateValue": alarm["StateValue"],
        "NewStateReason": alarm["StateReason"],
        "StateChangeTime": iso(alarm["StateUpdatedTimestamp"]),
        "Region": get_region(),
        "AlarmArn": alarm["AlarmArn"],
        "OldStateValue": before,
        "OKActions": alarm.get("OKActions", []),
        "AlarmActions": alarm.get("AlarmActions", []),
        "InsufficientDataActions": alarm.get("InsufficientDataActions", []),
    }
    return {**found, "AlarmRule": alarm["AlarmRule"]} if "AlarmRule" in alarm else found


def change(alarm: Alarm, state: str, reason: str) -> None:
    """Set a metric alarm's state, with the lock held; MiniStack evaluates the composite alarms above it."""
    before, now = alarm["StateValue"], clock.now()
    alarm.update(StateValue=state, StateReason=reason, StateUpdatedTimestamp=now)
    if state != before:
        alarm["StateTransitionedTimestamp"] = now
        note_change(alarm, before)
        cloudwatch.evaluate_parent_alarms(alarm)


# CloudWatch evaluates once a minute, and every ten seconds where the period is below a minute (user guide, "Evaluating
# an alarm"). What it looks at ends at the last whole minute, or whole period below a minute, as the times in the
# guide's sample events show. Here the same range is looked at more often, so that data which come late count sooner.
_MINUTE = 60
_LOOK_SECONDS = 1.0


class AlarmEvaluator:
    """One thread for all alarms of all accounts and regions."""

    def __init__(self, *, before: Sequence[Callable[[], None]], after: Sequence[Callable[[], None]]) -> None:
        """Looks every second of the system's time, and calls all of ``before`` and ``after`` around it."""
        self._before, self._after = before, after
        self._stop = threading.Event()

    def start(self) -> None:
        """Evaluate from now on."""
        clock.on_advance(self.evaluate_all)
        threading.Thread(target=self._run, name="alarms", daemon=True).start()

    def stop(self) -> None:
        """Evaluate no more on its own."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.evaluate_all()

    def evaluate_all(self) -> None:
        """Every alarm once, at the clock's time, with what comes before and after."""
        for call in (*self._before, self._evaluate_alarms, *self._after):
            with logged_faults(str(call)):  # no reason to evaluate no more
                call()

    def _evaluate_alarms(self) -> None:
        for account, region in places_of(cloudwatch.alarms()):
            with request_scope(account, region), logged_faults(f"the alarms of {account} in {region}"):
                with metrics.lock:
                    for alarm in list(cloudwatch.alarms().values()):
                        _evaluate_whatever(alarm)
                follow()


def _evaluate_whatever(alarm: Alarm) -> None:
    """Evaluate one alarm; its failure does not affect the evaluation of others."""
    try:
        evaluate(alarm)
    except Exception as error:
        if alarm.get("EvaluationState") != "EVALUATION_ERROR":  # it is looked at every second
            logger.exception("alarm %s was not evaluated", alarm.get("AlarmName"))
        _not_evaluated(alarm, f"the local AWS failed: {error!r}")


def _not_evaluated(alarm: Alarm, reason: str) -> None:
    """INSUFFICIENT_DATA where it was not that: "configuration errors in alarm setup", with a reason (user guide,
    "Alarm evaluation")."""
    alarm["EvaluationState"] = "EVALUATION_ERROR"
    if alarm.get("AlarmArn") not in held_since and alarm.get("StateValue") != INSUFFICIENT_DATA:
        change(alarm, INSUFFICIENT_DATA, f"Evaluation error: {reason}")


def evaluate(alarm: Alarm) -> None:
    """Evaluate one metric alarm now and change its state by the verdict."""
    arn, period = alarm["AlarmArn"], alarm_evaluation.period(alarm)
    step = min(period, _MINUTE)
    end = int(clock.now() // step * step)
    basis = (end, metrics.Points.written)
    if seen.get(arn) == basis or end <= held_since.get(arn, 0.0):
        return
    criteria = _criteria(alarm)
    span = Span(start=end - (criteria.periods + EXTRA_POINTS) * period, end=end, period=period)
    try:
        series = _series(alarm, span)
    except ExpressionError as error:
        _not_evaluated(alarm, str(error))
        return
    seen[arn] = basis
    alarm.pop("EvaluationState", None)
    if arn in held_since and not series.points:
        return
    held_since.pop(arn, None)
    points = {time: series.points.get(time) for time in span.times()}
    verdict = alarm_evaluation.evaluate(list(points.values()), criteria)
    if verdict.state not in (None, alarm["StateValue"]):
        change(alarm, verdict.state, alarm_evaluation.sentence(alarm, verdict, points))


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
    stat = alarm.get("Statistic") or alarm["ExtendedStatistic"]
    return metrics.series(metric_of(alarm), span, stat, label="", unit=alarm.get("Unit"))


def metric_of(alarm: Alarm) -> metrics.Metric:
    """The metric of an alarm on a single metric."""
    dimensions = metrics.dimensions(alarm.get("Dimensions"))
    return metrics.Metric(namespace=alarm["Namespace"], name=alarm["MetricName"], dimensions=dimensions)
