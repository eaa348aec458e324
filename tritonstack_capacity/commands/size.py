"""``tritonstack capacity size``."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import click
from rich.console import Console

from tritonstack.errors import InputError, Problem
from tritonstack.settings.scaling import DEFAULT_SAFETY_FACTOR
from tritonstack_capacity.commands.size_edit import edit_document, show_edit
from tritonstack_capacity.commands.size_inputs import Inputs, read_inputs, target_of
from tritonstack_capacity.commands.size_view import size_view
from tritonstack_capacity.sizing.capacity import CapacityTable, capacity_table
from tritonstack_capacity.sizing.day_cost import with_day
from tritonstack_capacity.sizing.environment_edit import EnvironmentEdit, environment_edit
from tritonstack_capacity.sizing.price import prices
from tritonstack_capacity.sizing.scaling_advice import ScalingAdvice, scaling_advice
from tritonstack_capacity.sizing.scaling_change import DEFAULT_FACTOR, factor_of, least_instances, scaling_change
from tritonstack_capacity.sizing.scaling_target import scaling_target
from tritonstack_capacity.sizing.sensitivity import sensitivity
from tritonstack_capacity.sizing.size_document import size_document

DEFAULT_REGION = "us-east-1"
WIDTH = 120


@click.command("size")
@click.option(
    "--measurements", type=click.Path(path_type=Path), required=True, help="CSV with the published table's columns."
)
@click.option("--load", required=True, help="Invocations a minute, all callers together.")
@click.option("--latency-ms", required=True, help="What the model's latency may be at most.")
@click.option(
    "--safety-factor",
    help=f"Share of the measured rate to scale by. [default: {DEFAULT_SAFETY_FACTOR}; with --write the endpoint's]",
)
@click.option(
    "--daily-curve", type=click.Path(path_type=Path), help="CSV: hour,invocations_per_min for each hour, 0 to 23."
)
@click.option("--environment", help="Take region and prices of this environment file.")
@click.option(
    "--write",
    "file",
    type=click.Path(path_type=Path),
    help="Write the scaling into this environment file, whose region and prices count, and print the diff.",
)
@click.option("--endpoint", help="With --write: the endpoint. [default: the one on the recommended instance type]")
@click.option(
    "--configuration",
    help="With --write: what the endpoint serves. [default: the cheapest within the limit on its instance type]",
)
@click.option("--diff", "diff_only", is_flag=True, help="With --write: print the diff, and leave the file as it is.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(
    *,
    measurements: Path,
    load: str,
    latency_ms: str,
    safety_factor: str | None,
    daily_curve: Path | None,
    environment: str | None,
    file: Path | None,
    endpoint: str | None,
    configuration: str | None,
    diff_only: bool,
    as_json: bool,
) -> None:
    """Say what each measured configuration needs for a load, what it costs, and which is the cheapest in the limit.

    Reads only files. With a daily curve the cheapest is the cheapest by the day. With --write it changes the scaling of
    one endpoint in an environment file, and nothing else. Exit code 2 where no measured configuration keeps the limit,
    or the advice cannot be written: the table is printed all the same, and no file is touched.
    """
    inputs = read_inputs(
        measurements=measurements,
        load=load,
        latency_ms=latency_ms,
        safety_factor=safety_factor,
        daily_curve=daily_curve,
        environment=environment,
        target=target_of(file, endpoint=endpoint, configuration=configuration, diff_only=diff_only),
    )
    chosen = inputs.environment
    region = DEFAULT_REGION if chosen is None else chosen.region
    price_of = prices(region=region, overrides={} if chosen is None else chosen.prices, project=inputs.project)
    table = capacity_table(inputs.measurements, demand=inputs.demand, price_of=price_of)
    if inputs.curve is not None:
        table = with_day(table, curve=inputs.curve, safety_factor=_factor(inputs), least=_least(inputs))
    edit, refusal = _edit(table, inputs)
    written = edit is not None and inputs.target is not None and edit.changed and not inputs.target.diff_only
    if edit is not None and written:
        edit.write()
    advice = _advice(table, inputs) if edit is None else edit.change.advice
    if as_json:
        _print_json(table, advice=advice, edit=edit, region=region, written=written)
    else:
        _print(table, advice=advice, edit=edit, written=written)
    if refusal is not None:
        raise refusal


def _edit(table: CapacityTable, inputs: Inputs) -> tuple[EnvironmentEdit | None, InputError | None]:
    """The edit that is asked for, or why there is none."""
    if not any(row.meets_latency for row in table.rows):
        return None, InputError([_nobody(table)])
    target, environment = inputs.target, inputs.environment
    if target is None or environment is None:
        return None, None
    try:
        endpoint, row = scaling_target(
            table,
            environment=environment,
            file=str(target.file),
            endpoint=target.endpoint,
            configuration=target.configuration,
        )
        change = scaling_change(
            endpoint, row=row, production=environment.production, factor=inputs.factor, curve=inputs.curve
        )
        return environment_edit(target.file, change), None
    except InputError as error:
        return None, error


def _advice(table: CapacityTable, inputs: Inputs) -> ScalingAdvice | None:
    best = table.recommended
    if best is None:
        return None
    return scaling_advice(best, safety_factor=_factor(inputs), curve=inputs.curve, least=_least(inputs))


def _factor(inputs: Inputs) -> Decimal:
    """The one that is told, else that of the endpoint that is named, else what AWS advises."""
    target, environment = inputs.target, inputs.environment
    if inputs.factor is not None:
        return inputs.factor
    if target is None or target.endpoint is None or environment is None:
        return DEFAULT_FACTOR
    named = environment.endpoint(target.endpoint)
    return DEFAULT_FACTOR if named is None else factor_of(named.scaling)


def _least(inputs: Inputs) -> int:
    chosen = inputs.environment
    return least_instances(production=chosen is None or chosen.production)


def _print(table: CapacityTable, *, advice: ScalingAdvice | None, edit: EnvironmentEdit | None, written: bool) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    # an edit says its scaling itself, number by number
    console.print(size_view(table, advice=advice if edit is None else None, sensitive=sensitivity(table)))
    if edit is not None:
        show_edit(console, edit, table=table, written=written)


def _print_json(
    table: CapacityTable,
    *,
    advice: ScalingAdvice | None,
    edit: EnvironmentEdit | None,
    region: str,
    written: bool,
) -> None:
    document = size_document(table, advice=advice, sensitive=sensitivity(table), region=region)
    told = None if edit is None else edit_document(edit, table=table, written=written)
    click.echo(json.dumps({**document, "edit": told}, indent=2, allow_nan=False))


def _nobody(table: CapacityTable) -> Problem:
    fastest = table.fastest.measurement
    return Problem(
        field="--latency-ms",
        found=f"{table.demand.latency_ms} ms, which no measured configuration keeps",
        allowed=f"{fastest.latency_ms} ms or more, the latency of {fastest.name}",
        advice="measure a faster configuration (a larger instance type, TensorRT, smaller batches), or raise the limit",
    )
