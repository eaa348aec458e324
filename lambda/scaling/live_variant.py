"""An endpoint's live variants, and the instance counts that they were scaled to, kept while others replace them."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from ..shared.clients import Aws, code_of, unless_missing
from .target import WantedVariant

WAIT_SECONDS, LOOK_SECONDS = 600, 5
CHANGING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
NOT_SERVING = frozenset({"Failed", "Deleting", "Creating", "OutOfService"})
COUNT_TAG = "tritonstack:scaled-to"
"""On the endpoint: ``<variant>/<instances>`` of each that a move replaces; the config of a move back has its own."""


@dataclass(frozen=True)
class Live:
    """A variant that takes requests, its desired instance count, and its config's initial one."""

    arn: str  # of the endpoint
    variant: str
    count: int
    begun_with: int


def settled_variants(aws: Aws, endpoint: str) -> dict[str, Live]:
    """Live variants once the endpoint no longer changes, or after ten minutes: then CloudFormation's update fails."""
    until = time.monotonic() + WAIT_SECONDS
    while _describe(aws, endpoint).get("EndpointStatus") in CHANGING and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return live_variants(aws, endpoint)


def live_variants(aws: Aws, endpoint: str) -> dict[str, Live]:
    """Name → variant that gets requests; none where there is no endpoint, or one that never served."""
    found = _describe(aws, endpoint)
    if found.get("EndpointStatus", "Failed") in NOT_SERVING or not found.get("ProductionVariants"):
        return {}
    config = aws.sagemaker.describe_endpoint_config(EndpointConfigName=found["EndpointConfigName"])
    begun = {each["VariantName"]: each.get("InitialInstanceCount") for each in config["ProductionVariants"]}
    return {
        each["VariantName"]: Live(
            found["EndpointArn"],
            each["VariantName"],
            each["DesiredInstanceCount"],
            begun.get(each["VariantName"]) or each["DesiredInstanceCount"],
        )
        for each in found["ProductionVariants"]
    }


def _describe(aws: Aws, endpoint: str) -> Mapping[str, Any]:
    return unless_missing(aws.sagemaker.describe_endpoint, EndpointName=endpoint) or {}


def remember(aws: Aws, goes: Sequence[Live], *, back_to: Collection[str]) -> None:
    """Record the counts of the variants that are replaced, or of those before them, if these come back."""
    if goes:
        found = _remembered(aws, goes[0])  # of the same variants where an event is repeated
        before = max((count for name, count in found.items() if name in back_to), default=0)
        counts = {each.variant: max(each.count, found.get(each.variant, 0), before) for each in goes}
        _record(aws, goes[0], counts)


def forget(aws: Aws, live: Mapping[str, Live]) -> None:
    """Drop the recorded counts of variants that were not replaced: a much later replacement would use them."""
    first = next(iter(live.values()))
    found = _remembered(aws, first)
    if any(found.values()) and all(name in live and count <= live[name].count for name, count in found.items()):
        drop(aws, first)


def drop(aws: Aws, live: Live) -> None:
    """Drop every recorded count."""
    _record(aws, live, {live.variant: 0})


def _record(aws: Aws, live: Live, counts: Mapping[str, int]) -> None:
    text = " ".join(f"{variant}/{count}" for variant, count in counts.items())
    aws.sagemaker.add_tags(ResourceArn=live.arn, Tags=[{"Key": COUNT_TAG, "Value": text}])


def scale_as_before(aws: Aws, wanted: WantedVariant, live: Live) -> None:
    """Scale a variant that replaced others to no fewer instances than these had, within its own limits."""
    count = min(max(_remembered(aws, live).values(), default=0), wanted.maximum)
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


def _remembered(aws: Aws, live: Live) -> dict[str, int]:
    """Variant → instances as recorded; empty where none is."""
    tags = aws.sagemaker.list_tags(ResourceArn=live.arn, MaxResults=100)["Tags"]
    texts = [each for tag in tags if tag["Key"] == COUNT_TAG for each in tag["Value"].split()]
    return {variant: int(count) for variant, _, count in (each.partition("/") for each in texts)}
