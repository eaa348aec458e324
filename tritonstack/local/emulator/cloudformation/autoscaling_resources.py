"""AWS::ApplicationAutoScaling::ScalableTarget and ScalingPolicy."""

from __future__ import annotations

from typing import Any

from tritonstack.local.emulator.cloudformation.provisioning import Properties, Provisioned, register
from tritonstack.local.emulator.json_service import JsonService

_TARGET = ("ResourceId", "ScalableDimension", "ServiceNamespace")


class AutoscalingResources:
    """Both types; their physical ids are CloudFormation's (``Ref``: resource|dimension|namespace, and the ARN)."""

    def __init__(self, service: JsonService) -> None:
        """Calls ``service``."""
        self._service = service

    def create_target(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        """RegisterScalableTarget; stack tags arrive as a list and this API takes a map."""
        request = {name: value for name, value in properties.items() if name != "ScheduledActions"}
        if isinstance(request.get("Tags"), list):
            request["Tags"] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        self._service.call_from_template("RegisterScalableTarget", request)
        physical = "|".join(properties[name] for name in _TARGET)
        return physical, {"Id": physical}

    def update_target(self, _physical: str, _old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """Registering again changes the target."""
        return self.create_target("", new, stack_name)

    def delete_target(self, physical: str, _properties: Properties) -> None:
        """DeregisterScalableTarget."""
        self._service.call("DeregisterScalableTarget", _target(physical))

    def create_policy(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        """PutScalingPolicy, of the target named by its parts or by its id."""
        arn = self._service.call_from_template("PutScalingPolicy", _policy(properties))["PolicyARN"]
        return arn, {"Arn": arn}

    def update_policy(self, _physical: str, _old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """Putting again changes the policy."""
        return self.create_policy("", new, stack_name)

    def delete_policy(self, _physical: str, properties: Properties) -> None:
        """DeleteScalingPolicy."""
        request = _policy(properties)
        self._service.call("DeleteScalingPolicy", {name: request[name] for name in ("PolicyName", *_TARGET)})


def install(service: JsonService) -> None:
    """Register both types."""
    resources = AutoscalingResources(service)
    register(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        create=resources.create_target,
        update=resources.update_target,
        delete=resources.delete_target,
    )
    register(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        create=resources.create_policy,
        update=resources.update_policy,
        delete=resources.delete_policy,
    )


def _target(physical: str) -> dict[str, str]:
    return dict(zip(_TARGET, physical.split("|"), strict=True))


def _policy(properties: Properties) -> dict[str, Any]:
    request = {name: value for name, value in properties.items() if name != "ScalingTargetId"}
    if "ScalingTargetId" in properties:
        request |= _target(properties["ScalingTargetId"])
    return request
