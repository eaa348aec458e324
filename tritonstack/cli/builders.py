"""``tritonstack builders``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from tritonstack.config import load_environment
from tritonstack.engines.plan import Builder, EnginePlan, PlannedBuild, plan_engines
from tritonstack.errors import InputError, Problem
from tritonstack.models.resolving import resolved_models
from tritonstack.paths import project_folder

KINDS = {"codebuild": "CodeBuild", "processing": "SageMaker Processing"}
NAMED = 3


@click.command("builders")
@click.argument("environment")
@click.option("--json", "as_json", is_flag=True, help="For programs: builds and refusals.")
def command(*, environment: str, as_json: bool) -> None:
    """Show what builds the TensorRT engines of ENVIRONMENT: machine, GPU and image for each platform.

    Reads files alone. Exit code 2 where an engine cannot be built at all.
    """
    file = project_folder() / "environments" / f"{environment}.yaml"
    plan = _plan(file)
    if as_json:
        click.echo(json.dumps(_document(environment, plan), indent=2))
    elif plan.builds:
        Console().print(_table(plan))
        for build in plan.builds:
            builder = build.builder
            click.echo(f"{builder.platform}: image {builder.image}, needs the quota {builder.machine.quota}")
            click.echo(f"{builder.platform}: {_driver(builder)}")
    elif not plan.problems:
        click.echo(f"no archive of {environment} needs a TensorRT engine")
    if plan.problems:
        raise InputError(plan.problems)


def _plan(file: Path) -> EnginePlan:
    settings = load_environment(file)
    archives = resolved_models(settings, project_folder() / "model_repos", file=file)
    return plan_engines(settings, archives, file=file)


def _table(plan: EnginePlan) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("platform", "built on", "TensorRT", "endpoints", "engines"):
        table.add_column(column, overflow="fold")
    for build in plan.builds:
        builder = build.builder
        machine = f"{KINDS[builder.kind]} {builder.machine.name} ({builder.machine.gpu})"
        tensorrt = builder.tensorrt or "read in the image"
        endpoints = ", ".join(build.endpoints)
        table.add_row(str(builder.platform), machine, tensorrt, endpoints, _engines(build))
    return table


def _driver(builder: Builder) -> str:
    """What the image's CUDA needs of the machine's driver, and what is known of that."""
    needs = f"driver {builder.least_driver} or newer" if builder.least_driver else "a driver that is not known"
    cuda = f"CUDA {builder.cuda}" if builder.cuda else "a CUDA that is not known"
    of = f"the driver of {KINDS[builder.kind]}'s machines"
    there = f"{of} is {builder.machine.driver}" if builder.machine.driver else f"{of} is UNVERIFIED: AWS names none"
    return f"{cuda} needs {needs}, or NVIDIA's forward compatibility; {there}, and a build compares before it begins"


def _engines(build: PlannedBuild) -> str:
    more = len(build.archives) - NAMED
    return ", ".join(build.archives[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _document(environment: str, plan: EnginePlan) -> dict[str, Any]:
    return {
        "environment": environment,
        "builds": [_build(build) for build in plan.builds],
        "refused": [_problem(problem) for problem in plan.problems],
    }


def _build(build: PlannedBuild) -> dict[str, Any]:
    builder = build.builder
    return {
        "platform": str(builder.platform),
        "region": builder.region,
        "kind": builder.kind,
        "machine": builder.machine.name,
        "gpu": builder.machine.gpu,
        "compute_capability": builder.machine.compute_capability,
        "image": builder.image,
        "tensorrt": builder.tensorrt,
        "cuda": builder.cuda,
        "least_driver": builder.least_driver,
        "driver": builder.machine.driver,
        "quota": builder.machine.quota,
        "endpoints": list(build.endpoints),
        "archives": list(build.archives),
    }


def _problem(problem: Problem) -> dict[str, str | None]:
    return dataclasses.asdict(problem)
