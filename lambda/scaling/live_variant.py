"""The variant that takes the calls now, whatever brought it here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from .services import Aws

WAIT_SECONDS, LOOK_SECONDS = 600, 5
CHANGING = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
NOT_SERVING = frozenset({"Failed", "Deleting", "Creating", "OutOfService"})


@dataclass(frozen=True)
class Live:
    """The variant that takes the calls, its desired number of instances, and the one that its config began with."""

    arn: str
    variant: str
    count: int
    begun_with: int


def settled_variant(aws: Aws, endpoint: str) -> Live | None:
    """The live variant once the endpoint changes no more, or after ten minutes: then CloudFormation's update tells."""
    until = time.monotonic() + WAIT_SECONDS
    while _describe(aws, endpoint).get("EndpointStatus") in CHANGING and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return live_variant(aws, endpoint)


def live_variant(aws: Aws, endpoint: str) -> Live | None:
    """The variant that takes the calls; None where there is no endpoint, or none that ever served."""
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
    try:
        return aws.sagemaker.describe_endpoint(EndpointName=endpoint)
    except ClientError as error:
        if "Could not find" not in error.response["Error"]["Message"]:  # SageMaker has no code of its own for it
            raise
        return {}
