"""AWS::ApplicationAutoScaling::ScalableTarget and ScalingPolicy."""

from __future__ import annotations

from typing import Any

from tritonstack_local.emulator.autoscaling.api import ScalableTargets
from tritonstack_local.emulator.cloudformation.provisioning import Properties, Provisioned, register
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.services import JsonService

_TARGET = ("ResourceId", "ScalableDimension", "ServiceNamespace")


class AutoscalingResources:
    """Both types; their physical ids are CloudFormation's (``Ref``: resource|dimension|namespace, and the ARN)."""

    def __init__(self, service: JsonService, targets: ScalableTargets) -> None:
        """Calls ``service``, and finds policies by their ARNs in ``targets``."""
        self._service = service
        self._targets = targets

    def create_target(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        """RegisterScalableTarget; stack tags arrive as a list and this API takes a map."""
        request = {name: value for name, value in properties.items() if name != "ScheduledActions"}
        if isinstance(request.get("Tags"), list):
            request["Tags"] = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        self._service.call_from_template("RegisterScalableTarget", request)
        for action in properties.get("ScheduledActions", []):
            self._service.call_from_template(
                "PutScheduledAction", {**{name: properties[name] for name in _TARGET}, **action}
            )
        physical = "|".join(properties[name] for name in _TARGET)
        return physical, {"Id": physical}

    def update_target(self, physical: str, old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """Registering again changes the target; one that was deregistered meanwhile is not found."""
        target = _target(physical)
        target["ResourceIds"] = [target.pop("ResourceId")]
        if not self._service.call("DescribeScalableTargets", target)["ScalableTargets"]:
            raise _not_found(physical)
        names = [{action["ScheduledActionName"] for action in each.get("ScheduledActions", [])} for each in (old, new)]
        for name in sorted(names[0] - names[1]):
            _unless_gone(self._service, "DeleteScheduledAction", {**_target(physical), "ScheduledActionName": name})
        return self.create_target("", new, stack_name)

    def delete_target(self, physical: str, _properties: Properties) -> None:
        """DeregisterScalableTarget; what is gone already is deleted."""
        _unless_gone(self._service, "DeregisterScalableTarget", _target(physical))

    def create_policy(self, _logical_id: str, properties: Properties, _stack_name: str) -> Provisioned:
        """PutScalingPolicy, of the target named by its parts or by its id."""
        arn = self._service.call_from_template("PutScalingPolicy", _policy(properties))["PolicyARN"]
        return arn, {"Arn": arn}

    def update_policy(self, physical: str, _old: Properties, new: Properties, stack_name: str) -> Provisioned:
        """Putting again changes the policy. It is known by its ARN: one that somebody put again is another."""
        if self._targets.policy_by_arn(physical) is None:
            raise _not_found(physical)
        return self.create_policy("", new, stack_name)

    def delete_policy(self, physical: str, _properties: Properties) -> None:
        """DeleteScalingPolicy of the policy with that ARN; what is gone already is deleted."""
        policy = self._targets.policy_by_arn(physical)
        if policy is not None:
            self._service.call("DeleteScalingPolicy", {name: policy[name] for name in ("PolicyName", *_TARGET)})


def install(service: JsonService, targets: ScalableTargets) -> None:
    """Register both types."""
    resources = AutoscalingResources(service, targets)
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


def _not_found(physical: str) -> RefusedError:
    return RefusedError("NotFound", f"{physical} does not exist", source="CloudFormation, resource type handlers")


def _unless_gone(service: JsonService, operation: str, request: dict[str, Any]) -> None:
    """A delete of what is not there is done (CloudFormation, resource type handler contract)."""
    try:
        service.call(operation, request)
    except RefusedError as refusal:
        if refusal.code != "ObjectNotFoundException":
            raise


def _target(physical: str) -> dict[str, Any]:
    return dict(zip(_TARGET, physical.split("|"), strict=True))


def _policy(properties: Properties) -> dict[str, Any]:
    request = {name: value for name, value in properties.items() if name != "ScalingTargetId"}
    if "ScalingTargetId" in properties:
        request |= _target(properties["ScalingTargetId"])
    return request
