"""``tritonstack proxy``."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Any

import click

from tritonstack.cli.conventions import echo, environment_option, local_option
from tritonstack.cli.session import calling_session, explain
from tritonstack.errors import InputError, Problem

if TYPE_CHECKING:  # imported where it is used, so that --help and wrong options answer at once
    from collections.abc import Sequence

    from tritonstack.client.releases import ModelRelease

PORT = 8000
"""Triton's own HTTP port, which its clients call by themselves."""
_NOT_TO_BE_HAD = (errno.EADDRINUSE, errno.EACCES)


@click.command("proxy", epilog="example: tritonstack proxy -e prod --port 8000")
@environment_option()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 512),
    default=32,
    show_default=True,
    help="Concurrent invocations (threads and AWS connections); further ones wait.",
)
@local_option
def command(*, environment: str, port: int, concurrency: int, local: bool) -> None:
    """Serve KServe's protocol v2 on loopback for the models of ENVIRONMENT, until interrupted.

    Triton's own clients (tritonclient.http, perf_analyzer) invoke a model by its name, [endpoint/]model; each request
    becomes a signed InvokeEndpoint.
    """
    import uvloop  # noqa: PLC0415

    from tritonstack.proxy.server import Proxy, serve  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    session = calling_session(environment, local=local)
    proxy = Proxy(environment=environment, session=session, concurrency=concurrency)
    releases = _releases(proxy.client, environment, session)
    try:
        uvloop.run(serve(proxy, port=port, listening=lambda port: _announce(environment, port, releases)))
    except OSError as error:
        if error.errno not in _NOT_TO_BE_HAD:
            raise
        found = f"{port}, which cannot be had: {error.strerror}"
        advice = "--port 0 takes a free one"
        raise InputError([Problem(field="--port", found=found, allowed="a free port", advice=advice)]) from error


def _releases(client: Any, environment: str, session: Any) -> Sequence[ModelRelease]:
    """The served releases; empty where this principal may not list them. Raises InputError or ReleaseLookupError."""
    from tritonstack.client.errors import ReleaseLookupError  # noqa: PLC0415
    from tritonstack.proxy.errors import is_denied  # noqa: PLC0415

    try:
        releases: Sequence[ModelRelease] = client.releases()
    except ReleaseLookupError as error:
        if is_denied(error):
            echo(f"{error}\nModels are reached by endpoint/model.", err=True)
            return ()
        explain(error, client, environment, session)
        raise
    if not releases:
        nothing = Problem(
            field="--environment", found=f"{environment}, which has no release record", allowed="a deployed environment"
        )
        unknown = InputError([nothing])
        explain(unknown, client, environment, session)
        raise unknown
    return releases


def _announce(environment: str, port: int, releases: Sequence[ModelRelease]) -> None:
    """Print address, environment and an example request."""
    url = f"127.0.0.1:{port}"
    endpoints = sorted({release.endpoint for release in releases})
    count = f"{len(releases)} model{'' if len(releases) == 1 else 's'}"
    what = f"{count} of {', '.join(endpoints)}" if releases else "models by endpoint/model"
    echo(f"KServe v2 at http://{url} for environment {environment}: {what}. Ctrl-C ends it.")
    example = f"{releases[0].endpoint}/{releases[0].model}" if releases else "<endpoint>/<model>"
    echo(f"  curl http://{url}/v2/models/{example}")
