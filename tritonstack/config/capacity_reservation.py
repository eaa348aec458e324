"""``capacity_reservation``: instances that an ML capacity reservation or a training plan holds for an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tritonstack.arns import Arn
from tritonstack.config.fields import Site
from tritonstack.errors import Location, Problem

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings

RESERVATION_PATTERN = r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:[0-9]{12}:(ml-reservation|training-plan)/[A-Za-z0-9._-]+$"
"""Its kinds: API reference, ProductionVariantCapacityReservationConfig; developer guide, "Using training plans for
SageMaker inference endpoints"."""
RESERVATION_CHARACTERS = 258
ONLY_RESERVED = "capacity-reservations-only"
"""The one CapacityReservationPreference that there is."""


def check_capacity_reservation(*, endpoint: EndpointSettings, location: Location, site: Site) -> Iterator[Problem]:
    """Check an endpoint's reservation against its region and instance types; ``location`` is the endpoint's."""
    if endpoint.capacity_reservation is None:
        return
    place, region = (*location, "capacity_reservation"), Arn.parse(endpoint.capacity_reservation).region
    if site.region not in (None, region):
        yield Problem(
            location=place, found=f"a reservation in {region}", allowed=f"one in the endpoint's region, {site.region}"
        )
    if endpoint.instance_types:
        yield Problem(
            location=place,
            found=f"a reservation with instance_types: {', '.join(endpoint.instance_types)}",
            allowed="`instance_type`, which must be the reservation's: instances start in it alone, on one type",
            advice="Name the reservation's type in instance_type, or remove capacity_reservation.",
        )
        return
    types = list(dict.fromkeys(each.instance_type for each in endpoint.variant_settings))
    if len(types) > 1:
        yield Problem(
            location=place,
            found=f"one reservation for variants on {' and '.join(types)}",
            allowed="variants of one instance type: an endpoint has one plan, whose type its variants must have "
            "(developer guide: training plans for inference endpoints)",
        )
