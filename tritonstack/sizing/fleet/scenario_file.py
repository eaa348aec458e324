"""From a scenario's file to what is simulated, or every problem of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from tritonstack.errors import InputError, Problem
from tritonstack.settings.findings import Finding, to_problems
from tritonstack.settings.scaling import Scaling
from tritonstack.settings.type_errors import echoes_bad_items, type_findings
from tritonstack.settings.yaml_source import YamlDocument, read_yaml
from tritonstack.sizing.fleet.checks import (
    check_arrivals,
    check_instance,
    check_limit,
    check_models,
    check_scaling,
    disk_for_models,
    memory_for_models,
    start_of,
)
from tritonstack.sizing.fleet.deployed import fill_from_environment
from tritonstack.sizing.fleet.filled import Filled
from tritonstack.sizing.fleet.fleet import FleetPlan
from tritonstack.sizing.fleet.fleet_cost import Price, instance_price
from tritonstack.sizing.fleet.instance import Machine
from tritonstack.sizing.fleet.measured import fill_from_manifests, fill_from_results
from tritonstack.sizing.fleet.model_table import ModelKind, ModelTable, model_names, popularity_of
from tritonstack.sizing.fleet.scenario import MIB, MOST_MODELS, Arrivals, Instance, ModelGroup, Scenario
from tritonstack.sizing.fleet.schedule import LimitChange, limit_changes
from tritonstack.sizing.fleet.sources import Source, sources
from tritonstack.sizing.fleet.trace import MINUTE, Trace, trace_of_curve
from tritonstack.sizing.fleet.trace_file import read_trace

Part = TypeVar("Part", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class PreparedScenario:
    """A scenario with its calls.

    Attributes:
        models: with the popularity that a trace has, where there is one.
        sources: where its figures come from.
        price: of an instance.
    """

    scenario: Scenario
    models: ModelTable
    trace: Trace
    plan: FleetPlan
    sources: tuple[Source, ...]
    price: Price


def prepare(path: Path, *, seed: int, trace: Path | None = None) -> PreparedScenario:
    """Read the scenario at ``path`` (YAML, of which JSON is a part), and draw or read its calls.

    Args:
        path: the file.
        seed: of everything that is drawn.
        trace: a CSV file whose calls are taken instead of the scenario's.

    Raises:
        InputError: with every problem of the file, of the other files that it names, of its trace, and of the project's
            prices.
    """
    document = read_yaml(path)
    filled = Filled.of(document.value)
    if isinstance(filled.value, dict):
        fill_from_environment(filled)
        fill_from_manifests(filled, path.parent)
        fill_from_results(filled, path.parent)
    findings, scenario = _read(filled, document, traced=trace is not None)
    problems = filled.problems + to_problems(findings=findings, path=path, document=document)
    calls: Trace | None = None
    names = _names(filled.value)
    file = trace if trace is not None else _trace_file(filled.value, path.parent)
    if file is not None:
        try:
            calls = read_trace(file, names=names)
        except InputError as error:
            problems += error.problems
    price: Price = None, ""
    if scenario is not None:
        try:
            said_by = filled.origins.get(("instance", "usd_per_hour"), "the scenario")
            price = instance_price(scenario.instance, said_by=said_by)
        except InputError as error:
            problems += error.problems
    if scenario is None or problems:
        raise InputError(problems)
    if names is None or len(set(names)) != len(names):
        raise InputError([_equal_names(path, model_names(scenario.models))])
    models = _model_table(scenario)
    if calls is None:
        calls = _drawn(scenario, models, seed=seed)
    else:
        counts = np.bincount(calls.models, minlength=len(models)).astype(np.float64)
        models = ModelTable(
            kinds=models.kinds, kind_of=models.kind_of, popularity=counts / counts.sum(), names=models.names
        )
    if scenario.warm_up_minutes * MINUTE >= calls.seconds or not len(calls):
        raise InputError([_nothing_left(path, document, scenario, calls)])
    return PreparedScenario(
        scenario=scenario,
        models=models,
        trace=calls,
        plan=_plan(scenario, seconds=calls.seconds),
        sources=sources(scenario, filled=filled, written=document.value, trace=file),
        price=price,
    )


def _read(filled: Filled, document: YamlDocument, *, traced: bool) -> tuple[list[Finding], Scenario | None]:
    findings = [
        Finding(
            location=at, found=f"{at[-1]} again in line {later}", allowed=f"each key once (it stands in line {first})"
        )
        for at, first, later in document.repeated
    ] + filled.findings
    scenario = None
    try:
        scenario = Scenario.model_validate(filled.value)
    except ValidationError as error:
        errors = [
            each for each in error.errors(include_url=False) if not echoes_bad_items(error=each, value=filled.value)
        ]
        findings += type_findings(errors=errors, model=Scenario, document=document)
    if isinstance(filled.value, dict):
        findings += _cross_checks(filled.value, traced=traced)
    return findings, scenario


def _cross_checks(value: dict[str, Any], *, traced: bool) -> Iterator[Finding]:
    """Checks between fields, of the parts that can be read by themselves."""
    instance = _part(Instance, value.get("instance"))
    groups = list(_groups(value))
    if instance is not None:
        yield from check_instance(instance)
    yield from check_models(groups, instance=instance)
    arrivals = _part(Arrivals, value.get("arrivals"))
    if arrivals is not None:
        yield from check_arrivals(arrivals, traced=traced)
    scaling = _part(Scaling, value.get("scaling"))
    if scaling is not None:
        yield from check_scaling(scaling, instance=instance, arrivals=arrivals)
    limit = value.get("latency_limit_ms")
    if isinstance(limit, int | float) and limit > 0 and groups:
        yield from check_limit(float(limit), groups)


def _part(model: type[Part], raw: object) -> Part | None:
    try:
        return model.model_validate(raw)
    except ValidationError:
        return None


def _groups(value: object) -> Iterator[tuple[int, ModelGroup]]:
    raw = value.get("models") if isinstance(value, dict) else None
    for place, each in enumerate(raw if isinstance(raw, list) else []):
        group = _part(ModelGroup, each)
        if group is not None:
            yield place, group


def _names(value: object) -> tuple[str, ...] | None:
    """Of all models; None where a group cannot be read, or there are too many."""
    groups = tuple(group for _, group in _groups(value))
    raw = value.get("models") if isinstance(value, dict) else None
    readable = isinstance(raw, list) and len(raw) == len(groups) and sum(each.count for each in groups) <= MOST_MODELS
    return model_names(groups) if readable else None


def _trace_file(value: object, folder: Path) -> Path | None:
    arrivals = _part(Arrivals, value.get("arrivals")) if isinstance(value, dict) else None
    return None if arrivals is None or arrivals.trace is None or arrivals.curve else folder / arrivals.trace


def _model_table(scenario: Scenario) -> ModelTable:
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
        memory=round(group.gpu_memory_mib * MIB),
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


def _drawn(scenario: Scenario, models: ModelTable, *, seed: int) -> Trace:
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


def _plan(scenario: Scenario, *, seconds: float) -> FleetPlan:
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


def _equal_names(path: Path, names: tuple[str, ...]) -> Problem:
    seen: set[str] = set()
    name = next(each for each in names if each in seen or seen.add(each))  # type: ignore[func-returns-value]  # by design
    return Problem(file=str(path), field="models", found=f"two models called {name}", allowed="different names")


def _nothing_left(path: Path, document: YamlDocument, scenario: Scenario, calls: Trace) -> Problem:
    if not len(calls):
        return Problem(
            file=str(path), field="arrivals", found="no call was drawn with this seed", allowed="a greater load"
        )
    return Problem(
        file=f"{path}:{document.line(('warm_up_minutes',))}",
        field="warm_up_minutes",
        found=f"{scenario.warm_up_minutes:g}",
        allowed=f"less than {calls.seconds / MINUTE:g} minutes, how long calls come",
    )
