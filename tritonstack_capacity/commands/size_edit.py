"""What ``tritonstack capacity size --write`` does and prints: the edit, why each number, and the diff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tritonstack_capacity.sizing.capacity import CapacityTable
from tritonstack_capacity.sizing.environment_edit import EnvironmentEdit
from tritonstack_capacity.sizing.number import plain
from tritonstack_capacity.sizing.scaling_advice import ScalingAdvice
from tritonstack_capacity.sizing.scaling_change import SettingChange

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
