"""The emulator put together and served."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from typing import Any

import hypercorn.asyncio  # type: ignore[import-not-found]  # comes with MiniStack
from hypercorn.config import Config  # type: ignore[import-not-found]

from tritonstack_local.emulator import children, kms_keys, object_writes, service_events, service_metrics
from tritonstack_local.emulator.account_facts import api as offers_api
from tritonstack_local.emulator.autoscaling import ScalableTargets, autoscaling_service
from tritonstack_local.emulator.cloudformation import (
    autoscaling_resources,
    bucket,
    cancelling,
    codepipeline_resources,
    composite_alarm,
    custom_resources,
    failed_rollbacks,
    joined_networks,
    network_resources,
    new_resources,
    operation_ids,
    patience,
    provisioning,
    role_boundaries,
    sagemaker_resources,
    unchanged_resources,
    waits,
)
from tritonstack_local.emulator.cloudwatch import api as cloudwatch_api
from tritonstack_local.emulator.cloudwatch import resources as cloudwatch_resources
from tritonstack_local.emulator.codebuild import api as codebuild_api
from tritonstack_local.emulator.codepipeline.service import Pipelines, codepipeline_service
from tritonstack_local.emulator.faults import Faults
from tritonstack_local.emulator.gateway import Gateway
from tritonstack_local.emulator.processing.jobs import ProcessingJobs
from tritonstack_local.emulator.sagemaker.api import sagemaker_service
from tritonstack_local.emulator.sagemaker.endpoints import Endpoints
from tritonstack_local.emulator.sagemaker.state import SageMakerState
from tritonstack_local.emulator.settings import EmulatorSettings

logger = logging.getLogger("tritonstack.emulator")
_SHUTDOWN_SECONDS = 15.0


def build(settings: EmulatorSettings) -> Gateway:
    """Put services and resource types into MiniStack and return the gateway. Once a process."""
    state = SageMakerState(fleets=settings.fleets)
    endpoints = Endpoints(state)
    jobs = ProcessingJobs(state)
    children.before_the_end(jobs.end_all)
    sagemaker = sagemaker_service(state, endpoints, jobs)
    targets = ScalableTargets(state, endpoints)
    autoscaling = autoscaling_service(targets)
    sagemaker.install()
    autoscaling.install()
    pipelines = Pipelines()
    codepipeline = codepipeline_service(pipelines)
    codepipeline.install()
    kms_keys.install()
    offers_api.install()
    object_writes.install()
    service_events.install()
    service_metrics.count_invocations()
    children.before_the_end(codebuild_api.install().end_all)
    sagemaker_resources.install(sagemaker, state, endpoints, wait_seconds=settings.endpoint_wait_seconds)
    autoscaling_resources.install(autoscaling, targets)
    evaluator = cloudwatch_api.install(
        alarm_seconds=settings.alarm_seconds, before=service_metrics.QueueDepths().write, after=targets.tracking.look
    )
    children.before_the_end(evaluator.stop)
    composite_alarm.install()
    cloudwatch_resources.install()
    bucket.install()
    cancelling.install()
    codepipeline_resources.install(codepipeline, pipelines)
    custom_resources.install()
    failed_rollbacks.install()
    network_resources.install()
    joined_networks.install(state)
    new_resources.install()
    unchanged_resources.install()
    operation_ids.install()
    waits.install()
    role_boundaries.install()
    provisioning.install_schemas()
    patience.install(seconds=settings.stack_patience_seconds)
    faults = Faults()
    sagemaker.before = autoscaling.before = faults.refuse
    endpoints.silently_back = faults.silently_back
    endpoints.instances.short_of = faults.short_of
    return Gateway(settings, endpoints, faults)


def serve(settings: EmulatorSettings) -> int:
    """Serve until SIGTERM or SIGINT; then end child processes. 1 where the port is taken."""
    if _taken(settings):
        logger.error("%s:%s is already in use", settings.host, settings.port)
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
    config.bind = [f"{settings.host}:{settings.port}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = os.environ.get("LOG_LEVEL", "INFO").upper()

    async def stopped() -> None:
        await stop.wait()
        _bound_shutdown()

    application: Any = gateway
    await hypercorn.asyncio.serve(application, config, shutdown_trigger=stopped)
    # Threads that wait for a Lambda go on once its process is gone.
    await asyncio.to_thread(children.end_descendants)


def _bound_shutdown() -> None:
    """End the process for certain, should a thread of MiniStack never come back."""

    def end() -> None:
        children.end_descendants()
        os._exit(1)

    timer = threading.Timer(_SHUTDOWN_SECONDS, end)
    timer.daemon = True
    timer.start()


def _taken(settings: EmulatorSettings) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.settimeout(1)
        return probe.connect_ex((settings.host, settings.port)) == 0
