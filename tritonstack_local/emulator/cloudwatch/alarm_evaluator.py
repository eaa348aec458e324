"""Looks at every metric alarm, again and again, and whenever the clock is moved.

CloudWatch evaluates once a minute, and every ten seconds where the period is below a minute (user guide, "Evaluating an
alarm"). What it looks at ends at the last whole minute, or whole period below a minute, as the times in the guide's
sample events show. Here the same range is looked at more often, so that data which come late count sooner.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

from ministack.core.responses import request_scope

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_evaluation, alarm_reason, alarm_records, metric_store, queries
from tritonstack_local.emulator.cloudwatch.alarm_changes import Changes
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import INSUFFICIENT_DATA, Criteria
from tritonstack_local.emulator.cloudwatch.alarm_records import HELD, Alarm
from tritonstack_local.emulator.cloudwatch.expression_syntax import ExpressionError
from tritonstack_local.emulator.cloudwatch.search_terms import Metric
from tritonstack_local.emulator.cloudwatch.series import Series, Span
from tritonstack_local.emulator.cloudwatch.statistic import percentile_share, statistic

_MINUTE = 60
_TIDY_SECONDS = 3600.0
_SEEN = "_seen"
"""What an alarm was evaluated on last: until that changes there is nothing new to find."""
logger = logging.getLogger("tritonstack.emulator.alarms")


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
                metric_store.forget_old()
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
        for account, region in list(alarm_records.scopes()):
            with request_scope(account, region):
                changes = Changes()
                try:
                    with metric_store.lock:
                        for alarm in alarm_records.metric_alarms():
                            evaluate(alarm, changes)
                    changes.follow()
                except Exception:
                    # No reason to evaluate no more: the thread lives as long as the emulator.
                    logger.exception("alarms of %s in %s were not evaluated to the end", account, region)


def evaluate(alarm: Alarm, changes: Changes) -> None:
    """Evaluate one metric alarm now. Its state moves where the points say so."""
    period = alarm_reason.period(alarm)
    step = min(period, _MINUTE)
    end = int(clock.now() // step * step)
    basis = (end, metric_store.writes())
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
    if verdict.state in (None, alarm["StateValue"]) or _too_few_samples(alarm, span, verdict.used):
        return
    seen = alarm_reason.Observation(times=span.times(), points=points, verdict=verdict, at=clock.now())
    state = str(verdict.state)
    changes.set(alarm, state, alarm_reason.sentence(alarm, seen, state), alarm_reason.data(alarm, seen))


def _criteria(alarm: Alarm) -> Criteria:
    relation, threshold = alarm_evaluation.COMPARISONS[alarm["ComparisonOperator"]][0], alarm["Threshold"]
    periods = int(alarm["EvaluationPeriods"])
    return Criteria(
        breaches=lambda value: relation(value, threshold),
        periods=periods,
        to_alarm=int(alarm.get("DatapointsToAlarm", periods)),
        missing=str(alarm.get("TreatMissingData", "missing")),
    )


def _series(alarm: Alarm, span: Span) -> Series:
    """The points of the range; raises ``ExpressionError`` where an expression gives no single series."""
    if "Metrics" in alarm:
        results = queries.Results(queries.read(alarm["Metrics"]), start=span.start, end=span.end)
        [shown] = [query for query in results.queries if query.shown]
        many = results.shown(shown)
        if len(many) != 1:
            raise ExpressionError(
                f"Expression '{shown.identifier}' gives {len(many)} time series, an alarm watches one"
            )
        return many[0]
    stat = statistic(alarm.get("Statistic") or alarm["ExtendedStatistic"])
    return metric_store.series(metric_of(alarm), span, stat, label="", unit=alarm.get("Unit"))


def metric_of(alarm: Alarm) -> Metric:
    """The metric of an alarm on one."""
    dimensions = metric_store.dimensions(alarm.get("Dimensions"))
    return Metric(namespace=alarm["Namespace"], name=alarm["MetricName"], dimensions=dimensions)


def _fail(alarm: Alarm, error: str, changes: Changes) -> None:
    """EVALUATION_ERROR: "configuration errors in alarm setup", told in StateReason (user guide, "Alarm evaluation")."""
    alarm["EvaluationState"] = "EVALUATION_ERROR"
    if HELD not in alarm and alarm["StateValue"] != INSUFFICIENT_DATA:
        changes.set(alarm, INSUFFICIENT_DATA, f"Evaluation error: {error}", None)


def _too_few_samples(alarm: Alarm, span: Span, used: tuple[int, ...]) -> bool:
    """Whether a percentile is to be ignored for its few samples (user guide, "Percentile-based CloudWatch alarms")."""
    if alarm.get("EvaluateLowSampleCountPercentile") != "ignore":
        return False
    share = percentile_share(alarm.get("ExtendedStatistic", "")) or 0.0
    least = 10 / (1 - share) if 0.5 <= share < 1 else 10 / share if share else 0.0
    times = {span.times()[at] for at in used}
    found = metric_store.samples(metric_of(alarm), span, unit=alarm.get("Unit"))
    return math.fsum(sample.count for time in times for sample in found.get(time, ())) < least
