"""What load is put on an endpoint: so many users, so many calls a second, or users that grow in phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Arrivals = Literal["poisson", "even"]
SECONDS_A_MINUTE = 60.0
SHORTEST_STEP = 1e-6
"""Seconds. What is left of a phase by rounding alone is no step."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """A closed loop: each user calls again as soon as it is answered."""

    count: int

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"{self.count} user{'' if self.count == 1 else 's'}"


@dataclass(frozen=True, kw_only=True)
class Rate:
    """An open loop: calls begin when they are due, whether the ones before are answered or not.

    Attributes:
        per_second: how many calls are due in a second, on average.
        arrivals: ``poisson``: independent of each other, as those of many callers are; ``even``: one like another.
    """

    per_second: float
    arrivals: Arrivals = "poisson"

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"{self.per_second:g}/s {self.arrivals}"


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of a ramp, with the members of Inference Recommender's ``Phase``.

    Attributes:
        initial_users: with which it begins.
        users_per_minute: how many come to them.
        seconds: how long it lasts.
    """

    initial_users: int
    users_per_minute: float
    seconds: float

    @property
    def name(self) -> str:
        """``2+2:1500``, as the command line takes it."""
        return f"{self.initial_users}+{self.users_per_minute:g}:{self.seconds:g}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A part of a ramp with the same number of users. Seconds are counted from the ramp's beginning."""

    users: int
    begin: float
    end: float


def steps(phases: tuple[Phase, ...]) -> tuple[Step, ...]:
    """The parts of a ramp, in order and without a gap."""
    found: list[Step] = []
    begin = 0.0
    for phase in phases:
        end = begin + phase.seconds
        gap = SECONDS_A_MINUTE / phase.users_per_minute if phase.users_per_minute else phase.seconds
        added, at = 0, begin
        while at < end:
            following = begin + (added + 1) * gap
            following = end if following > end - SHORTEST_STEP else following
            found.append(Step(users=phase.initial_users + added, begin=at, end=following))
            added, at = added + 1, following
        begin = end
    return tuple(found)


Load = Users | Rate
