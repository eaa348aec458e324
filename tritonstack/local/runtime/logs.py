"""The container's log, sent to its log stream in batches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

STAND_IN = "tritonstack stand-in:"
BATCH_LINES = 1000
BATCH_BYTES = 256 * 1024
LINE_BYTES = 8 * 1024
logger = logging.getLogger("tritonstack.runtime")


class LogShipper:
    """Reads what was appended to one file and sends it. Call ``ship`` in a thread.

    PutLogEvents takes 10,000 events and 1,048,576 bytes a call (CloudWatch Logs API reference); batches are smaller.
    """

    def __init__(
        self, *, client: Any, path: Path, group: str, stream: str, seen: Callable[[str], None] = lambda _line: None
    ) -> None:
        """``client`` is a boto3 logs client; ``seen`` gets every line that names a stand-in."""
        self._client = client
        self._path = path
        self._group = group
        self._stream = stream
        self._seen = seen
        self._offset = 0
        self._ready = False
        self._failing = False
        self._lock = threading.Lock()

    def ship(self) -> int:
        """Send what is new. Returns the number of lines; a failure is logged once and tried again next time."""
        with self._lock:
            return self._ship()

    def _ship(self) -> int:
        sent = 0
        while True:
            lines, offset = self._read()
            if not lines:
                return sent
            try:
                self._send(lines)
            except (BotoCoreError, ClientError) as error:
                if not self._failing:
                    logger.warning("%s/%s: the log cannot be sent: %s", self._group, self._stream, error)
                self._failing = True
                return sent
            self._failing = False
            self._offset = offset
            sent += len(lines)
            for line in lines:
                if STAND_IN in line:
                    self._seen(line[line.index(STAND_IN) :])

    def _read(self) -> tuple[list[str], int]:
        """Whole lines after the offset, and the offset after them."""
        try:
            with self._path.open("rb") as file:
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
        return [line.rstrip(b"\r\n")[:LINE_BYTES].decode(errors="replace") or " " for line in raw], offset

    def _send(self, lines: list[str]) -> None:
        self._make_stream()
        now = int(time.time() * 1000)
        self._client.put_log_events(
            logGroupName=self._group,
            logStreamName=self._stream,
            logEvents=[{"timestamp": now, "message": line} for line in lines],
        )

    def _make_stream(self) -> None:
        if self._ready:
            return
        for create, names in (
            (self._client.create_log_group, {"logGroupName": self._group}),
            (self._client.create_log_stream, {"logGroupName": self._group, "logStreamName": self._stream}),
        ):
            try:
                create(**names)
            except ClientError as error:
                if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                    raise
        self._ready = True
