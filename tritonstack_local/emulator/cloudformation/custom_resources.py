"""Custom resources and wait conditions: resources that wait for a signal, bounded by the emulator's clock."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import Deadline, clock
from tritonstack_local.emulator.cloudformation.stack_operations import CancelledError, cancel_requested
from tritonstack_local.emulator.ministack_adapter import cloudformation, lambda_functions
from tritonstack_local.emulator.ministack_adapter.core import get_region, new_uuid, spawn_background
from tritonstack_local.emulator.request_validation import RefusedError

# --- Wait conditions ---
# MiniStack keeps handles and takes signals; its sentences are AWS's.

_TYPE = "AWS::CloudFormation::WaitCondition"
_begun: dict[tuple[str, str], float] = {}
"""(Stack id, logical id) → time of its last IN_PROGRESS event, from which its time-out runs."""


def _install_wait_conditions() -> None:
    """Wait on the emulator's clock; signals notify it."""
    cloudformation.wait_condition_lock.replace(clock.condition)
    cloudformation.wait_condition_changed.replace(clock.condition)
    cloudformation.wait_for_signals.replace(_wait_for)
    add = cloudformation.add_event.current

    def add_event(*event: Any, **more: Any) -> None:
        stack_id, _stack_name, logical_id, kind, status, *_rest = event
        if kind == _TYPE and status.endswith("_IN_PROGRESS"):
            _begun[stack_id, logical_id] = clock.now()
        add(*event, **more)

    cloudformation.add_event.replace(add_event)


def _wait_for(  # noqa: PLR0917  MiniStack's interface
    token: str,
    stack_id: str,
    stack_name: str,
    logical_id: str,
    resource_type: str,
    count: int,
    timeout_s: float,
) -> dict[str, Any]:
    """The data of ``count`` SUCCESS signals by UniqueId; raises on a failure signal, a time-out or a cancel."""
    deadline = Deadline(clock=clock, at=_begun.pop((stack_id, logical_id), clock.now()) + timeout_s)
    waiting = {"token": token, "stack_name": stack_name, "resource_type": resource_type}

    def ended() -> bool:
        return len(_data(token, "SUCCESS")) >= count or bool(_data(token, "FAILURE")) or cancel_requested(stack_name)

    with clock.condition:
        cloudformation.wait_conditions_waiting()[stack_id, logical_id] = waiting
        try:
            clock.wait_for(ended, deadline)
            for unique, signal in cloudformation.wait_condition_handles().get(token, {}).get("signals", {}).items():
                if signal["Status"] == "FAILURE":
                    reason = f"received failed message: '{signal['Reason']}' for uniqueId: {unique}"
                    raise RuntimeError(f"WaitCondition {reason}")
            received = _data(token, "SUCCESS")
            if len(received) >= count:
                return received
            if cancel_requested(stack_name):
                raise CancelledError(creating=True)  # a WaitCondition that exists never waits again
            raise TimeoutError(f"WaitCondition timed out. Received {len(received)} conditions when expecting {count}")
        finally:
            if cloudformation.wait_conditions_waiting().get((stack_id, logical_id)) is waiting:
                del cloudformation.wait_conditions_waiting()[stack_id, logical_id]
            if not cloudformation.wait_condition_handles().get(token, {"url": True})["url"]:
                del cloudformation.wait_condition_handles()[token]  # of a CreationPolicy: it served this wait only


def _data(token: str, status: str) -> dict[str, Any]:
    """The data of the signals of a status, by UniqueId."""
    signals = cloudformation.wait_condition_handles().get(token, {}).get("signals", {})
    return {unique: signal["Data"] for unique, signal in signals.items() if signal["Status"] == status}


# --- Custom resources ---
# As at AWS, the response is what is PUT to the ResponseURL, whatever the function returns; a failed creation is
# followed by a Delete when the stack rolls back.

LONGEST_SECONDS = 3600
LONGEST_RESPONSE = 4096
"""Bytes (CloudFormation user guide, Custom resource response objects)."""
_GUIDE = "CloudFormation user guide, Custom resource request objects"
_BEGINS = {"Create": "CREATE_IN_PROGRESS", "Update": "UPDATE_IN_PROGRESS", "Delete": "DELETE_IN_PROGRESS"}
_REFUSED_CHANGE = "Modifying service token is not allowed."
"""CloudFormation's reason of an UPDATE_FAILED, as issue 197 of cloudcomponents/cdk-constructs and issue 114 of
aws-solutions/aws-waf-security-automations quote it (template reference, AWS::CloudFormation::CustomResource,
ServiceToken: "Updates are not supported")."""


class ResponseReceived(threading.Event):
    """Set by MiniStack when the response is there; wakes those that wait on the clock."""

    def set(self) -> None:
        """Set, and wake."""
        super().set()
        clock.wake()


@dataclass
class CustomResourceRequest:
    """One request to a custom resource's function."""

    request_type: str
    logical_id: str
    props: dict[str, Any]
    stack_name: str
    stack_id: str
    resource_type: str
    physical_id: str | None = None
    old_props: dict[str, Any] | None = None
    request_id: str = field(default_factory=new_uuid)

    def event(self, token: str) -> dict[str, Any]:
        """The event that the function is invoked with."""
        event = {
            "RequestType": self.request_type,
            "RequestId": self.request_id,
            "StackId": self.stack_id,
            "ResponseURL": cloudformation.response_url(token),
            "ResourceType": self.resource_type,
            "LogicalResourceId": self.logical_id,
            "ResourceProperties": cloudformation.normalise_resource_properties(self.props),
            "ServiceToken": self.props["ServiceToken"],
        }
        if self.physical_id is not None:
            event["PhysicalResourceId"] = self.physical_id
        if self.old_props is not None:
            event["OldResourceProperties"] = cloudformation.normalise_resource_properties(self.old_props)
        return event

    def run(self) -> tuple[str, dict[str, Any]]:
        """The physical id and the attributes; raises with the reason that the stack's event has at AWS."""
        self._check_token()
        seconds = service_timeout(self.props)
        function = _function(self.props.get("ServiceToken"))
        self._log()
        token, received, deadline = new_uuid(), ResponseReceived(), clock.deadline(seconds)
        cloudformation.pending_responses()[token] = {"event": received, "result": None}
        try:
            # CloudFormation invokes the function asynchronously: Lambda tries twice more where it fails.
            name, thread = function["config"]["FunctionName"], f"custom-resource-{self.logical_id}"
            spawn_background(service_events._deliver, name, function, self.event(token), thread_name=thread)
            self._await(received, deadline)
            return self._outcome(cloudformation.pending_responses().get(token, {}).get("result") or {})
        finally:
            cloudformation.pending_responses().pop(token, None)

    def _check_token(self) -> None:
        """Refuse an update with another ServiceToken. The rollback of a refused one has the old token again."""
        if self.old_props is None or self.old_props.get("ServiceToken") == self.props.get("ServiceToken"):
            return
        if "ROLLBACK" not in (cloudformation.stacks_by_name().get(self.stack_name) or {}).get("StackStatus", ""):
            raise RuntimeError(_REFUSED_CHANGE)

    def _log(self) -> None:
        """Put the properties into the event that begins the operation, which AWS logs before it invokes the function.

        MiniStack has no such event where a replaced resource is deleted.
        """
        properties = json.dumps(cloudformation.normalise_resource_properties(self.props))
        begins = _BEGINS[self.request_type]
        events = cloudformation.stack_events().get(self.stack_id, [])
        newest = next((each for each in reversed(events) if each["LogicalResourceId"] == self.logical_id), None)
        if newest is None or newest["ResourceStatus"] != begins:
            place = (self.stack_id, self.stack_name, self.logical_id, self.resource_type)
            cloudformation.add_event(*place, begins, physical_id=self.physical_id or "")
            newest = cloudformation.stack_events()[self.stack_id][-1]
        newest["ResourceProperties"] = properties

    def _await(self, received: ResponseReceived, deadline: Deadline) -> None:
        def cancelled() -> bool:
            return self.request_type != "Delete" and cancel_requested(self.stack_name)

        clock.wait_for(lambda: received.is_set() or cancelled(), deadline)
        if received.is_set():
            return
        if cancelled():
            reason = str(CancelledError(creating=self.request_type == "Create"))
        else:
            reason = (
                "CloudFormation did not receive a response from your Custom Resource. Please check your logs for"
                f" requestId [{self.request_id}]. If you are using the Python cfn-response module, you may need to"
                " update your Lambda function code so that CloudFormation can attach the updated version."
            )
        raise self._failed(reason, None)

    def _outcome(self, response: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        named = response.get("PhysicalResourceId")
        if len(json.dumps(response)) > LONGEST_RESPONSE:
            raise self._failed("Response object is too long.", named)
        if response.get("Status") != "SUCCESS":
            reason = (
                f"Received response status [{response.get('Status')}] from custom resource. Message returned:"
                f" {response.get('Reason') or 'no reason'} (RequestId: {self.request_id})"
            )
            raise self._failed(reason, named)
        return named or self.physical_id or self._made_up(), response.get("Data") or {}

    def _failed(self, reason: str, physical_id: str | None) -> RuntimeError:
        """The rollback of a creation, which comes next, deletes what the function may have left."""
        stack = cloudformation.stacks_by_name().get(self.stack_name)
        if self.request_type == "Create" and stack is not None:
            stack["_failed_custom_resource"] = {
                "PhysicalResourceId": physical_id or self._made_up(),
                "ResourceType": self.resource_type,
                "ResourceStatus": "CREATE_FAILED",
                "LogicalResourceId": self.logical_id,
                "Properties": self.props,
                "Attributes": {},
            }
        return RuntimeError(reason)

    def _made_up(self) -> str:
        return f"{self.stack_name}-{self.logical_id}-{new_uuid()[:12].upper()}"


def service_timeout(properties: dict[str, Any]) -> int:
    """Seconds; an hour unless the template names fewer. Raises ``RefusedError`` for more."""
    given = properties.get("ServiceTimeout", LONGEST_SECONDS)
    if str(given).isdigit() and 1 <= int(given) <= LONGEST_SECONDS:
        return int(given)
    raise RefusedError(
        "ValidationError",
        f"ServiceTimeout {given!r}: must be an integer from 1 to {LONGEST_SECONDS} (seconds)",
        source=_GUIDE,
    )


def install() -> None:
    """Replace MiniStack's requests to functions; make a rollback delete the remains of a failed creation."""
    _install_wait_conditions()
    roll_back = cloudformation.roll_back_operation.current

    async def roll_back_creation(
        stack_name: str, stack_id: str, stack: dict[str, Any], operation: dict[str, Any], reason_override: str = ""
    ) -> None:
        failed = stack.pop("_failed_custom_resource", None)
        if failed is not None and failed["LogicalResourceId"] == operation["failed_logical_id"]:
            stack.setdefault("_resources", {})[failed["LogicalResourceId"]] = failed
            operation["created"].append(failed["LogicalResourceId"])
        await roll_back(stack_name, stack_id, stack, operation, reason_override)

    cloudformation.roll_back_operation.replace(roll_back_creation)
    # MiniStack's parameters are the fields of ``CustomResourceRequest``.
    cloudformation.invoke_custom_resource.replace(lambda *given, **named: CustomResourceRequest(*given, **named).run())


def _function(service_token: Any) -> dict[str, Any]:
    """The function that a ServiceToken names; raises ``RefusedError`` where there is none in the stack's region."""
    parts = str(service_token).split(":")
    if parts[:3] == ["arn", "aws", "lambda"] and parts[3] == get_region():
        record, config, _name = lambda_functions.get_func_record_for_ref(service_token)
        if record is not None and config is not None:
            found: dict[str, Any] = lambda_functions.execution_record_for_config(record, config)
            return found
    raise RefusedError(
        "ValidationError",
        f"ServiceToken {service_token!r} names no Lambda function of region {get_region()}",
        source=_GUIDE,
    )
