"""A scenario's file read into what is simulated, defaults from other files included, or every problem of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tritonstack.config.scaling import Scaling
from tritonstack.config.yaml_loader import YamlDocument, read_yaml, validate, with_lines
from tritonstack.errors import InputError, Problem
from tritonstack_capacity.simulation.autoscaler import LimitChange, limit_changes
from tritonstack_capacity.simulation.fleet import FleetPlan
from tritonstack_capacity.simulation.instance import Machine
from tritonstack_capacity.simulation.scenario import MIB, MOST_MODELS, Arrivals, Instance, ModelGroup, Scenario
from tritonstack_capacity.simulation.scenario_checks import (
    as_far_as_readable,
    check_arrivals,
    check_instance,
    check_limit,
    check_models,
    check_scaling,
    check_warm_up,
    disk_for_models,
    has,
    memory_for_models,
    readable,
    start_of,
    whole,
)
from tritonstack_capacity.simulation.scenario_defaults import (
    Filled,
    Price,
    Source,
    fill_from_environment,
    fill_from_manifests,
    fill_from_results,
    instance_price,
    sources,
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
    changes: tuple[LimitChange, ...] = ()
    if scenario.scaling is not None and (starts := start_of(scenario.arrivals)) is not None:
        changes = limit_changes(scenario.scaling.schedules, starts=starts, seconds=seconds)
    return FleetPlan(
        machine=machine,
        count=instance.count,
        routing=scenario.routing,
        spill_calls=scenario.spill_calls,
        scaling=scenario.scaling,
        speed=scenario.autoscaling,
        changes=changes,
    )


Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class PreparedScenario:
    """A scenario with its calls."""

    scenario: Scenario
    models: ModelTable  # with the popularity that a trace has, where there is one
    trace: Trace
    plan: FleetPlan
    sources: tuple[Source, ...]  # where its figures come from
    price: Price  # of an instance


def prepare(path: Path, *, seed: int, trace: Path | None = None) -> PreparedScenario:
    """Read the scenario at ``path`` (YAML, of which JSON is a part), and draw or read its calls.

    Calls of ``trace``, a CSV file, are taken instead of the scenario's.

    Raises:
        InputError: with every problem of the file, of the other files that it names, of its trace, and of the project's
            prices.
    """
    document = read_yaml(path)
    filled = _filled(document, path.parent)
    value = filled.value if isinstance(filled.value, dict) else {}
    arrivals = readable(Arrivals, value.get("arrivals"))
    file = trace
    if trace is None and arrivals is not None and has(arrivals, "trace", "curve"):
        file = None if arrivals.trace is None or arrivals.curve else path.parent / arrivals.trace
    elsewhere: list[Problem] = []
    names = _names(value)
    recorded = None if file is None else _unless_wrong(elsewhere, partial(read_trace, file, names=names))
    price = _price(filled, elsewhere)
    seconds = None if recorded is None else recorded.seconds
    if file is None and arrivals is not None and has(arrivals, "duration_minutes"):
        seconds = None if arrivals.duration_minutes is None else arrivals.duration_minutes * MINUTE
    findings, scenario = _read(filled, document, traced=trace is not None, seconds=seconds)
    problems = filled.problems + with_lines(findings, path, document=document) + elsewhere
    if scenario is None or price is None or problems:
        raise InputError(problems)
    models = model_table(scenario)
    if recorded is not None:
        models = models.called(np.bincount(recorded.models, minlength=len(models)))
    calls = drawn_calls(scenario, models, seed=seed) if recorded is None else recorded
    if not len(calls):
        found, allowed = "no call was drawn with this seed", "a greater load"
        raise InputError([Problem(file=str(path), field="arrivals", found=found, allowed=allowed)])
    return PreparedScenario(
        scenario=scenario,
        models=models,
        trace=calls,
        plan=fleet_plan(scenario, seconds=calls.seconds),
        sources=sources(scenario, filled=filled, written=document.value, trace=file),
        price=price,
    )


def _filled(document: YamlDocument, folder: Path) -> Filled:
    filled = Filled.of(document.value)
    if isinstance(filled.value, dict):
        fill_from_environment(filled)
        fill_from_manifests(filled, folder)
        fill_from_results(filled, folder)
    return filled


def _unless_wrong(problems: list[Problem], read: Callable[[], Found]) -> Found | None:
    """What is read; None where it is wrong: ``problems`` then has more."""
    try:
        return read()
    except InputError as error:
        problems += error.problems
        return None


def _price(filled: Filled, problems: list[Problem]) -> Price | None:
    instance = whole(Instance, filled.value.get("instance")) if isinstance(filled.value, dict) else None
    if instance is None:
        return None
    origin = filled.origins.get(("instance", "usd_per_hour"), "the scenario")
    return _unless_wrong(problems, partial(instance_price, instance, origin=origin))


def _read(
    filled: Filled, document: YamlDocument, *, traced: bool, seconds: float | None
) -> tuple[list[Problem], Scenario | None]:
    """What is wrong with it, and the scenario; ``seconds``: how long calls come, None: not known."""
    found = validate(document, Scenario, value=filled.value)
    findings = found.problems + filled.findings
    if isinstance(filled.value, dict):
        findings += _cross_checks(filled.value, traced=traced, seconds=seconds)
    return findings, found.value


def _cross_checks(value: dict[str, Any], *, traced: bool, seconds: float | None) -> Iterator[Problem]:
    """Checks between fields, as far as they can be read."""
    instance = readable(Instance, value.get("instance"))
    groups = list(_groups(value))
    if instance is not None:
        yield from check_instance(instance)
    yield from check_models(groups, instance=instance)
    arrivals = readable(Arrivals, value.get("arrivals"))
    if arrivals is not None:
        yield from check_arrivals(arrivals, traced=traced)
    scaling = readable(Scaling, value.get("scaling"))
    if scaling is not None:
        yield from check_scaling(scaling, instance=instance, arrivals=arrivals)
    limit, warm_up = value.get("latency_limit_ms"), value.get("warm_up_minutes")
    if isinstance(limit, int | float) and limit > 0 and groups:
        yield from as_far_as_readable(check_limit(float(limit), groups))
    if isinstance(warm_up, int | float) and seconds is not None:
        yield from check_warm_up(float(warm_up), seconds=seconds)


def _groups(value: dict[str, Any]) -> Iterator[tuple[int, ModelGroup]]:
    raw = value.get("models")
    for place, each in enumerate(raw if isinstance(raw, list) else []):
        group = readable(ModelGroup, each)
        if group is not None:
            yield place, group


def _names(value: dict[str, Any]) -> tuple[str, ...] | None:
    """Of all models; None where a group cannot be read, or there are too many."""
    groups = tuple(group for _, group in _groups(value) if has(group, "name", "count"))
    raw = value.get("models")
    known = isinstance(raw, list) and len(raw) == len(groups) and sum(each.count for each in groups) <= MOST_MODELS
    return model_names(groups) if known else None
