"""Several instances: routing, scaling, and what is paid."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.tritonstack_capacity.simulation.fleets import (
    KIND,
    calls,
    fleet,
    table,
)
from tritonstack.config.scaling import Scaling
from tritonstack_capacity.simulation.fleet import simulate
from tritonstack_capacity.simulation.instance import LOAD, Happening
from tritonstack_capacity.simulation.scenario import Autoscaling, Routing
from tritonstack_capacity.simulation.trace import ModelKind, Trace

SPEED = Autoscaling(metric_delay_seconds=30, startup_seconds=200)


def steady(*rates: float, minutes: int) -> Trace:
    """Calls of model 0 at equal distances: so many a minute for so many minutes, one rate after the other."""
    times: list[float] = []
    for place, rate in enumerate(rates):
        count = int(rate * minutes)
        times += [60.0 * minutes * (place + (number + 0.5) / count) for number in range(count)]
    return Trace(
        times=np.array(times), models=np.zeros(len(times), dtype=np.int64), seconds=60.0 * minutes * len(rates)
    )


def scaled(
    scaling: Scaling, *rates: float, minutes: int, speed: Autoscaling = SPEED, kind: ModelKind = KIND, **how: Any
) -> Happening:
    """An autoscaled fleet of one model at these rates, one after the other."""
    return simulate(fleet(scaling=scaling, speed=speed, **how), table(kind), steady(*rates, minutes=minutes), seed=0)


def test_the_least_outstanding_instance_is_taken() -> None:
    slow = replace(KIND, fixed=10.0)
    trace = calls(*[(1.0 + place, 0) for place in range(4)])
    happening = simulate(fleet(count=4, routing="least_outstanding"), table(slow), trace, seed=0)
    assert list(happening.calls.latencies) == pytest.approx([10.0] * 4)  # none waits for another


def test_instances_are_added_after_three_late_values_above_the_target_and_their_start() -> None:
    scaling = Scaling(minimum=1, maximum=10, invocations_per_instance=100)
    happening = scaled(scaling, 60, 360, minutes=20)
    changes = [(each.seconds, each.serving, each.paid) for each in happening.fleet]
    # The rate changes at 1200. Three full minutes end at 1380, the last value comes 30 s later: 4 for 360 calls.
    assert changes[:3] == [(0.0, 1, 1), (1410.0, 1, 4), (1610.0, 2, 4)]
    assert max(each.serving for each in happening.fleet) == 4


def test_instances_go_after_fifteen_quiet_periods_and_the_cooldown() -> None:
    scaling = Scaling(minimum=1, maximum=10, invocations_per_instance=100, scale_in_cooldown_seconds=60)
    happening = scaled(scaling, 360, 60, minutes=20, count=4)
    first = happening.fleet[1]
    # 360 calls on 4 instances are 90 each: not below nine tenths of the target. From 1200 on they are 15.
    assert (first.seconds, first.serving) == (1200.0 + 15 * 60 + 30, 1)
    assert happening.fleet[-1].paid == 1


SHARP = Autoscaling(metric_delay_seconds=0, startup_seconds=10, periods_out=1, periods_in=1)


def changes_of(scaling: Scaling, *rates: float) -> list[tuple[float, int]]:
    """When how many instances are paid, at a rate a minute each, decided by the last minute."""
    fleet = scaled(scaling, *rates, minutes=1, speed=SHARP).fleet
    return [(after.seconds, after.paid) for before, after in pairwise(fleet) if after.paid != before.paid]


def test_a_removal_waits_for_the_cooldown_of_the_removal_before_and_for_no_addition() -> None:
    scaling = Scaling(
        minimum=1, maximum=9, invocations_per_instance=100, scale_in_cooldown_seconds=300, scale_out_cooldown_seconds=0
    )
    added_then_removed = changes_of(scaling, 400, 300, 200, 200, 200, 200, 200, 200)
    assert added_then_removed == [(60.0, 4), (120.0, 3), (420.0, 2)]
    # An addition during a removal's cooldown comes at once, and ends that cooldown (API reference, ScaleInCooldown).
    assert changes_of(scaling, 400, 300, 500, 200) == [(60.0, 4), (120.0, 3), (180.0, 5), (240.0, 2)]


@pytest.mark.parametrize(
    ("targets", "expected"),
    [({"gpu_utilization": 50.0}, 4), ({"concurrency": 0.5}, 4), ({"invocations_per_instance": 1000.0}, 1)],
)
def test_each_target_scales_by_what_it_measures(targets: dict[str, float], expected: int) -> None:
    """Two calls a second of 0.9 s each: 1.8 under way, 180 % of a GPU that does one at once, 120 calls a minute."""
    busy = replace(KIND, fixed=0.9, copies=4)
    scaling = Scaling(minimum=1, maximum=10, **targets)  # type: ignore[arg-type]  # a test names the fields
    executions = 1 if "gpu_utilization" in targets else 4
    routing: Routing = "least_outstanding"
    happening = scaled(scaling, 120, minutes=60, kind=busy, executions=executions, routing=routing)
    assert happening.fleet[-1].serving == expected


def test_a_removed_instance_finishes_its_calls_and_is_paid_until_then() -> None:
    slow = replace(KIND, fixed=400.0, copies=400)
    scaling = Scaling(minimum=1, maximum=2, invocations_per_instance=100, scale_in_cooldown_seconds=0)
    happening = scaled(scaling, 10, minutes=40, kind=slow, count=2, executions=400)
    assert list(happening.calls.latencies) == pytest.approx([400.0] * 400)
    removal = next(each for each in happening.fleet if each.serving == 1)
    end = next(each for each in happening.fleet if each.paid == 1)
    assert removal.paid == 2
    assert end.seconds - removal.seconds > 300


def test_calls_of_a_model_go_where_it_is_loaded_until_there_are_many() -> None:
    slow = replace(KIND, fixed=10.0, copies=4)
    trace = calls((1.0, 0), (2.0, 0), (2.5, 1), (3.0, 0), (4.0, 0), (5.0, 0))
    happening = simulate(
        fleet(count=3, executions=4, routing="loaded", spill_calls=3), table(slow, KIND), trace, seed=0
    )
    _, models, instances = happening.events.of_kind(LOAD)
    homes = dict(zip(models.tolist()[:2], instances.tolist()[:2], strict=True))
    assert models.tolist() == [0, 1, 0]  # the fifth call of model 0 finds three in progress that met it loaded
    assert len({homes[0], homes[1], int(instances[2])}) == 3  # each new one on the idlest
