"""Requests shared between two endpoint configs during a rollout, and among the production variants of a config; fleets
that end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonstack_local.runtime.background import Tasks
from tritonstack_local.runtime.deployed import DeployedConfig
from tritonstack_local.runtime.fleet import GRACE_SECONDS, FleetState, RunningFleet

_ROUNDING = 1e-9
logger = logging.getLogger("tritonstack.runtime")


@dataclass
class Split:
    """Gives the new config its share of the requests, evenly: at a quarter, every fourth request.

    SageMaker spreads requests over instances; with one container a fleet, the share decides. Without chance a test can
    count, and a small canary gets its first request as early as it can.
    """

    share: float = 0.0  # of the new config, 0 to 1
    _owed: float = 0.0

    def next_is_new(self) -> bool:
        """Whether the next request goes to the new config; ``count`` it once it does."""
        return self._owed + self.share >= 1 - _ROUNDING

    def count(self) -> None:
        """Count a request that followed ``next_is_new``."""
        new = self.next_is_new()
        self._owed += self.share - (1 if new else 0)

    def end(self) -> None:
        """There is one config again."""
        self.share = self._owed = 0.0


class Draining:
    """Fleets that get no further requests, each stopped once those in flight have ended."""

    def __init__(self) -> None:
        """None yet."""
        self.fleets: set[RunningFleet] = set()
        self._tasks = Tasks()

    def __len__(self) -> int:
        """How many are not stopped yet."""
        return len(self.fleets)

    def add(self, fleet: RunningFleet) -> None:
        """Stop a fleet once its requests have ended."""
        self.fleets.add(fleet)
        self._tasks.start(self._end(fleet), name=f"drain {fleet.config.name}")

    async def _end(self, fleet: RunningFleet) -> None:
        try:
            try:
                await fleet.drain()
            finally:
                await fleet.stop()
        finally:
            self.fleets.discard(fleet)
            logger.info("%s: the fleet of %s is stopped", fleet.endpoint, fleet.config.component or fleet.config.name)

    async def finish(self, *, cancel: bool) -> None:
        """Wait until all are stopped; with ``cancel`` without their requests."""
        await self._tasks.finish(cancel=cancel)


class Variants:
    """The fleets of one endpoint config: one for each production variant, with its part of the requests.

    Of a variant with instance pools one for each instance type that it landed on.

    The part is "the ratio of the VariantWeight to the sum of all" (API reference, ProductionVariant). SageMaker picks
    at random; here the variant that is furthest behind its part takes the next request, so that tests can count.
    """

    def __init__(self, fleets: Sequence[RunningFleet]) -> None:
        """Starts nothing yet. ``fleets``: of one config."""
        self.fleets = tuple(fleets)
        self.config_name = self.fleets[0].config.name
        self.only = self.fleets[0] if len(self.fleets) == 1 else None
        self._weights = [1.0] * len(self.fleets)
        self._owed = [0.0] * len(self.fleets)

    @property
    def up(self) -> bool:
        """Whether each fleet's container responds."""
        return all(fleet.state is FleetState.READY for fleet in self.fleets)

    def weigh(self, weight: Callable[[DeployedConfig], float | None]) -> None:
        """Share the requests by these weights from now on; one that is not known stays."""
        found = [
            before if (now := weight(fleet.config)) is None else now
            for fleet, before in zip(self.fleets, self._weights, strict=True)
        ]
        if found != self._weights and sum(found) > 0:
            self._weights, self._owed = found, [0.0] * len(found)

    def replace(self, fleets: Sequence[RunningFleet]) -> None:
        """Other fleets of the same config from now on; ``weigh`` them next. Those that are left out are not stopped."""
        self.fleets = tuple(fleets)
        self.only = self.fleets[0] if len(self.fleets) == 1 else None
        self._weights, self._owed = [1.0] * len(self.fleets), [0.0] * len(self.fleets)

    def share(self, fleet: RunningFleet) -> float:
        """A fleet's part of the requests to the config, 0 to 1."""
        return self._weights[self.fleets.index(fleet)] / sum(self._weights)

    def take(self, target: bytes | None) -> RunningFleet:
        """The fleet for a request: of its TargetVariant, else by weight. An unknown target: a fleet, to refuse it."""
        if self.only is not None:
            return self.only
        if target is not None and len({fleet.variant_header for fleet in self.fleets}) > 1:
            return next((fleet for fleet in self.fleets if fleet.variant_header == target), self.fleets[0])
        self._owed = [owed + weight for owed, weight in zip(self._owed, self._weights, strict=True)]
        first = self._owed.index(max(self._owed))
        self._owed[first] -= sum(self._weights)
        return self.fleets[first]

    async def start(self) -> None:
        """Start every fleet. Raises DeploymentError: one cannot start; those that could are still to be stopped."""
        starting = [asyncio.create_task(fleet.start()) for fleet in self.fleets]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)

    async def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop every fleet; see ``RunningFleet.stop``."""
        await asyncio.gather(*(fleet.stop(grace_seconds=grace_seconds) for fleet in self.fleets))
