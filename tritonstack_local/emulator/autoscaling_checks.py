"""What Application Auto Scaling takes as a target tracking policy and as a scheduled action."""

from __future__ import annotations

import re
from typing import Any

from tritonstack_local.emulator.refusal import RefusedError

_API = "Application Auto Scaling API reference"
_SCHEDULE = re.compile(
    r"at\(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\)|rate\(\d+ (minute|hour|day)s?\)|cron\(\S+( \S+){5}\)"
)
_PREFIXES = {
    "sagemaker:variant:DesiredInstanceCount": (
        "SageMakerVariantInvocationsPerInstance",
        "SageMakerVariantConcurrentRequestsPerModelHighResolution",
    ),
}
_NEEDED = {"MetricName", "Namespace", "Statistic"}


def check_policy(request: dict[str, Any]) -> None:
    """Refuse a policy that names no metric, two, or one of something else.

    Sources: API reference, TargetTrackingScalingPolicyConfiguration, PredefinedMetricSpecification and
    CustomizedMetricSpecification ("conditional" members).
    """
    if request.get("PolicyType", "StepScaling") != "TargetTrackingScaling":
        return
    configuration = request.get("TargetTrackingScalingPolicyConfiguration")
    if configuration is None:
        raise _refused("TargetTrackingScalingPolicyConfiguration is required for TargetTrackingScaling")
    predefined, customized = (configuration.get(f"{kind}MetricSpecification") for kind in ("Predefined", "Customized"))
    if (predefined is None) == (customized is None):
        raise _refused("Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is required")
    allowed = _PREFIXES.get(request["ScalableDimension"])
    if predefined is not None and allowed is not None and predefined["PredefinedMetricType"] not in allowed:
        raise _refused(
            f"Predefined metric type {predefined['PredefinedMetricType']} is not valid for scalable dimension "
            f"{request['ScalableDimension']}; valid: {', '.join(allowed)}"
        )
    if customized is not None and "Metrics" not in customized and not customized.keys() >= _NEEDED:
        raise _refused(f"CustomizedMetricSpecification needs {', '.join(sorted(_NEEDED))}, or Metrics")
    if configuration["TargetValue"] <= 0:
        raise _refused("TargetValue must be greater than 0")


def check_schedule(action: dict[str, Any], target: dict[str, Any]) -> None:
    """Refuse a scheduled action without a time, or whose limits cannot hold (API reference, PutScheduledAction)."""
    if not _SCHEDULE.fullmatch(action.get("Schedule", "")):
        raise _refused(f"Invalid schedule expression: {action.get('Schedule')}", "PutScheduledAction")
    limits = action.get("ScalableTargetAction", {})
    if not limits:
        raise _refused("ScalableTargetAction needs MinCapacity or MaxCapacity", "PutScheduledAction")
    least, most = (limits.get(name, target[name]) for name in ("MinCapacity", "MaxCapacity"))
    if least > most:
        raise _refused(f"Maximum capacity {most} cannot be less than minimum capacity {least}", "PutScheduledAction")


def _refused(sentence: str, operation: str = "PutScalingPolicy") -> RefusedError:
    return RefusedError("ValidationException", sentence, source=f"{_API}, {operation}")
