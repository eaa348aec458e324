"""ListModels, ListEndpointConfigs, ListEndpoints, ListProcessingJobs: filters, order, pages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tritonstack_local.emulator.processing.record import PROCESSING_JOB, ProcessingJob
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.endpoint_record import EndpointRecord
from tritonstack_local.emulator.sagemaker.records import API, Kind, Record

Request = dict[str, Any]
_PAGE = 10
"""ListEndpoints: "This value defaults to 10" (API reference); the others name no default."""


def listing(kind: Kind, records: Iterable[Record], request: Request) -> dict[str, Any]:
    """One page of records: newest first unless the request says otherwise.

    A page's token holds the place of its last record in the order, so that records which come or go between two
    pages neither repeat nor hide others.
    """
    by, descending = request.get("SortBy", "CreationTime"), request.get("SortOrder", "Descending") == "Descending"
    found = sorted((r for r in records if _wanted(r, request)), key=lambda r: _place(r, by), reverse=descending)
    if "NextToken" in request:
        last = _read_token(request["NextToken"])
        found = [r for r in found if (_place(r, by) < last if descending else _place(r, by) > last)]
    size = request.get("MaxResults", _PAGE)
    page = found[:size]
    member = "ProcessingJobSummaries" if kind == PROCESSING_JOB else kind.noun + "s"
    answer: dict[str, Any] = {member: [_summary(kind, record) for record in page]}
    if len(found) > size:
        answer["NextToken"] = _token(_place(page[-1], by))
    return answer


def _wanted(record: Record, request: Request) -> bool:
    return (
        request.get("NameContains", "").lower() in record.name.lower()
        and ("StatusEquals" not in request or getattr(record, "status", None) == request["StatusEquals"])
        and _between(record.created, request.get("CreationTimeAfter"), request.get("CreationTimeBefore"))
        and _between(record.modified, request.get("LastModifiedTimeAfter"), request.get("LastModifiedTimeBefore"))
    )


def _between(moment: float, after: float | str | None, before: float | str | None) -> bool:
    return (after is None or moment >= _seconds(after)) and (before is None or moment < _seconds(before))


def _seconds(value: float | str) -> float:
    """Seconds since the epoch, of a JSON timestamp (a number; some clients send ISO 8601)."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError as error:
            raise RefusedError("SerializationException", f"no time: {value}", source="AWS JSON 1.1 protocol") from error
    return float(value)


def _place(record: Record, by: str) -> tuple[str | float, str]:
    """Where a record stands in the order; the name makes it unique."""
    if by == "Name":
        return (record.name.lower(), record.name.lower())
    if by == "Status":
        return (getattr(record, "status", ""), record.name.lower())
    return (record.created, record.name.lower())


def _token(place: tuple[str | float, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_token(token: str) -> tuple[str | float, str]:
    try:
        key, name = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, binascii.Error) as error:
        raise RefusedError("ValidationException", "The NextToken is not valid.", source=API) from error
    return key, name


def _summary(kind: Kind, record: Record) -> dict[str, Any]:
    summary = {kind.name_member: record.name, f"{kind.noun}Arn": record.arn, "CreationTime": record.created}
    if isinstance(record, EndpointRecord):
        summary |= {"LastModifiedTime": record.modified, "EndpointStatus": record.status}
    if isinstance(record, ProcessingJob):
        summary |= record.summary()
    return summary
