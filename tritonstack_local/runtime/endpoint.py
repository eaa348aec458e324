"""Endpoints: their fleets, requests shared among them, rollouts; kept in line with the deployed settings."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from tritonstack.loopback.http_server import HttpResponse, InvokeError, Request
from tritonstack_local.runtime.background import ErrorLog, Tasks, repeat
from tritonstack_local.runtime.components import ComponentEndpoint
from tritonstack_local.runtime.deployed import (
    ENDED,
    DeployedConfig,
    DeployedEndpoint,
    DeploymentError,
    EmulatorReader,
    Reported,
    Traffic,
    UnreachableError,
)
from tritonstack_local.runtime.errors import endpoint_not_found, service_unavailable
from tritonstack_local.runtime.fleet import RunningFleet
from tritonstack_local.runtime.invocation import TARGET_VARIANT, Done, invoke, invoke_at_once, refused
from tritonstack_local.runtime.settings import RuntimeSettings
from tritonstack_local.runtime.streaming.streams import invoke_streamed
from tritonstack_local.runtime.variants import Draining, Split, Variants

RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 60.0
REPORT_ATTEMPTS = 30
REPORT_PAUSE_SECONDS = 1.0
logger = logging.getLogger("tritonstack.runtime")

NewFleet = Callable[[str, DeployedConfig, int | None], RunningFleet]


class RunningEndpoint:
    """One deployed endpoint.

    It is steered by level, not by event: ``apply`` is called again and again with what is deployed, and starts what is
    missing. So a runtime that is started again comes to the same state.
    """

    def __init__(self, *, described: DeployedEndpoint, reader: EmulatorReader, new_fleet: NewFleet) -> None:
        self.described = described
        self.serving: Variants | None = None
        self.starting: Variants | None = None
        self.draining = Draining()
        self.last_failure: str | None = None
        self._split = Split()
        self._looked = asyncio.Event()
        self._ending = False
        self._reader = reader
        self._new_fleet = new_fleet
        self._deployment: asyncio.Task[None] | None = None
        self._pooling: asyncio.Task[None] | None = None
        self._pools_after = 0.0
        self._deploying: tuple[str, str] | None = None
        self._handled: tuple[str, str] | None = None
        self._not_before = 0.0
        self._shifted_at = 0.0
        self._pause = RETRY_SECONDS
        self.errors = ErrorLog(f"following {described.name}")

    @property
    def name(self) -> str:
        return self.described.name

    @property
    def changing(self) -> bool:
        """Whether something is being started for it."""
        return self._deployment is not None

    @property
    def fleets(self) -> tuple[RunningFleet, ...]:
        """Every fleet that is alive, the serving ones first."""
        found = [fleet for one in (self.serving, self.starting) if one is not None for fleet in one.fleets]
        return (*found, *self.draining.fleets)

    def share(self, fleet: RunningFleet) -> float:
        """A fleet's share of the requests, 0 to 1."""
        for one, part in ((self.serving, 1 - self._split.share), (self.starting, self._split.share)):
            if one is not None and fleet in one.fleets:
                return part * one.share(fleet)
        return 0.0

    def _next(self) -> Variants | None:
        """The variants that receive the next request."""
        return self.starting if self._split.next_is_new() and self.starting is not None else self.serving

    async def invoke(self, request: Request, *, streamed: bool) -> HttpResponse:
        """Respond to a request by the fleet in service, or by the new one while that has a share of the requests."""
        variants = self._next()
        if variants is not None:
            self._split.count()
            fleet = variants.take(request.headers.get(TARGET_VARIANT))
            return await (invoke_streamed if streamed else invoke)(fleet, request)
        if self.described.status in ("Creating", "Failed"):
            raise endpoint_not_found(endpoint=self.name)
        raise service_unavailable(
            f"The container of endpoint {self.name} is not running yet: {self.last_failure or 'starting'}"
        )

    def invoke_at_once(self, request: Request, done: Done) -> bool:
        """See ``invocation.invoke_at_once``; False also where no fleet is in service, or several variants are."""
        variants = self._next()
        if variants is None or variants.only is None or not invoke_at_once(variants.only, request, done):
            return False
        self._split.count()
        return True

    def refused(self, error: InvokeError) -> None:
        """A request to it was refused before it was read."""
        if self.serving is not None:
            refused(self.serving.take(None), error)

    def apply(self, described: DeployedEndpoint, *, as_of: float) -> None:
        """Take over the deployed settings, and start the missing fleets.

        Args:
            described: what was read.
            as_of: the monotonic time at which reading it began. A reading older than the last traffic shift is ignored.
        """
        if as_of < self._shifted_at:
            return
        self.described = described
        self._looked.set()
        for fleet in self.fleets:
            fleet.models.limit = described.max_loaded_models
            fleet.metrics.instance_count = described.instance_counts.get(
                fleet.config.variant, fleet.config.instance_count
            )
        for variants in (self.serving, self.starting):
            if variants is not None:
                variants.weigh(described.weight)
        self._follow_pools()
        wanted = self._wanted()
        if self._deployment is not None:
            if wanted != self._deploying and not self._deployment.cancelling():
                self._deployment.cancel()  # replaced by another deployment, or no longer wanted
            return
        if wanted is None or wanted == self._handled or time.monotonic() < self._not_before:
            return
        self._deploying = wanted
        self._deployment = asyncio.create_task(self._deploy(*wanted), name=f"deploy {self.name} {wanted[0]}")
        self._deployment.add_done_callback(self._deployed)

    def _wanted(self) -> tuple[str, str] | None:
        """The config to start a fleet for, with its deployment's mark; None where everything serves that should."""
        described = self.described
        pending = None if described.pending is None else (described.pending, described.generation)
        if described.config is None or (self.serving is not None and self.serving.config_name == described.config):
            return pending
        if pending is not None and self.last_failure is not None:
            return pending  # what should serve cannot be started; its successor may
        return described.config, described.created

    def _deployed(self, task: asyncio.Task[None]) -> None:
        self._deployment = self._deploying = None
        if not task.cancelled() and task.exception() is not None:
            self._not_before = time.monotonic() + self._pause
            logger.error("%s: the deployment failed inside the runtime: %r", self.name, task.exception())

    async def _deploy(self, config_name: str, mark: str) -> None:
        """Start a fleet for a config, report it, and move the traffic to it, at once or in steps."""
        pending = self.described.pending == config_name
        try:
            if not (self.serving is not None and self.serving.config_name == config_name):
                await self._start(config_name)
            if pending and not await self._take_over(config_name):
                logger.info("%s: %s is no longer the pending deployment", self.name, config_name)
                return
        except DeploymentError as error:
            await self._failed(config_name, mark, str(error), pending=pending)
            return
        except UnreachableError as error:
            self._wait(f"the local AWS does not respond: {error}")
            return
        except Exception as fault:  # the deployment fails with it: CloudFormation waits for a report
            logger.exception("%s: the deployment of %s failed inside the local runtime", self.name, config_name)
            reason = f"The deployment failed inside the local runtime, see its log: {fault!r}"
            await self._failed(config_name, mark, reason, pending=pending)
            return
        finally:
            await self._settle(config_name)
        self._pause = RETRY_SECONDS
        self.last_failure = None

    async def _start(self, config_name: str) -> None:
        found = await asyncio.to_thread(self._reader.config, config_name)
        images = ", ".join(config.model.image for config in found)
        logger.info("%s: starting a fleet for %s (%s)", self.name, config_name, images)
        limit = self.described.max_loaded_models
        landed = [config for config in found if self.described.runs(config)] or found[:1]
        self.starting = Variants([self._new_fleet(self.name, config, limit) for config in landed])
        self.starting.weigh(self.described.weight)
        await self.starting.start()

    def _follow_pools(self) -> None:
        """Start a fleet for each type of instance pools that scaling landed on, and end those without instances."""
        serving = self.serving
        if serving is None or self._pooling is not None or time.monotonic() < self._pools_after:
            return
        if not any(each.config.pooled for each in serving.fleets):
            return
        live = {
            name
            for key, counts in self.described.pools.items()
            if key[0] == serving.config_name
            for name, count in counts.items()
            if count
        }
        if live and live != {fleet.config.instance_type for fleet in serving.fleets}:
            self._pooling = asyncio.create_task(self._change_pools(serving), name=f"pools {self.name}")
            self._pooling.add_done_callback(self._pools_changed)

    async def _change_pools(self, serving: Variants) -> None:
        """Take the fleets of a config to the types of its instance pools that have instances."""
        found = await asyncio.to_thread(self._reader.config, serving.config_name)
        running = {fleet.config.instance_type: fleet for fleet in serving.fleets}
        new = [
            self._new_fleet(self.name, config, self.described.max_loaded_models)
            for config in found
            if self.described.runs(config) and config.instance_type not in running
        ]
        started = Variants(new) if new else None
        try:
            if started is not None:
                logger.info("%s: further types: %s", self.name, ", ".join(each.config.instance_type for each in new))
                await started.start()
        except BaseException:
            if started is not None:
                await asyncio.shield(started.stop(grace_seconds=0))
            raise
        if self.serving is not serving:  # another config took over meanwhile
            if started is not None:
                self._retire(started)
            return
        kept = [fleet for fleet in serving.fleets if self.described.runs(fleet.config)]
        gone = [fleet for fleet in serving.fleets if fleet not in kept]
        serving.replace([*kept, *new])
        serving.weigh(self.described.weight)
        if gone:
            self._retire(Variants(gone))

    def _pools_changed(self, task: asyncio.Task[None]) -> None:
        self._pooling = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self.last_failure = str(error)
            self._pools_after = time.monotonic() + LONGEST_RETRY_SECONDS
            logger.error("%s: no fleet for a further type of its pools: %r", self.name, error)

    async def _take_over(self, config_name: str) -> bool:
        """Report the new fleet as up and give it the traffic; False where no deployment awaits it."""
        reported = await self._report(config_name, "in_service")
        if reported is Reported.IN_PROGRESS:
            await self._follow_traffic(config_name)
        elif reported is Reported.ENDED and self.starting is not None:
            self._shift()
        return reported is not Reported.NOT_AWAITED

    async def _follow_traffic(self, config_name: str) -> None:
        """Give the new fleet the described share of requests and report it, step by step.

        It ends by being cancelled: ``apply`` does that once the deployment is over, and ``_settle`` then keeps the new
        fleet or the old one.
        """
        reported: Traffic | None = None
        while True:
            self._looked.clear()
            wanted = self.described.traffic
            if wanted is not None and wanted != reported:
                self._split.share = wanted.share
                logger.info("%s: %s takes %.0f %% of the requests", self.name, config_name, 100 * wanted.share)
                await self._report(config_name, "shifted", instances=wanted.instances)
                reported = wanted
            else:
                await self._looked.wait()

    async def _report(self, config_name: str, outcome: str, *, reason: str = "", instances: int = 0) -> Reported:
        """Report, and repeat for a while where the local AWS does not respond: a started fleet is worth it."""
        for attempt in range(REPORT_ATTEMPTS):
            try:
                return await asyncio.to_thread(
                    self._reader.report,
                    endpoint=self.name,
                    config=config_name,
                    outcome=outcome,
                    reason=reason,
                    instances=instances,
                )
            except UnreachableError as error:
                logger.warning("%s: reporting %s as %s failed: %s", self.name, config_name, outcome, error)
                if attempt == REPORT_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(REPORT_PAUSE_SECONDS)
        return Reported.NOT_AWAITED

    def _shift(self) -> None:
        """Move the traffic: every request from now on goes to the new fleet, those in flight end in the old one."""
        self._shifted_at = time.monotonic()
        old, self.serving, self.starting = self.serving, self.starting, None
        self._split.end()
        self.last_failure = None
        if self.serving is not None:
            logger.info("%s: %s is in service", self.name, self.serving.config_name)
        if old is not None:
            self._retire(old)

    async def _settle(self, config_name: str) -> None:
        """Settle a started fleet: it serves by now, serves from now on (no report was due), or is stopped."""
        started = self.starting
        if started is None:
            return
        if started.up and self.described.config == config_name:
            self._shift()
            return
        self.starting = None
        self._split.end()
        if self._ending:
            await asyncio.shield(started.stop(grace_seconds=0))
        elif started.up:
            self._retire(started)  # it may have had a share of the requests; those in flight end in it
        else:
            await asyncio.shield(started.stop())

    async def _failed(self, config_name: str, mark: str, reason: str, *, pending: bool) -> None:
        logger.error("%s: %s failed: %s", self.name, config_name, reason)
        self.last_failure = reason
        if not pending:
            self._wait(reason)
            return
        try:
            await self._report(config_name, "failed", reason=reason)
            self._handled = (config_name, mark)
        except UnreachableError as error:
            self._wait(f"the failure could not be reported: {error}")

    def _wait(self, reason: str) -> None:
        self.last_failure = reason
        logger.warning("%s: %s; trying again in %.0f s", self.name, reason, self._pause)
        self._not_before = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_RETRY_SECONDS)

    def _retire(self, variants: Variants) -> None:
        for fleet in variants.fleets:
            self.draining.add(fleet)

    async def remove(self, *, drain: bool) -> None:
        """The endpoint is gone (``drain``), or the runtime ends: stop every fleet. At the end nothing is waited for."""
        self._ending = not drain
        for task in (self._deployment, self._pooling):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        serving, self.serving = self.serving, None
        if serving is not None:
            if drain:
                self._retire(serving)
            else:
                await serving.stop(grace_seconds=0)
        await self.draining.finish(cancel=not drain)


BUSY_SECONDS = 5.0
UNREACHABLE_SECONDS = 2.0


class Reconciler:
    """Holds the endpoints and keeps them as deployed."""

    def __init__(
        self,
        *,
        reader: EmulatorReader,
        settings: RuntimeSettings,
        new_fleet: NewFleet,
        no_capacity: Callable[[str], None] = lambda _component: None,
    ) -> None:
        """``new_fleet`` makes a fleet for an endpoint's config, ``no_capacity`` counts a request without copies."""
        self.endpoints: dict[str, RunningEndpoint | ComponentEndpoint] = {}
        self.unreachable: str | None = None
        self._reader = reader
        self._settings = settings
        self._new_fleet = new_fleet
        self._no_capacity = no_capacity
        self._mark: str | None = None
        self._stopped = False
        self._described: tuple[DeployedEndpoint, ...] = ()
        self._removals = Tasks()
        self._changed_at = time.monotonic()

    async def run(self) -> None:
        """Follow deployments until cancelled. Where the local AWS does not respond: repeat, and log it once."""
        await repeat(self._step, what="following what is deployed")

    async def _step(self) -> float:
        try:
            return await self.step()
        except Exception as error:
            self.unreachable = f"what is deployed cannot be followed: {error!r}"  # for the status
            raise

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
                logger.warning("the local AWS does not respond, what serves goes on serving: %s", error)
            self.unreachable = str(error)
            return UNREACHABLE_SECONDS
        if self.unreachable is not None:
            logger.info("the local AWS responds again")
            self.unreachable = None
        self.apply(self._described, as_of=began)
        recent = time.monotonic() - self._changed_at < BUSY_SECONDS
        return self._settings.reconcile_seconds if recent else self._settings.quiet_seconds

    def apply(self, described: tuple[DeployedEndpoint, ...], *, as_of: float) -> None:
        """Start, change and remove endpoints so that they match the description."""
        if self._stopped:
            return
        alive = {endpoint.name: endpoint for endpoint in described if endpoint.status not in ENDED}
        for name, endpoint in list(self.endpoints.items()):
            now = alive.get(name)
            if now is None or now.created != endpoint.described.created:
                self._remove(name)
        for name, found in alive.items():
            if name not in self.endpoints:
                self.endpoints[name] = self._new_endpoint(found)
            try:
                self.endpoints[name].apply(found, as_of=as_of)
                self.endpoints[name].errors.went_well()
            except Exception as error:  # noqa: BLE001  (the other endpoints are followed all the same)
                self.endpoints[name].errors.failed(error)
        if any(endpoint.changing for endpoint in self.endpoints.values()):
            self._changed_at = time.monotonic()

    def _new_endpoint(self, found: DeployedEndpoint) -> RunningEndpoint | ComponentEndpoint:
        if not found.has_components:
            return RunningEndpoint(described=found, reader=self._reader, new_fleet=self._new_fleet)
        return ComponentEndpoint(
            described=found, reader=self._reader, new_fleet=self._new_fleet, no_capacity=self._no_capacity
        )

    def _remove(self, name: str) -> None:
        endpoint = self.endpoints.pop(name)
        self._changed_at = time.monotonic()
        logger.info("%s is no longer deployed", name)
        self._removals.start(endpoint.remove(drain=True), name=f"remove {name}")

    async def stop(self) -> None:
        """Stop every fleet, and start none from now on."""
        self._stopped = True
        removals = [endpoint.remove(drain=False) for endpoint in self.endpoints.values()]
        self.endpoints.clear()
        await asyncio.gather(*removals, self._removals.finish(), return_exceptions=True)
