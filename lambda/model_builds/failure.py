"""Why a build did not succeed, in as many words as a wait condition takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from .wait import SIGNAL_REASON_LENGTH

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient

FAILED_LINE = "FAILED in phase "
"""How the last lines of a build that failed begin: ``FAILED in phase <phase> of <archive>: <reason>``."""
AGENT_LINE = "[Container] "
"""How CodeBuild's own lines in a build's log begin."""
LINES_READ, LINES_TOLD = 100, 20


def last_lines(logs: CloudWatchLogsClient, build: Mapping[str, Any]) -> list[str]:
    """The last lines of a build's log, oldest first; none where it wrote none. CodeBuild's own only without others."""
    where = build.get("logs", {})
    if not (where.get("groupName") and where.get("streamName")):
        return []
    try:
        answered = logs.get_log_events(
            logGroupName=where["groupName"], logStreamName=where["streamName"], limit=LINES_READ, startFromHead=False
        )
    except ClientError as error:  # the failure is told without them, too
        print(json.dumps({"log": str(error)}))
        return []
    lines = [line for each in answered["events"] if (line := each["message"].rstrip())]
    return [line for line in lines if not line.startswith(AGENT_LINE)] or lines


def failure(build: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Why a build did not succeed: phase and reason, as many of its last lines as there is room for, and the link."""
    told = [line for line in lines if line.startswith(FAILED_LINE)]
    head = "\n".join(told) or f"{build['id']} {_ended(build)}"
    link = str(build.get("logs", {}).get("deepLink", ""))
    tail = f"\n{link}" if link else ""
    room = SIGNAL_REASON_LENGTH - len(tail)
    if len(head) > room:
        return f"{head[: room - 2]} …{tail}"
    rest = [line for line in lines if not any(each in line for each in told)][-LINES_TOLD:]
    while rest and len(head) + sum(len(line) + 3 for line in rest) > room:
        rest.pop(0)
    return head + "".join(f"\n| {line}" for line in rest) + tail


def _ended(build: Mapping[str, Any]) -> str:
    """How it ended, in which of CodeBuild's phases, and what CodeBuild says of that."""
    status = build["buildStatus"]
    words = {"TIMED_OUT": "took longer than it may", "STOPPED": "was stopped by hand"}.get(status, str(status))
    for phase in build.get("phases", []):
        if phase.get("phaseStatus", "SUCCEEDED") != "SUCCEEDED":
            said = " ".join(str(each.get("message", "")).strip() for each in phase.get("contexts", []))
            return f"{words} in CodeBuild's phase {phase['phaseType']}" + (f": {said}" if said.strip() else "")
    return words
