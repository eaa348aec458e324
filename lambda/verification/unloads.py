"""Models that SageMaker unloaded while others were called; then no further one is."""

from __future__ import annotations

from datetime import UTC, datetime

from .services import Aws, Clock
from .work import Properties, Work


def unloads(work: Work, aws: Aws, clock: Clock, properties: Properties) -> bool:
    """Whether the variant unloaded a model in a whole minute since the work began, as far as CloudWatch knows yet."""
    start = 60 * (int(work.began) // 60 + 1)  # the minute that it began in holds what was before, too
    if properties.stops_at_unload != "true" or clock.now() <= start:
        return False
    found = aws.cloudwatch.get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName="ModelUnloadingTime",
        Dimensions=[
            {"Name": "EndpointName", "Value": properties.endpoint_name},
            {"Name": "VariantName", "Value": properties.variant_name},
        ],
        StartTime=datetime.fromtimestamp(start, UTC),
        EndTime=datetime.fromtimestamp(clock.now(), UTC),
        Period=60,
        Statistics=["SampleCount"],
    )
    return any(point["SampleCount"] > 0 for point in found["Datapoints"])


def stop_warming(work: Work, why: str) -> None:
    """Call no archive that was not called yet."""
    work.leave([name for name in work.waiting if name not in work.called], f"not called, since {why}")
