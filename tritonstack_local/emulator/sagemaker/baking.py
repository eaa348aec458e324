"""Watches deployments that shift traffic: their alarms, the waits of their steps, their time limit."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Sequence

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.ministack_call import call
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.deployment import Deployment
from tritonstack_local.emulator.sagemaker.endpoint_record import EndpointRecord
from tritonstack_local.emulator.sagemaker.state import SageMakerState

_LOOK_SECONDS = 0.1
"""How often alarms are looked at; CloudWatch tells nobody here that one changed."""
logger = logging.getLogger("tritonstack.emulator")


class Baking:
    """One thread for each deployment with guardrails, from its beginning to its end."""

    def __init__(self, state: SageMakerState) -> None:
        """Moves the deployments of ``state``; is woken when the clock is moved."""
        self._state = state
        clock.on_advance(self._wake)

    def watch(self, record: EndpointRecord, deployment: Deployment) -> None:
        """Watch from now on, in the account and region of the calling context."""
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(self._run, record, deployment), name=f"bake {record.name}", daemon=True
        ).start()

    def _run(self, record: EndpointRecord, deployment: Deployment) -> None:
        alarms = deployment.guardrails.alarms if deployment.guardrails else ()
        while True:
            broken = broken_alarm(alarms)  # without the lock: the answer comes over the loop, which may wait for it
            with self._state.changed:
                if record.pending is not deployment or not self._known(record):
                    return
                if advance(record, deployment, broken=broken):
                    self._state.changed.notify_all()
                else:
                    self._state.changed.wait(_LOOK_SECONDS)

    def _known(self, record: EndpointRecord) -> bool:
        return any(one is record for one in self._state.endpoints.everywhere())

    def _wake(self) -> None:
        with self._state.changed:
            self._state.changed.notify_all()


def advance(record: EndpointRecord, deployment: Deployment, *, broken: str | None) -> bool:
    """Take the deployment to where it should be by now. Whether anything changed.

    Args:
        record: the endpoint.
        deployment: its deployment in progress.
        broken: why the alarms demand a rollback; None where they do not. It counts from the first call on that the
            new fleet takes.
    """
    if deployment.taken_back is not None:
        return _further_back(record, deployment, deployment.taken_back)
    if broken is not None and deployment.step is not None:
        take_back(record, deployment, broken)
    elif deployment.overdue:
        take_back(record, deployment, "The deployment took longer than MaximumExecutionTimeoutInSeconds.")
    elif deployment.baking and deployment.baked:
        if deployment.at_last_step:
            record.succeed()
        else:
            deployment.shift()
    else:
        return False
    return True


def take_back(record: EndpointRecord, deployment: Deployment, reason: str) -> None:
    """Every call goes to the old fleet again, at once or in batches, and the new one ends."""
    logger.warning("%s: the deployment is rolled back: %s", record.name, reason)
    if deployment.go_back(reason):
        record.status = "RollingBack"
    else:
        _end(record, reason)


def _further_back(record: EndpointRecord, deployment: Deployment, reason: str) -> bool:
    """The next batch of a rollback, once the last one has moved. Whether anything changed."""
    if not (deployment.baking and deployment.baked):
        return False
    if deployment.at_last_step:
        _end(record, reason)
    else:
        deployment.shift()
    return True


def _end(record: EndpointRecord, reason: str) -> None:
    record.fail(f"{reason} The endpoint was rolled back to {record.config_name}.")


def broken_alarm(names: Sequence[str]) -> str | None:
    """A sentence about the alarms that are in ALARM or missing; None where all is well."""
    if not names:
        return None
    try:
        found = call(
            "cloudwatch",
            "DescribeAlarms",
            {"AlarmNames": list(names), "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]},
        )
    except (RefusedError, TimeoutError) as error:
        return f"The alarms could not be read: {error}."
    states = {
        a["AlarmName"]: a["StateValue"] for kind in ("MetricAlarms", "CompositeAlarms") for a in found.get(kind, [])
    }
    missing = [name for name in names if name not in states]
    if missing:
        return f"There is no alarm {', '.join(missing)}."
    firing = [name for name in names if states[name] == "ALARM"]
    return f"Alarm {', '.join(firing)} went into state ALARM." if firing else None
