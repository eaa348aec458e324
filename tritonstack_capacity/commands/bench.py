"""``tritonstack capacity bench``."""

from __future__ import annotations

import math
import resource
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvloop
from click.core import ParameterSource

from tritonstack.aws.session import AccountSession
from tritonstack.cli.conventions import LOCAL, environment_option, json_option, local_option, print_json
from tritonstack.cli.progress import Steps
from tritonstack.cli.session import calling_session, explain
from tritonstack.client.errors import ReleaseLookupError
from tritonstack.client.model_client import ModelClient
from tritonstack.errors import InputError, Problem
from tritonstack.local_aws import is_local
from tritonstack.paths import LocalPaths, project_folder
from tritonstack_capacity.bench.bench import Bench
from tritonstack_capacity.bench.measuring import StabilityRule, StopConditions, Timing
from tritonstack_capacity.bench.results_folder import make_folder
from tritonstack_capacity.bench.settings import BenchSettings, OptionReader, Progress, check
from tritonstack_capacity.commands.bench_cloud import run_cloud, run_gate
from tritonstack_capacity.commands.bench_view import show

if TYPE_CHECKING:
    from tritonstack_capacity.bench.document import BenchDocument
    from tritonstack_capacity.bench.subject import Subject


DEFAULT_USERS = "1,2,4,8"
SECONDS_OF_CLOUDWATCH, LOCAL_SECONDS = 180.0, 6.0
"""A minute's figures come a minute or two after it; the local AWS's every five seconds."""
OTHER_FILES = 256
"""Open besides a socket a request."""


def run_bench(
    names: Sequence[str], options: Mapping[str, Any], *, folder: Path | None, as_json: bool, problems: Sequence[Problem]
) -> int:
    """Measure and print; returns 1 where a result failed.

    ``problems``: what was found wrong with the options before.

    Raises InputError: every option that is wrong, or every name that leads nowhere.
    """
    local = options["local"] or options["environment"] == LOCAL or _shell_is_local()
    settings = _settings(names, options, OptionReader(problems), local=local)
    document = _run(settings, local=options["local"], folder=folder, as_json=as_json)
    return 1 if any(result.failed for result in document.results) else 0


def _shell_is_local() -> bool:
    """Whether the process's own AWS settings lead to a local AWS (``tritonstack local env``)."""
    try:
        return is_local(AccountSession("us-east-1").client("sagemaker"))  # any region: nothing is sent
    except InputError:
        return False


def _run(settings: BenchSettings, *, local: bool, folder: Path | None, as_json: bool) -> BenchDocument:
    session = calling_session(settings.environment, local=local)
    bench = Bench(settings, session=session, model_repos=project_folder() / "model_repos")
    subjects = _subjects(bench, settings, session)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    root = LocalPaths.from_environment().root / "bench"
    results = folder or root / f"{settings.environment}-{stamp}"
    make_folder(results)
    make_room(settings.most_under_way + OTHER_FILES)
    steps = Steps()
    with steps.step("bench") as step:
        command, told = ("tritonstack", *sys.argv[1:]), Progress(note=steps.note, say=step.say)
        try:
            document = uvloop.run(bench.run(subjects, results, command=command, progress=told))
        except KeyboardInterrupt:
            steps.note(f"what was measured so far: {results}")
            raise
        failed = sum(result.failed for result in document.results)
        step.end_with(f"{failed} of {len(document.results)} failed" if failed else str(results))
    if as_json:
        print_json(document.model_dump(mode="json"))
    else:
        show(document, results)
    return document


def make_room(files: int) -> None:
    """Raise this process's limit of open files: a shell's usual 1,024 are too few for 1,000 requests."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _subjects(bench: Bench, settings: BenchSettings, session: Any) -> list[Subject]:
    try:
        return bench.subjects()
    except (InputError, ReleaseLookupError) as error:
        client = ModelClient(environment=settings.environment, session=session)
        explain(error, client, settings.environment, session)
        raise


def _settings(names: Sequence[str], options: Mapping[str, Any], reader: OptionReader, *, local: bool) -> BenchSettings:
    percentile = options["percentile"]
    default = None if options["rate"] or options["phases"] else DEFAULT_USERS
    settings = BenchSettings(
        names=tuple(names),
        configurations=tuple(part for part in (options["configurations"] or "").split(",") if part),
        loads=(*reader.users(options["users"] or default), *reader.rates(options["rate"], options["arrivals"])),
        phases=reader.phases(options["phases"]),
        formats=reader.formats(options["payload_format"]),
        timing=Timing(warm_up=options["warm_up"], round=options["seconds"]),
        rule=StabilityRule(
            within=options["stable_within"] / 100,
            least=options["rounds"],
            most=options["max_rounds"],
            percentile=percentile,
        ),
        stop=StopConditions(
            latency_ms=options["stop_latency_ms"], percentile=percentile, per_minute=options["stop_rate"]
        ),
        files=tuple(options["files"]),
        outputs=tuple(options["outputs"]),
        timeout_seconds=options["timeout"],
        cloudwatch_wait_seconds=LOCAL_SECONDS if local else SECONDS_OF_CLOUDWATCH,
        **{name: options[name] for name in _AS_THEY_ARE},
    )
    check(settings, reader, local=local)
    return settings


_AS_THEY_ARE = ["environment", "container", "cold_starts", "seed", "generator"]
_AS_THEY_ARE += ["publish_metric", "max_calls", "max_seconds", "most_under_way"]


_OTHERS = {
    "cloud": (
        {"names", "environment", "local", "folder", "as_json", "yes", "resume"},
        "the environment's load_test says what is done",
    ),
    "gate": ({"names", "as_json"}, "nothing is measured"),
}
"""Modes: the other options that they allow, and why no more."""
_OF_ROUNDS = ("seconds", "rounds", "max_rounds", "stable_within")
"""A ramp has steps instead."""
_OF_CLIENT = ("warm_up", "rounds", "timeout", "seed", "outputs", "publish_metric")
"""perf_analyzer has no such options: it drops measurements until three agree, and requests every output."""


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse NaN, which is in every range, and infinities."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is no finite number.", param, ctx)
        return number


ABOVE_ZERO, NOT_NEGATIVE = Number(min=0, min_open=True), Number(min=0)
ONE_OR_MORE = click.IntRange(1)
PER_CENT = Number(min=0, max=100, min_open=True, max_open=True)


@click.command("bench", epilog="example: tritonstack capacity bench models/iris --rate 50,100 --seconds 5")
@click.argument("names", nargs=-1, metavar="NAME...")
@environment_option()
@click.option(
    "--cloud",
    is_flag=True,
    help="Run the environment's load test in the cloud instead, on its deployed endpoints NAME... or on all of them.",
)
@click.option(
    "--gate",
    is_flag=True,
    help="Measure nothing: check the results NAME... (files or folders) against their environment's load_test.gate.",
)
@local_option
@click.option(
    "--container", is_flag=True, help="Send requests straight to the local endpoint's container, past InvokeEndpoint."
)
@click.option(
    "--configurations",
    metavar="A,B",
    help="Overlays of the one folder NAME, or plain, dynamic-batching, two-instances, both: the overlays that are so.",
)
@click.option(
    "--users", metavar="N,N", help="Closed loop: numbers of concurrent users, a level each.  [default: 1,2,4,8]"
)
@click.option("--rate", metavar="N,N", help="Open loop: requests a second, a level each.")
@click.option(
    "--arrivals",
    type=click.Choice(["poisson", "even"]),
    default="poisson",
    show_default=True,
    help="Spacing of the requests of --rate.",
)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="USERS+PER_MINUTE:SECONDS",
    help="Phase of a ramp. 2+2:1500 means two users, two more each minute, for 1500 seconds. May be repeated.",
)
@click.option("--seconds", type=ABOVE_ZERO, default=10.0, show_default=True, help="Seconds of one round.")
@click.option(
    "--warm-up",
    type=NOT_NEGATIVE,
    default=2.0,
    show_default=True,
    help="Seconds of load before each measurement, not counted.",
)
@click.option("--rounds", type=ONE_OR_MORE, default=3, show_default=True, help="Least rounds of a level.")
@click.option("--max-rounds", type=ONE_OR_MORE, default=10, show_default=True, help="Most rounds of a level.")
@click.option(
    "--stable-within",
    type=PER_CENT,
    default=10.0,
    show_default=True,
    help="Half of the 95 % confidence interval of rate and latency, in per cent, at which rounds end.",
)
@click.option(
    "--percentile", type=PER_CENT, default=95.0, show_default=True, help="Percentile of the latency that counts."
)
@click.option("--stop-latency-ms", type=ABOVE_ZERO, help="Latency in ms above which a configuration gets no more load.")
@click.option("--stop-rate", type=ABOVE_ZERO, help="Responses a minute at which a configuration gets no more load.")
@click.option(
    "--format",
    "payload_format",
    type=click.Choice(["binary", "json", "both"]),
    default="binary",
    show_default=True,
    help="Payload format of requests and responses.",
)
@click.option(
    "--input",
    "files",
    multiple=True,
    metavar="[INPUT=]FILE",
    help="Input of the requests. May be repeated.  [default: the sample]",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    help="Requested output. May be repeated.  [default: the one that the recipe interprets]",
)
@click.option(
    "--cold-starts",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Number of first requests to fresh copies of the model.",
)
@click.option(
    "--max-calls",
    type=ONE_OR_MORE,
    default=1_000_000,
    show_default=True,
    help="Most requests of each model and format.",
)
@click.option(
    "--max-seconds", type=ABOVE_ZERO, default=3600.0, show_default=True, help="Most seconds of each model and format."
)
@click.option(
    "--timeout",
    type=ABOVE_ZERO,
    default=70.0,
    show_default=True,
    help="Seconds after which a request counts as failed.",
)
@click.option(
    "--most-under-way", type=click.IntRange(1, 5000), default=1000, show_default=True, help="Most concurrent requests."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of Poisson arrivals.")
@click.option(
    "--generator",
    type=click.Choice(["client", "perf-analyzer"]),
    default="client",
    show_default=True,
    help="Program that sends the requests.",
)
@click.option(
    "--publish-metric",
    is_flag=True,
    help="Publish the latencies to CloudWatch, as EndToEndLatency of tritonstack/client, for the dashboard.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the results.  [default: .local/bench/…]",
)
@click.option("--yes", is_flag=True, help="With --cloud: start without the question what Inference Recommender costs.")
@click.option(
    "--resume",
    metavar="TEST",
    help="With --cloud: go on with this test of Inference Recommender, and keep the jobs that it completed.",
)
@json_option()
@click.pass_context
def command(context: click.Context, /, *, names: Sequence[str], cloud: bool, gate: bool, **options: Any) -> int:
    """Put load on models by their NAMEs, [endpoint/]model, and measure latency, rate and cold starts.

    Results are written after each load: results.json, measurements.csv for `tritonstack capacity size --measurements`,
    and a page of plots. Ctrl-C leaves what was measured so far, and stops what runs in the cloud
    (`tritonstack docs load-tests`).
    """
    ignored = _ignored(context)
    if ignored and (gate or cloud):
        raise InputError(ignored)
    folder, as_json = options.pop("folder"), options.pop("as_json")
    yes, resume = options.pop("yes"), options.pop("resume")
    if cloud:
        return run_cloud(
            options["environment"],
            names,
            local=options["local"],
            folder=folder,
            as_json=as_json,
            yes=yes,
            resume=resume,
        )
    if gate:
        if not names:
            raise click.UsageError("--gate: name the results, files or folders")
        return run_gate([Path(name) for name in names], as_json=as_json)

    if not names:
        raise click.UsageError("Missing argument 'NAME...'.")
    return run_bench(names, options, folder=folder, as_json=as_json, problems=ignored)


def _ignored(context: click.Context) -> list[Problem]:
    """Problems of options that have no effect with others that were given."""
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
        beside = f"{given['generator']} perf-analyzer"
        found += problem([name for name in given if name in _OF_CLIENT], beside, "perf_analyzer has no option for it")
    found += [
        Problem(field=given[name], found="without --cloud", allowed="with it")
        for name in ("yes", "resume")
        if name in given and "cloud" not in given
    ]
    if "resume" in given and "names" in given:
        allowed = "without: the test has its configurations"
        found.append(Problem(field="NAME", found=f"with {given['resume']}", allowed=allowed))
    if "arrivals" in given and "rate" not in given:
        found.append(Problem(field=given["arrivals"], found="without --rate", allowed="with it"))
    return found
