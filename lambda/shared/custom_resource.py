"""A custom resource's event, and its answer: one for each event, whatever happens to the function.

It imports nothing that Lambda might not have. What a function does is imported when it is done, so that even a module
that cannot be imported is told to CloudFormation, which would wait until its time-out otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from . import presigned_url
from .time_limit import OutOfTimeError, time_limit

REASON_BYTES, DATA_BYTES = 2000, 2400
"""CloudFormation takes 4096 bytes of answer (user guide: custom resource response objects); a failure has no data, a
success has no reason, and names and ids of the resource take less than the rest."""
SPARE_SECONDS = presigned_url.LONGEST_SECONDS + 5
"""Before its end a run gives up, to have the time for its answer."""
PRESIGNED = re.compile(r"(https?://[^?]*)\?.*")


class NotDoneError(Exception):
    """What keeps a custom resource from being done, said so that it can be mended."""


def respond(
    event: Mapping[str, Any], context: Any, act: Callable[[], Mapping[str, Any] | None], *, physical_id: str
) -> None:
    """Do what an event asks and answer CloudFormation, whatever happened.

    A run that would be cut off ends before with a failure: Lambda would repeat its event, which may be over by then.

    Args:
        event: CloudFormation's.
        context: Lambda's.
        act: does it; returns the resource's attributes (a text is cut to its share of the answer, an object is not), or
            None where another run of the function will answer.
        physical_id: the resource's, of an event that is no Delete. A Delete keeps the one that it came with.

    Raises:
        OSError: the answer could not be given; Lambda repeats the event.
    """
    print(json.dumps({name: shown(event.get(name)) for name in ("RequestType", "ResourceType", "ResourceProperties")}))
    reason, data = "", None
    try:
        with time_limit(context.get_remaining_time_in_millis() / 1000 - SPARE_SECONDS):
            data = act()
        if data is None:
            return
    except NotDoneError as error:
        reason = str(error) or "it was not done"
    except (Exception, OutOfTimeError) as error:  # noqa: BLE001 - without an answer CloudFormation waits
        reason = f"{type(error).__name__}: {error}"
    if reason:
        print(json.dumps({"failed": reason}))
        reason = f"{cut(reason, REASON_BYTES)} (log stream {context.log_stream_name})"
    heard = presigned_url.put(event["ResponseURL"], answer(event, reason=reason, data=data, physical_id=physical_id))
    print(json.dumps({"answered": "FAILED" if reason else "SUCCESS", "heard": heard}))


def answer(event: Mapping[str, Any], *, reason: str, data: Mapping[str, Any] | None, physical_id: str) -> bytes:
    """What CloudFormation is told; a failure where there is a reason."""
    attributes, before = data or {}, event.get("PhysicalResourceId")
    body = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason,
        "PhysicalResourceId": before if before and event["RequestType"] == "Delete" else physical_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
        "Data": {
            name: cut(value, DATA_BYTES // len(attributes)) if isinstance(value, str) else value
            for name, value in attributes.items()
        },
    }
    return json.dumps(body, ensure_ascii=False).encode()


def identity(event: Mapping[str, Any], name: str) -> str:
    """A physical id that a property tells, with the type before it; what it was, where there is no such property.

    It must not change while the resource stays: CloudFormation then deletes what it takes for the old one.
    """
    value, before = (event.get("ResourceProperties") or {}).get(name), event.get("PhysicalResourceId")
    return before if before and not value else f"{event['ResourceType']}:{value or 'unknown'}"


def cut(text: str, most: int) -> str:
    """As much of the beginning of a text as takes so many bytes in JSON."""
    while (over := len(json.dumps(text, ensure_ascii=False).encode()) - most) > 0:
        text = f"{text[: -2 - over // 6]}…" if len(text) > 2 else ""  # a character takes six bytes at most
    return text


def shown(value: Any) -> Any:
    """A value as it may stand in a log: without the part of a presigned URL that lets its reader in."""
    if isinstance(value, Mapping):
        return {name: shown(each) for name, each in value.items()}
    return PRESIGNED.sub(r"\1?…", value) if isinstance(value, str) else value
