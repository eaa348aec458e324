"""Inference components: each runs in a container of its own while it has copies, and in none at zero copies.

One container answers for all copies of a component, as one answers for all instances of a variant. Sentences:
components of the developer guide, "Scale an endpoint to zero instances", and tests of BerriAI/litellm and
langchain-ai/langchain (issue 14344) against SageMaker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator

from tritonstack.loopback.http_server import HttpResponse, InvokeError, Request
from tritonstack_local.runtime.background import ErrorLog, Tasks, say_if_it_failed
from tritonstack_local.runtime.deployed import (
    DeployedComponent,
    DeployedConfig,
    DeployedEndpoint,
    DeploymentError,
    EmulatorReader,
    UnreachableError,
)
from tritonstack_local.runtime.errors import shortened, validation_error
from tritonstack_local.runtime.fleet import RunningFleet
from tritonstack_local.runtime.invocation import COMPONENT, Done, invoke
from tritonstack_local.runtime.streaming.streams import invoke_streamed
from tritonstack_local.runtime.variants import Draining

RETRY_SECONDS = 5.0
NAME_MISSING = (
    "Inference Component Name header is required for endpoints to which you plan to deploy inference components. "
    "Please include Inference Component Name header or consider using SageMaker models."
)
NO_CAPACITY = (
    "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if "
    "configured) or try to increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API."
)
logger = logging.getLogger("tritonstack.runtime")

NewFleet = Callable[[str, DeployedConfig, int | None], RunningFleet]


class RunningComponent:
    """One inference component.

    As an endpoint it is steered by level: ``apply`` is called again and again with what is deployed, and starts or ends
    what differs.
    """

    def __init__(self, *, described: DeployedComponent, reader: EmulatorReader, new_fleet: NewFleet) -> None:
        """Starts nothing yet."""
        self.described = described
        self.serving: RunningFleet | None = None
        self.last_failure: str | None = None
        self._starting: RunningFleet | None = None
        self._reader = reader
        self._new_fleet = new_fleet
        self._task: asyncio.Task[None] | None = None
        self._handling = 0
        self._handled = 0
        self._not_before = 0.0
        self._draining = Draining()

    @property
    def changing(self) -> bool:
        """Whether a container is being started or ended for it."""
        return self._task is not None

    @property
    def fleets(self) -> Iterator[RunningFleet]:
        """The containers that are alive, the serving one first."""
        return (fleet for fleet in (self.serving, self._starting) if fleet is not None)

    def apply(self, described: DeployedComponent) -> None:
        """Take over what is deployed."""
        self.described = described
        if self._task is not None:
            if described.generation != self._handling and not self._task.cancelling():
                self._task.cancel()  # another change came, or this one is no longer wanted
            return
        awaited = described.pending is not None and described.generation != self._handled
        lost = described.serving is not None and described.copies > 0 and self.serving is None  # the runtime restarted
        if (awaited or lost) and time.monotonic() >= self._not_before:
            self._handling = described.generation
            self._task = asyncio.create_task(self._change(described), name=f"component {described.name}")
            self._task.add_done_callback(self._changed)

    def _changed(self, task: asyncio.Task[None]) -> None:
        self._task = None
        say_if_it_failed(task)

    async def _change(self, described: DeployedComponent) -> None:
        """Start what is wanted, report it where that is awaited, and end what served before."""
        outcome, reason, before = "in_service", "", self.serving
        try:
            config = await asyncio.to_thread(self._reader.component_config, described)
            if described.copies and (before is None or before.config.model.name != config.model.name):
                self._starting = self._new_fleet(described.endpoint, config, 1)
                logger.info("%s: starting a container (%s)", described.name, config.model.image)
                await self._starting.start()
        except DeploymentError as error:
            outcome, reason = "failed", str(error)
            logger.warning("%s: %s", described.name, reason)
        except UnreachableError as error:
            self._wait(f"the local AWS does not respond: {error}")
            return
        except asyncio.CancelledError:
            await self._drop()
            raise
        await self._conclude(described, outcome=outcome, reason=reason)

    async def _conclude(self, described: DeployedComponent, *, outcome: str, reason: str) -> None:
        """Report, and let the new container serve where the change is still wanted."""
        awaited = described.pending is not None
        try:
            taken = not awaited or await asyncio.to_thread(
                self._reader.report_component, described, outcome=outcome, reason=reason
            )
        except UnreachableError as error:
            await self._drop()
            self._wait(f"the change could not be reported: {error}")
            return
        self._handled = described.generation if awaited else self._handled
        self.last_failure = reason or None
        if outcome == "failed" or not taken:
            await self._drop()
            if not awaited:
                self._wait(reason)
            return
        before = self.serving
        if self._starting is not None:
            self.serving, self._starting = self._starting, None
        elif described.copies == 0:
            self.serving = None
        if before is not None and before is not self.serving:
            self._draining.add(before)

    async def _drop(self) -> None:
        """End a container that did not come to serve."""
        dropped, self._starting = self._starting, None
        if dropped is not None:
            await asyncio.shield(dropped.stop())

    def _wait(self, reason: str) -> None:
        self.last_failure = reason
        self._not_before = time.monotonic() + RETRY_SECONDS
        logger.warning("%s: %s; trying again in %.0f s", self.described.name, reason, RETRY_SECONDS)

    async def remove(self, *, drain: bool) -> None:
        """The component is gone (``drain``), or the runtime ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        serving, self.serving = self.serving, None
        if serving is not None and drain:
            self._draining.add(serving)
        elif serving is not None:
            await serving.stop(grace_seconds=0)
        await self._draining.finish(cancel=not drain)


class ComponentEndpoint:
    """An endpoint whose requests name an inference component."""

    def __init__(
        self,
        *,
        described: DeployedEndpoint,
        reader: EmulatorReader,
        new_fleet: NewFleet,
        no_capacity: Callable[[str], None],
    ) -> None:
        """``no_capacity`` counts a request to a component without copies, by its name."""
        self.described = described
        self.components: dict[str, RunningComponent] = {}
        self.errors = ErrorLog(f"following {described.name}")
        self._reader = reader
        self._new_fleet = new_fleet
        self._no_capacity = no_capacity
        self._removals = Tasks()

    @property
    def name(self) -> str:
        return self.described.name

    @property
    def changing(self) -> bool:
        """Whether a container is being started or ended for one of its components."""
        return any(each.changing for each in self.components.values()) or bool(self._removals)

    @property
    def fleets(self) -> tuple[RunningFleet, ...]:
        """The containers of all components."""
        return tuple(fleet for each in self.components.values() for fleet in each.fleets)

    @property
    def last_failure(self) -> str | None:
        """Of its components."""
        found = [f"{name}: {each.last_failure}" for name, each in self.components.items() if each.last_failure]
        return "; ".join(found) or None

    def share(self, fleet: RunningFleet) -> float:
        """1 for a container that serves its component."""
        return float(any(each.serving is fleet for each in self.components.values()))

    def apply(self, described: DeployedEndpoint, *, as_of: float) -> None:  # noqa: ARG002  (as ``RunningEndpoint``)
        """Take over the deployed components: start, change and remove."""
        self.described = described
        found = {each.name: each for each in described.components}
        for name in [name for name in self.components if name not in found]:
            self._removals.start(self.components.pop(name).remove(drain=True), name=f"remove {name}")
        for name, each in found.items():
            if name not in self.components:
                self.components[name] = RunningComponent(described=each, reader=self._reader, new_fleet=self._new_fleet)
            self.components[name].apply(each)

    async def invoke(self, request: Request, *, streamed: bool) -> HttpResponse:
        """Respond by the named component."""
        header = request.headers.get(COMPONENT)
        if header is None:
            raise validation_error(NAME_MISSING)
        name = header.decode("latin-1")
        component = self.components.get(name)
        if component is None:  # the sentence is DescribeInferenceComponent's; InvokeEndpoint's is UNVERIFIED
            raise validation_error(f"Could not find inference component {shortened(name)} of endpoint {self.name}.")
        if component.serving is None:
            self._no_capacity(name)
            raise validation_error(NO_CAPACITY)
        return await (invoke_streamed if streamed else invoke)(component.serving, request)

    def invoke_at_once(self, _request: Request, _done: Done) -> bool:
        """False: every request goes the whole way."""
        return False

    def refused(self, error: InvokeError) -> None:
        """A request was refused before it was read: its component is not known."""

    async def remove(self, *, drain: bool) -> None:
        """The endpoint is gone, or the runtime ends."""
        removed = [each.remove(drain=drain) for each in self.components.values()]
        self.components.clear()
        await asyncio.gather(*removed, self._removals.finish(), return_exceptions=True)
