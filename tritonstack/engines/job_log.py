"""The last lines of a remote job's log in CloudWatch Logs."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.engines.engine_failure import KEPT_LINES


def log_tail(logs: Any, *, group: str, stream: str) -> tuple[str, ...]:
    """The last lines of a stream, oldest first; none where it cannot be read: a failure has a reason without them."""
    try:
        answer = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=KEPT_LINES, startFromHead=False)
    except (BotoCoreError, ClientError):
        return ()
    return tuple(str(event["message"]).rstrip() for event in answer.get("events", ()))


def stream_of(logs: Any, *, group: str, prefix: str) -> str | None:
    """The first stream of a group whose name begins so; None where there is none, or nobody may look."""
    try:
        answer = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=prefix, limit=1)
    except (BotoCoreError, ClientError):
        return None
    streams = answer.get("logStreams", ())
    return str(streams[0]["logStreamName"]) if streams else None
