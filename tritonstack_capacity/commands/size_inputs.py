"""What ``tritonstack capacity size`` is given: read whole, so that every problem is said at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from tritonstack.errors import InputError, Problem
from tritonstack.paths import project_folder
from tritonstack.settings import Environment, load_environment
from tritonstack.settings.loader import project_of
from tritonstack_capacity.sizing.capacity import Demand
from tritonstack_capacity.sizing.daily_curve import DailyCurve, read_daily_curve
from tritonstack_capacity.sizing.measurement import Measurements
from tritonstack_capacity.sizing.measurements_file import read_measurements
from tritonstack_capacity.sizing.number import ABOVE_ZERO, is_above_zero, number_of

LEAST_FACTOR = Decimal("0.01")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Target:
    """``--write`` and what narrows it.

    Attributes:
        file: the environment file.
        endpoint, configuration: by name; None where the recommendation decides.
        diff_only: whether the file stays as it is.
    """

    file: Path
    endpoint: str | None
    configuration: str | None
    diff_only: bool


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything that was given.

    Attributes:
        demand: the load and the limit.
        measurements: the rows of the file.
        factor: the safety factor; None where none was given.
        curve: the day's load; None where none was given.
        environment: whose region and prices count; the one that is written to, if there is one.
        project: the folder whose ``prices.json`` counts, where the environment has no price.
        target: None where nothing is to be written.
    """

    demand: Demand
    measurements: Measurements
    factor: Decimal | None
    curve: DailyCurve | None
    environment: Environment | None
    project: Path
    target: Target | None


def read_inputs(
    *,
    measurements: Path,
    load: str,
    latency_ms: str,
    safety_factor: str | None,
    daily_curve: Path | None,
    environment: str | None,
    target: Target | None,
) -> Inputs:
    """Every input, read.

    Raises:
        InputError: the problems of all of them.
    """
    problems: list[Problem] = []

    def read(one: Callable[[], T]) -> T | None:
        try:
            return one()
        except InputError as error:
            problems.extend(error.problems)
            return None

    demand = read(lambda: _demand(load=load, latency_ms=latency_ms))
    factor = None if safety_factor is None else read(lambda: _factor(safety_factor))
    curve = None if daily_curve is None else read(lambda: read_daily_curve(daily_curve))
    measured = read(lambda: read_measurements(measurements))
    chosen = read(lambda: _environment(environment, target))
    if problems or demand is None or measured is None:
        raise InputError(problems)
    return Inputs(
        demand=demand,
        measurements=measured,
        factor=factor,
        curve=curve,
        environment=chosen,
        project=project_folder() if target is None else project_of(target.file),
        target=target,
    )


def target_of(file: Path | None, *, endpoint: str | None, configuration: str | None, diff_only: bool) -> Target | None:
    """The options around ``--write``; None where nothing is to be written.

    Raises:
        InputError: one of the others without it.
    """
    if file is not None:
        return Target(file=file, endpoint=endpoint, configuration=configuration, diff_only=diff_only)
    given = {"--endpoint": endpoint, "--configuration": configuration, "--diff": "--diff" if diff_only else None}
    lone = [
        Problem(field=option, found=f"{value} without --write", allowed="with --write FILE only")
        for option, value in given.items()
        if value is not None
    ]
    if lone:
        raise InputError(lone)
    return None


def _environment(name: str | None, target: Target | None) -> Environment | None:
    named = None if name is None else load_environment(project_folder() / "environments" / f"{name}.yaml")
    if target is None:
        return named
    written = load_environment(target.file)
    if named is not None and named.environment != written.environment:
        problem = Problem(
            field="--environment",
            found=f"{named.environment}, and --write {target.file}, which is {written.environment}",
            allowed="--write alone: region and prices are those of the file that is written",
        )
        raise InputError([problem])
    return written


def _demand(*, load: str, latency_ms: str) -> Demand:
    texts = {"--load": load, "--latency-ms": latency_ms}
    numbers = {option: number for option, text in texts.items() if (number := number_of(text)) is not None}
    problems = [
        Problem(field=option, found=text, allowed=ABOVE_ZERO)
        for option, text in texts.items()
        if option not in numbers or not is_above_zero(numbers[option])
    ]
    if problems:
        raise InputError(problems)
    return Demand(invocations_per_minute=numbers["--load"], latency_ms=numbers["--latency-ms"])


def _factor(text: str) -> Decimal:
    factor = number_of(text)
    if factor is None or not LEAST_FACTOR <= factor <= 1:
        raise InputError([Problem(field="--safety-factor", found=text, allowed=f"a number from {LEAST_FACTOR} to 1")])
    return factor
