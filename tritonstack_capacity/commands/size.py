"""``tritonstack capacity size``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack.config import Environment, load_environment
from tritonstack.config.loader import project_of
from tritonstack.config.scaling import DEFAULT_SAFETY_FACTOR
from tritonstack.errors import InputError, Problem
from tritonstack.paths import project_folder
from tritonstack_capacity.commands.size_view import size_document, size_view
from tritonstack_capacity.sizing.capacity import (
    CapacityTable,
    DailyCurve,
    Demand,
    capacity_table,
    read_daily_curve,
    sensitivity,
)
from tritonstack_capacity.sizing.environment_edit import EnvironmentEdit, environment_edit
from tritonstack_capacity.sizing.measurements import (
    ABOVE_ZERO,
    Measurements,
    is_above_zero,
    number_of,
    plain,
    prices,
    read_measurements,
)
from tritonstack_capacity.sizing.scaling_advice import (
    DEFAULT_FACTOR,
    ScalingAdvice,
    SettingChange,
    factor_of,
    least_instances,
    scaling_advice,
    scaling_change,
    scaling_target,
    with_day,
)

LEAST_FACTOR = Decimal("0.01")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Target:
    """``--write`` and what narrows it.

    Attributes:
        file: the environment file.
        endpoint, configuration: by name; None where the recommendation decides.
        diff_only: whether the file stays as it is.
    """

    file: Path
    endpoint: str | None
    configuration: str | None
    diff_only: bool


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything that was given.

    Attributes:
        demand: the load and the limit.
        measurements: the rows of the file.
        factor: the safety factor; None where none was given.
        curve: the day's load; None where none was given.
        environment: whose region and prices count; the one that is written to, if there is one.
        project: the folder whose ``prices.json`` counts, where the environment has no price.
        target: None where nothing is to be written.
    """

    demand: Demand
    measurements: Measurements
    factor: Decimal | None
    curve: DailyCurve | None
    environment: Environment | None
    project: Path
    target: Target | None


def read_inputs(
    *,
    measurements: Path,
    load: str,
    latency_ms: str,
    safety_factor: str | None,
    daily_curve: Path | None,
    environment: str | None,
    target: Target | None,
) -> Inputs:
    """Every input, read.

    Raises:
        InputError: the problems of all of them.
    """
    problems: list[Problem] = []

    def read(one: Callable[[], T]) -> T | None:
        try:
            return one()
        except InputError as error:
            problems.extend(error.problems)
            return None

    demand = read(lambda: _demand(load=load, latency_ms=latency_ms))
    factor = None if safety_factor is None else read(lambda: _parsed_factor(safety_factor))
    curve = None if daily_curve is None else read(lambda: read_daily_curve(daily_curve))
    measured = read(lambda: read_measurements(measurements))
    chosen = read(lambda: _environment(environment, target))
    if problems or demand is None or measured is None:
        raise InputError(problems)
    return Inputs(
        demand=demand,
        measurements=measured,
        factor=factor,
        curve=curve,
        environment=chosen,
        project=project_folder() if target is None else project_of(target.file),
        target=target,
    )


def target_of(file: Path | None, *, endpoint: str | None, configuration: str | None, diff_only: bool) -> Target | None:
    """The options around ``--write``; None where nothing is to be written.

    Raises:
        InputError: one of the others without it.
    """
    if file is not None:
        return Target(file=file, endpoint=endpoint, configuration=configuration, diff_only=diff_only)
    given = {"--endpoint": endpoint, "--configuration": configuration, "--diff": "--diff" if diff_only else None}
    lone = [
        Problem(field=option, found=f"{value} without --write", allowed="with --write FILE only")
        for option, value in given.items()
        if value is not None
    ]
    if lone:
        raise InputError(lone)
    return None


def _environment(name: str | None, target: Target | None) -> Environment | None:
    named = None if name is None else load_environment(project_folder() / "environments" / f"{name}.yaml")
    if target is None:
        return named
    written = load_environment(target.file)
    if named is not None and named.environment != written.environment:
        problem = Problem(
            field="--environment",
            found=f"{named.environment}, and --write {target.file}, which is {written.environment}",
            allowed="--write alone: region and prices are those of the file that is written",
        )
        raise InputError([problem])
    return written


def _demand(*, load: str, latency_ms: str) -> Demand:
    texts = {"--load": load, "--latency-ms": latency_ms}
    numbers = {option: number for option, text in texts.items() if (number := number_of(text)) is not None}
    problems = [
        Problem(field=option, found=text, allowed=ABOVE_ZERO)
        for option, text in texts.items()
        if option not in numbers or not is_above_zero(numbers[option])
    ]
    if problems:
        raise InputError(problems)
    return Demand(invocations_per_minute=numbers["--load"], latency_ms=numbers["--latency-ms"])


def _parsed_factor(text: str) -> Decimal:
    factor = number_of(text)
    if factor is None or not LEAST_FACTOR <= factor <= 1:
        raise InputError([Problem(field="--safety-factor", found=text, allowed=f"a number from {LEAST_FACTOR} to 1")])
    return factor


HEADER_LINES = 2
STYLES = {"+": "green", "-": "red", "@": "cyan"}


def edit_document(edit: EnvironmentEdit, *, table: CapacityTable, written: bool) -> dict[str, Any]:
    """The edit for programs; ``diff`` is empty where nothing changes."""
    measured = edit.change.advice.row.measurement
    return {
        "file": str(edit.file),
        "endpoint": edit.change.endpoint.name,
        "configuration": measured.configuration,
        "instance_type": measured.instance_type,
        "settings": [
            {
                "field": each.path,
                "before": None if each.before is None else _number(each.before),
                "after": _number(each.after),
                "why": each.why,
            }
            for each in edit.change.settings
        ],
        "notes": list(notes(edit, table)),
        "diff": edit.diff,
        "written": written,
    }


def show_edit(console: Console, edit: EnvironmentEdit, *, table: CapacityTable, written: bool) -> None:
    """Each setting with its reason, what else to know, and the diff, which a pipe gets as it is."""
    change = edit.change
    console.print(Text(f"\n{change.endpoint.name} in {edit.file}, if it serves {change.advice.row.measurement.name}:"))
    console.print(_settings(change.settings))
    for note in notes(edit, table):
        console.print(Text(f"- {note}"))
    if not edit.changed:
        console.print(Text(f"{edit.file} says so already: nothing to write"))
        return
    console.print()
    for number, line in enumerate(edit.diff.splitlines(keepends=True)):
        if console.is_terminal:
            style = "bold" if number < HEADER_LINES else STYLES.get(line[0], "")
            console.print(Text(line.rstrip("\r\n"), style=style), soft_wrap=True)
        else:
            click.echo(line, nl=False)
    console.print(Text(f"\n{edit.file} is written" if written else f"\n--diff: {edit.file} stays as it is"))


def notes(edit: EnvironmentEdit, table: CapacityTable) -> Iterator[str]:
    """What the numbers leave open, as sentences."""
    endpoint, advice, best = edit.change.endpoint, edit.change.advice, table.recommended
    row = advice.row
    if advice.note:
        yield advice.note
    yield from _costs(advice)
    if edit.changed:
        many = f"{advice.maximum} instances, and a second fleet during an update"
        yield f"tritonstack preflight {edit.file.stem} asks whether the account's quota allows {many}"
    if best is not None and best.cost_per_hour is not None and best.measurement != row.measurement:
        said = f"cheapest of all: {best.instances} x {best.measurement.name}, {best.cost_per_hour:.2f} USD an hour"
        if table.usd_per_day is not None:
            said = f"cheapest of all by the day: {best.measurement.name}, {table.usd_per_day[best]:.2f} USD a day"
        moved = best.measurement.instance_type != row.measurement.instance_type
        yield f"{said}; another instance_type means another fleet and other engines: left to you" if moved else said
    if endpoint.multi_model:
        yield (
            "it is a multi-model endpoint: its target counts the calls of all its models together, so --load and the "
            "measured rate must be of their mix"
        )
    scaling = endpoint.scaling
    if scaling is None:
        return
    others = [f"{name}: {value:g}" for name, value in scaling.targets.items() if name != "invocations_per_instance"]
    if others:
        yield f"{', '.join(others)} stays: of several targets, the one that asks for the most instances wins"
    if scaling.schedules:
        names = ", ".join(each.name for each in scaling.schedules)
        yield f"its schedules stay, and give other limits at their times: {names}"


def _costs(advice: ScalingAdvice) -> Iterator[str]:
    if advice.row.price is None:
        return
    said = f"at the maximum: {advice.row.price.usd_per_hour * advice.maximum:.2f} USD an hour"
    if advice.usd_per_day is not None:
        scaled, whole = advice.usd_per_day
        said += f"; a day: {scaled:.2f} USD scaled, {whole:.2f} USD at the maximum all day"
    yield said


def _settings(settings: tuple[SettingChange, ...]) -> Table:
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    view.add_column("setting", no_wrap=True)
    view.add_column("is", justify="right", no_wrap=True)
    view.add_column("becomes", justify="right", no_wrap=True)
    view.add_column("why")
    for each in settings:
        before = "" if each.before is None else plain(each.before)
        after = "stays" if each.after == each.before else plain(each.after)
        view.add_row(each.path, before, after, Text(each.why))  # a name in it may look like markup
    return view


def _number(value: Any) -> float | int:
    return int(value) if value == int(value) else float(value)


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
