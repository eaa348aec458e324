"""Sends metrics and logs of all fleets in the background, and those of a stopped fleet to the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack_local.runtime.fleet import Fleet, FleetState
from tritonstack_local.runtime.instance import InstanceUsage
from tritonstack_local.runtime.logs import LogShipper
from tritonstack_local.runtime.metrics import LOADED_MODELS, by_namespace
from tritonstack_local.runtime.settings import RuntimeSettings

DATA_A_CALL = 200
KEPT_DATA = 20_000
logger = logging.getLogger("tritonstack.runtime")


class Publisher:
    """CloudWatch and CloudWatch Logs of the fleets."""

    def __init__(self, *, settings: RuntimeSettings, cloudwatch: Any, logs: Any) -> None:
        """``cloudwatch`` and ``logs`` are boto3 clients."""
        self._settings = settings
        self._cloudwatch = cloudwatch
        self._logs = logs
        self._shippers: dict[Fleet, LogShipper] = {}
        self._usage: dict[Fleet, InstanceUsage] = {}
        self._unsent: list[tuple[str, dict[str, Any]]] = []
        self._failing = False

    def add(self, fleet: Fleet) -> None:
        """Send this fleet's metrics and log from now on."""
        address = fleet.address
        self._usage[fleet] = InstanceUsage(self._settings.state)
        self._shippers[fleet] = LogShipper(
            client=self._logs,
            path=fleet.folder / "triton.log",
            group=address.log_group,
            stream=address.log_stream,
            seen=fleet.stand_in,
        )

    async def ship_logs(self) -> None:
        """Send logs until cancelled."""
        while True:
            await asyncio.sleep(self._settings.log_seconds)
            await asyncio.to_thread(self._ship, tuple(self._shippers.values()))

    async def send_metrics(self) -> None:
        """Send metrics until cancelled."""
        while True:
            await asyncio.sleep(self._settings.flush_seconds)
            await self.flush()

    async def flush(self) -> None:
        """Send what was counted since the last time. What cannot be sent is kept for the next."""
        for fleet in list(self._usage):
            await self._sample(fleet)
            ended = fleet.state is FleetState.STOPPED
            self._unsent += fleet.metrics.take(ended=ended)
            if ended:
                self._forget(fleet)
        del self._unsent[:-KEPT_DATA]
        unsent, self._unsent = self._unsent, []
        left = await asyncio.to_thread(self._put, by_namespace(unsent))
        self._unsent = left + self._unsent

    async def last_log(self, fleet: Fleet) -> None:
        """Send the rest of a fleet's log before its folder is deleted."""
        shipper = self._shippers.get(fleet)
        if shipper is not None:
            await asyncio.to_thread(shipper.ship)

    def _forget(self, fleet: Fleet) -> None:
        del self._usage[fleet]
        self._shippers.pop(fleet, None)

    async def _sample(self, fleet: Fleet) -> None:
        container = fleet.container
        if container is None or fleet.state is not FleetState.READY:
            return
        for name, value in (await asyncio.to_thread(self._usage[fleet].sample, container.pid)).items():
            fleet.metrics.gauge(name, value)
        if fleet.config.model.multi_model:
            fleet.metrics.gauge(LOADED_MODELS, fleet.models.loaded_count)

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

    @staticmethod
    def _ship(shippers: tuple[LogShipper, ...]) -> None:
        for shipper in shippers:
            shipper.ship()
