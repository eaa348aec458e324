"""``tritonstack size``."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path

import click
from rich.console import Console

from tritonstack.commands.size_view import size_view
from tritonstack.errors import InputError, Problem
from tritonstack.local.paths import project_folder
from tritonstack.settings import Environment, load_environment
from tritonstack.sizing.capacity import CapacityTable, Demand, capacity_table
from tritonstack.sizing.daily_curve import read_daily_curve
from tritonstack.sizing.measurements_file import read_measurements
from tritonstack.sizing.price import prices
from tritonstack.sizing.scaling_advice import ScalingAdvice, scaling_advice
from tritonstack.sizing.sensitivity import sensitivity
from tritonstack.sizing.size_document import size_document

DEFAULT_REGION = "us-east-1"
WIDTH = 120


@click.command("size")
@click.option(
    "--measurements", type=click.Path(path_type=Path), required=True, help="CSV with the published table's columns."
)
@click.option("--load", required=True, help="Invocations a minute, all callers together.")
@click.option("--latency-ms", required=True, help="What the model's latency may be at most.")
@click.option("--safety-factor", default="0.5", show_default=True, help="Share of the measured rate to scale by.")
@click.option(
    "--daily-curve", type=click.Path(path_type=Path), help="CSV: hour,invocations_per_min for each hour, 0 to 23."
)
@click.option("--environment", help="Take region and prices of this environment file.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(
    *,
    measurements: Path,
    load: str,
    latency_ms: str,
    safety_factor: str,
    daily_curve: Path | None,
    environment: str | None,
    as_json: bool,
) -> None:
    """Say what each measured configuration needs for a load, what it costs, and which is the cheapest in the limit.

    Reads files alone. Exit code 2 where no measured configuration keeps the limit: the table is printed all the same.
    """
    chosen = _environment(environment)
    region = DEFAULT_REGION if chosen is None else chosen.region
    demand = Demand(invocations_per_minute=_decimal("--load", load), latency_ms=_decimal("--latency-ms", latency_ms))
    factor = _factor(safety_factor)
    curve = None if daily_curve is None else read_daily_curve(daily_curve)
    table = capacity_table(
        read_measurements(measurements),
        demand=demand,
        price_of=prices(region=region, overrides={} if chosen is None else chosen.prices),
    )
    best = table.recommended
    advice = None if best is None else scaling_advice(best, safety_factor=factor, curve=curve)
    _show(table, advice=advice, region=region, as_json=as_json)
    if not any(row.meets_latency for row in table.rows):
        raise InputError([_nobody(table)])


def _show(table: CapacityTable, *, advice: ScalingAdvice | None, region: str, as_json: bool) -> None:
    sensitive = sensitivity(table)
    if as_json:
        click.echo(json.dumps(size_document(table, advice=advice, sensitive=sensitive, region=region), indent=2))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(size_view(table, advice=advice, sensitive=sensitive))


def _environment(name: str | None) -> Environment | None:
    return None if name is None else load_environment(project_folder() / "environments" / f"{name}.yaml")


def _decimal(option: str, text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise InputError([Problem(field=option, found=text, allowed="a number above zero")]) from error


def _factor(text: str) -> Decimal:
    factor = _decimal("--safety-factor", text)
    if not 0 < factor <= 1:
        raise InputError([Problem(field="--safety-factor", found=text, allowed="above 0, at most 1")])
    return factor


def _nobody(table: CapacityTable) -> Problem:
    fastest = table.fastest.measurement
    return Problem(
        field="--latency-ms",
        found=f"{table.demand.latency_ms} ms, which no measured configuration keeps",
        allowed=f"{fastest.latency_ms} ms or more, the latency of {fastest.name}",
        advice="measure a faster configuration (a larger instance type, TensorRT, smaller batches), or raise the limit",
    )
