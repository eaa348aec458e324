"""Permissions of stack operations: a stack's role, and what it must be allowed before a resource is changed.

Source: CloudFormation user guide, "CloudFormation service role": with a role, CloudFormation "always uses that role for
all operations that are performed on that stack"; without one, a session of the caller's credentials. What a resource
needs is ``handler_needs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services.cloudformation import _stacks, changesets, engine, handlers, provisioners, stacks

from tritonstack_local.emulator.cloudformation.handler_needs import (
    Event,
    ResourceChange,
    Role,
    Site,
    UnknownTypeError,
    needs_of_handler,
    type_data,
)
from tritonstack_local.emulator.iam.authorization import (
    AccessDeniedError,
    Principal,
    acting_as,
    authorize,
    check_trust,
    current_principal,
    enforced,
    role_principal,
)
from tritonstack_local.emulator.iam.principals import role_record

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
    provision, update = provisioners._provision_resource, provisioners._update_resource
    delete = provisioners._delete_resource

    def provision_if_allowed(kind: str, logical_id: str, properties: dict[str, Any], stack_name: str) -> Any:
        with _allowed(kind, "create", properties, stack_name, logical_id):
            return provision(kind, logical_id, properties, stack_name)

    def update_if_allowed(  # noqa: PLR0917  MiniStack's interface
        kind: str,
        physical_id: str,
        old: dict[str, Any],
        new: dict[str, Any],
        stack_name: str,
        logical_id: str | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        given = (kind, physical_id, old, new, stack_name, logical_id, attributes)
        if old == new or provisioners._replacing_change(kind, old, new):
            return update(*given)  # nothing is called, or the handler that creates
        with _allowed(kind, "update", new, stack_name, logical_id, physical_id):
            return update(*given)

    def delete_if_allowed(
        kind: str,
        physical_id: str,
        properties: dict[str, Any],
        stack_name: str | None = None,
        logical_id: str | None = None,
    ) -> Any:
        with _allowed(kind, "delete", properties, stack_name, logical_id, physical_id):
            return delete(kind, physical_id, properties, stack_name, logical_id)

    for module in (provisioners, stacks):
        module._provision_resource = provision_if_allowed
        module._update_resource = update_if_allowed
        module._delete_resource = delete_if_allowed


@contextmanager
def _allowed(  # noqa: PLR0917  as above
    kind: str,
    event: Event,
    properties: Mapping[str, Any],
    stack_name: str | None,
    logical_id: str | None,
    physical_id: str | None = None,
) -> Iterator[None]:
    """Raise HandlerRefusedError, or let the block act as the stack's principal: services check their caller, too."""
    if not enforced():
        yield
        return
    principal = stack_principal(stack_name)
    change = ResourceChange(
        kind=kind,
        event=event,
        properties=properties,
        stack=stack_name or "",
        logical_id=logical_id or "",
        physical_id=physical_id,
    )
    try:
        needs = needs_of_handler(change, Site(account=get_account_id(), region=get_region(), role=_role))
        authorize(principal, needs, by=f"cloudformation: {event} {stack_name}/{logical_id}")
    except UnknownTypeError as unknown:
        if principal.kind != "administrator":
            raise HandlerRefusedError(str(unknown)) from unknown
    except AccessDeniedError as refused:
        raise HandlerRefusedError(_reason(kind, refused.sentence)) from refused
    with acting_as(principal):
        yield


def stack_principal(stack_name: str | None) -> Principal:
    """Who a stack's operations run as: a session of its role, or whoever began the operation."""
    role = _stacks.get(stack_name, {}).get(_ROLE)
    return current_principal() if role is None else role_principal(role, SESSION)


def _role(name: str) -> Role:
    record = role_record(name, account=get_account_id()) or {"Arn": f"arn:aws:iam::{get_account_id()}:role/{name}"}
    return Role(arn=record["Arn"], boundary=record.get("PermissionsBoundary"))


def _reason(kind: str, sentence: str) -> str:
    """The reason in the event. AWS's has a request id and a token besides; its service is spelled as its SDK does."""
    if "calls" in type_data(kind):  # no handler of CloudFormation's registry: the message of the service stands alone
        service = kind.split("::")[1] if kind.startswith("AWS::CodeBuild") else "Lambda"
        return f"{sentence} (Service: AWS{service}; Status Code: 403; Error Code: AccessDeniedException)"
    service = kind.split("::")[1]
    text = f"{sentence} (Service: {service}, Status Code: 403)"
    return f'Resource handler returned message: "{text}" (HandlerErrorCode: AccessDenied)'


# --- The role of a stack ---
# API reference: CreateStack, UpdateStack, DeleteStack, CreateChangeSet, ContinueUpdateRollback, RollbackStack, RoleARN:
# "If you don't specify a value, CloudFormation uses the role that was previously associated with the stack."


def _remember_roles() -> None:
    wrapped = handlers._ACTION_HANDLERS
    for operation in ("CreateStack", "UpdateStack", "DeleteStack", "ContinueUpdateRollback", "RollbackStack"):
        wrapped[operation] = _with_role(wrapped[operation], _stack)
    wrapped["CreateChangeSet"] = _with_role(wrapped["CreateChangeSet"], _change_set)
    wrapped["ExecuteChangeSet"] = _with_the_change_sets_role(wrapped["ExecuteChangeSet"])


def _with_role(handle: Handler, record: Callable[[dict[str, Any]], dict[str, Any]]) -> Handler:
    """Keep the request's role with its stack or change set. The operation begins after the response is made."""

    def handled(parameters: dict[str, Any]) -> Any:
        role = handlers._p(parameters, _ROLE)
        if role and enforced():
            try:
                check_trust(role, service="cloudformation.amazonaws.com")
            except AccessDeniedError:
                return handlers._error("ValidationError", f"Role {role} is invalid or cannot be assumed")
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
            _stacks.get(change_set["StackName"], {})[_ROLE] = change_set[_ROLE]
        return answer

    return executed


def _stack(parameters: dict[str, Any]) -> dict[str, Any]:
    """The stack that a request names; a new record where there is none any more."""
    return handlers._resolve_stack(handlers._p(parameters, "StackName")) or {}


def _change_set(parameters: dict[str, Any]) -> dict[str, Any]:
    """The change set that a request names; a new record where there is none."""
    names = (handlers._p(parameters, "ChangeSetName"), handlers._p(parameters, "StackName"))
    return changesets._find_change_set(*names)[1] or {}


def _join_in_conditions() -> None:
    """Evaluate Fn::Join in conditions, which MiniStack takes as text.

    By such a condition the CDK's bootstrap gives its execution role a policy of its user's, or AdministratorAccess.
    """
    evaluate = engine._evaluate_conditions

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

    for module in (engine, stacks, handlers, changesets):
        if hasattr(module, "_evaluate_conditions"):
            module._evaluate_conditions = evaluated
