"""How long metrics are kept, and how often alarms are looked at: settings and an emulator of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tritonstack_local.emulator.cloudwatch.watching import PERIOD, Watching
from tests.tritonstack_local.emulator.running import Emulator, wait_until

DAY = 24 * 3600


def test_samples_are_kept_for_fifteen_days(tmp_path: Path) -> None:
    emulator = Emulator(tmp_path, TRITONSTACK_FLEETS="none", TRITONSTACK_ALARM_SECONDS="0.05").wait_ready()
    try:
        watching = Watching(emulator, "kept")
        watching.write(1, minutes_ago=5, metric="Old")
        emulator.advance(14 * DAY)
        watching.cloudwatch.put_metric_data(Namespace="kept", MetricData=[{"MetricName": "New", "Value": 1}])

        def names() -> list[str]:
            return sorted(
                metric["MetricName"] for metric in watching.cloudwatch.list_metrics(Namespace="kept")["Metrics"]
            )

        assert names() == ["New", "Old"]
        emulator.advance(DAY)
        wait_until(names, lambda left: left == ["New"])
    finally:
        assert emulator.stop() == 0


def test_alarms_can_be_looked_at_as_seldom_as_on_aws(tmp_path: Path) -> None:
    emulator = Emulator(tmp_path, TRITONSTACK_FLEETS="none", TRITONSTACK_ALARM_SECONDS=str(PERIOD)).wait_ready()
    try:
        watching = Watching(emulator, "seldom")
        watching.write(9)
        watching.put()
        assert watching.alarm()["StateValue"] == "INSUFFICIENT_DATA", "a minute has not passed"
        assert watching.state() == "ALARM", "moving the clock evaluates"
    finally:
        assert emulator.stop() == 0


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "often"])
def test_an_invalid_pause_ends_the_start_with_a_message(tmp_path: Path, seconds: str) -> None:
    emulator = Emulator(tmp_path, TRITONSTACK_ALARM_SECONDS=seconds)
    assert emulator.process.wait(timeout=30) == 2
    told = emulator.log.read_text()
    assert "Traceback" not in told
    assert "SECONDS" in told
