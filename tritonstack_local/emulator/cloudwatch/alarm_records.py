"""Alarms as MiniStack keeps them, in the members that DescribeAlarms has; and their history.

Names that begin with ``_`` are the local AWS's own and never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import cloudwatch

from tritonstack_local.emulator.clock import clock

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
