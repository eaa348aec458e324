"""Values of a stack for other stacks and pipelines: single SSM parameters, and the document of docs/outputs.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from tritonstack import naming
from tritonstack.outputs.contract import CONTRACT, MINOR, PARAMETER_BYTES

if TYPE_CHECKING:
    from tritonstack.config import Environment


def read_parameter(scope: Construct, construct_id: str, *, name: str) -> str:
    """The value of an SSM parameter that another stack writes, read at deployment: no export ties the stacks."""
    parameter = cdk.CfnParameter(scope, construct_id, type="AWS::SSM::Parameter::Value<String>", default=name)
    return parameter.value_as_string


def write_parameter(scope: Construct, value: str, *, name: str, text: str) -> None:
    """Write an SSM parameter for other stacks. ``value``: the short name of the value, such as ``bucket-name``."""
    ssm.CfnParameter(scope, f"Parameter-{value}", name=name, type="String", value=text)


def publish_outputs(
    stack: cdk.Stack, *, environment: Environment, kind: str, outputs: Mapping[str, object], name: str | None = None
) -> None:
    """Add the SSM parameter with the outputs document of a stack.

    ``kind`` is a key of ``tritonstack.outputs.contract.KINDS``, and the last part of the parameter's name unless
    ``name`` is. Values of ``outputs`` may be tokens, if they need no escaping in JSON, as names, ARNs and ids.
    """
    document = {
        "contract": CONTRACT,
        "minor": MINOR,
        "kind": kind,
        "environment": environment.environment,
        "account": environment.account,
        "region": environment.region,
        "stack": stack.stack_name,
        **outputs,
    }
    ssm.CfnParameter(
        stack,
        "Outputs",
        name=naming.outputs_parameter(environment=environment.environment, stack=name or kind),
        type="String",
        value=_compact_json(document),
        description="Outputs of this stack for other pipelines (tritonstack docs outputs)",
    )


def outputs_fit(values: Mapping[str, object], *, spare: int) -> bool:
    """Whether a standard parameter holds the values, with ``spare`` bytes left for other fields and tokens."""
    return len(_compact_json(values).encode()) <= PARAMETER_BYTES - spare


def _compact_json(values: Mapping[str, object]) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)
