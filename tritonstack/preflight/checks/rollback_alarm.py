"""Rollback alarms of your own are there, and quiet: SageMaker takes an update back at once otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject


def check(subject: Subject) -> Iterator[Result]:
    """A result for each alarm that a rollout of the environment names."""
    names = {
        name
        for endpoint in subject.environment.endpoints
        if endpoint.rollout is not None
        for name in endpoint.rollout.rollback_alarms
    }
    for name in sorted(names):
        about = About(check="rollback-alarm", subject=name, needed="an alarm that is not in ALARM")
        yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    answer = subject.calls.must(
        "cloudwatch", "describe_alarms", AlarmNames=[about.subject], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
    )
    alarms = [*answer.get("MetricAlarms", ()), *answer.get("CompositeAlarms", ())]
    if not alarms:
        return about.fails("no such alarm in the region", advice="Create it before the update, or take the name out.")
    state = alarms[0]["StateValue"]
    if state == "ALARM":
        return about.fails("it is in ALARM now", advice="Mend what it tells of first: every update would go back.")
    return about.passes(state)


CHECK = Check(name="rollback-alarm", title="rollback alarms of your own", run=check)
