"""Start one container by hand: ``python -m tritonstack_local.container --help``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from tritonstack.errors import TritonstackError
from tritonstack_local.container.bench import BenchServer
from tritonstack_local.container.container import ContainerSettings, TritonContainer
from tritonstack_local.container.repository import prepare_model_data


@click.group()
def main() -> None:
    """One Triton container, without the rest of the local AWS. It runs until Ctrl-C."""


@main.command()
@click.option("--model-data", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Single-model mode.")
@click.option("--release", help="The Triton release asked for, such as 24.09.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the container.")
@click.option("--open-port", is_flag=True, help="Leave the SageMaker port open instead of isolating the container.")
def serve(model_data: Path | None, release: str | None, variables: tuple[str, ...], open_port: bool) -> None:
    """Start as SageMaker does, without loading anything in multi-model mode.

    MODEL-DATA is changed in place: instances on a GPU become instances on the CPU.
    """
    pairs = dict(one.partition("=")[::2] for one in variables)
    if model_data:
        for change in prepare_model_data(model_data, release=release):
            click.echo(change)
    settings = ContainerSettings(
        environment=pairs,
        multi_model=model_data is None,
        release=release,
        model_data=model_data,
        namespace=not open_port,
    )
    with (
        tempfile.TemporaryDirectory(prefix="tritonstack-container-") as folder,
        TritonContainer.start(settings, folder=Path(folder)) as container,
    ):
        container.wait_ready(60)
        click.echo(f"Triton {container.server_version} answers; {container.isolation}; pid {container.pid}")
        click.echo(f"enter its network: nsenter --user --net --preserve-credentials --target {container.pid}")
        click.echo(f"log: {container.log_path}")
        wait_for_end(container)


@main.command()
@click.argument("repository", type=click.Path(path_type=Path, exists=True, file_okay=False))
def bench(repository: Path) -> None:
    """Serve every model of REPOSITORY over HTTP and gRPC on loopback, for perf_analyzer."""
    with tempfile.TemporaryDirectory(prefix="tritonstack-bench-") as folder:
        server = BenchServer.start(repository, folder=Path(folder))
        try:
            click.echo(f"bench mode, not SageMaker's front end: http 127.0.0.1:{server.http}, ", nl=False)
            click.echo(f"grpc 127.0.0.1:{server.grpc}, metrics 127.0.0.1:{server.metrics}; log: {server.log_path}")
            wait_for_end(server)
        finally:
            server.stop()


def wait_for_end(server: TritonContainer | BenchServer) -> None:
    """Wait until the server ends or Ctrl-C is pressed."""
    try:
        click.echo(f"ended with exit code {server.exited.result()}")
    except KeyboardInterrupt:
        click.echo("stopping")


if __name__ == "__main__":
    try:
        main()
    except TritonstackError as error:
        click.echo(str(error), err=True)
        raise SystemExit(error.exit_code) from error
