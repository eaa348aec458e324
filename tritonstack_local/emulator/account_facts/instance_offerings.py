"""EC2's DescribeInstanceTypeOfferings, which MiniStack lacks, by availability zone.

A stand-in: every zone has the GPU types that the catalogue lists for the region.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from ministack.core.responses import get_region
from ministack.services import ec2

from tritonstack.catalogue import load_catalogue

Answer = tuple[int, dict[str, str], Any]
_ZONES = "abc"
_LOCATION = "availability-zone"


def install() -> None:
    """Add the operation to MiniStack's."""
    ec2._ACTION_MAP["DescribeInstanceTypeOfferings"] = _describe


def _describe(parameters: dict[str, Any]) -> Answer:
    if ec2._p(parameters, "LocationType") != _LOCATION:
        return _refused(f"the local AWS has LocationType {_LOCATION} alone")
    filters = ec2._parse_filters(parameters)
    unknown = set(filters) - {"instance-type", "location"}
    if unknown:
        return _refused(f"The filter '{min(unknown)}' is invalid")
    region = get_region()
    rows = [
        (name.removeprefix("ml."), f"{region}{letter}")
        for name, row in sorted(load_catalogue().instances.items())
        if region in row.regions
        for letter in _ZONES
    ]
    items = "".join(
        f"<item><instanceType>{escape(name)}</instanceType><locationType>{_LOCATION}</locationType>"
        f"<location>{zone}</location></item>"
        for name, zone in rows
        if name in filters.get("instance-type", [name]) and zone in filters.get("location", [zone])
    )
    answer: Answer = ec2._xml(
        200, "DescribeInstanceTypeOfferingsResponse", f"<instanceTypeOfferingSet>{items}</instanceTypeOfferingSet>"
    )
    return answer


def _refused(sentence: str) -> Answer:
    answer: Answer = ec2._error("InvalidParameterValue", sentence, 400)
    return answer
