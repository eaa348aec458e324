"""``tritonstack capacity simulate``."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from tritonstack.errors import InputError, Problem
from tritonstack_capacity.commands.simulate_files import failures_of, target_problems, write_text
from tritonstack_capacity.commands.simulate_view import simulate_view
from tritonstack_capacity.simulation.answer import Answer, answer
from tritonstack_capacity.simulation.answer_document import answer_document
from tritonstack_capacity.simulation.scenario_file import PreparedScenario, prepare

WIDTH = 120
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("simulate")
@click.argument("scenario", type=FILE)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all that is drawn.")
@click.option("--trace", type=FILE, help="CSV: time_seconds,model; instead of the scenario's calls.")
@click.option("--json", "json_file", type=FILE, help="Write the answer as JSON (- for the output).")
@click.option("--html", type=FILE, help="Write the plots as a page that needs nothing else.")
@click.option("--png", type=FILE, help="Draw that page as a picture, with a Chromium of this system.")
def command(
    *, scenario: Path, seed: int, trace: Path | None, json_file: Path | None, html: Path | None, png: Path | None
) -> None:
    """Say what a fleet would do, before it exists: hits, cold starts, latency, instances, cost.

    SCENARIO is a YAML or JSON file (schemas/scenario.schema.json). Reads files alone. Exit code 2 where the scenario's
    latency limit is not kept: the answer is given all the same.
    """
    to_output = json_file is not None and str(json_file) == "-"
    targets = (("--json", None if to_output else json_file), ("--html", html), ("--png", png))
    prepared = _prepared(scenario, seed=seed, trace=trace, problems=target_problems(targets))
    found = answer(prepared, seed=seed)
    document = json.dumps(answer_document(found), indent=2) + "\n"
    if to_output:
        click.echo(document, nl=False)
    else:
        _print(found)
        if json_file is not None:
            write_text(json_file, document)
    if html is not None or png is not None:
        _draw(found, html=html, png=png)
    if found.keeps_limit is False:
        raise InputError([_missed(found, scenario)])


def _prepared(scenario: Path, *, seed: int, trace: Path | None, problems: list[Problem]) -> PreparedScenario:
    """With the problems of the options, all at once."""
    try:
        prepared = prepare(scenario, seed=seed, trace=trace)
    except InputError as error:
        raise InputError([*problems, *error.problems]) from error
    if problems:
        raise InputError(problems)
    return prepared


def _print(found: Answer) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=WIDTH, highlight=False)
    console.print(simulate_view(found))


def _draw(found: Answer, *, html: Path | None, png: Path | None) -> None:
    # Only here: a run without plots does not need them.
    from tritonstack.observability.page.chromium import write_picture  # noqa: PLC0415
    from tritonstack_capacity.simulation.page import simulation_page  # noqa: PLC0415

    text = simulation_page(found)
    if html is not None:
        write_text(html, text)
    if png is not None:
        with failures_of(png):
            write_picture(text, png)


def _missed(found: Answer, scenario: Path) -> Problem:
    reached = found.calls.everyone.percentiles[95]
    warm = found.calls.warm.percentiles.get(95)
    cold = warm is not None and warm <= (found.scenario.latency_limit_ms or 0)
    busy = "Cold starts are what is late: more GPU memory, or fewer models on an endpoint." if cold else ""
    return Problem(
        file=str(scenario),
        field="latency_limit_ms",
        found=f"{found.scenario.latency_limit_ms:g} ms, and 95 % of the calls are answered within {reached:,.0f} ms",
        allowed="a limit that this fleet keeps",
        advice=busy or "The GPUs are what is late: more instances, a larger type, or batches.",
    )
