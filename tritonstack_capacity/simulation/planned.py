"""From a sound scenario to what is simulated: models, calls, an endpoint. Units become bytes and seconds here."""

from __future__ import annotations

import numpy as np

from tritonstack_capacity.simulation.checks import disk_for_models, memory_for_models, start_of
from tritonstack_capacity.simulation.fleet import FleetPlan
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.model_table import ModelKind, ModelTable, model_names, popularity_of
from tritonstack_capacity.simulation.scenario import MIB, ModelGroup, Scenario
from tritonstack_capacity.simulation.schedule import LimitChange, limit_changes
from tritonstack_capacity.simulation.trace import MINUTE, Trace, trace_of_curve


def model_table(scenario: Scenario) -> ModelTable:
    """All models, with the popularity that the groups give them."""
    groups = scenario.models
    kinds = tuple(_kind(group, scenario) for group in groups)
    return ModelTable(
        kinds=kinds,
        kind_of=np.repeat(np.arange(len(groups)), [group.count for group in groups]),
        popularity=popularity_of(groups),
        names=model_names(groups),
    )


def _kind(group: ModelGroup, scenario: Scenario) -> ModelKind:
    cold, disk = scenario.cold_start, group.disk_mib or 0.0
    download = (disk if group.download_mib is None else group.download_mib) / cold.download_mib_per_second
    load = cold.load_seconds if group.load_seconds is None else group.load_seconds
    if group.cold_seconds is not None:  # what is not download is loading
        download = min(download, group.cold_seconds)
        load = group.cold_seconds - download
    return ModelKind(
        name=group.name,
        memory=max(1, round(group.gpu_memory_mib * MIB)),
        disk=round(disk * MIB),
        download_seconds=download,
        load_seconds=load,
        fixed=group.service.fixed_ms / 1000,
        per_item=group.service.per_item_ms / 1000,
        exponential=group.service.distribution == "exponential",
        max_batch=group.max_batch,
        delay=group.max_queue_delay_ms / 1000,
        copies=group.instances,
    )


def drawn_calls(scenario: Scenario, models: ModelTable, *, seed: int) -> Trace:
    """The calls of the scenario's curve."""
    arrivals = scenario.arrivals
    if arrivals.duration_minutes is None:
        raise TypeError("a curve without a duration passed the checks")
    return trace_of_curve(
        arrivals.curve,
        seconds=arrivals.duration_minutes * MINUTE,
        poisson=arrivals.process == "poisson",
        popularity=models.popularity,
        random=np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,))),
    )


def fleet_plan(scenario: Scenario, *, seconds: float) -> FleetPlan:
    """The endpoint; ``seconds``: how long calls come."""
    instance, cold = scenario.instance, scenario.cold_start
    memory, disk = memory_for_models(instance), disk_for_models(instance)
    cached = scenario.model_cache == "enabled"
    if memory is None or disk is None:
        raise TypeError("an instance without memory or disk passed the checks")
    machine = Machine(
        memory=memory,
        disk=disk,
        most_models=instance.max_loaded_models,
        executions=instance.concurrent_executions or max(group.instances for group in scenario.models),
        unload_seconds=cold.unload_seconds,
        parallel_loads=cold.parallel_loads,
        patience=cold.patience_seconds,
        keep_on_disk=cold.keep_on_disk and cached,
        cached=cached,
    )
    return FleetPlan(
        machine=machine,
        count=instance.count,
        routing=scenario.routing,
        spill_calls=scenario.spill_calls,
        scaling=scenario.scaling,
        speed=scenario.autoscaling,
        changes=_changes(scenario, seconds=seconds),
    )


def _changes(scenario: Scenario, *, seconds: float) -> tuple[LimitChange, ...]:
    starts = start_of(scenario.arrivals)
    if scenario.scaling is None or starts is None:
        return ()
    return limit_changes(scenario.scaling.schedules, starts=starts, seconds=seconds)
