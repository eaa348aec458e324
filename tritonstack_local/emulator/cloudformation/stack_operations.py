"""Stack operations as CloudFormation runs them: cancelling, events, tokens, failed rollbacks, waiting responses."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from tritonstack.cloudformation.limits import exceeded
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.ministack_adapter import application, cloudformation

# --- CancelUpdateStack and DeleteStack while a resource waits ---
# MiniStack checks for a cancel before each resource only, and deletes a stack while its creation goes on. Here the wait
# ends. A resource that cannot be interrupted (an endpoint) is completed first; then the stack rolls back, even if that
# was the last one.

Handler = Callable[[dict[str, Any]], Any]
_GOING_FORWARD = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


class CancelledError(Exception):
    """A resource that was waiting when its stack's operation was cancelled; the text is the event's reason at AWS."""

    def __init__(self, *, creating: bool) -> None:
        """``creating`` for a resource that is new in this operation."""
        super().__init__("Resource creation cancelled" if creating else "Resource update cancelled")


def cancel_requested(stack_name: str) -> bool:
    """Whether the running operation of that stack is to end."""
    return bool(cloudformation.stacks_by_name().get(stack_name, {}).get("_cancel_requested"))


def install(*, patience_seconds: float) -> None:
    """Wrap MiniStack's stack engine; ``patience_seconds`` bounds how long a response waits for its stack."""
    wrapped = cloudformation.action_handlers()
    cancel = wrapped["CancelUpdateStack"]

    def cancel_and_wake(parameters: dict[str, Any]) -> Any:
        answer = cancel(parameters)
        clock.wake()
        return answer

    wrapped["CancelUpdateStack"] = cancel_and_wake
    wrapped["DeleteStack"] = _in_turn(wrapped["DeleteStack"])
    wrapped["DescribeStacks"] = _with_names_in_ssm(wrapped["DescribeStacks"])
    wrapped["DescribeStackEvents"] = _with_more_members(wrapped["DescribeStackEvents"])
    _refuse_large_templates()
    _heed_at_the_end()
    _roll_back_as_asked()
    _install_failed_rollbacks()
    _install_events()
    _install_patience(seconds=patience_seconds)


OF_TEMPLATES = ("resources", "outputs", "parameters", "mappings", "template bytes", "characters of a logical id")
"""Limits that CloudFormation itself looks at, before it makes anything; others are refused by the services."""


def _refuse_large_templates() -> None:
    """Templates beyond CloudFormation's quotas are refused (user guide, "Understand CloudFormation quotas")."""
    resolve = cloudformation.resolve_template.current

    def resolved(parameters: dict[str, Any]) -> Any:
        body, error = resolve(parameters)
        try:
            template = json.loads(body or "null")
        except ValueError:
            template = None  # of YAML, or damaged: MiniStack reads it
        if error is None and isinstance(template, dict):
            for each in exceeded(template, size=len(body.encode()), stack=""):
                if each.limit in OF_TEMPLATES:
                    sentence = f"Template format error: Number of {each.limit}, {each.found}, is greater than maximum "
                    sentence += f"allowed, {each.allowed}"
                    return None, cloudformation.error_response("ValidationError", sentence)
        return body, error

    cloudformation.resolve_template.replace(resolved)


def _in_turn(delete: Handler) -> Handler:
    """No stack is deleted amid an update; one that is being made, or rolled back from that, when this has ended."""

    def delete_in_turn(parameters: dict[str, Any]) -> Any:
        stack = named_stack(parameters)
        status = stack.get("StackStatus", "")
        if status.startswith("UPDATE_") and status.endswith("_IN_PROGRESS"):
            sentence = f"Stack [{stack['StackId']}] cannot be deleted while in status {status}"
            return cloudformation.error_response("ValidationError", sentence)
        running = status in ("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS")
        if not running or stack.get("EnableTerminationProtection"):
            return delete(parameters)
        stack["_delete_requested"] = True
        if status == "CREATE_IN_PROGRESS":
            stack["_cancel_requested"] = True
            clock.wake()
        return cloudformation.xml_response(200, "DeleteStackResponse", "")

    return delete_in_turn


def _heed_at_the_end() -> None:
    """Cancel also after the last resource was begun."""
    resolve = cloudformation.resolve_stack_outputs.current

    def resolve_unless_cancelled(*arguments: Any) -> Any:
        stack_name = arguments[5]
        if (
            cancel_requested(stack_name)
            and cloudformation.stacks_by_name()[stack_name]["StackStatus"] in _GOING_FORWARD
        ):
            raise CancelledError(creating=False)
        return resolve(*arguments)

    cloudformation.resolve_stack_outputs.replace(resolve_unless_cancelled)


def _roll_back_as_asked() -> None:
    """The rollback has the reason and the token of the cancel, and a stack that is to go goes then."""
    roll_back = cloudformation.roll_back_operation.current

    async def roll_back_as_asked(
        stack_name: str, stack_id: str, stack: dict[str, Any], operation: dict[str, Any], reason_override: str = ""
    ) -> None:
        if stack.pop("_cancel_requested", False):
            cloudformation.client_request_token().set(stack.pop("_cancel_token", ""))
            operation["cancelled"] = True
        await roll_back(stack_name, stack_id, stack, operation, reason_override)
        if stack.pop("_delete_requested", False):
            await cloudformation.delete_stack(stack_name, stack_id)

    cloudformation.roll_back_operation.replace(roll_back_as_asked)


def named_stack(parameters: dict[str, Any]) -> dict[str, Any]:
    """The stack that a request names; empty where there is none."""
    return cloudformation.resolve_stack(cloudformation.parameter(parameters, "StackName")) or {}


# --- A rollback that fails ---
# MiniStack goes on with the resources that depend on the failed one, and deletes what the update made. At AWS that
# clean-up follows a rollback (user guide, "Understand update rollback": UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS).
# That nothing else is begun after a failure is UNVERIFIED, and the stricter of the two.

_failed: set[str] = set()
"""Names of the stacks in whose running rollback a resource has failed."""
_REASON = "Resource update cancelled"


def _install_failed_rollbacks() -> None:
    """Wrap both kinds of rollback, and their step for one resource."""
    for roll_back in (cloudformation.roll_back_operation, cloudformation.continue_update_rollback):
        roll_back.replace(_begun_anew(roll_back.current))
    revert, delete = cloudformation.revert_update.current, cloudformation.delete_resource_of_stack.current
    add_event = cloudformation.add_event.current

    async def revert_in_turn(stack_id: str, stack_name: str, *rest: Any) -> None:
        if stack_name in _failed:
            raise RuntimeError(_REASON)
        try:
            await revert(stack_id, stack_name, *rest)
        except Exception:  # whatever it is, the rollback has failed
            _failed.add(stack_name)
            raise

    def delete_in_turn(kind: str, physical_id: str, properties: Any, stack_name: str, *rest: Any) -> Any:
        if stack_name in _failed:
            raise RuntimeError(_REASON)
        return delete(kind, physical_id, properties, stack_name, *rest)

    def add_unless_waiting(*event: Any, **more: Any) -> None:
        _stack_id, stack_name, _logical_id, _kind, status, *_ = event
        if not (stack_name in _failed and status in ("DELETE_IN_PROGRESS", "DELETE_FAILED")):
            add_event(*event, **more)

    cloudformation.revert_update.replace(revert_in_turn)
    cloudformation.delete_resource_of_stack.replace(delete_in_turn)
    cloudformation.add_event.replace(add_unless_waiting)


def _begun_anew(roll_back: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def rolled_back(stack_name: str, *rest: Any) -> None:
        _failed.discard(stack_name)
        try:
            await roll_back(stack_name, *rest)
        finally:
            _failed.discard(stack_name)

    return rolled_back


# --- Events of an update ---
# User guide, "Understand update behaviors of stack resources": "CloudFormation updates resources based on differences
# between what you submit and the stack's current template. Resources that haven't changed run without disruption during
# the update process." MiniStack has UPDATE events for new resources and for unchanged ones.

_CREATING = {
    "UPDATE_IN_PROGRESS": "CREATE_IN_PROGRESS",
    "UPDATE_COMPLETE": "CREATE_COMPLETE",
    "UPDATE_FAILED": "CREATE_FAILED",
}


def _install_events() -> None:
    """Events of a resource that an update creates have CREATE statuses; one that it leaves unchanged has none.

    Unchanged is a resource whose resolved properties are.
    """
    created: dict[str, set[str]] = {}  # by stack id, in running updates
    unchanged: set[tuple[str, str]] = set()  # (stack's name, logical id), in running updates
    update, add = cloudformation.update_keeping_seed.current, cloudformation.add_event.current

    def update_one(kind: str, physical_id: str, before: Any, after: Any, *rest: Any) -> Any:
        stack_name, logical_id, *_ = rest
        if before == after:
            unchanged.add((stack_name, logical_id))
        return update(kind, physical_id, before, after, *rest)

    def add_event(*event: Any, **more: Any) -> None:
        stack_id, stack_name, logical_id, kind, status, *rest = event
        if status == "UPDATE_COMPLETE" and (stack_name, logical_id) in unchanged:
            unchanged.discard((stack_name, logical_id))
            _remove_start(cloudformation.stack_events()[stack_id], logical_id)
            return
        if logical_id == stack_name:
            created.pop(stack_id, None)  # the update is over, or is rolled back
            if status == "UPDATE_COMPLETE" and _forget_undeleted(cloudformation.stacks_by_name().get(stack_name, {})):
                rest = [_NOT_ALL_DELETED, *rest[1:]]
            add(stack_id, stack_name, logical_id, kind, status, *rest, **more)
            return
        record = cloudformation.stacks_by_name().get(stack_name, {}).get("_resources", {}).get(logical_id)
        of_stack = created.setdefault(stack_id, set())
        if status == "UPDATE_IN_PROGRESS" and record is None:
            of_stack.add(logical_id)
        if logical_id in of_stack:
            status = _CREATING.get(status, status)
        if record is not None and status == "CREATE_COMPLETE":
            record["ResourceStatus"] = status
        add(stack_id, stack_name, logical_id, kind, status, *rest, **more)

    cloudformation.update_keeping_seed.replace(update_one)
    cloudformation.add_event.replace(add_event)


_NOT_ALL_DELETED = "Update successful. One or more resources could not be deleted."


def _forget_undeleted(stack: dict[str, Any]) -> bool:
    """Take out of an updated stack what had left its template and could not be deleted; whether there was any.

    User guide, "Troubleshooting CloudFormation" ("Resource removed from stack but not deleted"): after three attempts
    it runs on and is no longer the stack's. MiniStack keeps it, and would delete it with the stack.
    """
    resources = stack.get("_resources", {})
    left = [name for name, each in resources.items() if each.get("ResourceStatus") == "DELETE_FAILED"]
    for name in left:
        del resources[name]
    return bool(left)


def _remove_start(events: list[dict[str, Any]], logical_id: str) -> None:
    """Remove the last UPDATE_IN_PROGRESS event of a resource."""
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if (event["LogicalResourceId"], event["ResourceStatus"]) == (logical_id, "UPDATE_IN_PROGRESS"):
            del events[place]
            return


# --- OperationId and ResourceProperties of stack events ---
# MiniStack lists neither. Events of custom resources have their properties (``custom_resources.py``).
# A rollback is an operation of its own, after the one that failed. The CDK command line finds the failures of the last
# deployment by these ids.

_STACK = "AWS::CloudFormation::Stack"
_BEGINNING = frozenset(
    f"{what}_IN_PROGRESS" for what in ("REVIEW", "CREATE", "UPDATE", "DELETE", "ROLLBACK", "UPDATE_ROLLBACK")
)
_EVENT_ID = re.compile(rb"<EventId>([^<]+)</EventId>")


def _with_more_members(describe: Handler) -> Handler:
    def described(parameters: dict[str, Any]) -> Any:
        status, headers, body = describe(parameters)
        events = list(cloudformation.stack_events().get(named_stack(parameters).get("StackId"), []))
        operations, by_id = _operations(events), {each["EventId"]: each for each in events}

        def more(found: re.Match[bytes]) -> bytes:
            identity = found[1].decode()
            properties = escape(by_id.get(identity, {}).get("ResourceProperties", ""))
            members = f"<OperationId>{operations.get(identity, '')}</OperationId>"
            members += f"<ResourceProperties>{properties}</ResourceProperties>" if properties else ""
            return found[0] + members.encode()

        return status, headers, _EVENT_ID.sub(more, body)

    return described


def _operations(events: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Event id → operation id, which is the id of the operation's first event. ``events`` are the oldest first."""
    found: dict[str, str] = {}
    operation = ""
    for event in events:
        is_stack = event["ResourceType"] == _STACK and event["LogicalResourceId"] == event["StackName"]
        if not operation or (is_stack and event["ResourceStatus"] in _BEGINNING):
            operation = event["EventId"]
        found[event["EventId"]] = operation
    return found


# --- Parameters that are looked up in SSM ---
# API reference, Parameter: ParameterValue is the input value, here the name in SSM; ResolvedValue is what it holds, and
# "is returned only for SSM parameter types". MiniStack has the held value in the place of the name.

_RESOLVED = re.compile(rb"(<ParameterValue>[^<]*?)\x1f([^<]*)</ParameterValue>")


def _with_names_in_ssm(describe: Handler) -> Handler:
    def described(parameters: dict[str, Any]) -> Any:
        kept = [(stack, stack.get("Parameters", [])) for stack in cloudformation.stacks_by_name().values()]
        for stack, given in kept:
            resolved = stack.get("_resolved_params", {})
            stack["Parameters"] = [_named(each, resolved.get(each["ParameterKey"])) for each in given]
        try:
            status, headers, body = describe(parameters)
        finally:
            for stack, given in kept:
                stack["Parameters"] = given
        separated = rb"\1</ParameterValue><ResolvedValue>\2</ResolvedValue>"
        return status, headers, _RESOLVED.sub(separated, body)

    return described


def _named(parameter: dict[str, Any], resolved: Any) -> dict[str, Any]:
    """A parameter whose value is its name in SSM, a separator and the value there; unchanged where it is not of SSM."""
    name = resolved.get("SsmName") if isinstance(resolved, Mapping) else None
    if name is None:
        return parameter
    return {**parameter, "ParameterValue": f"{name}\x1f{parameter.get('ParameterValue', '')}"}


# --- Responses that wait for the stack ---
# The CDK command line reads the stack once after the response, and then every five seconds. A stack that settles within
# the wait saves that pause: the settings' default has room for an endpoint with its Triton and its verification.

_STARTING = (b"CreateStack", b"UpdateStack", b"DeleteStack", b"ExecuteChangeSet", b"ContinueUpdateRollback")
_OPERATION = re.compile(rb"(?:^|&)Action=(\w+)")
_STACK_NAME = re.compile(rb"(?:^|&)StackName=([^&]+)")
_STEP_SECONDS = 0.01


def _install_patience(*, seconds: float) -> None:
    """Wrap MiniStack's CloudFormation; ``seconds`` bounds the wait, 0 means none."""
    handle = application.service_handlers()["cloudformation"]

    async def patient(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Any:
        answer = await handle(method, path, headers, body, query)
        named, operation = _STACK_NAME.search(body), _OPERATION.search(body[:200])  # a template in the body is not read
        if named is not None and operation is not None and operation[1] in _STARTING:
            await _settled(urllib.parse.unquote_plus(named[1].decode()), seconds)
        return answer

    application.service_handlers()["cloudformation"] = patient


async def _settled(stack: str, seconds: float) -> None:
    """Until the stack of this name or ARN is not in progress; MiniStack announces no change of one."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while loop.time() < until:
        await asyncio.sleep(_STEP_SECONDS)  # first of all: a deletion begins after the response is made
        found = [
            each for each in cloudformation.stacks_by_name().values() if stack in (each["StackName"], each["StackId"])
        ]
        if not any(each["StackStatus"].endswith("_IN_PROGRESS") for each in found):
            return
