"""``tritonstack bench``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tritonstack.commands.calling import calling_session, explain_name, is_local, refuse_without_credentials

MINUTES_OF_CLOUDWATCH = 180.0
"""Seconds: a minute's figures come a minute or two after it."""


@click.command("bench")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--cloud",
    metavar="ENVIRONMENT",
    help="A load test in the cloud instead, on the deployed endpoints NAME... of ENVIRONMENT (none: all that may be).",
)
@click.option(
    "--gate",
    is_flag=True,
    help="Measure nothing: hold the results NAME... (files or folders) against their environment's load_test.gate.",
)
@click.option("--environment", default="local", show_default=True, help="The environment that the names belong to.")
@click.option(
    "--local", is_flag=True, help="Call the local AWS, whatever the shell points at. Implied by environment local."
)
@click.option("--container", is_flag=True, help="Straight at the local endpoint's container, past InvokeEndpoint.")
@click.option(
    "--configurations",
    metavar="A,B",
    help="Overlays of the one folder NAME, or plain, dynamic-batching, two-instances, both: whichever overlays are so.",
)
@click.option("--users", metavar="N,N", help="Closed loop: so many users at once, a level each.  [default: 1,2,4,8]")
@click.option("--rate", metavar="N,N", help="Open loop: so many calls a second, a level each.")
@click.option("--arrivals", type=click.Choice(["poisson", "even"]), default="poisson", show_default=True)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="USERS+PER_MINUTE:SECONDS",
    help="A ramp, as 2+2:1500: two users, two more each minute, 1500 s. Several in their order.",
)
@click.option("--seconds", type=float, default=10.0, show_default=True, help="Of one round.")
@click.option("--warm-up", type=float, default=2.0, show_default=True, help="Seconds before a load that do not count.")
@click.option("--rounds", type=int, default=3, show_default=True, help="The least of a level.")
@click.option("--max-rounds", type=int, default=10, show_default=True)
@click.option(
    "--stable-within",
    type=float,
    default=10.0,
    show_default=True,
    help="Per cent: half of the confidence interval of rate and latency, at which rounds end.",
)
@click.option("--confidence", type=float, default=95.0, show_default=True, help="Per cent.")
@click.option("--percentile", type=float, default=95.0, show_default=True, help="Of the latency that counts.")
@click.option("--stop-latency-ms", type=float, help="Put no more load on what is slower.")
@click.option("--stop-rate", type=float, help="Put no more load on what answers so many a minute.")
@click.option(
    "--format",
    "payload_format",
    type=click.Choice(["binary", "json", "both"]),
    default="binary",
    show_default=True,
    help="How tensors travel, both ways.",
)
@click.option("--input", "files", multiple=True, metavar="[INPUT=]FILE", help="What is sent.  [default: the sample]")
@click.option("--output", "outputs", multiple=True, help="An output that is wanted; without it the one with a meaning.")
@click.option("--cold-starts", type=int, default=0, show_default=True, help="So many first calls to fresh copies.")
@click.option("--max-calls", type=int, default=1_000_000, show_default=True, help="Of each model and format.")
@click.option("--max-seconds", type=float, default=3600.0, show_default=True, help="Of each model and format.")
@click.option("--timeout", type=float, default=70.0, show_default=True, help="Seconds after which a call is given up.")
@click.option("--most-under-way", type=click.IntRange(1, 5000), default=1000, show_default=True, help="Calls at once.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of Poisson arrivals.")
@click.option("--generator", type=click.Choice(["client", "perf-analyzer"]), default="client", show_default=True)
@click.option("--publish-metric", is_flag=True, help="Tell CloudWatch the latencies, as tritonstack/client.")
@click.option(
    "--cloudwatch-wait", type=float, help="Seconds to wait for SageMaker's figures.  [default: 180; 0 locally]"
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of results.  [default: .local/bench/…]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
def command(
    *,
    names: Sequence[str],
    cloud: str | None,
    gate: bool,
    environment: str,
    local: bool,
    configurations: str | None,
    users: str | None,
    rate: str | None,
    arrivals: Any,
    phases: Sequence[str],
    payload_format: str,
    cloudwatch_wait: float | None,
    folder: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Put load on models by their NAMEs, [endpoint/]model, and measure what comes of it.

    Results are written after each load: results.json, measurements.csv for `tritonstack size --measurements`, and a
    page of plots. Ctrl-C leaves what was measured so far, and stops what runs in the cloud (docs/load-tests.md).
    """
    if gate or cloud is not None:
        from tritonstack.commands.bench_cloud import run_cloud, run_gate  # noqa: PLC0415

        if gate and cloud is not None:
            raise click.UsageError("--cloud and --gate: give one of the two; --cloud holds the gate at its end")
        if cloud is not None:
            return run_cloud(cloud, names, local=local, folder=folder, as_json=as_json)
        if not names:
            raise click.UsageError("--gate: name the results, files or folders")
        return run_gate([Path(name) for name in names])
    if not names:
        raise click.UsageError("Missing argument 'NAME...'.")
    # Imported here so that --help and wrong options answer at once.
    import uvloop  # noqa: PLC0415

    from tritonstack.bench.bench import Bench  # noqa: PLC0415
    from tritonstack.bench.results_folder import ResultsFolder  # noqa: PLC0415
    from tritonstack.bench.settings import DEFAULT_USERS, BenchSettings, Reader, check  # noqa: PLC0415
    from tritonstack.client.errors import ReleaseLookupError  # noqa: PLC0415
    from tritonstack.client.model_client import ModelClient  # noqa: PLC0415
    from tritonstack.commands import bench_view  # noqa: PLC0415
    from tritonstack.errors import InputError  # noqa: PLC0415
    from tritonstack.local.paths import LocalPaths, project_folder  # noqa: PLC0415

    reader = Reader()
    default = None if rate or phases else DEFAULT_USERS
    on_local_aws = local or environment == "local"
    settings = BenchSettings(
        names=tuple(names),
        environment=environment,
        configurations=tuple(part for part in (configurations or "").split(",") if part),
        loads=(*reader.users(users or default), *reader.rates(rate, arrivals)),
        phases=reader.phases(phases),
        formats=reader.formats(payload_format),
        cloudwatch_wait_seconds=(0.0 if on_local_aws else MINUTES_OF_CLOUDWATCH)
        if cloudwatch_wait is None
        else cloudwatch_wait,
        **_grouped(options),
    )
    check(settings, reader, local=on_local_aws)
    session = calling_session(environment, local=local)
    bench = Bench(
        settings,
        session=session,
        model_repos=project_folder() / "model_repos",
        progress=lambda line: click.echo(line, err=True),
    )
    try:
        subjects = bench.subjects()
    except (InputError, ReleaseLookupError) as error:
        refuse_without_credentials(error, environment, on_local_aws=is_local(session))
        client = ModelClient(environment=environment, session=session)
        explain_name(error, client, environment, on_local_aws=is_local(session))
        raise
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    results = ResultsFolder(folder or LocalPaths.from_environment().root / "bench" / f"{environment}-{stamp}")
    try:
        document = uvloop.run(bench.run(subjects, results))
    except KeyboardInterrupt:
        click.echo(f"what was measured so far: {results.folder}", err=True)
        raise
    bench_view.show(document, results, as_json=as_json)
    return 0


def _grouped(options: dict[str, Any]) -> dict[str, Any]:
    """Options that belong together, as the settings have them."""
    from tritonstack.bench.measuring import Timing  # noqa: PLC0415
    from tritonstack.bench.stability import StabilityRule  # noqa: PLC0415
    from tritonstack.bench.stop import StopConditions  # noqa: PLC0415

    percentile = options["percentile"]
    return {
        "timing": Timing(warm_up=options["warm_up"], round=options["seconds"]),
        "rule": StabilityRule(
            within=options["stable_within"] / 100,
            confidence=options["confidence"] / 100,
            least=options["rounds"],
            most=options["max_rounds"],
            percentile=percentile,
        ),
        "stop": StopConditions(
            latency_ms=options["stop_latency_ms"], percentile=percentile, per_minute=options["stop_rate"]
        ),
        "files": tuple(options["files"]),
        "outputs": tuple(options["outputs"]),
        "timeout_seconds": options["timeout"],
        **{
            name: options[name]
            for name in (
                "container",
                "cold_starts",
                "max_calls",
                "max_seconds",
                "most_under_way",
                "seed",
                "generator",
                "publish_metric",
            )
        },
    }
