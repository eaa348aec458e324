"""``tritonstack capacity simulate``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.table import Table

from tritonstack import paths
from tritonstack.cli.conventions import json_option, json_text, print_json, result_console
from tritonstack.errors import Problem, WorkFailedError
from tritonstack_capacity import LimitMissedError
from tritonstack_capacity.commands import text_table
from tritonstack_capacity.simulation.hit_ratio import SteadyState
from tritonstack_capacity.simulation.report import about, result_document, sentences
from tritonstack_capacity.simulation.result import PERCENTILES, Latencies, SimulationResult, simulation_result
from tritonstack_capacity.simulation.scenario_file import prepare

NONE = "-"


def simulate_view(found: SimulationResult) -> RenderableType:
    """Tables of requests and latencies, the rest in sentences, then assumptions."""
    parts: list[RenderableType] = [about(found), _calls(found), _latencies(found), *sentences(found), ""]
    if found.steady is not None:
        parts.append(_sizes(found.steady))
    return Group(*parts, "assumed:", *(f"- {line}" for line in found.assumptions))


def _calls(found: SimulationResult) -> Table:
    calls = found.calls
    met = {
        "a loaded model (hit)": calls.hits,
        "a load or unload under way": calls.waited,
        "began a load from the disk": calls.from_disk,
        "began a download and a load": calls.downloaded,
    }
    rows = [
        (name, f"{count:,}", f"{100 * count / calls.calls:.2f} %" if calls.calls else NONE)
        for name, count in met.items()
    ]
    return text_table(("met", "requests", "share"), rows)


def _latencies(found: SimulationResult) -> Table:
    columns = ("latency, ms", "mean", *(f"p{percent}" for percent in PERCENTILES), "greatest")
    rows = [
        ("all requests", *_cells(found.calls.everyone)),
        ("requests of loaded models", *_cells(found.calls.warm)),
    ]
    return text_table(columns, rows)


def _cells(each: Latencies) -> list[str]:
    values = [each.mean, *(each.percentiles.get(percent) for percent in PERCENTILES), each.greatest]
    return [NONE if value is None else f"{value:,.1f}" for value in values]


def _sizes(found: SteadyState) -> Table:
    title = "hit ratio by size of an instance (GPU memory, disk, max_loaded_models), estimated by Che's approximation"
    columns = ("size", *(f"x {size:g}" for size, _ in found.by_size))
    return text_table(columns, [("hit ratio", *(f"{100 * ratio:.2f} %" for _, ratio in found.by_size))], title=title)


def write_text(file: Path, text: str) -> None:
    """Write a file in one step; a device or a pipe (/dev/stdout) as it is. Raises WorkFailedError."""
    try:
        if file.exists() and not file.is_file():
            file.write_text(text, encoding="utf-8")
        else:
            paths.write_text(file, text)
    except OSError as error:  # which names a temporary file
        raise WorkFailedError(f"{file} cannot be written: {error.strerror or error}") from error


FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("simulate", epilog="example: tritonstack capacity simulate scenario.yaml --html simulation.html")
@click.argument("scenario", type=FILE)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of every random number.")
@click.option("--trace", type=FILE, help="Take arrivals from this CSV (time_seconds,model), not from the scenario.")
@json_option()
@click.option("--output", type=FILE, help="Write that JSON to this file.")
@click.option("--html", type=FILE, help="Write the plots as one self-contained HTML page.")
def command(
    *,
    scenario: Path,
    seed: int,
    trace: Path | None,
    as_json: bool,
    output: Path | None,
    html: Path | None,
) -> None:
    """Predict what a fleet would do: hits, cold starts, latency, instances, cost.

    SCENARIO is a YAML or JSON file (schemas/scenario.schema.json). Reads only files. Exit code 1 where the scenario's
    latency limit is not kept: the result is printed all the same.
    """
    found = simulation_result(prepare(scenario, seed=seed, trace=trace), seed=seed)
    if as_json:
        print_json(result_document(found))
    else:
        result_console().print(simulate_view(found))
    if output is not None:
        write_text(output, json_text(result_document(found)))
    if html is not None:
        # Only here: a run without plots does not need them.
        from tritonstack_capacity.simulation.page import simulation_page  # noqa: PLC0415

        write_text(html, simulation_page(found))
    if found.keeps_limit is False:
        raise LimitMissedError(_missed(found, scenario))


def _missed(found: SimulationResult, scenario: Path) -> Problem:
    reached = found.calls.everyone.percentiles[95]
    warm = found.calls.warm.percentiles.get(95)
    cold = warm is not None and warm <= (found.scenario.latency_limit_ms or 0)
    starts = "Cold starts are what is late: more GPU memory, or fewer models on an endpoint."
    advice = starts if cold else "The GPUs are what is late: more instances, a larger type, or batches."
    said = f"{found.scenario.latency_limit_ms:g} ms, and 95 % of the requests are served within {reached:,.0f} ms"
    allowed = "a limit that this fleet keeps"
    return Problem(file=str(scenario), field="latency_limit_ms", found=said, allowed=allowed, advice=advice)
