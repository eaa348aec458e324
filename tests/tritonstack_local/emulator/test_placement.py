"""Where copies of inference components go, and instances that come and end with them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonstack_local.emulator.sagemaker.placement import Demand, Instance, Limits, Needs, Placement, room_of

ONE_GPU, FOUR_GPUS = room_of("ml.g5.xlarge"), room_of("ml.g5.12xlarge")
MINUTE = 60.0


def placement(*, room: Needs = FOUR_GPUS, minimum: int = 0, maximum: int = 4, started: int = 1) -> Placement:
    limits = Limits(minimum=minimum, maximum=maximum)
    return Placement(room=room, limits=limits, instances=[Instance() for _ in range(started)])


def copies(
    component: str, count: int, *, gpus: float = 1, memory_mb: int = 1024, strategy: str | None = None
) -> Demand:
    return Demand(component=component, copies=count, needs=Needs(gpus=gpus, memory_mb=memory_mb), strategy=strategy)


def running(placed: Placement) -> list[dict[str, int]]:
    return [dict(instance.copies) for instance in placed.instances]


@pytest.mark.parametrize(
    ("instance_type", "memory_mb", "accepted"),
    [
        ("ml.g5.xlarge", 1024, True),
        ("ml.g5.xlarge", 4096, False),
        ("ml.g5.2xlarge", 10409, True),
        ("ml.g4dn.2xlarge", 8192, True),
        ("ml.g5.4xlarge", 10240, True),
        ("ml.g5.12xlarge", 104096, True),
        ("ml.g5.24xlarge", 49152, True),
        ("ml.g5.48xlarge", 204800, True),
    ],
)
def test_the_memory_of_a_type_agrees_with_the_sizes_seen_at_aws(
    instance_type: str, memory_mb: int, accepted: bool
) -> None:
    assert Needs(gpus=1, memory_mb=memory_mb).fits(room_of(instance_type)) is accepted


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("SPREAD", [{"a": 1, "b": 1}, {"a": 1, "b": 1}]),
        (None, [{"a": 1, "b": 1}, {"a": 1, "b": 1}]),
        ("BINPACK", [{"a": 2, "b": 2}, {}]),
    ],
)
def test_copies_spread_over_instances_or_fill_one_after_the_other(
    strategy: str | None, expected: list[dict[str, int]]
) -> None:
    placed = placement(started=2)
    assert placed.place([copies("a", 2, strategy=strategy), copies("b", 2, strategy=strategy)], now=0) == {}
    assert running(placed) == expected


def test_an_instance_starts_only_where_no_running_one_has_room_and_never_beyond_the_limit() -> None:
    placed = placement(room=ONE_GPU, maximum=2)
    assert placed.place([copies("a", 3)], now=0) == {"a": 1}
    assert running(placed) == [{"a": 1}, {"a": 1}]


def test_a_copy_that_no_instance_can_hold_starts_none() -> None:
    placed = placement(room=ONE_GPU)
    assert placed.place([copies("a", 1, gpus=2)], now=0) == {"a": 1}
    assert len(placed.instances) == 1


def test_a_type_without_capacity_gets_no_further_instance() -> None:
    placed = placement(room=ONE_GPU)
    placed.may_start = lambda: False
    assert placed.place([copies("a", 2)], now=0) == {"a": 1}


def test_idle_instances_end_one_a_cooldown_down_to_the_minimum() -> None:
    placed = placement(room=ONE_GPU, minimum=1, started=0)
    placed.place([copies("a", 4)], now=0)
    placed.place([copies("a", 0)], now=MINUTE)
    ended = [placed.release(now=minute * MINUTE) for minute in range(100)]
    assert [minute for minute, count in enumerate(ended) if count] == [21, 41, 61]
    assert len(placed.instances) == 1


def test_a_copy_elsewhere_keeps_its_own_instance_alone() -> None:
    placed = placement(room=ONE_GPU, started=0)
    placed.place([copies("a", 1), copies("b", 1)], now=0)
    placed.place([copies("a", 0), copies("b", 1)], now=0)
    assert placed.release(now=20 * MINUTE) == 1
    assert running(placed) == [{"b": 1}]


@given(
    steps=st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=3, unique_by=lambda each: each[0]),
        max_size=6,
    ),
    gpus=st.fixed_dictionaries({name: st.integers(1, 4) for name in "abc"}),
    strategy=st.sampled_from(["SPREAD", "BINPACK", None]),
    maximum=st.integers(1, 4),
)
def test_no_instance_is_overfull_none_is_beyond_the_limits_and_kept_copies_stay(
    steps: list[list[tuple[str, int]]], gpus: dict[str, int], strategy: str | None, maximum: int
) -> None:
    placed = placement(maximum=maximum)
    for number, wanted in enumerate(steps):
        before: dict[int, Counter[str]] = {id(each): Counter(each.copies) for each in placed.instances}
        demands = [copies(name, count, gpus=gpus[name], strategy=strategy) for name, count in wanted]
        lacking = placed.place(demands, now=number)
        assert len(placed.instances) <= max(maximum, 1)
        for name, count in wanted:
            assert placed.running(name) + lacking.get(name, 0) == count
        for instance in placed.instances:
            assert sum(gpus[name] * count for name, count in instance.copies.items()) <= FOUR_GPUS.gpus
            kept: dict[str, Any] = before.get(id(instance), Counter())
            for name, count in wanted:
                if count >= sum(each[name] for each in before.values()):
                    assert instance.copies[name] >= kept.get(name, 0), "a copy that is wanted was moved"
