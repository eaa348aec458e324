"""``tritonstack status``."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tritonstack.local.aws import LocalAws, require_local_aws

SECONDS = 1.0
SHOWN_ERRORS = 3


@click.command("status")
@click.option("--watch", is_flag=True, help="A live view, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print the runtime's own JSON.")
def command(*, watch: bool, as_json: bool) -> None:
    """Show local endpoints: their fleets, loaded models, hit ratio, latencies, last errors, and what stands in."""
    aws = require_local_aws()
    if as_json:
        click.echo(json.dumps(aws.runtime_status(), indent=2))
    elif watch:
        _watch(aws)
    else:
        Console(highlight=False).print(view(aws, aws.runtime_status()))


def _watch(aws: LocalAws) -> None:
    with Live(view(aws, aws.runtime_status()), screen=True, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(SECONDS)
                live.update(view(aws, aws.runtime_status()), refresh=True)
        except KeyboardInterrupt:
            return


def view(aws: LocalAws, status: dict[str, Any]) -> RenderableType:
    """The whole status as a picture of text."""
    head = Text.assemble("AWS APIs ", (aws.emulator_url, "bold"), "   InvokeEndpoint ", (aws.runtime_url, "bold"))
    endpoints = status["endpoints"]
    if not endpoints:
        return Group(head, Text("no endpoint is deployed: tritonstack deploy-local"))
    not_written = status.get("metrics_not_written")
    foot = [Text(f"not written: {not_written}", style="dim")] if not_written else []
    return Group(head, *(_endpoint(endpoint) for endpoint in endpoints), *foot)


def _endpoint(endpoint: dict[str, Any]) -> Panel:
    parts: list[RenderableType] = []
    if endpoint["last_failure"]:
        parts.append(Text(f"last failure: {endpoint['last_failure']}", style="red"))
    for fleet in endpoint["fleets"]:
        parts += [_fleet_line(fleet), *_fleet_notes(fleet)]
        if fleet["models"]:
            parts.append(_models(fleet))
        parts += [_error(one) for one in fleet["last_errors"][-SHOWN_ERRORS:]]
    style = "green" if endpoint["status"] == "InService" else "yellow"
    title = Text.assemble((endpoint["name"], "bold"), "  ", (endpoint["status"], style))
    return Panel(Group(*parts), title=title, title_align="left", border_style="dim")


def _fleet_line(fleet: dict[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 3))
    ratio = fleet["hit_ratio"]
    latency = fleet["model_latency_ms"] or {}
    shown = "  ".join(f"{name} {value:.1f}" for name, value in latency.items() if isinstance(value, int | float))
    answering = fleet["server_version"] or "starting"
    grid.add_row(
        Text(f"{fleet['variant']} ({fleet['mode']})", style="bold"),
        f"{fleet['state']}{'' if fleet['serving'] else ', no traffic'}",
        f"asked {fleet['release_asked_for'] or '?'}, answers {answering}",
        f"{fleet['requests']} requests, {fleet['errors']} errors, {fleet['in_flight']} in flight",
        "hit ratio —" if ratio is None else f"hit ratio {ratio:.0%}",
        f"ms: {shown}" if shown else "",
        f"restarts {fleet['restarts']}" if fleet["restarts"] else "",
    )
    return grid


def _fleet_notes(fleet: dict[str, Any]) -> list[RenderableType]:
    lines = [Text(f"stand-in: {line}", style="yellow") for line in fleet["stand_ins"]]
    if fleet["isolation"] and fleet["isolation"] != "namespace":
        lines.append(Text(f"not isolated: {fleet['isolation']}", style="bold red"))
    return [*lines]


def _models(fleet: dict[str, Any]) -> Table:
    limit = fleet["max_loaded_models"]
    count = f"{len(fleet['models'])} loaded" + (f" of {limit}" if limit else "")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(f"TargetModel ({count})", overflow="fold")
    for name in ("state", "loads", "hits", "in flight", "last used"):
        table.add_column(name, justify="right", no_wrap=True)
    for model in fleet["models"]:
        table.add_row(
            model["target_model"] or "(the endpoint's one model)", model["state"], str(model["loads"]),
            str(model["hits"]), str(model["in_flight"]), _ago(model["last_used"]),
        )  # fmt: skip
    return table


def _error(one: dict[str, Any]) -> Text:
    return Text(f"{_ago(one['at'])}: {one['error']}", style="red", no_wrap=True, overflow="ellipsis")


def _ago(moment: str) -> str:
    seconds = max(0.0, (datetime.now(tz=UTC) - datetime.fromisoformat(moment)).total_seconds())
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
