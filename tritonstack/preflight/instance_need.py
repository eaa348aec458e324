"""How many instances of each type an environment's endpoints need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tritonstack.config import Endpoint


@dataclass(frozen=True, kw_only=True)
class InstanceNeed:
    """Instances of one type, or of all.

    Attributes:
        highest: the sum of the endpoints' greatest numbers.
        second_fleet: the most that one endpoint's update adds: the new fleet starts beside the old one, a rolling
            one a batch at a time. Endpoints are updated one after the other, as `cdk deploy` does.
        others: what other endpoints of the account have now.
    """

    highest: int
    second_fleet: int
    others: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.highest + self.second_fleet + self.others

    def __str__(self) -> str:
        return (
            f"{self.total} instances: {self.highest} at maximum + {self.second_fleet} of a new fleet during an update"
            f" + {self.others} of other endpoints now"
        )


def instance_need(endpoints: Sequence[Endpoint], *, others: int) -> InstanceNeed:
    """What these endpoints need beside ``others`` instances."""
    return InstanceNeed(
        highest=sum(highest_count(endpoint) for endpoint in endpoints),
        second_fleet=max((update_count(endpoint) for endpoint in endpoints), default=0),
        others=others,
    )


def update_count(endpoint: Endpoint) -> int:
    """The instances that an update adds for a while, at the greatest number: as many again, or a rolling batch."""
    count = highest_count(endpoint)
    if endpoint.rollout is None or endpoint.rollout.kind != "rolling":
        return count
    return min(count, math.ceil(endpoint.rollout.step_instances(count)))


def highest_count(endpoint: Endpoint) -> int:
    """The greatest number of instances that the endpoint can have: scaling's, a schedule's, or the initial one."""
    scaling = endpoint.scaling
    if scaling is None:
        return endpoint.initial_instance_count
    scheduled = [schedule.maximum or schedule.minimum or 0 for schedule in scaling.schedules]
    return max(scaling.maximum, endpoint.initial_instance_count, *scheduled)
