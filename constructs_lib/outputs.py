"""What a stack tells other pipelines: one SSM parameter with one JSON object, by the contract of docs/outputs.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm

from tritonstack import naming
from tritonstack.outputs.contract import CONTRACT, MINOR, PARAMETER_BYTES

if TYPE_CHECKING:
    from tritonstack.config import Environment

LOGICAL_ID = "Outputs"


def tell(
    stack: cdk.Stack, *, environment: Environment, kind: str, outputs: Mapping[str, object], name: str | None = None
) -> ssm.CfnParameter:
    """Add the parameter to a stack. It is written once what its values refer to is made.

    Args:
        stack: the stack that tells.
        environment: its environment.
        kind: which stack it is (``serving``), a key of ``tritonstack.outputs.contract.KINDS``.
        outputs: the fields of that kind. Values may be known at deployment only; none of them may need escaping in
            JSON, which names, ARNs and ids never do.
        name: the last part of the parameter's name; None: the kind.
    """
    told = {
        "contract": CONTRACT,
        "minor": MINOR,
        "kind": kind,
        "environment": environment.environment,
        "account": environment.account,
        "region": environment.region,
        "stack": stack.stack_name,
        **outputs,
    }
    return ssm.CfnParameter(
        stack,
        LOGICAL_ID,
        name=naming.outputs_parameter(environment=environment.environment, stack=name or kind),
        type="String",
        value=text_of(told),
        description="What this stack tells other pipelines (docs/outputs.md)",
    )


def text_of(told: Mapping[str, object]) -> str:
    """The parameter's value, as short as JSON is. Placeholders of the CDK pass through it unchanged."""
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def fits(told: Mapping[str, object], *, spare: int) -> bool:
    """Whether a standard parameter holds it, with ``spare`` bytes for the other fields and values known later."""
    return len(text_of(told).encode()) <= PARAMETER_BYTES - spare
