"""AWS::CloudFormation::WaitCondition: its time-out on the emulator's clock, and its end when the update is cancelled.

MiniStack keeps handles and takes signals; its sentences are AWS's.
"""

from __future__ import annotations

from typing import Any

from ministack.services.cloudformation import stacks, wait_conditions

from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.cloudformation.cancelling import CancelledError, cancel_requested

_TYPE = "AWS::CloudFormation::WaitCondition"
_begun: dict[tuple[str, str], float] = {}
"""(Stack id, logical id) → when its last event says that the condition is in progress: its time runs from then on."""


def install() -> None:
    """Wait by the clock; signals wake whoever waits on it."""
    wait_conditions._lock = wait_conditions._changed = clock.condition
    wait_conditions.wait_for = _wait_for
    add = stacks._add_event

    def add_event(*event: Any, **more: Any) -> None:
        stack_id, _stack_name, logical_id, kind, status, *_rest = event
        if kind == _TYPE and status.endswith("_IN_PROGRESS"):
            _begun[stack_id, logical_id] = clock.now()
        add(*event, **more)

    stacks._add_event = add_event


def _wait_for(  # noqa: PLR0917  MiniStack's interface
    token: str,
    stack_id: str,
    stack_name: str,
    logical_id: str,
    resource_type: str,
    count: int,
    timeout_s: float,
) -> dict[str, Any]:
    """The data of ``count`` SUCCESS signals by UniqueId; raises where one fails, none comes or nobody wants any more.

    The arguments are MiniStack's.
    """
    generation = wait_conditions._generation
    deadline = Deadline(clock=clock, at=_begun.pop((stack_id, logical_id), clock.now()) + timeout_s)
    waiting = {"token": token, "stack_name": stack_name, "resource_type": resource_type}

    def ended() -> bool:
        return (
            len(_data(token, "SUCCESS")) >= count
            or bool(_data(token, "FAILURE"))
            or wait_conditions._generation != generation
            or cancel_requested(stack_name)
        )

    with clock.condition:
        wait_conditions._waiting[stack_id, logical_id] = waiting
        try:
            clock.wait_for(ended, deadline)
            _raise_failure(token)
            received = _data(token, "SUCCESS")
            if len(received) >= count:
                return received
            if wait_conditions._generation != generation:
                raise RuntimeError("the local AWS was reset")
            if cancel_requested(stack_name):
                raise CancelledError(creating=True)  # a WaitCondition that exists never waits again
            raise TimeoutError(f"WaitCondition timed out. Received {len(received)} conditions when expecting {count}")
        finally:
            if wait_conditions._waiting.get((stack_id, logical_id)) is waiting:
                del wait_conditions._waiting[stack_id, logical_id]
            if not wait_conditions._handles.get(token, {"url": True})["url"]:
                del wait_conditions._handles[token]  # of a CreationPolicy: it served this wait only


def _data(token: str, status: str) -> dict[str, Any]:
    """What signals of a status brought, by UniqueId."""
    signals = wait_conditions._handles.get(token, {}).get("signals", {})
    return {unique: signal["Data"] for unique, signal in signals.items() if signal["Status"] == status}


def _raise_failure(token: str) -> None:
    signals = wait_conditions._handles.get(token, {}).get("signals", {})
    for unique, signal in signals.items():
        if signal["Status"] == "FAILURE":
            raise RuntimeError(f"WaitCondition received failed message: '{signal['Reason']}' for uniqueId: {unique}")
