"""Sources of a scenario's figures (measured, deployed, the catalogue, or assumed), and what a fleet costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack.catalogue.prices import hosting_price
from tritonstack.errors import Location
from tritonstack.paths import project_folder
from tritonstack_capacity.simulation.checks import disk_for_models, memory_for_models
from tritonstack_capacity.simulation.scenario import MIB, Instance, ModelGroup, Scenario
from tritonstack_capacity.simulation.scenario_defaults import Filled

HOUR = 3600.0
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FleetCost:
    """USD; every figure None where the price is unknown.

    Attributes:
        usd_per_hour: of one instance.
        source: of the price, or why it is unknown.
        instance_hours: paid, from an instance's start until it has drained, while calls came.
    """

    usd_per_hour: float | None
    source: str
    instance_hours: float
    hours: float
    calls: int

    @property
    def total(self) -> float | None:
        """Of the whole time."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.instance_hours

    @property
    def mean_per_hour(self) -> float | None:
        """Of an hour, on average."""
        return None if self.total is None else self.total / self.hours

    @property
    def per_million(self) -> float | None:
        """Of a million calls."""
        return None if self.total is None or not self.calls else self.total * MILLION / self.calls


Price = tuple[float | None, str]
"""USD an hour of one instance, and who says so; None and the reason where nobody does."""


def instance_price(instance: Instance, *, said_by: str) -> Price:
    """What one instance costs. ``said_by``: whose price ``instance`` has, if it has one.

    Raises:
        InputError: the project's own prices cannot be read.
    """
    if instance.usd_per_hour is not None:
        return instance.usd_per_hour, said_by
    listed = hosting_price(instance_type=instance.type, region=instance.region, project=project_folder())
    if listed is None:
        return None, (
            f"no source gives a price of {instance.type} in {instance.region}; "
            "`tritonstack capacity prices update` asks AWS, instance.usd_per_hour sets it"
        )
    date = f", {listed.date}" if listed.date else ""
    return listed.usd_per_hour, f"{listed.source} ({instance.region}, component {listed.component}{date})"


def fleet_cost(price: Price, *, instance_seconds: float, seconds: float, calls: int) -> FleetCost:
    """The cost of so much paid time in so many seconds."""
    usd, source = price
    return FleetCost(
        usd_per_hour=usd, source=source, instance_hours=instance_seconds / HOUR, hours=seconds / HOUR, calls=calls
    )


SCENARIO = "assumed: the scenario"
DEFAULT = "assumed: the default"
CATALOGUE = "the catalogue"
SaidBy = Callable[..., str]
"""Who says what stands at a place of the scenario."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A figure, its value in words, and who says it."""

    figure: str
    value: str
    origin: str


def sources(scenario: Scenario, *, filled: Filled, written: Any, trace: Path | None) -> tuple[Source, ...]:
    """Of a sound scenario. ``written``: what its file says itself; ``trace``: where recorded calls come from."""
    own = Filled(value=written)

    def said_by(*location: str | int) -> str:
        if location in filled.origins:
            return filled.origins[location]
        return DEFAULT if own.get(*location) is None else SCENARIO

    found = [*_fleet(scenario, said_by), _calls(scenario, trace)]
    for place, group in enumerate(scenario.models):
        found += _group(group, scenario, ("models", place), said_by)
    return tuple(found)


def _fleet(scenario: Scenario, said_by: SaidBy) -> Iterator[Source]:
    instance, scaling = scenario.instance, scenario.scaling
    memory, disk = memory_for_models(instance) or 0, disk_for_models(instance) or 0
    yield Source(figure="instance type", value=instance.type, origin=said_by("instance", "type"))
    reserved = f", {instance.reserved_gpu_memory_mib:g} MiB reserved" if instance.reserved_gpu_memory_mib else ""
    yield Source(
        figure="GPU memory for models",
        value=f"{memory / MIB:,.0f} MiB",
        origin=(CATALOGUE if instance.gpu_memory_mib is None else said_by("instance", "gpu_memory_mib")) + reserved,
    )
    yield Source(
        figure="disk for models",
        value=f"{disk / MIB:,.0f} MiB",
        origin=CATALOGUE if instance.disk_mib is None else said_by("instance", "disk_mib"),
    )
    yield Source(figure="instances at first", value=str(instance.count), origin=said_by("instance", "count"))
    if scaling is not None:
        targets = [f"{name} {value:g}" for name, value in scaling.targets.items()]
        schedules = [f"{len(scaling.schedules)} schedules"] if scaling.schedules else []
        value = ", ".join([f"{scaling.minimum} to {scaling.maximum}", *targets, *schedules])
        yield Source(figure="scaling", value=value, origin=said_by("scaling"))
    yield Source(figure="routing", value=scenario.routing, origin=said_by("routing"))
    yield Source(figure="model cache", value=scenario.model_cache, origin=said_by("model_cache"))


def _calls(scenario: Scenario, trace: Path | None) -> Source:
    if trace is not None:
        return Source(figure="calls", value="a trace", origin=f"recorded: {trace}")
    return Source(figure="calls", value=f"a curve, {scenario.arrivals.process}", origin=SCENARIO)


def _group(group: ModelGroup, scenario: Scenario, at: Location, said_by: SaidBy) -> Iterator[Source]:
    cold, service = scenario.cold_start, group.service
    name = group.name if group.count == 1 else f"{group.name} (each of {group.count:,})"
    yield Source(figure=f"{name}: GPU memory", value=_mib(group.gpu_memory_mib), origin=said_by(*at, "gpu_memory_mib"))
    disk = group.disk_mib or 0.0
    download = disk if group.download_mib is None else group.download_mib
    yield Source(
        figure=f"{name}: files",
        value=f"{_mib(disk)}, {_mib(download)} to download",
        origin=said_by(*at, "disk_mib"),
    )
    if group.cold_seconds is not None:
        value, origin = f"{group.cold_seconds:.2f} s with its download", said_by(*at, "cold_seconds")
    else:
        load = cold.load_seconds if group.load_seconds is None else group.load_seconds
        value = f"{download / cold.download_mib_per_second:.2f} s of download and {load:.2f} s of loading"
        origin = said_by(*(("cold_start",) if group.load_seconds is None else at), "load_seconds")
    yield Source(figure=f"{name}: cold start", value=value, origin=origin)
    value = f"{service.fixed_ms:g} ms + {service.per_item_ms:g} ms a request, {service.distribution}"
    yield Source(figure=f"{name}: execution", value=value, origin=said_by(*at, "service"))
    held = f", held for at most {group.max_queue_delay_ms:g} ms" if group.max_batch > 1 else ""
    batches = f"at most {group.max_batch}{held}" if group.max_batch > 1 else "none"
    yield Source(
        figure=f"{name}: batches, instances", value=f"{batches}; {group.instances}", origin=said_by(*at, "max_batch")
    )


def _mib(size: float) -> str:
    """A model's may be of some kilobytes, or of gigabytes."""
    return f"{size:,.0f} MiB" if size >= 100 else f"{size:.3g} MiB"
