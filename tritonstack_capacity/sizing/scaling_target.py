"""Which endpoint of an environment the advice is for, and which measured configuration it serves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from tritonstack.errors import InputError, Problem
from tritonstack.settings import Endpoint, Environment
from tritonstack_capacity.sizing.capacity import CapacityRow, CapacityTable


def scaling_target(
    table: CapacityTable, *, environment: Environment, file: str, endpoint: str | None, configuration: str | None
) -> tuple[Endpoint, CapacityRow]:
    """The endpoint to write to, and the row that its numbers come from.

    Without a name: the one endpoint on the instance type of the cheapest row. With one: that endpoint, and the best row
    on its own instance type. ``configuration`` leaves the rows of that configuration alone in the running.

    Raises:
        InputError: no such endpoint or configuration, none or several on the type, or nothing on it keeps the limit.
    """
    rows = tuple(row for row in table.rows if configuration in (None, row.measurement.configuration))
    if not rows:
        raise InputError(
            [_unknown("--configuration", configuration, {row.measurement.configuration for row in table.rows})]
        )
    if endpoint is None:
        return _by_row(_cheapest(rows, table=table, configuration=configuration), environment=environment, file=file)
    found = environment.endpoint(endpoint)
    if found is None:
        raise InputError([_unknown("--endpoint", endpoint, [each.name for each in environment.endpoints], file=file)])
    return found, _best_on(found, rows, table=table, file=file)


def _cheapest(rows: tuple[CapacityRow, ...], *, table: CapacityTable, configuration: str | None) -> CapacityRow:
    best = table.cheapest_of(rows)
    if best is not None:
        return best
    limit = table.demand.latency_ms
    if any(row.meets_latency for row in rows):
        raise InputError(
            [
                Problem(
                    field="--write",
                    found=f"no row within {limit} ms whose price is known, so that none is the cheapest",
                    allowed="a price for one of them: prices: {<instance type>: <USD an hour>} in the file",
                    advice="or name the endpoint: --endpoint NAME takes the best row on its own instance type",
                )
            ]
        )
    fastest = min(rows, key=lambda row: row.measurement.latency_ms).measurement
    raise InputError(
        [
            Problem(
                field="--configuration",
                found=f"{configuration}, which nowhere keeps {limit} ms",
                allowed=f"one that does; its fastest is {fastest.latency_ms} ms on {fastest.instance_type}",
            )
        ]
    )


def _by_row(row: CapacityRow, *, environment: Environment, file: str) -> tuple[Endpoint, CapacityRow]:
    type_ = row.measurement.instance_type
    fit = [endpoint for endpoint in environment.endpoints if endpoint.instance_type == type_]
    if len(fit) == 1:
        return fit[0], row
    if fit:
        found = f"{len(fit)} endpoints on {type_}: {', '.join(each.name for each in fit)}"
        advice = "name the one that the load is for: --endpoint NAME"
    else:
        types = ", ".join(f"{each.name} on {each.instance_type}" for each in environment.endpoints)
        found = f"no endpoint on {type_}, the recommended type; there are: {types}"
        advice = (
            f"change instance_type to {type_} first (another fleet, and other engines), or have the best that was "
            "measured on an endpoint's own type: --endpoint NAME"
        )
    raise InputError(
        [Problem(file=file, field="endpoints", found=found, allowed=f"one endpoint on {type_}", advice=advice)]
    )


def _best_on(endpoint: Endpoint, rows: tuple[CapacityRow, ...], *, table: CapacityTable, file: str) -> CapacityRow:
    """The cheapest on the type; where its price is unknown, the least instances, which is the same at one price."""
    there = [row for row in rows if row.measurement.instance_type == endpoint.instance_type]
    fit = [row for row in there if row.meets_latency]
    best = table.cheapest_of(tuple(fit))
    if best is not None:
        return best
    if fit:
        return min(fit, key=lambda row: (row.instances, row.measurement.latency_ms, row.measurement.line))
    limit = table.demand.latency_ms
    if there:
        fastest = min(there, key=lambda row: row.measurement.latency_ms).measurement
        found = f"nothing within {limit} ms on {endpoint.instance_type}; the fastest is {fastest.configuration}, "
        found += f"{fastest.latency_ms} ms"
    else:
        found = f"nothing measured on {endpoint.instance_type}"
    best = table.recommended
    advice = "measure it there (tritonstack capacity bench)"
    if best is not None:
        advice += f", or change instance_type to {best.measurement.instance_type}, the cheapest that keeps the limit"
    problem = Problem(
        file=file,
        field=f"endpoints: {endpoint.name}: instance_type",
        found=found,
        allowed=f"a row within {limit} ms",
        advice=advice,
    )
    raise InputError([problem])


def _unknown(option: str, found: str | None, names: Iterable[str], *, file: str | None = None) -> Problem:
    known = sorted(names)
    near = difflib.get_close_matches(found or "", known, n=1)
    return Problem(
        file=file,
        field=option,
        found=found or "",
        allowed=", ".join(known),
        advice=f"did you mean {near[0]}?" if near else "",
    )
