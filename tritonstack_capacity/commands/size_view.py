"""The output of ``tritonstack capacity size``: tables for a terminal, and the document of ``--json``."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tritonstack_capacity.sizing.capacity import CapacityRow, CapacityTable, Case, Sensitivity
from tritonstack_capacity.sizing.measurements import plain
from tritonstack_capacity.sizing.scaling_advice import ScalingAdvice


def size_document(
    table: CapacityTable, *, advice: ScalingAdvice | None, sensitive: Sensitivity, region: str
) -> dict[str, Any]:
    """Numbers as JSON numbers, money in USD; what is unknown is null and said in ``unpriced``."""
    chosen, at_load = table.recommended, table.cheapest_at_load
    return {
        "schema": 1,
        "region": region,
        "invocations_per_minute": _number(table.demand.invocations_per_minute),
        "latency_limit_ms": _number(table.demand.latency_ms),
        "rows": [_row(row, usd_per_day=(table.usd_per_day or {}).get(row)) for row in table.rows],
        "recommended": None if chosen is None else _named(chosen),
        "recommended_by": "load" if table.usd_per_day is None else "day",
        "cheapest_at_load": None if at_load is None else _named(at_load),
        "unpriced": [_named(row) for row in table.unpriced],
        "scaling": None if advice is None else _advice(advice),
        "sensitivity": {
            "load_factor": [_case(case) for case in sensitive.loads],
            "measured_rate_factor": [_case(case) for case in sensitive.rates],
            "latency_limit_from_ms": [_case(case) for case in sensitive.limits],
        },
    }


def _named(row: CapacityRow) -> dict[str, str]:
    return {"configuration": row.measurement.configuration, "instance_type": row.measurement.instance_type}


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


def _case(case: Case) -> dict[str, Any]:
    row = case.recommended
    found: dict[str, Any] = {"recommended": None, "instances": None, "cost_per_hour": None}
    if row is not None:
        found = {"recommended": _named(row), "instances": row.instances, "cost_per_hour": _number(row.cost_per_hour)}
    return {"value": _number(case.value), **found}


def _number(value: Decimal | None, *, digits: int | None = None) -> float | int | None:
    if value is None:
        return None
    number = float(value if digits is None else round(value, digits))
    return int(number) if number.is_integer() else number


UNKNOWN = "unknown"
MOST_NAMED = 12
CENT = Decimal("0.01")


def size_view(table: CapacityTable, *, advice: ScalingAdvice | None, sensitive: Sensitivity) -> RenderableType:
    """The table, the recommendation in a sentence, its scaling, and how far it holds."""
    parts: list[RenderableType] = [_capacity(table)]
    parts += [Text(line) for line in (*_within(table), *_sentences(table), *_unpriced(table))]
    if advice is not None:
        parts += ["", *(Text(line) for line in _scaling(advice))]
    parts += ["", _cases(sensitive, by_day=table.usd_per_day is not None)]
    return Group(*parts)


def _capacity(table: CapacityTable) -> Table:
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    view.add_column("configuration")
    view.add_column("instance type", min_width=max(len(row.measurement.instance_type) for row in table.rows))
    day = () if table.usd_per_day is None else ("USD/day",)
    for name in ("calls/min each", "latency ms", "instances", "USD/h", "USD/million", *day):
        view.add_column(name, justify="right")
    view.add_column(f"within {plain(table.demand.latency_ms)} ms")
    for row in table.rows:
        cells = map(Text, _cells(row, table))  # a name may look like markup
        view.add_row(*cells, style=None if row.meets_latency else "dim")
    return view


def _cells(row: CapacityRow, table: CapacityTable) -> tuple[str, ...]:
    measured, days = row.measurement, table.usd_per_day
    day = () if days is None else (_money(days.get(row)) if row.meets_latency else "",)
    return (
        measured.configuration,
        measured.instance_type,
        plain(measured.invocations_per_minute),
        plain(measured.latency_ms),
        str(row.instances),
        _money(row.cost_per_hour),
        _money(row.cost_per_million),
        *day,
        _answer(row, table),
    )


def _answer(row: CapacityRow, table: CapacityTable) -> str:
    """Whether the row keeps the limit, and whether it is the one to take."""
    if row is table.recommended:
        return "yes, cheapest" if row is table.cheapest_at_load else "yes, cheapest by the day"
    if row is table.cheapest_at_load:
        return "yes, cheapest at the load"
    return "yes" if row.meets_latency else "no"


def _within(table: CapacityTable) -> list[str]:
    """The rows that keep the limit, by name; nothing where none does."""
    names = [row.measurement.name for row in table.rows if row.meets_latency]
    if not names:
        return []
    more = [] if len(names) <= MOST_NAMED else [f"{len(names) - MOST_NAMED} more"]
    listed = ", ".join([*names[:MOST_NAMED], *more])
    return [f"{len(names)} of {len(table.rows)} within {plain(table.demand.latency_ms)} ms: {listed}"]


def _sentences(table: CapacityTable) -> list[str]:
    """Which row to take and what it costs; with a day also the cheapest at the load, where that is another row."""
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
        f"cheapest within {limit} ms by the day: {best.measurement.name}, {day} USD a day; --write takes it",
        f"it is not the cheapest at {_at_load(table, at_load)}, but {_money(days[at_load])} USD a day",
    ]


def _at_load(table: CapacityTable, row: CapacityRow) -> str:
    price = row.price.source if row.price else UNKNOWN
    load = plain(table.demand.invocations_per_minute)
    cost = f"{_money(row.cost_per_hour)} USD an hour (price: {price})"
    return f"{load} invocations a minute: {row.instances} x {row.measurement.name}, {cost}"


def _none(table: CapacityTable) -> str:
    limit = plain(table.demand.latency_ms)
    if table.unpriced:
        return f"no recommendation: of the rows within {limit} ms none has a price"
    fastest = table.fastest.measurement
    return f"no row is within {limit} ms; the fastest is {fastest.name}, {plain(fastest.latency_ms)} ms"


def _unpriced(table: CapacityTable) -> list[str]:
    if not table.unpriced:
        return []
    types = sorted({row.measurement.instance_type for row in table.unpriced})
    return [
        f"not compared, since their price is unknown: {', '.join(row.measurement.name for row in table.unpriced)}",
        "`tritonstack capacity prices update` asks AWS for it; or",
        f"give it in the environment file: prices: {{{types[0]}: <USD an hour>}}, and name it by --environment",
    ]


def _scaling(advice: ScalingAdvice) -> list[str]:
    measured = (
        f"{plain(advice.row.measurement.invocations_per_minute)} calls a minute measured x {advice.safety_factor}"
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


def _cases(sensitive: Sensitivity, *, by_day: bool) -> Table:
    title = "how far this holds, by the cost at the load" if by_day else "how far this holds"
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    view.add_column("if")
    view.add_column("then the cheapest is")
    view.add_column("instances", justify="right")
    view.add_column("USD/h", justify="right")
    for case in sensitive.loads:
        view.add_row(f"load x {case.value}", *map(Text, _then(case)))
    for case in sensitive.rates:
        view.add_row(f"measured rates x {case.value}", *map(Text, _then(case)))
    for case in sensitive.limits:
        view.add_row(f"limit from {plain(case.value)} ms", *map(Text, _then(case)))
    return view


def _then(case: Case) -> tuple[str, str, str]:
    row = case.recommended
    return ("none", "", "") if row is None else (row.measurement.name, str(row.instances), _money(row.cost_per_hour))


def _money(value: Decimal | None) -> str:
    """In cents; below a cent by its first two digits, so that nothing looks free."""
    if value is None:
        return UNKNOWN
    return f"{value:.2f}" if value >= CENT else f"{float(value):.2g}"
