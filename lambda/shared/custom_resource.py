"""A custom resource: its event and properties, and one response to each event, even if the function fails.

A handler imports its other modules when it runs, so that even a module that cannot be imported ends in a response:
CloudFormation would wait until its time-out otherwise.
"""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

HTTP_SECONDS = 10
PAUSES = (1.0, 3.0)
"""Seconds before each further attempt to put a document."""
PUT_SECONDS = HTTP_SECONDS * (1 + len(PAUSES)) + sum(PAUSES)
EXPIRED = frozenset({403, 404, 410})
"""HTTP statuses of a presigned URL whose time, stack or signature is over."""
SPARE_SECONDS = PUT_SECONDS + 5
"""A run gives up so long before its end, to have the time for its response."""
REASON_BYTES, DATA_BYTES = 2000, 2400
"""CloudFormation takes 4096 bytes of response (user guide: custom resource response objects); a failure has no data, a
success has no reason, and names and ids of the resource take less than the rest."""
PRESIGNED = re.compile(r"(https?://[^?]*)\?.*")
NAMES_SHOWN = 10


class NotDoneError(Exception):
    """An event that could not be carried out; the message becomes the reason of the failure."""


class OutOfTimeError(BaseException):
    """The run's time is over. No ``Exception``: clients take such for a lost connection, and retry."""


def respond(
    event: Mapping[str, Any], context: Any, act: Callable[[], Mapping[str, Any] | None], *, physical_id: str
) -> None:
    """Carry out an event and respond to CloudFormation, whatever happened.

    A run that would be cut off fails before that: Lambda would repeat its event, which may be over by then.

    Args:
        event: CloudFormation's.
        context: Lambda's.
        act: carries it out; returns the resource's attributes (a text is cut to its share of the response, an object
            is not), or None where another run of the function will respond.
        physical_id: the resource's, of an event that is no Delete. A Delete keeps the one that it came with.

    Raises:
        OSError: the response could not be put; Lambda repeats the event.
    """
    logged = ("RequestType", "ResourceType", "ResourceProperties")
    print(json.dumps({name: redacted(event.get(name)) for name in logged}))
    reason, data = "", None
    try:
        with time_limit(context.get_remaining_time_in_millis() / 1000 - SPARE_SECONDS):
            data = act()
        if data is None:
            return
    except NotDoneError as error:
        reason = str(error) or "not done"
    except (Exception, OutOfTimeError) as error:  # noqa: BLE001 - without a response CloudFormation waits
        reason = f"{type(error).__name__}: {error}"
    if reason:
        print(json.dumps({"failed": reason}))
        reason = f"{cut(reason, REASON_BYTES)} (log stream {context.log_stream_name})"
    delivered = put_document(event["ResponseURL"], response(event, reason=reason, data=data, physical_id=physical_id))
    print(json.dumps({"response": "FAILED" if reason else "SUCCESS", "delivered": delivered}))


def response(event: Mapping[str, Any], *, reason: str, data: Mapping[str, Any] | None, physical_id: str) -> bytes:
    """The response object; a failure where there is a reason."""
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
    """The physical id: type and a property's value; the id of the event where it has no such property.

    It must not change while the resource stays: CloudFormation then deletes the resource of the old id.
    """
    value, before = (event.get("ResourceProperties") or {}).get(name), event.get("PhysicalResourceId")
    return before if before and not value else f"{event['ResourceType']}:{value or 'unknown'}"


def read_properties(fields: Iterable[str], given: Mapping[str, Any]) -> dict[str, str]:
    """Field → value; ``record_path`` is the property ``RecordPath``. Raises NotDoneError with all that are missing."""
    names = {field: "".join(part.title() for part in field.split("_")) for field in fields}
    missing = [name for name in names.values() if not given.get(name)]
    if missing:
        raise NotDoneError(f"properties missing: {', '.join(missing)}")
    return {field: str(given[name]) for field, name in names.items()}


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the block after ``seconds``, even out of a call that waits.

    In the main thread, where Lambda calls a function. An alarm that was set before is set again afterwards.
    """

    def over(*_: Any) -> None:
        raise OutOfTimeError(f"not done within the {seconds:.0f} seconds that this run had")

    handled_by = signal.signal(signal.SIGALRM, over)
    before = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handled_by)


def put_document(url: str, document: bytes) -> bool:
    """Put a document to a presigned URL, which must be in no log. False where the URL has expired.

    Raises OSError: every attempt failed.
    """
    # The URL comes from CloudFormation. A type would not match the signature, which was made for none.
    request = urllib.request.Request(url, data=document, method="PUT", headers={"Content-Type": ""})  # noqa: S310
    for pause in (*PAUSES, None):
        try:
            with urllib.request.urlopen(request, timeout=HTTP_SECONDS):  # noqa: S310
                return True
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code in EXPIRED:
                print(json.dumps({"put": "expired", "status": error.code}))
                return False
            if pause is None:
                raise
            print(json.dumps({"put": "failed, will be retried", "error": str(error)}))
            time.sleep(pause)
    raise AssertionError("unreachable")


def cut(text: str, most: int) -> str:
    """As much of the beginning of a text as takes so many bytes in JSON."""
    while (over := len(json.dumps(text, ensure_ascii=False).encode()) - most) > 0:
        text = f"{text[: -2 - over // 6]}…" if len(text) > 2 else ""  # a character takes six bytes at most
    return text


def redacted(value: Any) -> Any:
    """A value for the log: without the part of a presigned URL that grants access."""
    if isinstance(value, Mapping):
        return {name: redacted(each) for name, each in value.items()}
    return PRESIGNED.sub(r"\1?…", value) if isinstance(value, str) else value


def name_list(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = len(listed) - NAMES_SHOWN
    return ", ".join(listed[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
