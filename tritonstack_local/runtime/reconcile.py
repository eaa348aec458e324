"""The loop that makes what runs here follow what is deployed."""

from __future__ import annotations

import asyncio
import logging
import time

from tritonstack_local.runtime.deployed import ENDED, DeployedEndpoint, Reader, UnreachableError
from tritonstack_local.runtime.endpoint import Endpoint, NewFleet
from tritonstack_local.runtime.settings import RuntimeSettings

BUSY_SECONDS = 5.0
UNREACHABLE_SECONDS = 2.0
logger = logging.getLogger("tritonstack.runtime")


class Reconciler:
    """Holds the endpoints and keeps them as deployed."""

    def __init__(self, *, reader: Reader, settings: RuntimeSettings, new_fleet: NewFleet) -> None:
        """``new_fleet`` makes a fleet for an endpoint's config."""
        self.endpoints: dict[str, Endpoint] = {}
        self.unreachable: str | None = None
        self._reader = reader
        self._settings = settings
        self._new_fleet = new_fleet
        self._mark: str | None = None
        self._stopped = False
        self._described: tuple[DeployedEndpoint, ...] = ()
        self._removals: set[asyncio.Task[None]] = set()
        self._changed_at = time.monotonic()

    async def run(self) -> None:
        """Follow what is deployed until cancelled. A local AWS that does not answer is asked again, and logged once."""
        while True:
            pause = await self.step()
            await asyncio.sleep(pause)

    async def step(self) -> float:
        """Look once. Returns how long to wait before the next look, in seconds.

        What is deployed is read again only where its mark changed: reading takes processor time from the models.
        """
        began = time.monotonic()
        try:
            mark = await asyncio.to_thread(self._reader.mark)
            if mark != self._mark:
                self._described = await asyncio.to_thread(self._reader.endpoints)
                self._mark = mark  # of before, so that what changes meanwhile is read the next time
        except UnreachableError as error:
            if self.unreachable is None:
                logger.warning("the local AWS does not answer, what serves goes on serving: %s", error)
            self.unreachable = str(error)
            return UNREACHABLE_SECONDS
        if self.unreachable is not None:
            logger.info("the local AWS answers again")
            self.unreachable = None
        self.apply(self._described, as_of=began)
        return self._pause()

    def apply(self, described: tuple[DeployedEndpoint, ...], *, as_of: float) -> None:
        """Start, change and remove endpoints so that they become what is described."""
        if self._stopped:
            return
        alive = {endpoint.name: endpoint for endpoint in described if endpoint.status not in ENDED}
        for name, endpoint in list(self.endpoints.items()):
            now = alive.get(name)
            if now is None or now.created != endpoint.described.created:
                self._remove(name)
        for name, found in alive.items():
            if name not in self.endpoints:
                self.endpoints[name] = Endpoint(described=found, reader=self._reader, new_fleet=self._new_fleet)
            self.endpoints[name].apply(found, as_of=as_of)
        if any(endpoint.changing for endpoint in self.endpoints.values()):
            self._changed_at = time.monotonic()

    def _remove(self, name: str) -> None:
        endpoint = self.endpoints.pop(name)
        self._changed_at = time.monotonic()
        logger.info("%s is no longer deployed", name)
        task = asyncio.create_task(endpoint.remove(drain=True), name=f"remove {name}")
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    def _pause(self) -> float:
        recent = time.monotonic() - self._changed_at < BUSY_SECONDS
        return self._settings.reconcile_seconds if recent else self._settings.quiet_seconds

    async def stop(self) -> None:
        """Stop every fleet, and start none from now on."""
        self._stopped = True
        removals = [endpoint.remove(drain=False) for endpoint in self.endpoints.values()]
        self.endpoints.clear()
        await asyncio.gather(*removals, *self._removals, return_exceptions=True)
