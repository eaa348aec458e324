"""Read a scenario's file with its defaults from other files, or report all of its problems at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from tritonstack.config.yaml_loader import YamlDocument, read_yaml, validate, with_lines
from tritonstack.errors import InputError, Problem
from tritonstack_capacity.simulation.fleet import SimulatedFleet
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.scenario import MIB, MOST_MODELS, ModelGroup, Scenario
from tritonstack_capacity.simulation.scenario_checks import check_scenario, disk_for_models, memory_for_models
from tritonstack_capacity.simulation.scenario_defaults import (
    Filled,
    Price,
    fill_from_environment,
    fill_from_manifests,
    fill_from_results,
    instance_price,
)
from tritonstack_capacity.simulation.trace import (
    MINUTE,
    ModelKind,
    ModelTable,
    Trace,
    model_names,
    popularity_of,
    read_trace,
    trace_of_curve,
)


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
    """The requests of the scenario's curve."""
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


def simulated_fleet(scenario: Scenario) -> SimulatedFleet:
    """The endpoint."""
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
    return SimulatedFleet(
        machine=machine,
        count=instance.count,
        routing=scenario.routing,
        spill_calls=scenario.spill_calls,
        scaling=scenario.scaling,
        speed=scenario.autoscaling,
    )


Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class PreparedScenario:
    """A scenario with its requests."""

    scenario: Scenario
    models: ModelTable  # with the popularity that a trace has, where there is one
    trace: Trace
    fleet: SimulatedFleet
    price: Price  # of an instance


def prepare(path: Path, *, seed: int, trace: Path | None = None) -> PreparedScenario:
    """Read the scenario at ``path`` (YAML, of which JSON is a part), and draw or read its requests.

    Requests of ``trace``, a CSV file, are taken instead of the scenario's.

    Raises:
        InputError: with every problem of the file, of the other files that it names, of its trace, and of the project's
            prices.
    """
    document = read_yaml(path)
    filled = _filled(document, path.parent)
    checked = validate(document, Scenario, value=filled.value)
    scenario, findings = checked.value, checked.problems + filled.findings
    if scenario is None:
        raise InputError(filled.problems + with_lines(findings, path, document=document))
    elsewhere: list[Problem] = []
    recorded = _unless_wrong(elsewhere, partial(_recorded, scenario, path.parent, trace=trace))
    price = _unless_wrong(elsewhere, partial(instance_price, scenario.instance))
    seconds = _seconds(scenario) if recorded is None else recorded.seconds
    findings += check_scenario(scenario, traced=trace is not None, seconds=seconds)
    problems = filled.problems + with_lines(findings, path, document=document) + elsewhere
    if price is None or problems:
        raise InputError(problems)
    models = model_table(scenario)
    if recorded is not None:
        models = models.called(np.bincount(recorded.models, minlength=len(models)))
    calls = drawn_calls(scenario, models, seed=seed) if recorded is None else recorded
    if not len(calls):
        found, allowed = "no request was drawn with this seed", "a greater load"
        raise InputError([Problem(file=str(path), field="arrivals", found=found, allowed=allowed)])
    return PreparedScenario(scenario=scenario, models=models, trace=calls, fleet=simulated_fleet(scenario), price=price)


def _filled(document: YamlDocument, folder: Path) -> Filled:
    filled = Filled.of(document.value)
    if isinstance(filled.value, dict):
        fill_from_environment(filled)
        fill_from_manifests(filled, folder)
        fill_from_results(filled, folder)
    return filled


def _unless_wrong(problems: list[Problem], read: Callable[[], Found]) -> Found | None:
    """The value; None where it is wrong: then ``problems`` has more."""
    try:
        return read()
    except InputError as error:
        problems += error.problems
        return None


def _recorded(scenario: Scenario, folder: Path, *, trace: Path | None) -> Trace | None:
    """The requests of ``trace``, else of the scenario's own; None where it has a curve, or models without end."""
    own = scenario.arrivals.trace
    file = trace or (None if own is None or scenario.arrivals.curve else folder / own)
    if file is None or sum(group.count for group in scenario.models) > MOST_MODELS:
        return None
    return read_trace(file, names=model_names(scenario.models))


def _seconds(scenario: Scenario) -> float | None:
    minutes = scenario.arrivals.duration_minutes
    return None if minutes is None else minutes * MINUTE
