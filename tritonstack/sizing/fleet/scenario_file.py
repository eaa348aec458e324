"""From a scenario's file to what is simulated, or every problem of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
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
)
from tritonstack.sizing.fleet.deployed import fill_from_environment
from tritonstack.sizing.fleet.filled import Filled
from tritonstack.sizing.fleet.fleet import FleetPlan
from tritonstack.sizing.fleet.fleet_cost import Price, instance_price
from tritonstack.sizing.fleet.measured import fill_from_manifests, fill_from_results
from tritonstack.sizing.fleet.model_table import ModelTable, model_names
from tritonstack.sizing.fleet.planned import drawn_calls, fleet_plan, model_table
from tritonstack.sizing.fleet.scenario import MOST_MODELS, Arrivals, Instance, ModelGroup, Scenario
from tritonstack.sizing.fleet.sources import Source, sources
from tritonstack.sizing.fleet.trace import MINUTE, Trace
from tritonstack.sizing.fleet.trace_file import read_trace

Part = TypeVar("Part", bound=BaseModel)
Found = TypeVar("Found")


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
    filled = _filled(document, path.parent)
    findings, scenario = _read(filled, document, traced=trace is not None)
    problems = filled.problems + to_problems(findings=findings, path=path, document=document)
    names = _names(filled.value)
    file = trace if trace is not None else _trace_file(filled.value, path.parent)
    recorded = None if file is None else _unless_wrong(problems, partial(read_trace, file, names=names))
    price = None
    if scenario is not None:
        said_by = filled.origins.get(("instance", "usd_per_hour"), "the scenario")
        price = _unless_wrong(problems, partial(instance_price, scenario.instance, said_by=said_by))
    if scenario is None or price is None or problems:
        raise InputError(problems)
    if names is None or len(set(names)) != len(names):
        raise InputError([_equal_names(path, model_names(scenario.models))])
    models = model_table(scenario)
    if recorded is not None:
        models = models.called(np.bincount(recorded.models, minlength=len(models)))
    calls = drawn_calls(scenario, models, seed=seed) if recorded is None else recorded
    if scenario.warm_up_minutes * MINUTE >= calls.seconds or not len(calls):
        raise InputError([_nothing_left(path, document, scenario, calls)])
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
