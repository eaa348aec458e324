"""Application Auto Scaling's operations on endpoint variants: scalable targets, policies, scheduled actions."""

from __future__ import annotations

import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tritonstack.naming import scalable_variant
from tritonstack_local.emulator.autoscaling import step_scaling, target_tracking
from tritonstack_local.emulator.autoscaling.activities import Activities, failed_lately
from tritonstack_local.emulator.autoscaling.scalable import Scalable, Scalables
from tritonstack_local.emulator.autoscaling.schedule import Moments, moments
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.alarm_evaluator import scaling_policies
from tritonstack_local.emulator.faults import logged_faults
from tritonstack_local.emulator.iam.authorization import current_principal, enforced
from tritonstack_local.emulator.iam.needs import Need
from tritonstack_local.emulator.iam.service_calls import arn_of, names, refusal_of
from tritonstack_local.emulator.ministack_adapter import iam
from tritonstack_local.emulator.ministack_adapter.core import (
    account_region_table,
    get_account_id,
    get_region,
    places_of,
    request_scope,
)
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.state import SageMakerState
from tritonstack_local.emulator.services import JsonService

_API = "Application Auto Scaling API reference"
_NEEDED = {"MetricName", "Namespace", "Statistic"}


def check_policy(request: dict[str, Any], kind: Scalable) -> None:
    """Refuse a policy that names no metric, two, or one of something else.

    Sources: API reference, TargetTrackingScalingPolicyConfiguration, PredefinedMetricSpecification and
    CustomizedMetricSpecification ("conditional" members).
    """
    if request.get("PolicyType", "StepScaling") == "StepScaling":
        step_scaling.check(request.get(step_scaling.CONFIGURATION) or {})
        return
    configuration = request.get("TargetTrackingScalingPolicyConfiguration")
    if configuration is None:
        raise _refused("TargetTrackingScalingPolicyConfiguration is required for TargetTrackingScaling")
    predefined, customized = (configuration.get(f"{kind}MetricSpecification") for kind in ("Predefined", "Customized"))
    if (predefined is None) == (customized is None):
        raise _refused("Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is required")
    if predefined is not None and predefined["PredefinedMetricType"] not in kind.predefined:
        raise _refused(
            f"Predefined metric type {predefined['PredefinedMetricType']} is not valid for scalable dimension "
            f"{request['ScalableDimension']}; valid: {', '.join(kind.predefined)}"
        )
    if customized is not None and not customized.keys() >= _NEEDED:
        raise _refused(f"CustomizedMetricSpecification needs {', '.join(sorted(_NEEDED))}")
    if configuration["TargetValue"] <= 0:
        raise _refused("TargetValue must be greater than 0")


def check_schedule(action: dict[str, Any], target: dict[str, Any]) -> None:
    """Refuse a scheduled action whose limits cannot hold (API reference, PutScheduledAction)."""
    limits = action.get("ScalableTargetAction", {})
    if not limits:
        raise _refused("ScalableTargetAction needs MinCapacity or MaxCapacity", "PutScheduledAction")
    least, most = (limits.get(name, target[name]) for name in _LIMITS)
    if least > most:
        raise _refused(f"Maximum capacity {most} cannot be less than minimum capacity {least}", "PutScheduledAction")


Request = dict[str, Any]

_LIMITS = ("MinCapacity", "MaxCapacity")
_SUSPENSIONS = ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended")


class ScalableTargets:
    """Scalable targets with their policies and scheduled actions. Members that begin with ``_`` are never returned."""

    def __init__(self, sagemaker: SageMakerState, kinds: Scalables) -> None:
        """``kinds``: what can be scaled. ``sagemaker`` gets to know which variants are."""
        self._kinds = kinds
        self._targets = account_region_table()
        self._policies = account_region_table()
        self._schedules = account_region_table()
        sagemaker.scaled_variants = self._variants_of
        sagemaker.forget_scaled = self._forget_endpoint
        names["scalable_target"] = lambda *key: self._targets.get(key, {}).get("ScalableTargetARN")
        self.activities = Activities(kinds)
        self._looking = threading.Lock()
        scaling_policies.append(lambda arn: self.policy_by_arn(arn) is not None)

    def before_alarms(self) -> None:
        """Write the metrics of idle variants; called before each evaluation of the alarms."""
        self._everywhere(lambda: target_tracking.write_idle(self._policies.values(), self._kinds))

    def after_alarms(self) -> None:
        """Perform the scheduled actions that are due, then scale; called after each evaluation of the alarms."""
        with self._looking:  # the clock's mover evaluates too
            self._everywhere(self._perform_schedules)
            self._everywhere(self._scale)

    def _everywhere(self, act: Callable[[], Any]) -> None:
        for account, region in places_of(self._targets):
            with request_scope(account, region), logged_faults(f"scaling of {account} in {region}"):
                act()

    def _perform_schedules(self) -> None:
        """Perform due scheduled actions in order of time. One that was due several times is performed once."""
        now = clock.now()
        due = [
            (at, action) for action in self._schedules.values() if (at := action["_moments"].passed(now)) is not None
        ]
        for _, action in sorted(due, key=lambda each: float(each[0])):
            with logged_faults(f"scheduled action {action['ScheduledActionName']}"):
                self._perform(action, now=now)

    def _perform(self, action: dict[str, Any], *, now: float) -> None:
        target, asked = self._targets[_key(action)], action["ScalableTargetAction"]
        what = " and ".join(f"{name[:3].lower()} capacity to {asked[name]}" for name in _LIMITS if name in asked)
        least, most = ({**target, **asked}[name] for name in _LIMITS)
        failed = None if least <= most else f"Maximum capacity {most} cannot be less than minimum capacity {least}"
        if failed is None:
            target.update(asked, _limits_changed=True)
        cause = f"scheduled action name {action['ScheduledActionName']} was triggered"
        self.activities.add(target, what, cause=cause, began=now, failed=failed)
        self._bring_inside(target)

    def _scale(self) -> None:
        for target in self._targets.values():
            with logged_faults(f"scaling of {target['ResourceId']}"):
                self._bring_inside(target)
                count = self._count(target)
                if count is not None and not failed_lately(target):
                    policies = [policy for policy in self._policies.values() if _key(policy) == _key(target)]
                    tracking = [each for each in policies if target_tracking.CONFIGURATION in each]
                    stepping = [each for each in policies if step_scaling.CONFIGURATION in each]
                    target_tracking.follow(target, tracking, count=count, activities=self.activities)
                    step_scaling.follow(target, stepping, count=self._count(target), activities=self.activities)

    def _bring_inside(self, target: dict[str, Any]) -> None:
        """Once its limits have changed, a count outside of them is made the nearest limit, as soon as it may be."""
        count = self._count(target) if target["_limits_changed"] and not failed_lately(target) else None
        if count is None:
            return
        inside = min(max(count, target["MinCapacity"]), target["MaxCapacity"])
        cause = f"{'minimum' if inside > count else 'maximum'} capacity was set to {inside}"
        target["_limits_changed"] = inside != count and not self.activities.set_count(
            target, before=count, after=inside, cause=cause
        )

    def _count(self, target: dict[str, Any]) -> int | None:
        """The target's capacity; None while it may not be scaled."""
        return self._kinds[target["ScalableDimension"]].count(target["ResourceId"])

    def _variants_of(self, endpoint: str) -> frozenset[str]:
        """The variants of an endpoint that are scalable targets; SageMaker checks them before it updates one."""
        parts = [target["ResourceId"].split("/") for target in self._targets.values()]
        return frozenset(part[3] for part in parts if len(part) == 4 and part[1].lower() == endpoint.lower())

    def _forget_endpoint(self, endpoint: str) -> None:
        """DeleteEndpoint deregisters its variants "without notifying you" (developer guide)."""
        for target in list(self._targets.values()):
            if target["ResourceId"].lower().startswith(scalable_variant(endpoint_name=endpoint, variant="").lower()):
                self._drop(target)

    def register_scalable_target(self, request: Request) -> dict[str, Any]:
        """RegisterScalableTarget: the resource must exist; a first registration needs both capacities."""
        self._kinds[request["ScalableDimension"]].check(request["ResourceId"])
        self._check_caller(request, "RegisterScalableTarget")
        before = self._targets.get(_key(request))
        if before is None and not {"MinCapacity", "MaxCapacity"} <= request.keys():
            raise _refused("MinCapacity and MaxCapacity are required on first registration", "RegisterScalableTarget")
        merged = {"CreationTime": clock.now(), **(before or {}), **request}
        if merged["MinCapacity"] > merged["MaxCapacity"]:
            raise _refused("Maximum capacity cannot be less than minimum capacity", "RegisterScalableTarget")
        arn = f"arn:aws:application-autoscaling:{get_region()}:{get_account_id()}:scalable-target"
        _ensure_service_linked_role()
        merged["ScalableTargetARN"] = f"{arn}/{zlib.crc32(repr(_key(request)).encode()):08x}"
        if before is None or any(merged[name] != before[name] for name in _LIMITS):
            merged["_limits_changed"] = True  # and stays so until the count has followed
        self._targets[_key(request)] = merged
        return {"ScalableTargetARN": merged["ScalableTargetARN"]}

    def deregister_scalable_target(self, request: Request) -> None:
        """DeregisterScalableTarget: its policies go with it."""
        if _key(request) not in self._targets:
            raise _missing("scalable target", request, "DeregisterScalableTarget")
        self._check_caller(request, "DeregisterScalableTarget")
        self._drop(request)

    def _drop(self, request: Request) -> None:
        self._targets.pop(_key(request))
        for store in (self._policies, self._schedules):
            for key in [k for k, kept in store.items() if _key(kept) == _key(request)]:
                target_tracking.drop_alarms(store.pop(key))

    def put_scaling_policy(self, request: Request) -> dict[str, Any]:
        """PutScalingPolicy: of a registered target."""
        if _key(request) not in self._targets:
            raise _missing("scalable target", request, "PutScalingPolicy")
        kind = self._kinds[request["ScalableDimension"]]
        check_policy(request, kind)
        is_tracking = target_tracking.CONFIGURATION in request
        alarms = [f"TargetTracking-{request['ResourceId']}-AlarmHigh-{uuid.uuid4()}"] if is_tracking else []
        self._check_caller(request, "PutScalingPolicy", alarms=alarms)
        before = self._policies.get(_policy_key(request), {})
        # The id in an ARN is the policy's own: one that is deleted and put again has another.
        arn = before.get("PolicyARN") or (
            f"arn:aws:autoscaling:{get_region()}:{get_account_id()}:scalingPolicy:{uuid.uuid4()}:resource/"
            f"{request['ServiceNamespace']}/{request['ResourceId']}:policyName/{request['PolicyName']}"
        )
        policy = {"CreationTime": clock.now(), **before, **request, "PolicyARN": arn}
        target_tracking.drop_alarms(before)
        policy["Alarms"] = target_tracking.put_alarms(policy, kind) if is_tracking else []
        self._policies[_policy_key(request)] = policy
        return {"PolicyARN": arn, "Alarms": policy["Alarms"]}

    def policy_by_arn(self, arn: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = next((p for p in self._policies.values() if p["PolicyARN"] == arn), None)
        return found

    def put_scheduled_action(self, request: Request) -> None:
        """PutScheduledAction for a registered target; members that are left out keep their values."""
        if _key(request) not in self._targets:
            raise _missing("scalable target", request, "PutScheduledAction")
        key = (*_key(request), request["ScheduledActionName"])
        merged = {"CreationTime": clock.now(), "Timezone": "UTC", **self._schedules.get(key, {}), **request}
        check_schedule(merged, self._targets[_key(request)])
        try:
            merged["_moments"] = Moments(moments(merged, after=clock.now()))
        except ValueError as error:
            sentence = f"Invalid schedule expression: {merged.get('Schedule')}: {error}"
            raise _refused(sentence, "PutScheduledAction") from error
        merged["ScheduledActionARN"] = (
            f"arn:aws:autoscaling:{get_region()}:{get_account_id()}:scheduledAction:{uuid.uuid4()}:resource/"
            f"{request['ServiceNamespace']}/{request['ResourceId']}:scheduledActionName/{key[-1]}"
        )
        self._schedules[key] = merged

    def delete_scheduled_action(self, request: Request) -> None:
        if self._schedules.pop((*_key(request), request["ScheduledActionName"]), None) is None:
            raise _missing("scheduled action", request, "DeleteScheduledAction")

    def describe_scheduled_actions(self, request: Request) -> dict[str, Any]:
        """DescribeScheduledActions, in one page."""
        return {"ScheduledActions": list(_matching(self._schedules, request))}

    def delete_scaling_policy(self, request: Request) -> None:
        policy = self._policies.get(_policy_key(request))
        if policy is None:
            raise _missing("scaling policy", request, "DeleteScalingPolicy")
        alarms = [alarm["AlarmName"] for alarm in policy["Alarms"]]
        self._check_caller(request, "DeleteScalingPolicy", alarms=alarms)
        del self._policies[_policy_key(request)]
        target_tracking.drop_alarms(policy)

    def describe_scalable_targets(self, request: Request) -> dict[str, Any]:
        """DescribeScalableTargets, in one page, with the default role and suspensions."""
        unset = {
            "RoleARN": _role_arn(),
            "SuspendedState": dict.fromkeys(_SUSPENSIONS, False),
        }
        return {"ScalableTargets": [{**unset, **each} for each in _matching(self._targets, request)]}

    def describe_scaling_policies(self, request: Request) -> dict[str, Any]:
        """DescribeScalingPolicies, in one page, with target tracking's defaults."""
        name, unset = target_tracking.CONFIGURATION, {"DisableScaleIn": False}
        found = _matching(self._policies, request)
        return {
            "ScalingPolicies": [{**each, name: {**unset, **each[name]}} if name in each else each for each in found]
        }

    def _check_caller(self, request: Request, operation: str, *, alarms: Iterable[str] = ()) -> None:
        kind, any_name = self._kinds[request["ScalableDimension"]], str(uuid.uuid4())
        _check_caller(kind.tried(request["ResourceId"], any_name), operation, alarms=alarms)


def autoscaling_service(targets: ScalableTargets) -> JsonService:
    name, prefix = "application-autoscaling", "AnyScaleFrontendService"
    return JsonService(targets, targets.activities, service=name, target_prefix=prefix)


_NAMES = ("ServiceNamespace", "ResourceId", "ScalableDimension", "PolicyName", "ScheduledActionName")


def _matching(store: Mapping[Any, dict[str, Any]], request: Request) -> Iterator[dict[str, Any]]:
    """The rows that a request selects, by one name (``ResourceId``) or by several (``ResourceIds``)."""
    for item in store.values():
        is_one = all(request.get(name, item.get(name)) == item.get(name) for name in _NAMES)
        if is_one and all(item.get(name) in request[f"{name}s"] for name in _NAMES if f"{name}s" in request):
            yield {name: value for name, value in item.items() if name != "Tags" and name[0] != "_"}


def _key(request: Request) -> tuple[str, ...]:
    return (request["ServiceNamespace"], request["ResourceId"], request["ScalableDimension"])


def _policy_key(request: Request) -> tuple[str, ...]:
    return (*_key(request), request["PolicyName"])


def _missing(what: str, request: Request, operation: str) -> RefusedError:
    return RefusedError(
        "ObjectNotFoundException",
        f"No {what} found for service namespace: {request['ServiceNamespace']}, resource ID: {request['ResourceId']}, "
        f"scalable dimension: {request['ScalableDimension']}",
        source=f"{_API}, {operation}",
    )


def _refused(sentence: str, operation: str = "PutScalingPolicy") -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{_API}, {operation}")


# --- The caller's rights that are tried before anything is changed, and the service-linked role ---
# Sources: user guide, "Permissions validation for API calls on target resources", "Identity-based policy examples"
# (the six actions) and "Service-linked roles". PutMetricAlarm and DeleteAlarms are called without parameters,
# DescribeAlarms with a maximum of 1: CloudWatch takes them for ``alarm:`` and ``alarm:*``. DescribeEndpointConfig is
# called with a UUID (aws-controllers-k8s/community, issue 2110). That UpdateEndpointWeightsAndCapacities is too, that
# deregistration and deletion are validated like the rest, and the error's text, are UNVERIFIED.

_SOURCE = "Application Auto Scaling user guide, Permissions validation for API calls on target resources"
_SERVICE = "sagemaker.application-autoscaling.amazonaws.com"
_PATH = f"/aws-service-role/{_SERVICE}/"
_ROLE = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
_OWN_CALL = {"aws:ViaAWSService": "true"}


def _check_caller(of_sagemaker: Iterable[tuple[str, str]], operation: str, *, alarms: Iterable[str] = ()) -> None:
    """Raise RefusedError for the first right that the request's caller lacks.

    ``of_sagemaker``: actions with a resource each. ``alarms``: names of a policy's alarms, which are made and deleted
    with the caller's rights.
    """
    changed = "DeleteAlarms" if operation.startswith("De") else "PutMetricAlarm"
    tried = [
        *of_sagemaker,
        ("cloudwatch:PutMetricAlarm", "alarm:"),
        ("cloudwatch:DescribeAlarms", "alarm:*"),
        ("cloudwatch:DeleteAlarms", "alarm:"),
        *((f"cloudwatch:{changed}", f"alarm:{name}") for name in alarms),
    ]
    needs = [Need(action=each, resource=arn_of(each.split(":")[0], of), context=_OWN_CALL) for each, of in tried]
    denied = refusal_of(current_principal(), needs, by=f"application-autoscaling: {operation}")
    if denied is not None:
        raise RefusedError("ValidationException", denied.sentence, source=_SOURCE)


def _role_arn() -> str:
    return f"arn:aws:iam::{get_account_id()}:role{_PATH}{_ROLE}"


def _ensure_service_linked_role() -> None:
    """Create the service-linked role with the caller's rights, unless the account has it."""
    if not enforced() or any(role["Path"] == _PATH for role in iam.roles().values()):
        return
    need = Need(
        action="iam:CreateServiceLinkedRole", resource=_role_arn(), context={"iam:AWSServiceName": _SERVICE} | _OWN_CALL
    )
    denied = refusal_of(current_principal(), [need], by="application-autoscaling: first scalable target")
    if denied is not None:
        raise RefusedError("AccessDeniedException", denied.sentence, source="Service-linked roles", status=403)
    iam.create_service_linked_role({"AWSServiceName": _SERVICE})
    made = iam.roles().pop("AWSServiceRoleForSagemaker")  # MiniStack's name for it
    iam.roles()[_ROLE] = {**made, "RoleName": _ROLE, "Arn": _role_arn()}
