"""The states of an environment's alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import WorkFailedError


@dataclass(frozen=True, kw_only=True)
class AlarmState:
    """One alarm: its name, ``OK``, ``ALARM`` or ``INSUFFICIENT_DATA``, and its description."""

    name: str
    state: str
    description: str


def read_states(cloudwatch: Any, environment: str) -> list[AlarmState]:
    """The alarms that the observability stack of ``environment`` made, by their names, which begin with its name.

    Raises:
        WorkFailedError: CloudWatch refuses.
    """
    found: list[AlarmState] = []
    pages = cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{environment}-", AlarmTypes=["MetricAlarm"]
    )
    try:
        for page in pages:
            found += [
                AlarmState(
                    name=each["AlarmName"], state=each["StateValue"], description=each.get("AlarmDescription", "")
                )
                for each in page["MetricAlarms"]
                if "Runbook: " in each.get("AlarmDescription", "")  # scaling makes alarms of its own
            ]
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"could not read the states of the alarms: {error}") from error
    return sorted(found, key=lambda each: each.name)
