"""``tritonstack capacity size``."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import click

from tritonstack.cli.conventions import environment_option, json_option, print_json, result_console
from tritonstack.config import Environment, load_environment
from tritonstack.config.loader import project_of
from tritonstack.config.scaling import DEFAULT_SAFETY_FACTOR
from tritonstack.errors import InputError, Problem, TritonstackError, refuse
from tritonstack.paths import environment_file, project_folder
from tritonstack_capacity import LimitMissedError
from tritonstack_capacity.commands.size_view import Proposal, proposal_document, proposal_view, size_document, size_view
from tritonstack_capacity.sizing.capacity import (
    CapacityTable,
    DailyCurve,
    Demand,
    capacity_table,
    read_daily_curve,
    rows_beside,
)
from tritonstack_capacity.sizing.environment_diff import environment_diff
from tritonstack_capacity.sizing.measurements import ABOVE_ZERO, is_above_zero, number_of, prices, read_measurements
from tritonstack_capacity.sizing.scaling_advice import (
    DEFAULT_FACTOR,
    factor_of,
    least_instances,
    scaling_advice,
    scaling_change,
    scaling_target,
    with_day,
)

LEAST_FACTOR = Decimal("0.01")
DEFAULT_REGION = "us-east-1"
Read = TypeVar("Read")


@click.command(
    "size", epilog="\b\nexample: tritonstack capacity size --measurements bench.csv --load 6000 --latency-ms 1000"
)
@click.option(
    "--measurements",
    type=click.Path(path_type=Path),
    required=True,
    help="Measurements: a CSV file with the published table's columns.",
)
@click.option("--load", required=True, help="Invocations a minute, all clients together.")
@click.option("--latency-ms", required=True, help="Limit of the model's latency in ms.")
@click.option(
    "--safety-factor",
    help=f"Share of the measured rate to scale by. [default: {DEFAULT_SAFETY_FACTOR}; with --diff the endpoint's]",
)
@click.option(
    "--daily-curve",
    type=click.Path(path_type=Path),
    help="CSV file with hour,invocations_per_min for each hour, 0 to 23.",
)
@environment_option("Take region and prices of this environment's file.", default=None)
@click.option(
    "--diff",
    "file",
    type=click.Path(path_type=Path),
    help="Print the scaling as a diff of this environment file, whose region and prices count. The diff goes to the "
    "standard output, the rest to the standard error: `… --diff FILE | git apply`.",
)
@click.option(
    "--beside",
    type=click.Path(path_type=Path),
    help="Other measurements, as the published ones: shown next to the rows for the same configuration and type.",
)
@click.option("--endpoint", help="With --diff: the endpoint. [default: the one on the recommended instance type]")
@json_option()
def command(
    *,
    measurements: Path,
    load: str,
    latency_ms: str,
    safety_factor: str | None,
    daily_curve: Path | None,
    environment: str | None,
    file: Path | None,
    beside: Path | None,
    endpoint: str | None,
    as_json: bool,
) -> None:
    """Print what each measured configuration needs for a load, what it costs, and the cheapest within the limit.

    Reads only files. With a daily curve the cheapest is the cheapest by the day. Exit code 1 where no measured
    configuration keeps the limit, 2 where --diff finds no endpoint for the scaling: the table is printed all the same.
    """
    problems: list[Problem] = []
    if endpoint is not None and file is None:
        problems.append(Problem(field="--endpoint", found="without --diff", allowed="with --diff FILE only"))

    def read(one: Callable[[], Read]) -> Read | None:
        try:
            return one()
        except InputError as error:
            problems.extend(error.problems)
            return None

    demand = read(lambda: _demand(load=load, latency_ms=latency_ms))
    factor = None if safety_factor is None else read(lambda: _parsed_factor(safety_factor))
    curve = None if daily_curve is None else read(lambda: read_daily_curve(daily_curve))
    measured = read(lambda: read_measurements(measurements))
    others = None if beside is None else read(lambda: read_measurements(beside))
    chosen = read(lambda: _environment(environment, file))
    if problems or demand is None or measured is None:
        raise InputError(problems)
    region = DEFAULT_REGION if chosen is None else chosen.region
    price_of = prices(
        region=region,
        overrides={} if chosen is None else chosen.prices,
        project=project_folder() if file is None else project_of(file),
    )
    named = None if chosen is None or endpoint is None else chosen.endpoint(endpoint)
    share = factor or (DEFAULT_FACTOR if named is None else factor_of(named.scaling))
    least = least_instances(production=chosen is None or chosen.production)
    table = capacity_table(measured, demand=demand, price_of=price_of)
    if curve is not None:
        table = with_day(table, curve=curve, safety_factor=share, least=least)
    best = table.recommended
    advice = None if best is None else scaling_advice(best, safety_factor=share, curve=curve, least=least)
    proposal: Proposal | None = None
    kept = any(row.meets_latency for row in table.rows)
    refusal: TritonstackError | None = None if kept else LimitMissedError(_nobody(table))
    if file is not None and chosen is not None and refusal is None:
        try:
            proposal = _proposal(table, chosen, file, endpoint=endpoint, factor=factor, curve=curve)
            advice = proposal.change.advice
        except (InputError, LimitMissedError) as error:
            refusal = error
    next_to = None if others is None else rows_beside(table, capacity_table(others, demand=demand, price_of=price_of))
    if as_json:
        edit = None if proposal is None else proposal_document(proposal, table=table)
        print_json({**size_document(table, advice=advice, region=region, beside=next_to), "edit": edit})
    else:
        console = result_console(stderr=file is not None)
        console.print(size_view(table, advice=None if proposal else advice, beside=next_to, of=beside))
        if proposal is not None:
            console.print(proposal_view(proposal, table=table))
            click.echo(proposal.diff, nl=False)
    if refusal is not None:
        raise refusal


def _proposal(
    table: CapacityTable,
    environment: Environment,
    file: Path,
    *,
    endpoint: str | None,
    factor: Decimal | None,
    curve: DailyCurve | None,
) -> Proposal:
    """The scaling as a diff of an environment file. Raises InputError, LimitMissedError: no endpoint takes it."""
    target, row = scaling_target(table, environment=environment, file=str(file), endpoint=endpoint)
    change = scaling_change(target, row=row, production=environment.production, factor=factor, curve=curve)
    return Proposal(file=file, change=change, diff=environment_diff(file, change))


def _demand(*, load: str, latency_ms: str) -> Demand:
    texts = {"--load": load, "--latency-ms": latency_ms}
    numbers = {option: number_of(text) or Decimal(0) for option, text in texts.items()}
    problems = [
        Problem(field=option, found=text, allowed=ABOVE_ZERO)
        for option, text in texts.items()
        if not is_above_zero(numbers[option])
    ]
    refuse(problems)
    return Demand(invocations_per_minute=numbers["--load"], latency_ms=numbers["--latency-ms"])


def _parsed_factor(text: str) -> Decimal:
    factor = number_of(text)
    if factor is None or not LEAST_FACTOR <= factor <= 1:
        raise InputError([Problem(field="--safety-factor", found=text, allowed=f"a number from {LEAST_FACTOR} to 1")])
    return factor


def _environment(name: str | None, file: Path | None) -> Environment | None:
    """The environment whose region and prices count: that of ``--diff FILE``, else of ``--environment``."""
    if name is not None and file is not None:
        allowed = "--diff alone: region and prices are those of its file"
        raise InputError([Problem(field="--environment", found=f"{name} with --diff {file}", allowed=allowed)])
    if name is not None:
        return load_environment(environment_file(name))
    return None if file is None else load_environment(file)


def _nobody(table: CapacityTable) -> Problem:
    fastest = table.fastest.measurement
    found = f"{table.demand.latency_ms} ms, which no measured configuration keeps"
    allowed = f"{fastest.latency_ms} ms or more, the latency of {fastest.name}"
    advice = "measure a faster configuration (a larger instance type, TensorRT, smaller batches), or raise the limit"
    if table.fastest.measurement.is_local:
        advice = "measure on an instance: tritonstack capacity bench NAME -e ENVIRONMENT"
    return Problem(field="--latency-ms", found=found, allowed=allowed, advice=advice)
