"""Permissions of stack operations: a stack's role, and the permissions that changing a resource needs.

Source: CloudFormation user guide, "CloudFormation service role": with a role, CloudFormation "always uses that role for
all operations that are performed on that stack"; without one, a session of the caller's credentials. What a resource
needs is ``handler_needs``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tritonstack_local.emulator.cloudformation.handler_needs import (
    Event,
    ResourceChange,
    Role,
    Site,
    UnknownTypeError,
    needs_of_handler,
    type_data,
)
from tritonstack_local.emulator.cloudformation.stack_operations import named_stack
from tritonstack_local.emulator.iam.authorization import (
    AccessDeniedError,
    acting_as,
    authorize,
    check_trust,
    current_principal,
    enforced,
    role_principal,
)
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.principals import role_record
from tritonstack_local.emulator.ministack_adapter import cloudformation, ssm
from tritonstack_local.emulator.ministack_adapter.core import get_account_id, get_region
from tritonstack_local.emulator.ministack_adapter.private_names import Replaceable

Handler = Callable[[dict[str, Any]], Any]
SESSION = "AWSCloudFormation"
"""The session's name, as AWS's messages show it: ``assumed-role/cdk-hnb659fds-cfn-exec-role-…/AWSCloudFormation``."""
_ROLE = "RoleARN"


class HandlerRefusedError(Exception):
    """A resource that the stack's principal may not change; the text is the event's reason at AWS."""


def install() -> None:
    """Wrap MiniStack's stack engine. Before ``stack_operations``, whose failed rollbacks begin nothing more."""
    _remember_roles()
    _join_in_conditions()
    _read_parameters()
    events: tuple[tuple[Replaceable, Event], ...] = (
        (cloudformation.provision_resource, "create"),
        (cloudformation.update_resource, "update"),
        (cloudformation.delete_resource, "delete"),
    )
    for operation, event in events:
        operation.replace(_guarded(operation.current, event))


def _guarded(operation: Callable[..., Any], event: Event) -> Callable[..., Any]:
    """MiniStack's operation on a resource, if the stack's principal is allowed what its handler needs."""
    signature = inspect.signature(operation)

    def guarded(*given: Any, **named: Any) -> Any:
        asked = signature.bind(*given, **named).arguments
        kind, before, after = asked["resource_type"], asked.get("old_props"), asked.get("props", asked.get("new_props"))
        if event == "update" and (before == after or cloudformation.replacing_change(kind, before, after)):
            return operation(*given, **named)  # nothing is called, or the handler that creates
        change = ResourceChange(
            kind=kind,
            event=event,
            properties=after or {},
            stack=asked.get("stack_name") or "",
            logical_id=asked.get("logical_id") or "",
            physical_id=asked.get("physical_id"),
        )
        with _allowed(change):
            return operation(*given, **named)

    return guarded


@contextmanager
def _allowed(change: ResourceChange) -> Iterator[None]:
    """Raise HandlerRefusedError, or let the block act as the stack's principal: services check their caller, too."""
    if not enforced():
        yield
        return
    # A stack's operations run as a session of its role, or as the principal that started the operation.
    role = cloudformation.stacks_by_name().get(change.stack, {}).get(_ROLE)
    principal = current_principal() if role is None else role_principal(role, SESSION)
    try:
        needs = needs_of_handler(change, Site(account=get_account_id(), region=get_region(), role=_role))
        authorize(principal, needs, by=f"cloudformation: {change.event} {change.stack}/{change.logical_id}")
    except UnknownTypeError as unknown:
        if principal.kind != "administrator":
            raise HandlerRefusedError(str(unknown)) from unknown
    except AccessDeniedError as refused:
        raise HandlerRefusedError(_reason(change.kind, refused.sentence)) from refused
    with acting_as(principal):
        yield


def _role(name: str) -> Role:
    record = role_record(name, account=get_account_id()) or {"Arn": f"arn:aws:iam::{get_account_id()}:role/{name}"}
    return Role(arn=record["Arn"], boundary=record.get("PermissionsBoundary"))


def _reason(kind: str, sentence: str) -> str:
    """The reason in the event. AWS's has a request id and a token besides; its service is spelled as its SDK does."""
    if "calls" in type_data(kind):  # no handler of CloudFormation's registry: the service's message alone
        service = kind.split("::")[1] if kind.startswith("AWS::CodeBuild") else "Lambda"
        return f"{sentence} (Service: AWS{service}; Status Code: 403; Error Code: AccessDeniedException)"
    service = kind.split("::")[1]
    text = f"{sentence} (Service: {service}, Status Code: 403)"
    return f'Resource handler returned message: "{text}" (HandlerErrorCode: AccessDenied)'


# --- The role of a stack ---
# API reference: CreateStack, UpdateStack, DeleteStack, CreateChangeSet, ContinueUpdateRollback, RollbackStack, RoleARN:
# "If you don't specify a value, CloudFormation uses the role that was previously associated with the stack."


def _remember_roles() -> None:
    wrapped = cloudformation.action_handlers()
    for operation in ("CreateStack", "UpdateStack", "DeleteStack", "ContinueUpdateRollback", "RollbackStack"):
        wrapped[operation] = _with_role(wrapped[operation], named_stack)
    wrapped["CreateChangeSet"] = _with_role(wrapped["CreateChangeSet"], _change_set)
    wrapped["ExecuteChangeSet"] = _with_the_change_sets_role(wrapped["ExecuteChangeSet"])


def _with_role(handle: Handler, record: Callable[[dict[str, Any]], dict[str, Any]]) -> Handler:
    """Keep the request's role with its stack or change set. The operation begins after the response is made."""

    def handled(parameters: dict[str, Any]) -> Any:
        role = cloudformation.parameter(parameters, _ROLE)
        if role and enforced():
            try:
                check_trust(role, service="cloudformation.amazonaws.com")
            except AccessDeniedError:
                return cloudformation.error_response("ValidationError", f"Role {role} is invalid or cannot be assumed")
        with acting_as(role_principal(role, SESSION)) if role else nullcontext():
            answer = handle(parameters)
        if role and answer[0] == 200:
            record(parameters)[_ROLE] = role
        return answer

    return handled


def _with_the_change_sets_role(execute: Handler) -> Handler:
    def executed(parameters: dict[str, Any]) -> Any:
        change_set = _change_set(parameters)
        answer = execute(parameters)
        if _ROLE in change_set and answer[0] == 200:
            cloudformation.stacks_by_name().get(change_set["StackName"], {})[_ROLE] = change_set[_ROLE]
        return answer

    return executed


def _change_set(parameters: dict[str, Any]) -> dict[str, Any]:
    """The change set that a request names; a new record where there is none."""
    names = (cloudformation.parameter(parameters, "ChangeSetName"), cloudformation.parameter(parameters, "StackName"))
    return cloudformation.find_change_set(*names)[1] or {}


def _read_parameters() -> None:
    """Template parameters in Systems Manager need a permission to read them: of the role, or of the caller.

    Source: the message in aws/aws-cdk, issue 20959. That it is the role's where one is named is UNVERIFIED.
    """
    read = ssm.resolve_parameter_value.current

    def read_if_allowed(name: str, *given: Any, **named: Any) -> Any:
        resource = f"arn:aws:ssm:{get_region()}:{get_account_id()}:parameter/{name.removeprefix('/')}"
        try:
            need = Need(action="ssm:GetParameters", resource=resource)
            authorize(current_principal(), [need], by="cloudformation: parameters of a template")
        except AccessDeniedError as refused:
            raise ValueError("AccessDenied. User doesn't have permission to call ssm:GetParameters") from refused
        return read(name, *given, **named)

    ssm.resolve_parameter_value.replace(read_if_allowed)


def _join_in_conditions() -> None:
    """Evaluate Fn::Join in conditions, which MiniStack takes as text.

    By such a condition the CDK's bootstrap gives its execution role a policy of its user's, or AdministratorAccess.
    """
    evaluate = cloudformation.evaluate_conditions.current

    def evaluated(template: dict[str, Any], parameters: dict[str, Any]) -> dict[str, bool]:
        def joined(value: Any) -> Any:
            if isinstance(value, list):
                return [joined(each) for each in value]
            if not isinstance(value, dict):
                return value
            if "Fn::Join" not in value:
                return {key: joined(each) for key, each in value.items()}
            separator, parts = value["Fn::Join"]
            parts = parts if isinstance(parts, list) else [parts]
            # A list parameter is kept as one text, with commas.
            texts = [parameters[each["Ref"]]["Value"] if isinstance(each, dict) else each for each in parts]
            return separator.join(part for text in texts for part in str(text).split(","))

        conditions = joined(template.get("Conditions", {}))
        found: dict[str, bool] = evaluate({**template, "Conditions": conditions}, parameters)
        return found

    cloudformation.evaluate_conditions.replace(evaluated)
