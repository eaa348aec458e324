"""A change of an alarm's state: noted in the alarm and its history, passed on to composite alarms, then told.

Composite alarms are those of the user guide's "Creating a composite alarm"; MiniStack reads and computes their rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ministack.services import cloudwatch

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch import alarm_actions, alarm_records, metric_store
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import ALARM, OK
from tritonstack_local.emulator.cloudwatch.alarm_reason import iso
from tritonstack_local.emulator.cloudwatch.alarm_records import Alarm

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
        alarm_records.add_history(
            alarm,
            "StateUpdate",
            f"Alarm updated from {before['StateValue']} to {state}",
            {"version": "1.0", "oldState": _shown(before), "newState": _shown(alarm)},
        )
        self._made.append((dict(alarm), before))
        self._parents(alarm, path | {alarm["AlarmName"]})

    def _parents(self, child: Alarm, path: frozenset[str]) -> None:
        """A composite alarm that is on the path already is part of a circle, whose evaluation ends there."""
        for parent in alarm_records.composite_alarms():
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
            alarm_actions.follow(alarm, before)


def make(change: Callable[[Changes], None]) -> None:
    """Make changes with the lock held, and then what follows them."""
    changes = Changes()
    with metric_store.lock:
        change(changes)
    changes.follow()


def rule_state(alarm: Alarm) -> str:
    """What a composite alarm's rule says now."""
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
