"""How many instances of each type an environment's endpoints need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tritonstack.settings import Endpoint


@dataclass(frozen=True, kw_only=True)
class InstanceNeed:
    """Instances of one type, or of all.

    Attributes:
        highest: the sum of the endpoints' greatest numbers.
        second_fleet: the largest of these: in an update the new fleet starts beside the old one, one endpoint at a
            time, as `cdk deploy` updates stacks.
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
    counts = [highest_count(endpoint) for endpoint in endpoints]
    return InstanceNeed(highest=sum(counts), second_fleet=max(counts, default=0), others=others)


def highest_count(endpoint: Endpoint) -> int:
    """The greatest number of instances that the endpoint can have: scaling's, a schedule's, or the initial one."""
    scaling = endpoint.scaling
    if scaling is None:
        return endpoint.initial_instance_count
    scheduled = [schedule.maximum or schedule.minimum or 0 for schedule in scaling.schedules]
    return max(scaling.maximum, endpoint.initial_instance_count, *scheduled)
