"""MiniStack's Lambda functions and state machines act with their roles.

A function runs with a session of its role, also where that may not write the function's log: then there are no lines.
"""

from __future__ import annotations

import contextvars
from collections.abc import Mapping
from typing import Any

from ministack.core import lambda_runtime
from ministack.core.responses import error_response_json
from ministack.services import lambda_svc, stepfunctions

from tritonstack_local.emulator.cloudformation.provisioning import complete
from tritonstack_local.emulator.iam.authorization import Principal, enforced, role_principal
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import (
    arn_of,
    credentials_of,
    interface_needs,
    log_needs,
    refusal_of,
)
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import role_trusts

_LAMBDA = "lambda.amazonaws.com"
_NOT_ASSUMED = "The role defined for the function cannot be assumed by Lambda."
_NOT_PERMITTED = "The provided execution role does not have permissions to call"
_DESTINATIONS = {"sqs": "sqs:SendMessage", "sns": "sns:Publish", "lambda": "lambda:InvokeFunction"}
Answer = Any


def install() -> None:
    """Have MiniStack's functions and state machines act with their roles. Once a process."""
    theirs, create, update = (
        lambda_runtime.execution_credentials, lambda_svc._create_function, lambda_svc._update_config
    )  # fmt: skip
    emit, fail, configure = (
        lambda_svc._emit_lambda_logs, lambda_svc._route_async_failure, lambda_svc._put_event_invoke_config
    )  # fmt: skip

    def credentials(config: dict[str, Any]) -> dict[str, str]:
        given: dict[str, str] = theirs(config)
        role, vpc = _session(config), (config.get("VpcConfig") or {}).get("VpcId") or None
        return credentials_of(role, service=_LAMBDA, source=config["FunctionArn"], vpc=vpc) or given

    def created(request: dict[str, Any]) -> Answer:
        return _refused(request.get("FunctionName", ""), request) or create(request)

    def updated(name: str, request: dict[str, Any]) -> Answer:
        before = (lambda_svc._functions.get(name) or {}).get("config", {})
        role = before.get("Role")
        answer = _refused(name, {"Role": role, "VpcConfig": before.get("VpcConfig"), **request}) if before else None
        if answer is None and request.get("Role", role) != role:
            lambda_svc.invalidate_worker(name)  # a warm worker has the former role's session
        return answer or update(name, request)

    def logged(function: dict[str, Any], request_id: str, *rest: Any, **more: Any) -> None:
        config = function.get("config") or function
        group = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
        if refusal_of(_session(config), log_needs(group, request_id), by=f"lambda: log of {group}") is None:
            emit(function, request_id, *rest, **more)

    def configured(name: str, qualifier: str | None, request: dict[str, Any]) -> Answer:
        for each in (request.get("DestinationConfig") or {}).values():
            action = _denied_destination(each.get("Destination", ""), name)
            if action is not None:
                sentence = f"{_NOT_PERMITTED} {action} on {each['Destination'].split(':')[2].upper()}"
                return error_response_json("InvalidParameterValueException", sentence, 400)
        return configure(name, qualifier, request)

    def failed(target: str, name: str, *rest: Any) -> None:
        if _denied_destination(target, name) is None:
            fail(target, name, *rest)

    lambda_runtime.execution_credentials = lambda_svc.execution_credentials = credentials
    lambda_svc._create_function, lambda_svc._update_config = created, updated
    lambda_svc._emit_lambda_logs, lambda_svc._route_async_failure = logged, failed
    lambda_svc._put_event_invoke_config = configured
    complete("AWS::Lambda::Function", check=_check_properties, apply=lambda *_: None)
    _install_state_machines()


def _session(config: Mapping[str, Any]) -> Principal:
    """The session of a function's role, that its code and Lambda itself act with."""
    return role_principal(config["Role"], config["FunctionName"])


def _denied_destination(target: str, name: str) -> str | None:
    """What a function's role lacks for a destination of its events, without the service; None where it may."""
    config = (lambda_svc._functions.get(name) or {}).get("config")
    action = _DESTINATIONS.get(target.split(":")[2]) if config and target.startswith("arn:") else None
    if config is None or action is None:
        return None
    needs = [Need(action=action, resource=target)]
    refused = refusal_of(_session(config), needs, by=f"lambda: destination of {name}")
    return refused and action.partition(":")[2]


def _check_properties(properties: Mapping[str, Any]) -> None:
    _check_function(str(properties.get("FunctionName", "function")), properties)


def _check_function(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse a role that Lambda cannot assume, or that may not place the function in its VPC."""
    role, vpc = settings.get("Role") or "", settings.get("VpcConfig") or {}
    if not enforced():
        return
    sentence = "" if role_trusts(role, _LAMBDA) else _NOT_ASSUMED
    if not sentence and vpc.get("SubnetIds"):
        needs = interface_needs(vpc["SubnetIds"], vpc.get("SecurityGroupIds", ()), service="lambda")
        refused = refusal_of(role_principal(role, name), needs, by=f"lambda: network of {name}")
        if refused is not None:
            action = refused.need.action.partition(":")[2]
            sentence = f"{_NOT_PERMITTED} {action} on EC2"
    if sentence:
        raise RefusedError("InvalidParameterValueException", sentence, source="Lambda developer guide, troubleshooting")


def _refused(name: str, settings: Mapping[str, Any]) -> Answer | None:
    try:
        _check_function(name, settings)
    except RefusedError as refused:
        return error_response_json(refused.code, str(refused), refused.status)
    return None


# --- Step Functions ---

_STATES = "states.amazonaws.com"
_LOG_DELIVERY = (
    *(f"{verb}LogDelivery" for verb in ("Create", "Get", "Update", "Delete")),
    *("ListLogDeliveries", "PutResourcePolicy", "DescribeResourcePolicies", "DescribeLogGroups"),
)
"""Step Functions developer guide, "Using CloudWatch Logs to log execution history"."""
_execution: contextvars.ContextVar[str] = contextvars.ContextVar("tritonstack_execution", default="")


def _install_state_machines() -> None:
    """Check a machine's role when it is made, and its right to invoke a task's function.

    The error of such a task: awslabs/aws-deployment-framework, issue 460.
    """
    run, call, create = (
        stepfunctions._run_execution, stepfunctions._call_lambda, stepfunctions._create_state_machine
    )  # fmt: skip

    def running(execution: str) -> None:
        _execution.set(execution)
        run(execution)

    def called(function: str, event: Any) -> Any:
        execution = stepfunctions._executions.get(_execution.get()) or {}
        machine = stepfunctions._state_machines.get(execution.get("stateMachineArn"))
        if machine is not None:
            arn = function if function.startswith("arn:") else arn_of("lambda", f"function:{function}")
            caller = role_principal(machine["roleArn"], execution["name"][:64])
            need = Need(action="lambda:InvokeFunction", resource=arn)
            refused = refusal_of(caller, [need], by=f"states: execution {execution['name']}")
            if refused is not None:
                details = "(Service: AWSLambda; Status Code: 403; Error Code: AccessDeniedException)"
                raise stepfunctions._ExecutionError("Lambda.AWSLambdaException", f"{refused.sentence} {details}")
        return call(function, event)

    def created(request: dict[str, Any]) -> Answer:
        try:
            spelled = {"RoleArn": "roleArn", "LoggingConfiguration": "loggingConfiguration"}
            _check_machine({name: request.get(member) for name, member in spelled.items()})
        except RefusedError as refused:
            return error_response_json(refused.code, str(refused), refused.status)
        return create(request)

    stepfunctions._run_execution, stepfunctions._call_lambda = running, called
    stepfunctions._create_state_machine = created
    complete("AWS::StepFunctions::StateMachine", check=_check_machine, apply=lambda *_: None)


def _check_machine(properties: Mapping[str, Any]) -> None:
    """Refuse a role that Step Functions cannot assume, or that may not deliver the logs."""
    role, logging = properties.get("RoleArn") or "", properties.get("LoggingConfiguration") or {}
    if not enforced():
        return
    sentence = ""
    if not role_trusts(role, _STATES):
        sentence = (
            f"Neither the global service principal {_STATES}, nor the regional one is authorized to assume the"
            " provided role."
        )
    elif str(logging.get("Level", logging.get("level", "OFF"))) != "OFF":
        needs = [Need(action=f"logs:{action}", resource="*") for action in _LOG_DELIVERY]
        if refusal_of(role_principal(role, "StepFunctions"), needs, by="states: log of a state machine"):
            sentence = "The state machine IAM Role is not authorized to access the Log Destination"
    if sentence:
        raise RefusedError("AccessDeniedException", sentence, source="Step Functions, CreateStateMachine")
