"""``tritonstack capacity bench``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tritonstack.errors import InputError, Problem

_OTHERS = {
    "cloud": ({"names", "local", "folder", "as_json"}, "the environment's load_test says what is done"),
    "gate": ({"names"}, "nothing is measured"),
    "repeat": ({"folder", "as_json"}, "the results say what is done"),
}
"""Options that need no other ones: what may be said beside them all the same, and why nothing else."""
_OF_ROUNDS = ("seconds", "rounds", "max_rounds", "stable_within")
"""A ramp has steps instead."""
_OF_CLIENT = ("warm_up", "rounds", "timeout", "seed")
"""perf_analyzer has no such options: it drops measurements until three agree, and gives no call up."""


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
@click.option(
    "--repeat",
    type=click.Path(path_type=Path),
    metavar="RESULTS",
    help="Once more what results.json (or its folder) says was done, and report what changed since.",
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
    "--cloudwatch-wait", type=float, help="Seconds to wait for SageMaker's figures.  [default: 180; 6 locally]"
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of results.  [default: .local/bench/…]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
@click.pass_context
def command(context: click.Context, /, *, names: Sequence[str], cloud: str | None, gate: bool, **options: Any) -> int:
    """Put load on models by their NAMEs, [endpoint/]model, and measure what comes of it.

    Results are written after each load: results.json, measurements.csv for `tritonstack capacity size --measurements`,
    and a page of plots. Ctrl-C leaves what was measured so far, and stops what runs in the cloud (docs/load-tests.md).
    """
    ignored = _ignored(context)
    if ignored and (gate or cloud is not None or options["repeat"] is not None):
        raise InputError(ignored)
    folder, as_json, repeat = options.pop("folder"), options.pop("as_json"), options.pop("repeat")
    # Imported here so that --help and wrong options answer at once.
    if cloud is not None:
        from tritonstack_capacity.commands.bench_cloud import run_cloud  # noqa: PLC0415

        return run_cloud(cloud, names, local=options["local"], folder=folder, as_json=as_json)
    if gate:
        from tritonstack_capacity.commands.bench_cloud import run_gate  # noqa: PLC0415

        if not names:
            raise click.UsageError("--gate: name the results, files or folders")
        return run_gate([Path(name) for name in names])
    from tritonstack_capacity.commands.bench_run import repeat_bench, run_bench  # noqa: PLC0415

    if repeat is not None:
        return repeat_bench(repeat, folder=folder, as_json=as_json)
    if not names:
        raise click.UsageError("Missing argument 'NAME...'.")
    return run_bench(names, options, folder=folder, as_json=as_json, problems=ignored)


def _ignored(context: click.Context) -> list[Problem]:
    """Options that say nothing beside others that were given."""
    given = {
        name: parameter.opts[0] if isinstance(parameter, click.Option) else "NAME"
        for parameter in context.command.params
        if (name := parameter.name or "") and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }

    def problem(names: Sequence[str], beside: str, why: str) -> list[Problem]:
        fields = ", ".join(given[name] for name in names)
        return [Problem(field=fields, found=f"with {beside}", allowed=f"without: {why}")] if names else []

    found = []
    for mode, (others, why) in _OTHERS.items():
        if mode in given:
            found += problem([name for name in given if name not in {mode, *others}], given[mode], why)
    if "phases" in given:
        why = "each number of users is a step of its own"
        found += problem([name for name in _OF_ROUNDS if name in given], given["phases"], why)
    if context.params["generator"] == "perf-analyzer":
        # Through the proxy it asks for every output; at a container nothing but its users bounds its calls.
        ignored = (*_OF_CLIENT, "most_under_way" if context.params["container"] else "outputs")
        beside = f"{given['generator']} perf-analyzer"
        found += problem([name for name in given if name in ignored], beside, "perf_analyzer cannot be told it")
        if "most_under_way" in given and "most_under_way" not in ignored:
            found += _beyond_proxy(context.params["most_under_way"])
    if "arrivals" in given and "rate" not in given:
        found.append(Problem(field=given["arrivals"], found="without --rate", allowed="with it"))
    return found


def _beyond_proxy(most_under_way: int) -> list[Problem]:
    from tritonstack_capacity.bench.perf_analyzer import MOST_THREADS  # noqa: PLC0415 - as the command's own

    if most_under_way <= MOST_THREADS:
        return []
    allowed = f"up to {MOST_THREADS}: the proxy has no more calls on their way"
    return [Problem(field="--most-under-way", found=f"{most_under_way} with perf-analyzer", allowed=allowed)]
