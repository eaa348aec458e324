"""``tritonstack local status`` and ``logs``."""

from __future__ import annotations

import re
import sys
import textwrap
import time
from collections import Counter, deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tritonstack.cli.conventions import box_width, echo, json_option, print_json, result_console
from tritonstack.errors import InputError, Problem, listing, nearest, visible
from tritonstack.paths import LocalPaths
from tritonstack_local.aws import LocalAws, find_local_aws, require_local_aws
from tritonstack_local.commands.iam import denials
from tritonstack_local.commands.stacks import LeftOnLocalAws, left_on
from tritonstack_local.container.container import release_and_version

SECONDS = 1.0
LEFT_SECONDS = 15.0
"""How often a live view compares what is deployed with the files, which takes longer than the status itself."""


@click.command("status", epilog="example: tritonstack local status --watch")
@click.option("--watch", is_flag=True, help="Show a live view, until interrupted.")
@json_option("Print the runtime's own JSON, and what left the environments' files.")
def status_command(*, watch: bool, as_json: bool) -> None:
    """Show local endpoints: their fleets, loaded models, hit ratio, latencies, last errors and stand-ins.

    Stacks that are deployed and that their environment's file no longer has are named below, with their cost at AWS.
    """
    console = result_console()
    if watch and not as_json and not console.is_terminal:
        raise click.UsageError("--watch needs a terminal; without it the status is printed once")
    aws = require_local_aws()
    if as_json:
        left = [entry.model_dump(mode="json") for each in left_on(aws) for entry in each.left]
        print_json({**aws.runtime_status(), "left": left})
    elif watch:
        _watch(aws, console)
    else:
        width, rows = box_width(console), ERROR_ROWS if console.is_terminal else None
        console.print(view(aws, aws.runtime_status(), width=width, error_rows=rows), width=width)
        for part in (*_left(left_on(aws)), *denials(aws.iam())):
            console.print(part)


def _watch(aws: LocalAws, console: Console) -> None:
    """Show the status until interrupted, which is its regular end."""

    left, read = left_on(aws), time.monotonic()

    def now() -> RenderableType:
        nonlocal left, read
        if time.monotonic() - read > LEFT_SECONDS:
            left, read = left_on(aws), time.monotonic()
        return Group(view(aws, aws.runtime_status(), width=console.width), *_left(left), *denials(aws.iam()))

    with suppress(KeyboardInterrupt), Live(now(), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(SECONDS)
            live.update(now(), refresh=True)


def _left(found: tuple[LeftOnLocalAws, ...]) -> list[Text]:
    """Deployed resources that are not in their environment's file."""
    return [Text(line, style="yellow") for each in found for line in each.lines]


SHOWN_ERRORS = 3
NAMED_MODELS = 2
ERROR_ROWS = 2
FRAME = 4
"""Columns of a panel's frame and padding."""
_CONSOLE_URL = re.compile(r"\s*See https://.*", re.DOTALL)
"""SageMaker's pointer to CloudWatch, of no use here, where the error itself is shown."""
_STAND_IN = re.compile(r"(?:tritonstack stand-in: )?(?P<what>.*?)(?: \(model (?P<model>\S+)\))?")


def view(aws: LocalAws, status: dict[str, Any], *, width: int, error_rows: int | None = ERROR_ROWS) -> RenderableType:
    """The whole status: where it listens, and a panel of ``width`` columns for each endpoint.

    ``error_rows``: of an error at most; None for all.
    """
    head: list[RenderableType] = [
        Text.assemble("AWS APIs ", (aws.emulator_url, "bold"), "   InvokeEndpoint ", (aws.runtime_url, "bold"))
    ]
    if status["local_aws"] != "answers":
        head.append(Text(f"the AWS APIs do not respond to the runtime: {status['local_aws']}", style="bold red"))
    endpoints = status["endpoints"]
    if not endpoints:
        return Group(*head, Text("no endpoint is deployed: tritonstack local deploy"))
    not_written = status.get("metrics_not_written")
    foot = [Text(f"not written: {not_written}", style="dim")] if not_written else []
    return Group(*head, *(_endpoint(endpoint, width - FRAME, error_rows) for endpoint in endpoints), *foot)


def _endpoint(endpoint: dict[str, Any], width: int, error_rows: int | None) -> Panel:
    parts: list[RenderableType] = []
    if endpoint["last_failure"]:
        parts.append(Text(f"last failure: {endpoint['last_failure']}", style="red"))
    for fleet in endpoint["fleets"]:
        parts += [*_fleet(fleet), *_models(fleet["models"], fleet["max_loaded_models"])]
        parts += [_error(one, width, error_rows) for one in fleet["last_errors"][-SHOWN_ERRORS:]]
    style = "green" if endpoint["status"] == "InService" else "yellow"
    title = Text.assemble((endpoint["name"], "bold"), "  ", (endpoint["status"], style))
    return Panel(Group(*parts), title=title, title_align="left", border_style="dim")


def _fleet(fleet: dict[str, Any]) -> list[Text]:
    version, share, isolation = fleet["server_version"], fleet["share"], fleet["isolation"]
    release = fleet["release_asked_for"]
    part = "" if share == 1 else f", {share:.0%} of the requests" if share else ", no traffic"
    isolated = isolation in (None, "namespace")
    landed = f", {fleet['instance_type']}" if fleet.get("pooled") else ""
    return [
        Text.assemble((f"{fleet['variant']} ({fleet['mode']}{landed})", "bold"), f"  {fleet['state']}{part}"),
        Text(
            f"{f'release {release}' if release else 'no known release'} requested, "
            f"served by {f'Triton {release_and_version(version)}' if version else 'nothing yet'}"
        ),
        Text(_traffic(fleet)),
        *_latency(fleet["model_latency_ms"] or {}),
        *stand_ins(fleet["stand_ins"]),
        *([] if isolated else [Text(f"not isolated: {isolation}", style="bold red")]),
    ]


def _traffic(fleet: dict[str, Any]) -> str:
    phrases = [
        f"{_count(fleet['requests'], 'request')}, {_count(fleet['errors'], 'error')}, {fleet['in_flight']} in flight"
    ]
    if fleet["hit_ratio"] is not None:
        phrases.append(f"hit ratio {fleet['hit_ratio']:.0%}")
    if fleet["restarts"]:
        phrases.append(f"restarted {fleet['restarts']} times" if fleet["restarts"] > 1 else "restarted once")
    return "   ".join(phrases)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _latency(figures: dict[str, Any]) -> list[Text]:
    """Percentiles; without a request in the last minutes there are none."""
    shares = [(name, figures.get(name)) for name in ("p50", "p90", "p99")]
    known = "  ".join(f"{name} {value:.1f}" for name, value in shares if value is not None)
    return [Text(f"model latency, ms: {known}   (the last 5 minutes)")] if known else []


def stand_ins(lines: list[str]) -> list[Text]:
    """The stand-ins: one line for all models with the same ones."""
    models: dict[str, list[str]] = {}
    for line in lines:
        if match := _STAND_IN.fullmatch(line):
            models.setdefault(match["what"], []).extend([match["model"]] if match["model"] else [])
    return [Text(f"stand-in: {what}{_for_models(names)}", style="yellow") for what, names in models.items()]


def _for_models(names: list[str]) -> str:
    if not names:
        return ""
    return f" (for {', '.join(names) if len(names) <= NAMED_MODELS else f'{len(names)} models'})"


def _models(models: list[dict[str, Any]], limit: int | None) -> list[RenderableType]:
    """The models with their figures; a TargetModel that does not fit is folded, never cut."""
    if not models:
        return []
    loaded = sum(model["state"] == "loaded" for model in models)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(f"TargetModel ({loaded} loaded{f', at most {limit}' if limit else ''})", overflow="fold")
    for name in ("state", "loads", "hits", "busy", "idle"):
        table.add_column(name, justify="right", no_wrap=True)
    for model in models:
        table.add_row(
            model["target_model"] or "(the endpoint's one model)",
            model["state"],
            *(str(model[name]) for name in ("loads", "hits", "in_flight")),
            _since(model["last_used"]),
        )
    return [table]


def _error(one: dict[str, Any], width: int, most_rows: int | None) -> Text:
    """An error, in a terminal its first rows; ``tritonstack local logs`` has the rest."""
    text = f"{_since(one['at'])} ago: {_CONSOLE_URL.sub('', one['error'])}"
    rows = textwrap.wrap(text, width, max_lines=most_rows, placeholder=" …")
    return Text("\n".join(rows), style="red")


def _since(moment: str) -> str:
    """The time since a moment in ISO 8601, as long as a person cares about: ``75 s``, ``12 min``."""
    seconds = max(0.0, (datetime.now(tz=UTC) - datetime.fromisoformat(moment)).total_seconds())
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


PAUSE_SECONDS = 0.2


@click.command("logs", epilog="example: tritonstack local logs emulator -n 20")
@click.argument("name", required=False)
@click.option(
    "-n", "--lines", default=50, show_default=True, type=click.IntRange(1), help="Number of lines from the end."
)
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they are written, until interrupted.")
@json_option("Print the list of logs as JSON.")
def logs_command(*, name: str | None, lines: int, follow: bool, as_json: bool) -> None:
    """Print a log: `emulator`, `runtime`, `cdk`, or an endpoint's name for its Triton. Without a name, list them."""
    logs = find_logs()
    known_as = None if name is None else _known_as(name, logs)
    stopped = "" if find_local_aws() else "no local AWS is running"
    if name is not None and known_as is None:
        found = f"{name}, and {stopped}" if stopped else name
        advice = nearest(name, logs) or ("tritonstack local up, then tritonstack local deploy" if stopped else "")
        allowed = listing(logs, none="no log exists yet")
        raise InputError([Problem(field="NAME", found=found, allowed=allowed, advice=advice)])
    if stopped:
        left = "these are logs of an earlier one" if logs else "no log exists yet"
        echo(f"{stopped}, and {left}; tritonstack local up starts one", err=True)
    if known_as is not None:
        print_log(logs[known_as], lines=lines, follow=follow)
    elif as_json:
        print_json({known: str(path) for known, path in logs.items()})
    else:
        for known, path in logs.items():
            echo(f"{known:24} {path}")


def find_logs() -> dict[str, Path]:
    """Every log there is: our own by their names, each endpoint's latest Triton's by the endpoint's name.

    Where it has several production variants, the latest of each has the name ``endpoint/variant``, too. Read off the
    folders, so that logs are found when the runtime no longer responds.
    """
    paths = LocalPaths.from_environment()
    logs = {path.stem: path for path in sorted(paths.logs.glob("*.log"))}
    fleets = sorted(paths.runtime.glob("fleets/*/*/*/triton.log"), key=lambda path: (path.parts[-4], _number(path)))
    endpoints = {path.parts[-4]: path for path in fleets}
    variants = {"/".join(path.parts[-4:-2]): path for path in fleets}
    count = Counter(path.parts[-4] for path in variants.values())
    return logs | endpoints | {name: path for name, path in variants.items() if count[path.parts[-4]] > 1}


def _known_as(name: str, logs: dict[str, Path]) -> str | None:
    """The log that ``name`` means: itself, or the one endpoint that an environment's file calls so (``digits``)."""
    if name in logs or f"local-{name}" in logs:
        return name if name in logs else f"local-{name}"
    endpoints = [known for known, path in logs.items() if path.name == "triton.log" and known.endswith(f"-{name}")]
    return endpoints[0] if len(endpoints) == 1 else None


def _number(log: Path) -> int:
    """A fleet's number: the runtime numbers the folders of its fleets in the order in which it starts them."""
    number = log.parent.name.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def print_log(path: Path, *, lines: int, follow: bool) -> None:
    """Print the last ``lines`` lines of ``path`` and, with ``follow``, what comes after them until interrupted.

    Raises InputError: the log went away with its fleet.
    """
    try:
        file = path.open(errors="replace")
    except FileNotFoundError as error:
        raise InputError([Problem(file=str(path), found="no longer there", allowed="a log of what runs")]) from error
    with file:
        for line in deque(file, maxlen=lines):
            sys.stdout.write(visible(line))
        while follow:
            added = file.read()
            sys.stdout.write(visible(added))
            sys.stdout.flush()
            if not added:
                time.sleep(PAUSE_SECONDS)
