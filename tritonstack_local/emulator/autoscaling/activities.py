"""Scaling activities: changes of capacities and limits, as DescribeScalingActivities lists them."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Mapping
from typing import Any

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.autoscaling.scalable import Scalables
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import iso
from tritonstack_local.emulator.ministack_adapter.core import account_region_table
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.fleets import LIMIT

Request = dict[str, Any]
ScalableTarget = dict[str, Any]
_AGAIN_SECONDS = 60
"""After a failed activity: CloudWatch looks at an alarm once a minute, and a failed activity starts no cooldown."""
_KEY = ("ServiceNamespace", "ResourceId", "ScalableDimension")
logger = logging.getLogger("tritonstack.emulator.scaling")


class Activities:
    """Changes the instance counts of scalable targets, and lists the changes.

    The sentences are those of the user guide ("View scaling activities for a specified service") and, of a failure, of
    the SageMaker developer guide ("Check the status of a scaling activity").
    """

    def __init__(self, kinds: Scalables) -> None:
        """``kinds`` change the capacities."""
        self._kinds = kinds
        self._done = account_region_table()

    def set_count(self, target: ScalableTarget, *, before: int, after: int, cause: str) -> bool:
        """Give the target another capacity; whether it has it now."""
        kind, began = self._kinds[target["ScalableDimension"]], clock.now()
        try:
            failed = kind.scale(target["ResourceId"], after)
        except RefusedError as refusal:
            if refusal.code != LIMIT:  # an update began meanwhile: the next look is after it
                logger.warning("%s is not scaled: %s", target["ResourceId"], refusal)
                return False
            failed = str(refusal)
        self.add(target, f"desired {kind.noun} count to {after}", cause=cause, began=began, failed=failed, end=".")
        target["_failed_at" if failed else "_scaled_at"] = began
        if failed is None and before < after == target["MaxCapacity"]:
            _emit_scaled_to_max(target, before=before, began=began)
        return failed is None

    def add(
        self, target: ScalableTarget, what: str, *, cause: str, began: float, failed: str | None = None, end: str = ""
    ) -> None:
        """List an activity: ``what`` was set to which value, and why it failed if it did."""
        done = f"Successfully set {what}" + (". Change successfully fulfilled by sagemaker." if end else "")
        if failed is not None:
            logger.warning("%s is not scaled: %s", target["ResourceId"], failed)
        identity = str(uuid.uuid4())
        self._done[identity] = {
            "ActivityId": identity,
            **{name: target[name] for name in _KEY},
            "Description": f"Setting {what}{end}",
            "Cause": cause,
            "StartTime": began,
            "EndTime": clock.now(),
            "StatusCode": "Successful" if failed is None else "Failed",
            "StatusMessage": done if failed is None else f"Failed to set {what}. Reason: {failed}",
        }

    def describe_scaling_activities(self, request: Request) -> dict[str, Any]:
        """DescribeScalingActivities, the newest first, in one page."""
        wanted = {name: request[name] for name in _KEY if name in request}
        found = [activity for activity in self._done.values() if wanted.items() <= activity.items()]
        return {"ScalingActivities": found[::-1]}


def failed_lately(target: ScalableTarget) -> bool:
    """Whether an activity of the target failed so recently that it is not tried again."""
    return bool(clock.now() < target.get("_failed_at", -math.inf) + _AGAIN_SECONDS)


def _emit_scaled_to_max(target: Mapping[str, Any], *, before: int, began: float) -> None:
    """The one event of Application Auto Scaling: "Event for state change: scaled to max" (its user guide)."""
    service_events.emit(
        "aws.application-autoscaling",
        "Application Auto Scaling Scaling Activity State Change",
        {
            "startTime": iso(began),
            "endTime": iso(clock.now()),
            "newDesiredCapacity": target["MaxCapacity"],
            "oldDesiredCapacity": before,
            **{name[0].lower() + name[1:]: target[name] for name in ("MinCapacity", "MaxCapacity", *_KEY)},
            "statusCode": "Successful",
            "scaledToMax": True,
            "direction": "scale-out",
        },
        [],
    )
