"""Alarms as they are kept, their repeated evaluation, and the actions of a change of state."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ministack.core.arn import ArnParseError, parse_arn
from ministack.core.responses import get_account_id, get_region, request_scope
from ministack.services import cloudwatch, sns

from tritonstack_local.emulator import kms_keys
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
    """Forget an alarm and its tags."""
    cloudwatch._alarms.pop(name, None)
    cloudwatch._composite_alarms.pop(name, None)
    cloudwatch._resource_tags.pop(arn(name), None)


def scopes() -> Iterator[tuple[str, str]]:
    """Accounts and regions with alarms."""
    yield from sorted({key[:2] for key in [*cloudwatch._alarms._data, *cloudwatch._composite_alarms._data]})


# Sources: CloudWatch user guide, "Alarm actions". AWS shows no full SNS message; its members here are those that
# published receivers of such messages read (UNVERIFIED).
#
# An SNS topic is published to. The alarms of target tracking are followed by ``target_tracking``. Any other action (a
# scaling policy of another kind, a Lambda function, EC2, Systems Manager) is recognised and not executed: the log has
# it.
_ACTIONS = {"ALARM": "AlarmActions", "OK": "OKActions", "INSUFFICIENT_DATA": "InsufficientDataActions"}


def notify(alarm: Alarm, before: dict[str, Any]) -> None:
    """Execute the actions of a changed alarm. Not to be called with the lock held."""
    if alarm["ActionsEnabled"]:
        for action in alarm[_ACTIONS[alarm["StateValue"]]]:
            _execute(action, alarm, before)


def _execute(action: str, alarm: Alarm, before: dict[str, Any]) -> None:
    try:
        service = parse_arn(action).service
    except ArnParseError:
        service = ""
    if service == "autoscaling" and alarm["AlarmName"].startswith("TargetTracking-"):
        return
    if service == "sns" and sns._topic_by_arn_any_scope(action):
        # A topic's default policy lets in what acts for its owner: an alarm of the account, and not EventBridge.
        account = get_account_id()
        source = {"aws:SourceArn": alarm["AlarmArn"], "aws:SourceAccount": account, "aws:SourceOwner": account}
        refusal = kms_keys.publishing_refusal(action, service="cloudwatch.amazonaws.com", source=source)
        if refusal is not None:
            logger.warning("alarm %s: not published to %s: %s", alarm["AlarmName"], action, refusal)
            return
        text = json.dumps(message(alarm, before))
        subject = f'{alarm["StateValue"]}: "{alarm["AlarmName"]}" in {get_region()}'[:100]
        sns._fanout(action, str(uuid.uuid4()), text, subject)
    else:
        error = "there is no such topic" if service == "sns" else "the local AWS executes no such action"
        logger.warning("alarm %s: action %s is not executed: %s", alarm["AlarmName"], action, error)


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
        "Region": get_region(),
        "AlarmArn": alarm["AlarmArn"],
        "OldStateValue": before["StateValue"],
        "OKActions": alarm.get("OKActions", []),
        "AlarmActions": alarm.get("AlarmActions", []),
        "InsufficientDataActions": alarm.get("InsufficientDataActions", []),
    }
    return {**found, "AlarmRule": alarm["AlarmRule"]} if is_composite(alarm) else found


# Composite alarms are those of the user guide's "Creating a composite alarm"; MiniStack reads and computes their
# rules.


@dataclass
class Changes:
    """Changes made with the lock held, whose actions follow once it is free."""

    _made: list[tuple[Alarm, dict[str, Any]]] = field(default_factory=list)

    def set(self, alarm: Alarm, state: str, reason: str, *, path: frozenset[str] = frozenset()) -> None:
        """Set an alarm's state; where it is another than before, note it and look at the composite alarms above."""
        before, now = dict(alarm), clock.now()
        alarm.update(StateValue=state, StateReason=reason, StateUpdatedTimestamp=now)
        if state == before["StateValue"]:
            return
        alarm["StateTransitionedTimestamp"] = now
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
                self.set(parent, state, reason, path=path)

    def follow(self) -> None:
        """Execute the actions. Not to be called with the lock held."""
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


# CloudWatch evaluates once a minute, and every ten seconds where the period is below a minute (user guide, "Evaluating
# an alarm"). What it looks at ends at the last whole minute, or whole period below a minute, as the times in the
# guide's sample events show. Here the same range is looked at more often, so that data which come late count sooner.
_MINUTE = 60
_LOOK_SECONDS = 1.0
_SEEN = "_seen"
"""What an alarm was evaluated on last: until that changes there is nothing new to find."""


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
            try:
                call()
            except Exception:  # no reason to evaluate no more
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
    seen = Observation(times=span.times(), points=points, verdict=verdict)
    state = str(verdict.state)
    changes.set(alarm, state, alarm_evaluation.sentence(alarm, seen, state))


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
        changes.set(alarm, INSUFFICIENT_DATA, f"Evaluation error: {error}")
