"""Requests of the last day to an endpoint, as CloudWatch counts them: per production variant, never per model."""

from __future__ import annotations

import time
from collections.abc import Sequence

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tritonstack import aws_names
from tritonstack.aws.session import ConfiguredSession, Session
from tritonstack.errors import WorkFailedError
from tritonstack.monitoring.metric import Metric, Series, queries

HOUR, DAY = 3600, 86_400  # seconds
_BOUNDED = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})


def requests_of_the_last_day(session: Session, *, endpoint_name: str, variants: Sequence[str]) -> int:
    """Requests (Invocations) to an endpoint at SageMaker. Raises WorkFailedError where CloudWatch refuses."""
    series = [
        Series.of(
            f"requests{number}",
            variant,
            Metric(
                namespace=aws_names.SAGEMAKER,
                name=aws_names.INVOCATIONS,
                dimensions=tuple(aws_names.variant_dimensions(endpoint_name, variant).items()),
                statistic="Sum",
            ),
        )
        for number, variant in enumerate(variants)
    ]
    end = time.time()
    try:
        cloudwatch = ConfiguredSession(session, _BOUNDED).client("cloudwatch")
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries(series, period=HOUR), StartTime=end - DAY, EndTime=end + HOUR
        )
        return round(sum(sum(result["Values"]) for page in pages for result in page["MetricDataResults"]))
    except (BotoCoreError, ClientError) as error:
        raise WorkFailedError(f"CloudWatch did not say: {' '.join(str(error).split())}") from error


def requests_command(*, endpoint_name: str, variant: str, region: str) -> str:
    """The command that asks CloudWatch for the same."""
    return (
        f"aws cloudwatch get-metric-statistics --region {region} --namespace {aws_names.SAGEMAKER} "
        f"--metric-name {aws_names.INVOCATIONS} --dimensions Name={aws_names.ENDPOINT_NAME},Value={endpoint_name} "
        f"Name={aws_names.VARIANT_NAME},Value={variant} --statistics Sum --period {DAY} "
        '--start-time "$(date -u -d yesterday +%FT%TZ)" --end-time "$(date -u +%FT%TZ)"'
    )
