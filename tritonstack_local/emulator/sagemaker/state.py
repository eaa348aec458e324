"""The state of the emulated SageMaker, its lock, tags and listings."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tritonstack_local.emulator.iam.resource_policies import own_tags
from tritonstack_local.emulator.processing.container import PROCESSING_JOB, ProcessingJob
from tritonstack_local.emulator.sagemaker.component_record import ComponentRecord
from tritonstack_local.emulator.sagemaker.deployment import EndpointRecord
from tritonstack_local.emulator.sagemaker.records import (
    COMPONENT,
    ENDPOINT,
    ENDPOINT_CONFIG,
    MODEL,
    Record,
    RecordKind,
    Records,
    refused,
)


class SageMakerState:
    """Records by kind, tags by ARN.

    API requests come on the event loop, CloudFormation's on worker threads: hold the lock to read and then write
    ``changed``, which is notified whenever an endpoint's deployment ends.
    """

    def __init__(self, *, fleets: bool) -> None:
        """``fleets``: whether a runtime reports on deployments."""
        self.fleets = fleets
        self.changed = threading.Condition(threading.RLock())
        self.models: Records[Record] = Records(MODEL)
        self.endpoint_configs: Records[Record] = Records(ENDPOINT_CONFIG)
        self.endpoints: Records[EndpointRecord] = Records(ENDPOINT)
        self.components: Records[ComponentRecord] = Records(COMPONENT)
        self.processing_jobs: Records[ProcessingJob] = Records(PROCESSING_JOB)
        self.tags: dict[str, dict[str, str]] = {}
        own_tags.append(self.tags.get)  # for conditions on aws:ResourceTag
        # Set by Application Auto Scaling: the variants of an endpoint that are scalable targets, and how
        # to forget those of an endpoint that is deleted.
        self.scaled_variants: Callable[[str], frozenset[str]] = lambda _endpoint: frozenset()
        self.forget_scaled: Callable[[str], None] = lambda _endpoint: None


_LOOK_SECONDS = 0.2
SettlingRecord = TypeVar("SettlingRecord", EndpointRecord, ComponentRecord)


def settled(
    state: SageMakerState,
    records: Records[SettlingRecord],
    arn: str,
    *,
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
    goes_on: Callable[[SettlingRecord], bool] = lambda _record: False,
) -> SettlingRecord | None:
    """A record once no change of it is in progress, or ``cancelled``; None where there is none.

    A change without a report of the runtime for ``seconds`` fails, so that its waiters go on. While it ``goes_on`` by
    itself no report is needed.
    """
    with state.changed:
        record = next((each for each in records.everywhere() if each.arn == arn), None)
        until = time.monotonic() + seconds
        while record is not None and not record.settled and not cancelled():
            if goes_on(record):
                until = time.monotonic() + seconds
            elif time.monotonic() > until:
                record.fail(
                    f"The local runtime reported nothing within {seconds:.0f} s."
                    " Is it running? See `tritonstack local status`."
                )
                state.changed.notify_all()
            state.changed.wait(_LOOK_SECONDS)
        return record


Request = dict[str, Any]
_PAGE = 10
"""ListEndpoints: "This value defaults to 10" (API reference); the others name no default."""


def listing(kind: RecordKind, records: Iterable[Record], request: Request) -> dict[str, Any]:
    """One page of records, the newest first.

    A page's token holds the place of its last record in the order, so that records which come or go between two
    pages neither repeat nor hide others.
    """
    found = sorted((r for r in records if _wanted(r, request)), key=_place, reverse=True)
    if "NextToken" in request:
        created, slash, name = request["NextToken"].partition("/")
        if not slash or not re.fullmatch(r"\d+\.\d+", created):
            raise refused("The NextToken is not valid.", kind.noun)
        found = [r for r in found if _place(r) < (float(created), name)]
    size = request.get("MaxResults", _PAGE)
    page = found[:size]
    member = "ProcessingJobSummaries" if kind == PROCESSING_JOB else kind.noun + "s"
    answer: dict[str, Any] = {member: [_summary(kind, record) for record in page]}
    if len(found) > size:
        answer["NextToken"] = "{!r}/{}".format(*_place(page[-1]))
    return answer


def _wanted(record: Record, request: Request) -> bool:
    return (
        request.get("NameContains", "").lower() in record.name.lower()
        and ("StatusEquals" not in request or getattr(record, "status", None) == request["StatusEquals"])
        and ("CreationTimeAfter" not in request or record.created >= request["CreationTimeAfter"])
    )


def _place(record: Record) -> tuple[float, str]:
    """A record's place in the order; the name makes it unique."""
    return (record.created, record.name.lower())


def _summary(kind: RecordKind, record: Record) -> dict[str, Any]:
    summary = {kind.name_member: record.name, f"{kind.noun}Arn": record.arn, "CreationTime": record.created}
    if isinstance(record, EndpointRecord):
        summary |= {"LastModifiedTime": record.modified, "EndpointStatus": record.status}
    if isinstance(record, ProcessingJob):
        summary |= record.summary()
    return summary


_MOST = 50


def store(state: SageMakerState, arn: str, pairs: list[dict[str, str]]) -> None:
    """Set the tags of something just created."""
    state.tags[arn] = {pair["Key"]: pair["Value"] for pair in pairs}


class Tags:
    """The operations on tags, of whatever has an ARN."""

    def __init__(self, state: SageMakerState) -> None:
        self._state = state

    def add_tags(self, request: Request) -> dict[str, Any]:
        """AddTags: adds or overwrites; returns all tags."""
        with self._state.changed:
            own = self._of(request["ResourceArn"])
            merged = {**own, **{pair["Key"]: pair["Value"] for pair in request["Tags"]}}
            if len(merged) > _MOST:
                raise refused(f"More than {_MOST} tags.", "AddTags")
            own.update(merged)
            return {"Tags": _pairs(own)}

    def delete_tags(self, request: Request) -> None:
        with self._state.changed:
            own = self._of(request["ResourceArn"])
            for key in request["TagKeys"]:
                own.pop(key, None)

    def list_tags(self, request: Request) -> dict[str, Any]:
        """ListTags: always one page, since fifty is the most there can be and the least a page holds."""
        return {"Tags": _pairs(self._of(request["ResourceArn"]))}

    def _of(self, arn: str) -> dict[str, str]:
        own = self._state.tags.get(arn)
        if own is None:
            raise refused(f'Could not find resource "{arn}".', "ListTags")
        return own


def _pairs(own: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in own.items()]
