"""``metrics``: what SageMaker publishes of an endpoint (MetricsConfig): dimensions, interval, OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tritonstack.config.fields import SettingsModel
from tritonstack.errors import Location, Problem

if TYPE_CHECKING:
    from tritonstack.config.endpoint import EndpointSettings
    from tritonstack.config.scaling import Scaling

MINUTE = 60
"""Seconds: alarms of requests, and target tracking of a utilization, read a figure for each."""
UTILIZATION_TARGETS = ("gpu_utilization", "cpu_utilization", "gpu_memory")
"""Targets of ``scaling`` that read what instances publish at ``metrics.seconds``."""


class EndpointMetrics(SettingsModel):
    """What SageMaker publishes of an endpoint at CloudWatch (``MetricsConfig`` of its configuration).

    Sources: API reference, MetricsConfig; developer guide, "Amazon SageMaker AI enhanced metrics for inference
    endpoints" and "Getting started with detailed observability".
    """

    detailed: bool = Field(
        default=False,
        description="Detailed observability: OpenTelemetry metrics of each GPU and host and of the container's "
        "Prometheus endpoint, charged by the gigabyte and queried with PromQL. SageMaker's own default is true, for "
        "configurations made after 17 June 2026. That it finds Triton's metrics (container.allow_metrics) is "
        "UNVERIFIED.",
    )
    enhanced: bool = Field(
        default=False,
        description="Metrics of each instance (InstanceId) and of each GPU (AcceleratorId) as well, each charged as a "
        "metric of its own; the dashboard shows them. AWS's page names single-model endpoints; on a multi-model "
        "endpoint it is UNVERIFIED.",
    )
    seconds: Literal[10, 30, 60, 120, 180, 240, 300] = Field(
        default=60,
        description="Interval of the utilization metrics, and with `enhanced` also of the request metrics, seconds. "
        "CloudWatch keeps figures of less than a minute for three hours. More than 60 neither with `enhanced` nor "
        "with a utilization target of `scaling`, whose alarms need a figure each minute.",
    )


def check_metrics(*, endpoint: EndpointSettings, location: Location) -> Iterator[Problem]:
    """Refuse an interval at which alarms or scaling of the endpoint miss figures; ``location`` is the endpoint's."""
    metrics = endpoint.metrics
    if metrics is None or metrics.seconds <= MINUTE:
        return
    scaled = [f"scaling.{name}" for each in _scalings(endpoint) for name in UTILIZATION_TARGETS if name in each.targets]
    readers = (["enhanced: true"] if metrics.enhanced else []) + list(dict.fromkeys(scaled))
    if readers:
        yield Problem(
            location=(*location, "metrics", "seconds"),
            found=f"{metrics.seconds} together with {' and '.join(readers)}",
            allowed=f"10, 30 or {MINUTE}: alarms of requests and target tracking read a figure each minute",
            advice="Set seconds: 60, or leave it out.",
        )


def _scalings(endpoint: EndpointSettings) -> list[Scaling]:
    return [each.scaling for each in endpoint.variant_settings if each.scaling is not None]


def metrics_warnings(endpoint: EndpointSettings) -> tuple[str, ...]:
    """What the endpoint's ``metrics`` will not do, and what no page of AWS confirms of them."""
    metrics = endpoint.metrics
    found: list[str] = []
    if metrics is None:
        found.append(
            "metrics: null leaves SageMaker its own defaults: detailed observability is on, and charged by the "
            "gigabyte; metrics: {} switches it off"
        )
        return tuple(found)
    if metrics.seconds < MINUTE and not metrics.enhanced:
        found.append(
            f"metrics.seconds: {metrics.seconds} holds for utilization alone; request metrics stay at a minute without "
            "enhanced: true"
        )
    if metrics.detailed and endpoint.image is not None:
        found.append(
            "metrics.detailed: of an image of your own SageMaker reads /metrics on port 8080, where Triton's SageMaker "
            "front end answers 400: there are no metrics of the container, only of GPUs and hosts"
        )
    if metrics.enhanced and endpoint.multi_model:
        found.append(
            "metrics.enhanced: AWS's page names single-model endpoints and inference components; whether a multi-model "
            "endpoint publishes by instance is UNVERIFIED"
        )
    return tuple(found)
