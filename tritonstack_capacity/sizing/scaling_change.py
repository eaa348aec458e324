"""What the advice would change of an endpoint's settings, and why each number is what it is."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tritonstack.settings import Endpoint, Scaling
from tritonstack.settings.scaling import DEFAULT_SAFETY_FACTOR
from tritonstack_capacity.sizing.capacity import CapacityRow
from tritonstack_capacity.sizing.daily_curve import DailyCurve
from tritonstack_capacity.sizing.number import plain
from tritonstack_capacity.sizing.scaling_advice import LEAST_IN_PRODUCTION, ScalingAdvice, scaling_advice

DEFAULT_FACTOR = Decimal(str(DEFAULT_SAFETY_FACTOR))
COUNT = "initial_instance_count"
NO_CURVE = "nothing tells how quiet the day gets; --daily-curve FILE does"


@dataclass(frozen=True, kw_only=True)
class SettingChange:
    """One setting of the endpoint.

    Attributes:
        field: its name; all but ``initial_instance_count`` stand under ``scaling``.
        before: what holds in the file now; None where nothing does.
        after: what is advised; equal to ``before`` where nothing changes.
        why: a sentence.
    """

    field: str
    before: Decimal | None
    after: Decimal
    why: str

    @property
    def path(self) -> str:
        """The field as it is called from the endpoint on."""
        return self.field if self.field == COUNT else f"scaling.{self.field}"


@dataclass(frozen=True, kw_only=True)
class ScalingChange:
    """The advice for one endpoint.

    Attributes:
        endpoint: as the file has it now.
        advice: its scaling.
        settings: every setting that the advice has a say in.
    """

    endpoint: Endpoint
    advice: ScalingAdvice
    settings: tuple[SettingChange, ...]

    @property
    def changed(self) -> tuple[SettingChange, ...]:
        """The settings that are to be written."""
        return tuple(each for each in self.settings if each.before != each.after)


def least_instances(*, production: bool) -> int:
    """The least number of instances that is advised where no other reason gives more."""
    return LEAST_IN_PRODUCTION if production else 1


def scaling_change(
    endpoint: Endpoint, *, row: CapacityRow, production: bool, factor: Decimal | None, curve: DailyCurve | None
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
        settings=(*limits, *_target(advice, scaling=scaling, told=factor is not None), *count),
    )


def factor_of(scaling: Scaling | None) -> Decimal:
    """The safety factor that holds where none is told."""
    return DEFAULT_FACTOR if scaling is None else Decimal(str(scaling.factor))


def _minimum(advice: ScalingAdvice, *, scaling: Scaling | None, curve: DailyCurve | None, least: int) -> SettingChange:
    if curve is not None and advice.minimum > least:
        why = f"the quietest hour, {plain(curve.least)} calls a minute at {_target_of(advice)} an instance"
    elif curve is not None:
        why = f"the least{' in production' if least > 1 else ''}; the quietest hour needs no more"
    elif scaling is not None:
        why = f"kept: {NO_CURVE}"
    else:
        why = f"the least{' in production' if least > 1 else ''}: {NO_CURVE}"
    return _setting("minimum", None if scaling is None else scaling.minimum, Decimal(advice.minimum), why)


def _maximum(advice: ScalingAdvice, *, scaling: Scaling | None, curve: DailyCurve | None) -> SettingChange:
    source = "--load" if curve is None or curve.peak < advice.peak else "the busiest hour"
    why = f"{source}, {plain(advice.peak)} calls a minute at {_target_of(advice)} an instance"
    if curve is not None and curve.peak != advice.row.load:
        other = (
            f"the busiest hour has {plain(curve.peak)}" if source == "--load" else f"--load is {plain(advice.row.load)}"
        )
        why += f"; {other}"
    if advice.maximum == advice.minimum:
        why += ", and never below the minimum"
    return _setting("maximum", None if scaling is None else scaling.maximum, Decimal(advice.maximum), why)


def _target(advice: ScalingAdvice, *, scaling: Scaling | None, told: bool) -> tuple[SettingChange, ...]:
    """In the form that the file has; where it has none, what was measured and the factor, each for itself."""
    row = advice.row.measurement
    measured = f"measured: {plain(row.invocations_per_minute)} calls a minute, {row.name}"
    if scaling is not None and scaling.invocations_per_instance is not None:
        why = f"{advice.safety_factor} of what was {measured}"
        before = scaling.invocations_per_instance
        return (_setting("invocations_per_instance", before, advice.invocations_per_instance, why),)
    rate = None if scaling is None else scaling.requests_per_second
    factor = None if scaling is None or rate is None else scaling.factor
    why = "--safety-factor" if told else "the file's" if factor is not None else "what AWS advises to start with"
    return (
        _setting("requests_per_second", rate, advice.requests_per_second, measured),
        _setting("safety_factor", factor, advice.safety_factor, f"share of the measured rate to aim at: {why}"),
    )


def _count(endpoint: Endpoint, advice: ScalingAdvice) -> tuple[SettingChange, ...]:
    """The number to start with, where the file says one outside the limits; else the settings take the minimum."""
    count = endpoint.initial_instance_count
    if COUNT not in endpoint.model_fields_set or advice.minimum <= count <= advice.maximum:
        return ()
    after = max(advice.minimum, min(count, advice.maximum))
    return (_setting(COUNT, count, Decimal(after), "must lie within the limits of scaling"),)


def _setting(field: str, before: float | None, after: Decimal, why: str) -> SettingChange:
    return SettingChange(field=field, before=None if before is None else Decimal(str(before)), after=after, why=why)


def _target_of(advice: ScalingAdvice) -> str:
    return plain(advice.invocations_per_instance)
