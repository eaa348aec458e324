"""The output of ``tritonstack capacity size``: tables for a terminal, and the document of ``--json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from tritonstack_capacity.commands import text_table
from tritonstack_capacity.csv_file import THIS_MACHINE
from tritonstack_capacity.sizing.capacity import Beside, CapacityRow, CapacityTable, Cases, sensitivity
from tritonstack_capacity.sizing.measurements import plain
from tritonstack_capacity.sizing.scaling_advice import ScalingAdvice, ScalingChange, SettingChange


def size_document(
    table: CapacityTable, *, advice: ScalingAdvice | None, region: str, beside: Beside | None = None
) -> dict[str, Any]:
    """The document: numbers as JSON numbers, money in USD; unknown prices are null, and listed in ``unpriced``.

    ``beside``: rows of another table, which are then in the document, too.
    """
    chosen, at_load, cases = table.recommended, table.cheapest_at_load, sensitivity(table)
    return {
        "schema": 1,
        "region": region,
        "invocations_per_minute": _number(table.demand.invocations_per_minute),
        "latency_limit_ms": _number(table.demand.latency_ms),
        "rows": [
            {
                **_row(row, usd_per_day=(table.usd_per_day or {}).get(row)),
                **({} if beside is None else {"beside": _row_or_null(beside.get(row))}),
            }
            for row in table.rows
        ],
        "recommended": None if chosen is None else _named(chosen),
        "recommended_by": "load" if table.usd_per_day is None else "day",
        "cheapest_at_load": None if at_load is None else _named(at_load),
        "unpriced": [_named(row) for row in table.unpriced],
        "scaling": None if advice is None else _advice(advice),
        "sensitivity": {
            "load_factor": _cases(cases.loads),
            "measured_rate_factor": _cases(cases.rates),
            "latency_limit_from_ms": _cases(cases.limits),
        },
    }


def _named(row: CapacityRow) -> dict[str, str]:
    return {"configuration": row.measurement.configuration, "instance_type": row.measurement.instance_type}


def _row_or_null(row: CapacityRow | None) -> dict[str, Any] | None:
    return None if row is None else _row(row, usd_per_day=None)


def _row(row: CapacityRow, *, usd_per_day: Decimal | None) -> dict[str, Any]:
    return {
        **_named(row),
        "invocations_per_minute_per_instance": _number(row.measurement.invocations_per_minute),
        "latency_ms": _number(row.measurement.latency_ms),
        "instances": row.instances,
        "usd_per_instance_hour": _number(None if row.price is None else row.price.usd_per_hour),
        "price_source": None if row.price is None else row.price.source,
        "cost_per_hour": _number(row.cost_per_hour),
        "cost_per_million": _number(row.cost_per_million, digits=4),
        "cost_per_day": _number(usd_per_day),
        "meets_latency": row.meets_latency,
    }


def _advice(advice: ScalingAdvice) -> dict[str, Any]:
    day, all_day = advice.usd_per_day or (None, None)
    return {
        **_named(advice.row),
        "requests_per_second": _number(advice.requests_per_second),
        "safety_factor": _number(advice.safety_factor),
        "invocations_per_instance": _number(advice.invocations_per_instance),
        "minimum": advice.minimum,
        "maximum": advice.maximum,
        "maximum_for_invocations_per_minute": _number(advice.peak),
        "instances_by_hour": list(advice.hourly),
        "usd_per_day": _number(day),
        "usd_per_day_at_maximum": _number(all_day),
        "note": advice.note,
    }


def _cases(cases: Cases) -> list[dict[str, Any]]:
    return [
        {
            "value": _number(value),
            "recommended": None if row is None else _named(row),
            "instances": None if row is None else row.instances,
            "cost_per_hour": None if row is None else _number(row.cost_per_hour),
        }
        for value, row in cases.items()
    ]


def _number(value: Decimal | None, *, digits: int | None = None) -> float | int | None:
    if value is None:
        return None
    number = float(value if digits is None else round(value, digits))
    return int(number) if number.is_integer() else number


UNKNOWN = "unknown"
CENT = Decimal("0.01")


def size_view(
    table: CapacityTable, *, advice: ScalingAdvice | None, beside: Beside | None = None, of: Path | None = None
) -> RenderableType:
    """The table, the recommendation in a sentence, its scaling, and how far it holds.

    ``beside``: rows of another table, shown next to the rows for the same configuration and type; ``of``: its file.
    """
    parts: list[RenderableType] = [_capacity(table), *_sentences(table), *_unpriced(table), *_of_this_machine(table)]
    if beside is not None and of is not None:
        parts += ["", _comparison(table, beside, of=of.name)]
    if advice is not None:
        parts += ["", *_scaling(advice)]
    if any(row.price is not None for row in table.rows):  # without a price nothing is the cheapest, whatever the load
        parts += ["", _sensitivity(table)]
    return Group(*parts)


def _capacity(table: CapacityTable) -> Table:
    day = () if table.usd_per_day is None else ("USD/day",)
    columns = ("configuration", "instance type", "invocations/min each", "latency ms", "instances", "USD/h")
    within = f"within {plain(table.demand.latency_ms)} ms"
    rows = [_cells(row, table) for row in table.rows]
    view = text_table((*columns, "USD/million", *day, within), rows, left=(0, 1, len(columns) + 1 + len(day)))
    for shown, row in zip(view.rows, table.rows, strict=True):
        shown.style = None if row.meets_latency else "dim"
    return view


def _comparison(table: CapacityTable, beside: Beside, *, of: str) -> RenderableType:
    """Rate, latency, instances and cost of each row, and after a stroke those of the other table."""
    limit = plain(table.demand.latency_ms)
    columns = ("configuration", "instance type", "invocations/min each", "latency ms", "instances", "USD/h")
    cells: tuple[Callable[[CapacityRow], str], ...] = (
        lambda each: plain(each.measurement.invocations_per_minute),
        lambda each: plain(each.measurement.latency_ms),
        lambda each: str(each.instances),
        lambda each: _money(each.cost_per_hour),
        lambda each: "yes" if each.meets_latency else "no",
    )
    rows = []
    for row in table.rows:
        both = [row, *([beside[row]] if row in beside else [])]
        figures = [" | ".join(map(cell, both)) for cell in cells]
        rows.append((row.measurement.configuration, row.measurement.instance_type, *figures))
    title = f"measured | {of}" if beside else f"{of} has none of these configurations and instance types"
    return text_table((*columns, f"within {limit} ms"), rows, title=title, left=(0, 1))


def _cells(row: CapacityRow, table: CapacityTable) -> tuple[str, ...]:
    measured, days = row.measurement, table.usd_per_day
    day = () if days is None else (_money(days.get(row)) if row.meets_latency else "",)
    named = measured.configuration, measured.instance_type
    figures = plain(measured.invocations_per_minute), plain(measured.latency_ms), str(row.instances)
    return (*named, *figures, _money(row.cost_per_hour), _money(row.cost_per_million), *day, _answer(row, table))


def _answer(row: CapacityRow, table: CapacityTable) -> str:
    """Whether the row keeps the limit, and whether it is the one to take."""
    if row is table.recommended:
        return "yes, cheapest" if row is table.cheapest_at_load else "yes, cheapest by the day"
    if row is table.cheapest_at_load:
        return "yes, cheapest at the load"
    return "yes" if row.meets_latency else "no"


def _sentences(table: CapacityTable) -> list[str]:
    """The recommended row and its cost; with a day also the cheapest at the load, where that is another row."""
    limit, best, at_load = plain(table.demand.latency_ms), table.recommended, table.cheapest_at_load
    if best is None or at_load is None:
        return [_none(table)]
    days = table.usd_per_day
    if days is None:
        return [f"cheapest within {limit} ms at {_at_load(table, best)}"]
    day = _money(days[best])
    if best is at_load:
        return [f"cheapest within {limit} ms at {_at_load(table, best)}, and by the day: {day} USD"]
    return [
        f"cheapest within {limit} ms by the day: {best.measurement.name}, {day} USD a day; --diff takes it",
        f"it is not the cheapest at {_at_load(table, at_load)}, but {_money(days[at_load])} USD a day",
    ]


def _at_load(table: CapacityTable, row: CapacityRow) -> str:
    price = row.price.source if row.price else UNKNOWN
    load = plain(table.demand.invocations_per_minute)
    cost = f"{_money(row.cost_per_hour)} USD an hour (price: {price})"
    return f"{load} invocations a minute: {row.instances} x {row.measurement.name}, {cost}"


def _none(table: CapacityTable) -> str:
    limit = plain(table.demand.latency_ms)
    if all(row.measurement.is_local for row in table.rows):
        return "no recommendation: every row was measured on this machine, not on an instance"
    if table.unpriced:
        return f"no recommendation: of the rows within {limit} ms none has a price"
    fastest = table.fastest.measurement
    return f"no row is within {limit} ms; the fastest is {fastest.name}, {plain(fastest.latency_ms)} ms"


def _unpriced(table: CapacityTable) -> list[str]:
    unpriced = [row.measurement for row in table.unpriced if not row.measurement.is_local]
    if not unpriced:
        return []
    types = sorted({measured.instance_type for measured in unpriced})
    return [
        f"not compared, since their price is unknown: {', '.join(measured.name for measured in unpriced)}",
        "`tritonstack capacity prices update` asks AWS for it; or",
        f"give it in the environment file: prices: {{{types[0]}: <USD an hour>}}, and name it by --environment",
    ]


def _of_this_machine(table: CapacityTable) -> Iterator[str]:
    """Limits of figures from the local AWS, and the commands whose figures lack them."""
    if not any(row.measurement.is_local for row in table.rows):
        return
    load, limit = plain(table.demand.invocations_per_minute), plain(table.demand.latency_ms)
    yield f"{THIS_MACHINE}: measured on the local AWS, on this machine's processor: it compares payloads, batching. How"
    yield "many GPU instances a load needs, with what latency and cost, only figures of a deployed endpoint can answer:"
    yield "  tritonstack capacity bench NAME -e ENVIRONMENT --to measured    # or --cloud: tritonstack docs load-tests"
    yield (
        f"  tritonstack capacity size --measurements measured/measurements.csv --load {load} --latency-ms {limit} "
        "-e ENVIRONMENT"
    )


def _scaling(advice: ScalingAdvice) -> list[str]:
    measured = (
        f"{plain(advice.row.measurement.invocations_per_minute)} invocations a minute measured x {advice.safety_factor}"
    )
    target = plain(advice.invocations_per_instance)
    lines = [
        f"scaling: {measured}: a target of {target} invocations a minute and instance",
        f"minimum {advice.minimum} instances, maximum {advice.maximum} for {plain(advice.peak)} invocations a minute",
    ]
    if advice.note:
        lines.append(advice.note)
    if not advice.hourly:
        lines.append("the load is taken as the day's greatest; --daily-curve FILE gives the minimum from the others")
    elif advice.usd_per_day:
        day, whole = advice.usd_per_day
        lines.append(f"a day: {_money(day)} USD scaled, {_money(whole)} USD at the maximum all day")
    return lines


def _sensitivity(table: CapacityTable) -> Table:
    title = "how far this holds" if table.usd_per_day is None else "how far this holds, by the cost at the load"
    found = sensitivity(table)
    cases = [
        *((f"load x {factor}", row) for factor, row in found.loads.items()),
        *((f"measured rates x {factor}", row) for factor, row in found.rates.items()),
        *((f"limit from {plain(limit)} ms", row) for limit, row in found.limits.items()),
    ]
    rows = [
        (case, "none", "", "")
        if row is None
        else (case, row.measurement.name, str(row.instances), _money(row.cost_per_hour))
        for case, row in cases
    ]
    return text_table(("if", "then the cheapest is", "instances", "USD/h"), rows, title=title, left=(0, 1))


def _money(value: Decimal | None) -> str:
    """An amount in cents; below a cent by its first two digits, so that nothing looks free."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if value >= CENT else f"{float(value):.2g}"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The scaling of one endpoint as a diff of its file; the diff is "" where nothing changes."""

    file: Path
    change: ScalingChange
    diff: str


def proposal_document(proposal: Proposal, *, table: CapacityTable) -> dict[str, Any]:
    """The proposal as JSON."""
    return {
        "file": str(proposal.file),
        "endpoint": proposal.change.endpoint.name,
        **_named(proposal.change.advice.row),
        "settings": [
            {"field": each.path, "before": _number(each.before), "after": _number(each.after), "why": each.why}
            for each in proposal.change.settings
        ],
        "notes": list(_notes(proposal, table)),
        "diff": proposal.diff,
    }


def proposal_view(proposal: Proposal, *, table: CapacityTable) -> RenderableType:
    """Each setting with its reason, and notes."""
    change = proposal.change
    title = f"\n{change.endpoint.name} in {proposal.file}, if it serves {change.advice.row.measurement.name}:"
    parts: list[RenderableType] = [title, _settings(change.settings)]
    parts += [f"- {note}" for note in _notes(proposal, table)]
    if not proposal.diff:
        parts.append(f"{proposal.file} has this scaling already: no diff")
    return Group(*parts)


def _notes(proposal: Proposal, table: CapacityTable) -> Iterator[str]:
    endpoint, advice, best = proposal.change.endpoint, proposal.change.advice, table.recommended
    row = advice.row
    if advice.note:
        yield advice.note
    if row.price is not None:
        cost = f"at the maximum: {row.price.usd_per_hour * advice.maximum:.2f} USD an hour"
        if advice.usd_per_day is not None:
            scaled, whole = advice.usd_per_day
            cost += f"; a day: {scaled:.2f} USD scaled, {whole:.2f} USD at the maximum all day"
        yield cost
    if best is not None and best.cost_per_hour is not None and best.measurement != row.measurement:
        other = f"cheapest of all: {best.instances} x {best.measurement.name}, {best.cost_per_hour:.2f} USD an hour"
        if table.usd_per_day is not None:
            other = f"cheapest of all by the day: {best.measurement.name}, {table.usd_per_day[best]:.2f} USD a day"
        moved = best.measurement.instance_type != row.measurement.instance_type
        yield f"{other}; another instance_type means another fleet and other engines" if moved else other
    if endpoint.multi_model:
        yield (
            "it is a multi-model endpoint: its target counts the invocations of all its models together, so --load "
            "and the measured rate must be of their mix"
        )


def _settings(settings: tuple[SettingChange, ...]) -> Table:
    rows = [
        (
            each.path,
            "" if each.before is None else plain(each.before),
            "stays" if each.after == each.before else plain(each.after),
            each.why,
        )
        for each in settings
    ]
    return text_table(("setting", "is", "becomes", "why"), rows, left=(0, 3))
