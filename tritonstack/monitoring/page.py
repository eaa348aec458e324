"""The dashboard of an environment as one HTML page: reads metrics, draws them, serves the page."""

from __future__ import annotations

import http.server
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import TritonstackError, WorkFailedError
from tritonstack.loopback.guard import refusal
from tritonstack.monitoring.graphs import Dashboard, Graph, Needs, Section
from tritonstack.monitoring.metric import queries
from tritonstack.pages import page as pages
from tritonstack.pages.charts import Chart, Line, Points, line_chart, linear_axis, runs, time_axis, value_text

MINUTE = 60
MOST_POINTS = 360
"""Of one line: about one for each pixel of a plot."""
SHORTEST = 15 * MINUTE
"""Seconds of a time range that fits the data, at least."""
FEWEST_PERIODS, SHORTEST_RUN = 10, 3
"""A line needs so many periods with data, and so many in a row on average; what has fewer is drawn as bars."""
AT_ONCE = 8
"""Requests in flight; GetMetricData takes 50 a second by default (CloudWatch quotas)."""

Lines = Mapping[str, Points]
"""Line key → points in the order of time: seconds since 1970 (start of the period), value. Empty without data.

Of a search, the key of each line that it found is the search's, a line feed, and the line's label.
"""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Time range of a page."""

    start: datetime  # its beginning, a multiple of the period
    end: datetime  # its end, a whole minute
    period: int  # seconds that one value covers

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

    def fitted(self, samples: Mapping[tuple[str, str], Lines]) -> Span:
        """The range from the first period with data on, of a quarter of an hour at least; whole where there is none."""
        moments = [points[0][0] for lines in samples.values() for points in lines.values() if points]
        latest = int(self.end.timestamp() - SHORTEST) // self.period * self.period
        start = datetime.fromtimestamp(min([*moments, latest]), tz=self.start.tzinfo)
        return replace(self, start=max(self.start, start)) if moments else self


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
    lines: dict[str, list[tuple[float, float]]] = {each.key: [] for each in graph.series if each.search is None}
    searches = {each.key for each in graph.series if each.search is not None}
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
            key = f"{result['Id']}\n{result['Label']}" if result["Id"] in searches else result["Id"]
            lines.setdefault(key, []).extend((moment.timestamp(), value) for moment, value in points)
        if not answer.get("NextToken"):
            return {key: sorted(points) for key, points in lines.items()}
        request["NextToken"] = answer["NextToken"]


WITHOUT: dict[Needs, str] = {
    "gpu": "No data: the local AWS runs on the CPU and writes no GPU metrics.",
}
"""What the local AWS can never show, and why."""
NOTHING = "No data in this time: SageMaker writes this metric while requests come."
NEEDED: dict[Needs, str] = {
    "gpu": "No data in this time: instances write this metric every minute while they run.",
    "codebuild": "No build ended in this time.",
    "unloading": "No model was unloaded in this time.",
    "publishing": "No client published its latency in this time (tritonstack docs clients).",
    "log lines": "No model was loaded or unloaded in this time.",
}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Content of a page."""

    samples: Mapping[tuple[str, str], Lines]  # the lines of every graph, by the keys of its section and its own
    span: Span  # their time range
    local: bool  # whether they are of the local AWS


def page(dashboard: Dashboard, figures: Figures, *, refresh_seconds: int | None = None) -> str:
    """The whole document; a browser loads it again after ``refresh_seconds``."""
    span = figures.span
    every = "minute" if span.period == MINUTE else f"{span.period // MINUTE} minutes"
    end = f"{span.end:%H:%M}" if span.start.date() == span.end.date() else f"{span.end:%-d %b %Y %H:%M}"
    return pages.render(
        pages.Page(
            title=dashboard.name,
            lines=(
                f"{span.start:%-d %b %Y %H:%M} to {end} UTC, a value for every {every}",
                "from the local AWS" if figures.local else f"from CloudWatch, {dashboard.region}",
            ),
            sections=[
                pages.Section(
                    title=each.title, notes=each.notes, figures=[_figure(each, graph, figures) for graph in each.graphs]
                )
                for each in dashboard.sections
            ],
            refresh_seconds=refresh_seconds,
        )
    )


def _figure(section: Section, graph: Graph, figures: Figures) -> pages.Figure:
    lines = figures.samples[section.key, graph.key]
    key = f"{section.key}-{graph.key}"
    if not any(lines.values()):
        why = NOTHING if graph.needs is None else NEEDED[graph.needs]
        why = WITHOUT[graph.needs] if figures.local and graph.needs in WITHOUT else why
        return pages.Figure(title=graph.title, unit=graph.unit, key=key, points=0, note=why)
    return pages.Figure(
        title=graph.title,
        unit=graph.unit,
        key=key,
        picture=plot(graph, lines, figures.span),
        points=sum(map(len, lines.values())),
        legend=_lines(graph, lines, figures.span),
        columns=("last", "mean", "highest"),
        cells=[_summary([value for _, value in lines[key]]) for key, _ in _drawn(graph, lines)],
    )


def plot(graph: Graph, lines: Lines, span: Span) -> str:
    """The SVG element of a graph that has data: lines, dotted across periods without data; bars where it is sparse."""
    gap = span.period * 1.5
    values = [value for points in lines.values() for _, value in points] + [each.value for each in graph.limits]
    return line_chart(
        Chart(
            title=graph.title,
            unit=graph.unit,
            lines=_lines(graph, lines, span),
            x=time_axis(span.start.timestamp(), span.end.timestamp()),
            y=linear_axis(values, top=graph.maximum),
            limits=[(each.value, each.label) for each in graph.limits],
            gap=gap,
            bars=span.period if is_sparse(lines, gap=gap) else None,
        )
    )


def is_sparse(lines: Lines, *, gap: float) -> bool:
    """Whether the periods with data are so few, or so scattered, that lines would be dots."""
    periods = sorted({point[0] for points in lines.values() for point in points})
    stretches = sum(1 for _ in runs([(moment, 0.0) for moment in periods], gap=gap))
    return len(periods) < max(FEWEST_PERIODS, SHORTEST_RUN * stretches)


def _lines(graph: Graph, lines: Lines, span: Span) -> list[Line]:
    """Each value in the middle of its period."""
    return [
        Line(
            label=label,
            points=[(moment + span.period / 2, value) for moment, value in lines[key]],
            colour=number,
        )
        for number, (key, label) in enumerate(_drawn(graph, lines))
    ]


def _drawn(graph: Graph, lines: Lines) -> list[tuple[str, str]]:
    """Key and label of each line: of a search, of every line that it found."""
    found = []
    for series in graph.series:
        if series.search is not None:
            found += [(key, key.partition("\n")[2]) for key in sorted(lines) if key.startswith(f"{series.key}\n")]
        else:
            found.append((series.key, series.label))
    return found


def _summary(values: Sequence[float]) -> list[str]:
    found = [values[-1], sum(values) / len(values), max(values)] if values else []
    return [value_text(value) for value in found]


HOST = "127.0.0.1"


def make_server(draw: Callable[[], str], *, port: int) -> http.server.ThreadingHTTPServer:
    """A server of one page on loopback; ``port`` 0 takes a free one. Raises OSError where the port is taken."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Serves ``GET /`` of this machine's own browsers."""

        def do_GET(self) -> None:
            """The page; 403 for another site's name or page, 502 where metrics fail."""
            reason = refusal(
                host=self.headers.get("Host"),
                origin=self.headers.get("Origin"),
                fetch_site=self.headers.get("Sec-Fetch-Site"),
                navigation=self.headers.get("Sec-Fetch-Dest") == "document",  # a link to this page, in no frame
                own_page=True,  # it loads itself again
            )
            if reason is not None:
                self._answer(HTTPStatus.FORBIDDEN, f"{reason}\n", kind="text/plain")
            elif self.path != "/":
                self._answer(HTTPStatus.NOT_FOUND, "there is one page: /\n", kind="text/plain")
            else:
                try:
                    self._answer(HTTPStatus.OK, draw(), kind="text/html")
                except TritonstackError as error:
                    self._answer(HTTPStatus.BAD_GATEWAY, f"{error}\n", kind="text/plain")

        def _answer(self, status: HTTPStatus, text: str, *, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
            """Nothing: one line a minute is noise."""

    server = http.server.ThreadingHTTPServer((HOST, port), Handler)
    server.daemon_threads = True
    return server
