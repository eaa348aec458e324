"""``tritonstack dashboard``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from tritonstack.aws.session import Session, read_parameter
from tritonstack.cli.conventions import echo, environment_option
from tritonstack.cli.session import session_of
from tritonstack.config import load_environment
from tritonstack.errors import InputError, Problem
from tritonstack.local_aws import is_local
from tritonstack.monitoring.dashboard import dashboard_of
from tritonstack.monitoring.graphs import BuildProjects
from tritonstack.monitoring.page import HOST, Figures, Span, make_server, page, read_samples
from tritonstack.naming import builds_parameter
from tritonstack.paths import LocalPaths, environment_file, write_text

PORT = 4580
HOURS = 3
REFRESH_SECONDS = 60
"""CloudWatch's metrics come once a minute."""


@click.command("dashboard", epilog="example: tritonstack dashboard -e local --hours 3")
@environment_option()
@click.option(
    "--hours",
    type=click.FloatRange(min=0.1, max=360),
    help=f"Time range, up to now.  [default: from the first data of the last {HOURS} hours on]",
)
@click.option("--serve", is_flag=True, help="Serve the page on this machine, with current data at every load.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="With --serve; 0 takes a free one."
)
def command(*, environment: str, hours: float | None, serve: bool, port: int) -> None:
    """Draw the dashboard of ENVIRONMENT from its metrics, as one self-contained HTML page.

    The graphs are those of the CloudWatch dashboard, which need not be deployed. Without --serve the page is written
    to .local.
    """
    settings = load_environment(environment_file(environment))
    session = session_of(settings)
    dashboard = dashboard_of(settings, projects=deployed_projects(session, environment))
    cloudwatch = session.client("cloudwatch")
    local = is_local(cloudwatch)

    def draw(*, refresh_seconds: int | None = None) -> str:
        span = Span.last(hours or HOURS, now=datetime.now(tz=UTC))
        samples = read_samples(cloudwatch, dashboard, span)
        figures = Figures(samples=samples, span=span.fitted(samples) if hours is None else span, local=local)
        return page(dashboard, figures, refresh_seconds=refresh_seconds)

    if serve:
        _serve(lambda: draw(refresh_seconds=REFRESH_SECONDS), port=port)
    else:
        file = LocalPaths.from_environment().root / f"dashboard-{environment}.html"
        write_text(file, draw())
        echo(f"{file}")


def deployed_projects(session: Session, environment: str) -> BuildProjects | None:
    """The projects of the deployed builds stack; None where there is none.

    Raises:
        WorkFailedError: Systems Manager refuses.
    """
    build, engines = (
        read_parameter(session, builds_parameter(environment=environment, value=value))
        for value in ("project-name", "engine-project-name")
    )
    return None if build is None else BuildProjects(build=build, engines=engines)


def _serve(draw: Any, *, port: int) -> None:
    try:
        server = make_server(draw, port=port)
    except OSError as error:
        problem = Problem(field="--port", found=f"{port}: {error.strerror}", allowed="a free port, or 0 for any")
        raise InputError([problem]) from error
    echo(f"http://{HOST}:{server.server_address[1]}/  (Ctrl-C ends it)")
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
