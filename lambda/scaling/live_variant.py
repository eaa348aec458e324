"""An endpoint's live variant, and the instance count that it was scaled to, kept while another replaces it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ..shared.clients import Aws, code_of, unless_missing
from .target import Wanted

WAIT_SECONDS, LOOK_SECONDS = 600, 5
CHANGING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
NOT_SERVING = frozenset({"Failed", "Deleting", "Creating", "OutOfService"})
COUNT_TAG = "tritonstack:scaled-to"
"""On the endpoint: ``<variant>/<instances>`` before a move, for the config of a move back has a count of its own."""


@dataclass(frozen=True)
class Live:
    """The variant that takes the requests, its desired instance count, and its config's initial one."""

    arn: str
    variant: str
    count: int
    begun_with: int


def settled_variant(aws: Aws, endpoint: str) -> Live | None:
    """The live variant once the endpoint changes no more, or after ten minutes: then CloudFormation's update fails."""
    until = time.monotonic() + WAIT_SECONDS
    while _describe(aws, endpoint).get("EndpointStatus") in CHANGING and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return live_variant(aws, endpoint)


def live_variant(aws: Aws, endpoint: str) -> Live | None:
    """The variant that takes the requests; None where there is no endpoint, or none that ever served."""
    found = _describe(aws, endpoint)
    if found.get("EndpointStatus", "Failed") in NOT_SERVING or not found.get("ProductionVariants"):
        return None
    variant = found["ProductionVariants"][0]
    config = aws.sagemaker.describe_endpoint_config(EndpointConfigName=found["EndpointConfigName"])
    begun = [each for each in config["ProductionVariants"] if each["VariantName"] == variant["VariantName"]]
    count = variant["DesiredInstanceCount"]
    return Live(
        found["EndpointArn"],
        variant["VariantName"],
        count,
        begun[0].get("InitialInstanceCount", count) if begun else count,
    )


def _describe(aws: Aws, endpoint: str) -> Mapping[str, Any]:
    return unless_missing(aws.sagemaker.describe_endpoint, EndpointName=endpoint) or {}


def remember(aws: Aws, live: Live, *, back_to: str) -> None:
    """Record the count of the variant that is replaced, or of the one before it, if that comes back."""
    variant, count = _remembered(aws, live)  # of the live variant where an event is repeated
    record(aws, live, max(live.count, count if variant in {back_to, live.variant} else 0))


def forget(aws: Aws, live: Live) -> None:
    """Drop the recorded count of a variant that was not replaced: it would count at the next move, long after."""
    variant, count = _remembered(aws, live)
    if variant == live.variant and 0 < count <= live.count:
        record(aws, live, 0)


def record(aws: Aws, live: Live, count: int) -> None:
    """Record a count of the live variant; 0 drops any."""
    aws.sagemaker.add_tags(ResourceArn=live.arn, Tags=[{"Key": COUNT_TAG, "Value": f"{live.variant}/{count}"}])


def scale_as_before(aws: Aws, wanted: Wanted, live: Live) -> None:
    """Scale a variant that replaced another to no fewer instances than that had, within its own limits."""
    count = min(_remembered(aws, live)[1], wanted.maximum)
    if live.count < count:
        scaled = {"VariantName": live.variant, "DesiredInstanceCount": count}
        try:
            aws.sagemaker.update_endpoint_weights_and_capacities(
                EndpointName=wanted.endpoint,
                DesiredWeightsAndCapacities=[scaled],  # type: ignore[list-item]  # a dictionary of the right members
            )
        except ClientError as error:
            if code_of(error) != "ResourceLimitExceeded":
                raise
            # The variant serves, and its policies scale it as far as the quota allows.
            print(json.dumps({"not scaled": live.variant, "to": count, "because": str(error)}))
            return
        print(json.dumps({"scaled": live.variant, "from": live.count, "to": count}))


def _remembered(aws: Aws, live: Live) -> tuple[str, int]:
    """Variant and instances as recorded; an empty name and 0 where none is."""
    tags = aws.sagemaker.list_tags(ResourceArn=live.arn, MaxResults=100)["Tags"]
    found = [tag["Value"] for tag in tags if tag["Key"] == COUNT_TAG]
    variant, _, count = found[0].partition("/") if found else ("", "", "0")
    return variant, int(count)
