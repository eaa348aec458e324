"""Builds and serves the emulator; ends its child processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import hypercorn.asyncio  # type: ignore[import-not-found]  # comes with MiniStack
from hypercorn.config import Config  # type: ignore[import-not-found]

from tritonstack_local.emulator import account_facts, codepipeline, s3, service_events
from tritonstack_local.emulator.autoscaling.api import ScalableTargets, autoscaling_service
from tritonstack_local.emulator.autoscaling.scalable import scalables
from tritonstack_local.emulator.cloudformation import (
    custom_resources,
    permissions,
    provisioning,
    resources,
    stack_operations,
)
from tritonstack_local.emulator.cloudwatch import api as cloudwatch
from tritonstack_local.emulator.codebuild import api as codebuild
from tritonstack_local.emulator.codebuild.shell import descendants
from tritonstack_local.emulator.gateway import Faults, Gateway
from tritonstack_local.emulator.iam import policy_sizes
from tritonstack_local.emulator.iam.authorization import switch
from tritonstack_local.emulator.iam.records import records
from tritonstack_local.emulator.logs import api as logs
from tritonstack_local.emulator.ministack_adapter.core import read_tables_whole
from tritonstack_local.emulator.processing.jobs import ProcessingJobs
from tritonstack_local.emulator.request_validation import CREDENTIALS
from tritonstack_local.emulator.sagemaker.api import sagemaker_service
from tritonstack_local.emulator.sagemaker.components import Components
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.state import SageMakerState
from tritonstack_local.emulator.settings import HOST, EmulatorSettings

logger = logging.getLogger("tritonstack.emulator")
_SHUTDOWN_SECONDS = 15.0
_GRACE_SECONDS = 2.0
_before_exit: list[Callable[[], None]] = []
"""Called before the remaining descendants are ended: services that end their own processes in order."""


def build(settings: EmulatorSettings) -> Gateway:
    """Put services and resource types into MiniStack and return the gateway. Once a process.

    The order matters where two wrap the same function of MiniStack's stack engine: the last one is called first.
    """
    read_tables_whole()
    switch.on = settings.iam
    CREDENTIALS.update(settings.keys.credentials())
    if not settings.iam:
        logger.warning("IAM is switched off (TRITONSTACK_IAM=off): every request is allowed")
    state = SageMakerState(fleets=settings.fleets)
    endpoints = Endpoints(state)
    jobs = ProcessingJobs(state)
    components = Components(state, endpoints.instances)
    sagemaker = sagemaker_service(state, endpoints, components, jobs)
    targets = ScalableTargets(state, scalables(state, endpoints, components))
    autoscaling = autoscaling_service(targets)
    sagemaker.install()
    autoscaling.install()
    account_facts.install()
    service_events.install()
    logs.install()
    builds = codebuild.install()
    resources.install(
        sagemaker,
        state,
        endpoints,
        components,
        autoscaling=autoscaling,
        targets=targets,
        wait_seconds=settings.endpoint_wait_seconds,
    )
    evaluator = cloudwatch.install(
        before=(service_events.QueueDepths().write, targets.before_alarms),
        after=(endpoints.bake, targets.after_alarms, components.look),
    )
    s3.install()
    codepipeline.install()
    permissions.install()
    policy_sizes.install()
    stack_operations.install(patience_seconds=settings.stack_patience_seconds)
    custom_resources.install()
    provisioning.install()
    _before_exit.extend((records.write, jobs.end_all, builds.end_all, evaluator.stop))
    faults = Faults()
    sagemaker.before = autoscaling.before = faults.refuse
    endpoints.silently_back = faults.silently_back
    endpoints.instances.short_of = faults.short_of
    return Gateway(settings, endpoints, components, faults)


def serve(settings: EmulatorSettings) -> int:
    """Serve until SIGTERM or SIGINT; then end child processes. 1 where the port is taken."""
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex((HOST, settings.port)) == 0:
            logger.error("%s:%s is already in use", HOST, settings.port)
            return 1
    if not settings.fleets:
        logger.warning("TRITONSTACK_FLEETS=none: no container is ever started, endpoints are InService at once")
    asyncio.run(_serve(settings, build(settings)))
    return 0


async def _serve(settings: EmulatorSettings, gateway: Gateway) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    config = Config()
    config.bind = [f"{HOST}:{settings.port}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = os.environ.get("LOG_LEVEL", "INFO").upper()

    async def stopped() -> None:
        await stop.wait()
        _bound_shutdown()

    application: Any = gateway
    await hypercorn.asyncio.serve(application, config, shutdown_trigger=stopped)
    # Threads that wait for a Lambda go on once its process is gone.
    await asyncio.to_thread(_end_descendants)


def _bound_shutdown() -> None:
    """End the process for certain, should a thread of MiniStack never come back."""

    def end() -> None:
        _end_descendants()
        os._exit(1)

    timer = threading.Timer(_SHUTDOWN_SECONDS, end)
    timer.daemon = True
    timer.start()


def _end_descendants() -> None:
    """Call the registered functions, then SIGTERM every descendant of this process, and SIGKILL those that stay."""
    for end in _before_exit:
        end()
    for number, seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
        pids = descendants({os.getpid()}) - {os.getpid()}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + seconds
        while pids and time.monotonic() < until:
            for pid in pids:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            pids &= descendants(pids)
            time.sleep(0.01)
        if not pids:
            return
