"""How many instances a variant was scaled to, kept while another stands in its place."""

from __future__ import annotations

import json

from botocore.exceptions import ClientError

from ..shared.clients import code_of
from .live_variant import Live
from .services import Aws
from .wanted import Wanted

COUNT_TAG = "tritonstack:scaled-to"
"""On the endpoint: ``<variant>/<instances>`` before a move, for a config that is moved back to has its own count."""


def remember(aws: Aws, live: Live, *, back_to: str) -> None:
    """Write down to how many instances the variant that goes was scaled, or the one before it, if that comes back."""
    variant, count = _remembered(aws, live)  # of the live variant where an event is repeated
    _remember(aws, live, max(live.count, count if variant in {back_to, live.variant} else 0))


def forget(aws: Aws, live: Live) -> None:
    """A variant that never left has its instances: what was written down would count at the next move, long after."""
    variant, count = _remembered(aws, live)
    if variant == live.variant and 0 < count <= live.count:
        _remember(aws, live, 0)


def clear(aws: Aws, live: Live) -> None:
    """Nothing is kept of a variant that stays."""
    _remember(aws, live, 0)


def _remember(aws: Aws, live: Live, count: int) -> None:
    aws.sagemaker.add_tags(ResourceArn=live.arn, Tags=[{"Key": COUNT_TAG, "Value": f"{live.variant}/{count}"}])


def scale_as_before(aws: Aws, wanted: Wanted, live: Live) -> None:
    """A variant that came in place of another has no fewer instances than that had, within its own limits."""
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
            # The variant serves, and is scaled by its policies as far as the quota lets it.
            print(json.dumps({"not scaled": live.variant, "to": count, "because": str(error)}))
            return
        print(json.dumps({"scaled": live.variant, "from": live.count, "to": count}))


def _remembered(aws: Aws, live: Live) -> tuple[str, int]:
    """What ``remember`` wrote: variant and instances; nothing and 0 where it never did."""
    tags = aws.sagemaker.list_tags(ResourceArn=live.arn, MaxResults=100)["Tags"]
    found = [tag["Value"] for tag in tags if tag["Key"] == COUNT_TAG]
    variant, _, count = found[0].partition("/") if found else ("", "", "0")
    return variant, int(count)
