"""Advice for ``scaling:`` of an endpoint from a measured configuration: target, counts, cost of a day."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal

from tritonstack.config import EndpointSettings, Environment, Scaling
from tritonstack.config.scaling import DEFAULT_SAFETY_FACTOR, SECONDS_IN_A_MINUTE
from tritonstack.errors import InputError, Problem, listing, nearest
from tritonstack_capacity import LimitMissedError
from tritonstack_capacity.sizing.capacity import CapacityRow, CapacityTable, DailyCurve, instances_for
from tritonstack_capacity.sizing.measurements import plain, rounded

LEAST_IN_PRODUCTION = 2
"""One instance of a multi-model endpoint would lose every loaded model while it is replaced."""
TARGET_DIGITS = 9
LEAST_DIGITS = 4
"""Of a rate in seconds; more only where 60 times these is another rate in minutes."""
ANOTHER_RATE = Decimal("1e-6")
"""Share of the measured rate, below what a load test can measure."""


@dataclass(frozen=True, kw_only=True)
class ScalingAdvice:
    """The scaling of one endpoint."""

    row: CapacityRow  # the measured configuration that the numbers hold for
    # invocations a minute that the maximum is for: the load, or the curve's busiest hour where that is more
    peak: Decimal
    # the target of the invocations' policy, a minute and instance: what one instance served in the load test, by the
    # safety factor
    invocations_per_instance: Decimal
    safety_factor: Decimal  # share of it to aim at: a target at the measured limit would scale when it is too late
    # instances, at the target, in the day's quietest hour and at ``peak``
    minimum: int
    maximum: int
    # instances in each hour of the day at the target, at least ``minimum``; empty without a daily curve
    hourly: tuple[int, ...] = ()
    # of ``hourly``, and of the greatest count all day; None without a curve or a price
    usd_per_day: tuple[Decimal, Decimal] | None = None
    curve: DailyCurve | None = None  # the day's curve; None without one

    @property
    def requests_per_second(self) -> Decimal:
        """Requests a second of one instance, with the digits that give the settings the same target."""
        return by_the_second(self.row.measurement.invocations_per_minute)

    @property
    def note(self) -> str:
        """Which numbers follow the load and which the curve; empty where their greatest loads are equal."""
        if self.curve is None or self.curve.peak == self.row.load:
            return ""
        load, busiest = plain(self.row.load), plain(self.curve.peak)
        if self.curve.peak < self.row.load:
            return (
                f"--load, {load} invocations a minute, is above the busiest hour of --daily-curve, {busiest}: "
                "the maximum is for --load, the minimum and the cost of a day are by the curve"
            )
        return (
            f"the busiest hour of --daily-curve, {busiest} invocations a minute, is above --load, {load}: "
            "the maximum is for the busiest hour; instances and costs an hour in the table are for --load; give --load "
            f"{busiest} to have both for the busiest hour"
        )


def scaling_advice(
    row: CapacityRow,
    *,
    safety_factor: Decimal = Decimal(str(DEFAULT_SAFETY_FACTOR)),
    curve: DailyCurve | None = None,
    least: int = LEAST_IN_PRODUCTION,
) -> ScalingAdvice:
    """How to scale ``row``'s configuration.

    The maximum is for the load or the curve's busiest hour, whichever is more. Without a curve, quieter hours are
    unknown: the minimum is ``least``. The minimum applies in every hour, and the maximum is never below it.
    """
    target = rounded(row.measurement.invocations_per_minute * safety_factor, digits=TARGET_DIGITS)
    hourly = () if curve is None else tuple(max(least, instances_for(load, rate=target)) for load in curve.loads)
    peak = row.load if curve is None else max(row.load, curve.peak)
    minimum = min(hourly) if hourly else least
    maximum = max(instances_for(peak, rate=target), minimum)
    price = row.price
    usd = None
    if price is not None and hourly:
        usd = (price.usd_per_hour * sum(hourly), price.usd_per_hour * maximum * len(hourly))
    return ScalingAdvice(
        row=row,
        peak=peak,
        invocations_per_instance=target,
        safety_factor=safety_factor,
        minimum=minimum,
        maximum=maximum,
        hourly=hourly,
        usd_per_day=usd,
        curve=curve,
    )


def by_the_second(rate: Decimal) -> Decimal:
    """``rate`` (a minute) in seconds, with four digits or as many more as it takes for 60 of it to be ``rate`` again.

    Rounded up, by less than a millionth: rounded down, the target would want one instance more than the maximum.
    """
    digits = LEAST_DIGITS
    while True:
        found = rounded(rate / SECONDS_IN_A_MINUTE, digits=digits, rounding=ROUND_CEILING)
        if found * SECONDS_IN_A_MINUTE - rate <= rate * ANOTHER_RATE:
            return found
        digits += 1


def with_day(table: CapacityTable, *, curve: DailyCurve, safety_factor: Decimal, least: int) -> CapacityTable:
    """``table`` with the cost of a day for each row that keeps the limit and has a price.

    Each hour has the instances that its load needs at the target (measured rate x ``safety_factor``), at least
    ``least``. So large instances are dear where most hours are quiet, however cheap they are at the load.
    """
    found = {}
    for row in table.rows:
        advice = scaling_advice(row, safety_factor=safety_factor, curve=curve, least=least)
        if row.meets_latency and advice.usd_per_day is not None:
            found[row] = advice.usd_per_day[0]
    return replace(table, usd_per_day=found)


DEFAULT_FACTOR = Decimal(str(DEFAULT_SAFETY_FACTOR))
COUNT = "initial_instance_count"
NO_CURVE = "nothing shows how quiet the day gets; --daily-curve FILE does"


@dataclass(frozen=True, kw_only=True)
class SettingChange:
    """One setting of the endpoint."""

    field: str  # its name; all but ``initial_instance_count`` are under ``scaling``
    before: Decimal | None  # what holds in the file now; None where nothing does
    after: Decimal  # what is advised; equal to ``before`` where nothing changes
    why: str  # a sentence

    @property
    def path(self) -> str:
        """The field as it is called from the endpoint on."""
        return self.field if self.field == COUNT else f"scaling.{self.field}"


@dataclass(frozen=True, kw_only=True)
class ScalingChange:
    """The advice for one endpoint."""

    endpoint: EndpointSettings  # as the file has it now
    advice: ScalingAdvice  # its scaling
    settings: tuple[SettingChange, ...]  # every setting that the advice affects

    @property
    def changed(self) -> tuple[SettingChange, ...]:
        """The settings that are to be written."""
        return tuple(each for each in self.settings if each.before != each.after)


def least_instances(*, production: bool) -> int:
    """The least number of instances that is advised where no other reason gives more."""
    return LEAST_IN_PRODUCTION if production else 1


def scaling_change(
    endpoint: EndpointSettings, *, row: CapacityRow, production: bool, factor: Decimal | None, curve: DailyCurve | None
) -> ScalingChange:
    """How ``endpoint`` should scale if it serves the configuration of ``row``.

    The form of the target, the safety factor (unless ``factor`` is given) and, without a curve, the minimum stay as the
    file has them; so does every other field.
    """
    scaling = endpoint.scaling
    least = least_instances(production=production)
    if scaling is not None and curve is None:
        least = scaling.minimum
    advice = scaling_advice(row, safety_factor=factor or factor_of(scaling), curve=curve, least=least)
    limits = (
        _minimum(advice, scaling=scaling, curve=curve, least=least),
        _maximum(advice, scaling=scaling, curve=curve),
    )
    count = _count(endpoint, advice)
    return ScalingChange(
        endpoint=endpoint,
        advice=advice,
        settings=(*limits, *_target(advice, scaling=scaling, from_option=factor is not None), *count),
    )


def factor_of(scaling: Scaling | None) -> Decimal:
    """Safety factor without --safety-factor."""
    return DEFAULT_FACTOR if scaling is None else Decimal(str(scaling.factor))


def _minimum(advice: ScalingAdvice, *, scaling: Scaling | None, curve: DailyCurve | None, least: int) -> SettingChange:
    if curve is not None and advice.minimum > least:
        why = f"the quietest hour, {plain(curve.least)} invocations a minute at {_target_of(advice)} an instance"
    elif curve is not None:
        why = f"the least{' in production' if least > 1 else ''}; the quietest hour needs no more"
    elif scaling is not None:
        why = f"kept: {NO_CURVE}"
    else:
        why = f"the least{' in production' if least > 1 else ''}: {NO_CURVE}"
    return _setting("minimum", None if scaling is None else scaling.minimum, Decimal(advice.minimum), why)


def _maximum(advice: ScalingAdvice, *, scaling: Scaling | None, curve: DailyCurve | None) -> SettingChange:
    source = "--load" if curve is None or curve.peak < advice.peak else "the busiest hour"
    why = f"{source}, {plain(advice.peak)} invocations a minute at {_target_of(advice)} an instance"
    if curve is not None and curve.peak != advice.row.load:
        other = (
            f"the busiest hour has {plain(curve.peak)}" if source == "--load" else f"--load is {plain(advice.row.load)}"
        )
        why += f"; {other}"
    if advice.maximum == advice.minimum:
        why += ", and never below the minimum"
    return _setting("maximum", None if scaling is None else scaling.maximum, Decimal(advice.maximum), why)


def _target(advice: ScalingAdvice, *, scaling: Scaling | None, from_option: bool) -> tuple[SettingChange, ...]:
    """The target in the file's form; without one, the measurement and the factor as two settings."""
    row = advice.row.measurement
    measured = f"measured: {plain(row.invocations_per_minute)} invocations a minute, {row.name}"
    if scaling is not None and scaling.invocations_per_instance is not None:
        why = f"{advice.safety_factor} of what was {measured}"
        before = scaling.invocations_per_instance
        return (_setting("invocations_per_instance", before, advice.invocations_per_instance, why),)
    rate = None if scaling is None else scaling.requests_per_second
    factor = None if scaling is None or rate is None else scaling.factor
    why = "--safety-factor" if from_option else "the file's" if factor is not None else "what AWS advises to start with"
    return (
        _setting("requests_per_second", rate, advice.requests_per_second, measured),
        _setting("safety_factor", factor, advice.safety_factor, f"share of the measured rate to aim at: {why}"),
    )


def _count(endpoint: EndpointSettings, advice: ScalingAdvice) -> tuple[SettingChange, ...]:
    """initial_instance_count where the file has one outside the limits; else the settings take the minimum."""
    count = endpoint.initial_instance_count
    if COUNT not in endpoint.model_fields_set or advice.minimum <= count <= advice.maximum:
        return ()
    after = max(advice.minimum, min(count, advice.maximum))
    return (_setting(COUNT, count, Decimal(after), "must lie within the limits of scaling"),)


def _setting(field: str, before: float | None, after: Decimal, why: str) -> SettingChange:
    return SettingChange(field=field, before=None if before is None else Decimal(str(before)), after=after, why=why)


def _target_of(advice: ScalingAdvice) -> str:
    return plain(advice.invocations_per_instance)


def scaling_target(
    table: CapacityTable, *, environment: Environment, file: str, endpoint: str | None
) -> tuple[EndpointSettings, CapacityRow]:
    """The endpoint to write to, and the row that its numbers come from; some row of ``table`` keeps the limit.

    Without a name: the one endpoint on the instance type of the cheapest row. With one: that endpoint, and the best row
    on its own instance type.

    Raises:
        InputError: no such endpoint, one with variants, none or several on the type, or nothing was measured on it.
        LimitMissedError: nothing that was measured on the type keeps the limit.
    """
    if endpoint is None:
        return _by_row(_cheapest(table), environment=environment, file=file)
    found = environment.endpoint(endpoint)
    if found is None:
        names = sorted(each.name for each in environment.endpoints)
        problem = Problem(
            file=file, field="--endpoint", found=endpoint, allowed=listing(names), advice=nearest(endpoint, names)
        )
        raise InputError([problem])
    if found.variants:
        shared = f"{endpoint}, whose requests {len(found.variants)} variants share"
        allowed = "an endpoint with one variant: the load that is sized for is one fleet's"
        raise InputError([Problem(file=file, field="--endpoint", found=shared, allowed=allowed)])
    return found, _best_on(found, table=table, file=file)


def _cheapest(table: CapacityTable) -> CapacityRow:
    if table.recommended is not None:
        return table.recommended
    found = f"no row within {table.demand.latency_ms} ms whose price is known, so that none is the cheapest"
    allowed = "a price for one of them: prices: {<instance type>: <USD an hour>} in the file"
    advice = "or name the endpoint: --endpoint NAME takes the best row on its own instance type"
    raise InputError([Problem(field="--diff", found=found, allowed=allowed, advice=advice)])


def _by_row(row: CapacityRow, *, environment: Environment, file: str) -> tuple[EndpointSettings, CapacityRow]:
    type_ = row.measurement.instance_type
    fit = [each for each in environment.endpoints if each.instance_type == type_ and not each.variants]
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
    allowed = f"one endpoint on {type_}"
    raise InputError([Problem(file=file, field="endpoints", found=found, allowed=allowed, advice=advice)])


def _best_on(endpoint: EndpointSettings, *, table: CapacityTable, file: str) -> CapacityRow:
    """The cheapest on the type; where its price is unknown, the least instances, which is the same at one price."""
    there = [row for row in table.rows if row.measurement.instance_type == endpoint.instance_type]
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
    field, allowed = f"endpoints: {endpoint.name}: instance_type", f"a row within {limit} ms"
    problem = Problem(file=file, field=field, found=found, allowed=allowed, advice=advice)
    raise LimitMissedError(problem) if there else InputError([problem])
