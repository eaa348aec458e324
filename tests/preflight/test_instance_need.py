"""How many instances endpoints need: at maximum, and while one of them is updated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.preflight.subjects import served
from tritonstack.preflight.quotas import instance_need

LOUD = {"accept_multi_model": True, "wait_seconds": 600, "maximum_execution_minutes": 480}


@pytest.mark.parametrize(
    ("rollout", "added"),
    [
        (None, 10),
        ({"kind": "canary", "size_instances": 2, **LOUD}, 10),
        ({"kind": "linear", "size_percent": 50, **LOUD}, 10),
        ({"kind": "rolling", "size_percent": 20, **LOUD}, 2),
        ({"kind": "rolling", "size_instances": 3, **LOUD}, 3),
    ],
)
def test_a_second_fleet_or_a_rolling_batch(tmp_path: Path, rollout: dict[str, Any] | None, added: int) -> None:
    what = served(tmp_path, {"initial_instance_count": 10, "rollout": rollout})
    need = instance_need(what.environment.endpoints, others=4)
    assert (need.highest, need.second_fleet, need.total) == (10, added, 14 + added)


def test_one_endpoint_is_updated_at_a_time(tmp_path: Path) -> None:
    what = served(tmp_path, {"initial_instance_count": 3}, {"initial_instance_count": 5})
    need = instance_need(what.environment.endpoints, others=0)
    assert (need.highest, need.second_fleet) == (8, 5)
    assert instance_need((), others=7).total == 7
