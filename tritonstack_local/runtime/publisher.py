"""Publishes metrics each period, and ships containers logs, to the emulator."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.catalogue import load_catalogue
from tritonstack_local.runtime.background import ErrorLog, repeat
from tritonstack_local.runtime.fleet import FleetState, InstanceUsage, RunningFleet
from tritonstack_local.runtime.metrics import by_namespace
from tritonstack_local.runtime.settings import RuntimeSettings

# Triton logs every request of a multi-model endpoint with a line of its own (sagemaker_server.cc). Under load these are
# thousands a second, and sending them took a tenth of the processor from the models. So of these lines alone only the
# first of about each second are sent, with one line on how many were left out. The container's own file has all.
STAND_IN = "tritonstack stand-in:"
BATCH_LINES = 1000
BATCH_BYTES = 256 * 1024
LINE_BYTES = 8 * 1024
REQUEST_NOTE = b'"Invoking SageMaker TargetModel: '
REQUEST_NOTES = 100
"""How many notes of requests are sent each time."""
logger = logging.getLogger("tritonstack.runtime")


@dataclass(kw_only=True)
class LogShipper:
    """Sends the text that is appended to one file. Call ``ship`` in a thread.

    PutLogEvents takes 10,000 events and 1,048,576 bytes a request (CloudWatch Logs API reference); batches are smaller.
    """

    client: Callable[[], Any]  # makes a boto3 logs client, or gives the one that it made
    path: Path
    group: str
    stream: str
    seen: Callable[[str], None] = lambda _line: None  # gets lines of stand-ins
    _offset: int = 0
    _left_out: int = 0
    _ready: bool = False
    _failing: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ship(self) -> int:
        """Send new lines. Returns their number; a failure is logged once and retried next time."""
        with self._lock:
            return self._ship()

    def _ship(self) -> int:
        sent, notes = 0, REQUEST_NOTES
        while True:
            raw, offset = self._read()
            kept, left_out = _without_notes(raw, beyond=notes)
            if not self._sent([_text(line) for line in kept]):
                return sent
            notes -= sum(REQUEST_NOTE in line for line in kept)
            self._offset = offset
            self._left_out += left_out
            sent += len(kept)
            if not raw:
                break
        if self._left_out and self._sent(
            [f"tritonstack: {self._left_out} of Triton's lines that note a request are left out; {self.path} has them"]
        ):
            self._left_out = 0
            sent += 1
        return sent

    def _sent(self, lines: list[str]) -> bool:
        """Send lines, if there are any; whether that went well."""
        if not lines:
            return True
        try:
            self._send(lines)
        except (BotoCoreError, ClientError) as error:
            if not self._failing:
                logger.warning("%s/%s: the log cannot be sent: %s", self.group, self.stream, error)
            self._failing = True
            return False
        self._failing = False
        for line in lines:
            if STAND_IN in line:
                self.seen(line[line.index(STAND_IN) :])
        return True

    def _read(self) -> tuple[list[bytes], int]:
        """Whole lines after the offset, and the offset after them."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(BATCH_BYTES)
        except FileNotFoundError:
            return [], self._offset
        end = data.rfind(b"\n") + 1
        if end == 0:
            if len(data) < BATCH_BYTES:
                return [], self._offset  # a line that is still being written
            end = len(data)
        raw = data[:end].splitlines(keepends=True)[:BATCH_LINES]
        offset = self._offset + sum(len(line) for line in raw)
        return raw, offset

    def _send(self, lines: list[str]) -> None:
        client, stream = self.client(), {"logGroupName": self.group, "logStreamName": self.stream}
        made = ((client.create_log_group, {"logGroupName": self.group}), (client.create_log_stream, stream))
        for create, names in () if self._ready else made:
            try:
                create(**names)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                    raise
        self._ready = True
        now = int(time.time() * 1000)
        client.put_log_events(**stream, logEvents=[{"timestamp": now, "message": line} for line in lines])


def _without_notes(lines: list[bytes], *, beyond: int) -> tuple[list[bytes], int]:
    """The lines without excess notes of requests, and the number of those left out."""
    kept, notes = [], 0
    for line in lines:
        if REQUEST_NOTE in line:
            notes += 1
            if notes > beyond:
                continue
        kept.append(line)
    return kept, len(lines) - len(kept)


def _text(line: bytes) -> str:
    """A line as PutLogEvents takes it: bounded, and never empty."""
    return line.rstrip(b"\r\n")[:LINE_BYTES].decode(errors="replace") or " "


DATA_A_CALL = 200
KEPT_DATA = 20_000


class Publisher:
    """CloudWatch and CloudWatch Logs of the fleets."""

    def __init__(self, *, settings: RuntimeSettings, cloudwatch: Any, logs: Callable[[str], Any]) -> None:
        """``cloudwatch`` is a boto3 client: SageMaker writes metrics itself. ``logs`` makes one of a role."""
        self._settings = settings
        self._cloudwatch = cloudwatch
        self._logs = logs
        self._shippers: dict[RunningFleet, LogShipper] = {}
        self._usage: dict[RunningFleet, InstanceUsage] = {}
        self._errors: dict[RunningFleet, ErrorLog] = {}
        self._unsent: list[tuple[str, dict[str, Any]]] = []
        self._failing = False

    def add(self, fleet: RunningFleet) -> None:
        """Send this fleet's metrics and log from now on."""
        address = fleet.address
        self._errors[fleet] = ErrorLog(f"{address.endpoint}/{fleet.config.variant}: sampling or sending its log")
        instance = load_catalogue().instance(fleet.config.instance_type)
        self._usage[fleet] = InstanceUsage(self._settings.state, vcpus=None if instance is None else instance.vcpu)
        self._shippers[fleet] = LogShipper(
            client=partial(self._logs, fleet.config.model.role),
            path=fleet.folder / "triton.log",
            group=address.log_group,
            stream=address.log_stream,
            seen=fleet.stand_in,
        )

    async def ship_logs(self) -> None:
        """Send the containers' logs, until cancelled."""
        await repeat(self._ship_logs, what="sending logs")

    async def _ship_logs(self) -> float:
        for fleet, shipper in tuple(self._shippers.items()):
            try:
                await asyncio.to_thread(shipper.ship)
            except Exception as error:  # noqa: BLE001  (the other fleets' logs are sent all the same)
                self._failed(fleet, error)
        return self._settings.log_seconds

    async def send_metrics(self) -> None:
        """Send metrics, until cancelled."""
        await repeat(self._send_metrics, what="sending metrics")

    async def _send_metrics(self) -> float:
        await self.flush()
        return self._settings.flush_seconds

    async def flush(self) -> None:
        """Send the metrics since the last time. Data that cannot be sent is kept for the next time."""
        for fleet in list(self._usage):
            try:
                await self._sample(fleet)
            except Exception as error:  # noqa: BLE001  (what was counted is sent all the same)
                self._failed(fleet, error)
            ended = fleet.state is FleetState.STOPPED
            self._unsent += fleet.metrics.take(ended=ended)
            if ended:
                del self._usage[fleet]
                self._shippers.pop(fleet, None)
                self._errors.pop(fleet, None)
        del self._unsent[:-KEPT_DATA]
        unsent, self._unsent = self._unsent, []
        left = await asyncio.to_thread(self._put, by_namespace(unsent))
        self._unsent = left + self._unsent

    def no_capacity(self, component: str) -> None:
        """Count a request to a component without copies: the one figure of a component that has no container."""
        datum = {
            "MetricName": aws_names.NO_CAPACITY_FAILURES,
            "Dimensions": aws_names.dimension_list({aws_names.COMPONENT_NAME: component}),
            "Timestamp": datetime.now(UTC),
            "Unit": "None",
            "Value": 1.0,
        }
        self._unsent.append((aws_names.SAGEMAKER, datum))

    def _failed(self, fleet: RunningFleet, error: Exception) -> None:
        if (errors := self._errors.get(fleet)) is not None:
            errors.failed(error)

    async def last_log(self, fleet: RunningFleet) -> None:
        """Send the rest of a fleet's log before its folder is deleted."""
        shipper = self._shippers.get(fleet)
        if shipper is not None:
            await asyncio.to_thread(shipper.ship)

    async def _sample(self, fleet: RunningFleet) -> None:
        container = fleet.container
        if container is None or fleet.state is not FleetState.READY:
            return
        for name, value in (await asyncio.to_thread(self._usage[fleet].sample, container.pid)).items():
            fleet.metrics.gauge(name, value)
        if fleet.config.model.multi_model:
            fleet.metrics.gauge(aws_names.LOADED_MODEL_COUNT, fleet.models.loaded_count)

    def _put(self, grouped: Mapping[str, list[dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
        """Send; returns what could not be sent."""
        left: list[tuple[str, dict[str, Any]]] = []
        for namespace, data in grouped.items():
            for start in range(0, len(data), DATA_A_CALL):
                part = data[start : start + DATA_A_CALL]
                try:
                    self._cloudwatch.put_metric_data(Namespace=namespace, MetricData=part)
                except (BotoCoreError, ClientError) as error:
                    if not self._failing:
                        logger.warning("metrics cannot be sent, they are kept: %s", error)
                    self._failing = True
                    left += [(namespace, datum) for datum in part]
                else:
                    self._failing = False
        return left
