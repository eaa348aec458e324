"""Scaling activities: changes of instance counts and limits, as DescribeScalingActivities lists them."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import get_account_id, get_region

from tritonstack_local.emulator import service_events
from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.cloudwatch.alarm_evaluation import iso
from tritonstack_local.emulator.request_validation import RefusedError
from tritonstack_local.emulator.sagemaker.fleets import LIMIT

Request = dict[str, Any]
Target = dict[str, Any]
_AGAIN_SECONDS = 60
"""After a failed activity: CloudWatch looks at an alarm once a minute, and a failed activity starts no cooldown."""
_KEY = ("ServiceNamespace", "ResourceId", "ScalableDimension")
logger = logging.getLogger("tritonstack.emulator.scaling")


class Activities:
    """Changes the instance counts of scalable targets, and lists what was done.

    The sentences are those of the user guide ("View scaling activities for a specified service") and, of a failure, of
    the SageMaker developer guide ("Check the status of a scaling activity").
    """

    def __init__(self, *, scale: Callable[[Request], Any], failure: Callable[[str], str | None]) -> None:
        """``scale``: UpdateEndpointWeightsAndCapacities. ``failure``: an endpoint's FailureReason, by its name."""
        self._scale, self._failure = scale, failure
        self._done: list[dict[str, Any]] = []

    def clear(self) -> None:
        """Forget every activity."""
        self._done.clear()

    def set_count(self, target: Target, *, before: int, after: int, cause: str) -> bool:
        """Give the target's variant another number of instances; whether it has it now."""
        _, endpoint, _, variant = target["ResourceId"].split("/")
        began = clock.now()
        try:
            wanted = [{"VariantName": variant, "DesiredInstanceCount": after}]
            self._scale({"EndpointName": endpoint, "DesiredWeightsAndCapacities": wanted})
            failed = self._failure(endpoint)
        except RefusedError as refusal:
            if refusal.code != LIMIT:  # an update began meanwhile: the next look is after it
                logger.warning("%s is not scaled: %s", target["ResourceId"], refusal)
                return False
            failed = str(refusal)
        self.add(target, f"desired instance count to {after}", cause=cause, began=began, failed=failed, end=".")
        target["_failed_at" if failed else "_scaled_at"] = began
        if failed is None and before < after == target["MaxCapacity"]:
            _emit_scaled_to_max(target, before=before, began=began)
        return failed is None

    def add(
        self, target: Target, what: str, *, cause: str, began: float, failed: str | None = None, end: str = ""
    ) -> None:
        """List an activity: ``what`` was set to which value, and why it failed if it did."""
        done = f"Successfully set {what}" + (". Change successfully fulfilled by sagemaker." if end else "")
        if failed is not None:
            logger.warning("%s is not scaled: %s", target["ResourceId"], failed)
        self._done.append(
            {
                "ActivityId": str(uuid.uuid4()),
                **{name: target[name] for name in _KEY},
                "Description": f"Setting {what}{end}",
                "Cause": cause,
                "StartTime": began,
                "EndTime": clock.now(),
                "StatusCode": "Successful" if failed is None else "Failed",
                "StatusMessage": done if failed is None else f"Failed to set {what}. Reason: {failed}",
                "_scope": (get_account_id(), get_region()),
            }
        )

    def describe(self, request: Request) -> dict[str, Any]:
        """DescribeScalingActivities, the newest first, in one page."""
        wanted = {name: request[name] for name in _KEY if name in request}
        found = [
            {name: value for name, value in activity.items() if name != "_scope"}
            for activity in reversed(self._done)
            if activity["_scope"] == (get_account_id(), get_region()) and wanted.items() <= activity.items()
        ]
        return {"ScalingActivities": found}


def failed_lately(target: Target) -> bool:
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
