"""A local AWS without fleets, which holds an hour of metrics of two endpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.monitoring.recorded import hour
from tests.monitoring.settings_of import ENDPOINTS, environment
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.client.latency_metric import Called, LatencyMetric
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack.monitoring.graphs import Dashboard


@pytest.fixture(scope="session")
def recorded_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator; ``dev-digits`` has what a CPU writes, ``dev-single`` what an instance with GPUs would."""
    emulator = Emulator(tmp_path_factory.mktemp("recorded"), TRITONSTACK_FLEETS="none").wait_ready()
    cloudwatch = emulator.client("cloudwatch")
    for namespace, data in (
        *hour(endpoint="dev-digits", variant="g4dn-xlarge", multi_model=True),
        *hour(endpoint="dev-single", variant="g5-12xlarge", multi_model=False, gpu=True),
    ):
        cloudwatch.put_metric_data(Namespace=namespace, MetricData=data)
    latencies = LatencyMetric(lambda: cloudwatch, now=lambda: time.time() - 120)
    for endpoint, variant in (("dev-digits", "g4dn-xlarge"), ("dev-single", "g5-12xlarge")):
        latencies.add(Called(endpoint=endpoint, variant=variant, model="digits-onnx"), 12.5)
    latencies.publish()
    yield emulator
    assert emulator.stop() == 0, emulator.log.read_text()


@pytest.fixture
def recorded_dashboard() -> Dashboard:
    """The definition of those two endpoints; there are no builds."""
    return dashboard_of(environment(ENDPOINTS["scaled"], ENDPOINTS["single-model, four GPUs"]), projects=None)
