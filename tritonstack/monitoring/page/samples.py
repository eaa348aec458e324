"""What CloudWatch, or the local AWS, has measured for a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import WorkFailedError
from tritonstack.monitoring.graph import Dashboard, Graph
from tritonstack.monitoring.metric import queries

MINUTE = 60
MOST_POINTS = 360
"""Of one line: about one for each pixel of a plot."""
AT_ONCE = 8
"""Requests in flight; GetMetricData takes 50 a second by default (CloudWatch quotas)."""

Points = Sequence[tuple[float, float]]
"""Seconds since 1970 (the start of the period) and value, in the order of time."""
Lines = Mapping[str, Points]
"""A graph's line by its key; a line without data is empty."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The time that a page shows.

    Attributes:
        start: its beginning, a multiple of the period.
        end: its end, a whole minute.
        period: seconds that one value covers.
    """

    start: datetime
    end: datetime
    period: int

    @classmethod
    def last(cls, hours: float, *, now: datetime) -> Span:
        """The last ``hours`` before ``now``, in periods of whole minutes of which a plot can show each."""
        seconds = hours * 3600
        period = MINUTE * max(1, -(-int(seconds) // (MOST_POINTS * MINUTE)))
        # Without the minute under way: half of its calls would look like half the traffic.
        end = int(now.timestamp()) // MINUTE * MINUTE
        start = int(end - seconds) // period * period
        first, last = (datetime.fromtimestamp(moment, tz=now.tzinfo) for moment in (start, end))
        return cls(start=first, end=last, period=period)


def read_samples(cloudwatch: Any, dashboard: Dashboard, span: Span) -> dict[tuple[str, str], Lines]:
    """The lines of every graph, by the keys of its section and its own. ``cloudwatch``: a boto3 client.

    Raises:
        WorkFailedError: CloudWatch refuses.
    """
    graphs = list(dashboard.graphs())
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        read = pool.map(lambda pair: read_graph(cloudwatch, pair[1], span), graphs)
        try:
            return {(section.key, graph.key): lines for (section, graph), lines in zip(graphs, read, strict=True)}
        except (BotoCoreError, ClientError) as error:
            raise WorkFailedError(f"could not read the metrics: {error}") from error


def read_graph(cloudwatch: Any, graph: Graph, span: Span) -> Lines:
    """The lines of one graph; botocore's errors pass."""
    lines: dict[str, list[tuple[float, float]]] = {each.key: [] for each in graph.series}
    request = {
        "MetricDataQueries": queries(graph.series, period=span.period),
        "StartTime": span.start,
        "EndTime": span.end,
        "ScanBy": "TimestampAscending",
    }
    while True:
        answer = cloudwatch.get_metric_data(**request)
        for result in answer["MetricDataResults"]:
            points = zip(result["Timestamps"], result["Values"], strict=True)
            lines[result["Id"]] += [(moment.timestamp(), value) for moment, value in points]
        if not answer.get("NextToken"):
            return {key: sorted(points) for key, points in lines.items()}
        request["NextToken"] = answer["NextToken"]
