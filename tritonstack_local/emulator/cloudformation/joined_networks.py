"""Subnets and security groups that a live endpoint's containers are in: EC2 deletes none of them.

SageMaker puts network interfaces into the subnets of a Model's VpcConfig (developer guide: "Give SageMaker AI Hosted
Endpoints Access to Resources in Your Amazon VPC"), and EC2 refuses to delete what has dependents (EC2 API reference,
error codes: DependencyViolation). CloudFormation then leaves the resource where it was, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.services.cloudformation import provisioners

from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.state import SageMakerState

MEMBERS = {"AWS::EC2::Subnet": ("Subnets", "subnet"), "AWS::EC2::SecurityGroup": ("SecurityGroupIds", "security group")}
"""Type → the member of VpcConfig that names it, and what EC2 calls it."""


def install(state: SageMakerState) -> None:
    """Have the deletion of such a resource by a stack refused."""
    for kind, (member, noun) in MEMBERS.items():
        handler = provisioners._RESOURCE_HANDLERS[kind]
        handler["delete"] = _guarded(handler["delete"], state=state, member=member, noun=noun)


def _guarded(delete: Callable[..., Any], *, state: SageMakerState, member: str, noun: str) -> Callable[..., Any]:
    def guarded(physical_id: str, properties: dict[str, Any]) -> Any:
        users = endpoints_in(state, member=member, physical_id=physical_id)
        if users:
            raise RefusedError(
                "DependencyViolation",
                f"The {noun} '{physical_id}' has dependencies and cannot be deleted: endpoint {', '.join(users)}.",
                source="EC2 API reference, error codes",
            )
        return delete(physical_id, properties)

    return guarded


def endpoints_in(state: SageMakerState, *, member: str, physical_id: str) -> list[str]:
    """The names of the endpoints whose fleets, serving or to come, are in a subnet or a security group."""
    with state.changed:
        models = {
            model.name.lower()
            for model in state.models
            if physical_id in model.request.get("VpcConfig", {}).get(member, ())
        }
        configs = {
            config.name.lower()
            for config in state.endpoint_configs
            if any(each.get("ModelName", "").lower() in models for each in config.request["ProductionVariants"])
        }
        return sorted(endpoint.name for endpoint in state.endpoints if endpoint.configs_in_use & configs)
