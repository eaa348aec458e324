"""From ``pipeline.yaml`` to settings with the environments that it deploys, or every problem of all files at once."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tritonstack.catalogue import load_catalogue
from tritonstack.config.checks import check_names_across
from tritonstack.config.environment import Environment
from tritonstack.config.fields import ENVIRONMENT_PATTERN
from tritonstack.config.findings import Finding, shown, to_problems
from tritonstack.config.loader import load_environment
from tritonstack.config.pipeline import LoadTestGate, Pipeline, PipelineStage
from tritonstack.config.type_errors import echoes_bad_items, location_of, type_findings
from tritonstack.config.usable import usable
from tritonstack.config.yaml_source import Location, YamlDocument, read_yaml
from tritonstack.errors import InputError, Problem

LONGEST_ROLE_NAME = 64
"""IAM's limit (API reference: CreateRole)."""
LONGEST_OF_ROLE = "-prepare-build"


@dataclass(frozen=True, kw_only=True)
class LoadedStage:
    """One stage with what its environment's file says.

    Attributes:
        settings: the stage, as the pipeline's file has it.
        environment: what is deployed.
        file: the environment's file.
    """

    settings: PipelineStage
    environment: Environment
    file: Path

    @property
    def measured(self) -> bool:
        """Whether a gate runs the environment's load test."""
        return any(gate.load_test is not None for gate in self.settings.gates)

    @property
    def approved(self) -> bool:
        """Whether somebody approves before anything of it is touched."""
        if self.settings.approval is None:
            return self.environment.production
        return self.settings.approval


@dataclass(frozen=True, kw_only=True)
class LoadedPipeline:
    """A pipeline with its environments.

    Attributes:
        settings: the file's own.
        stages: in the order of their deployment.
    """

    settings: Pipeline
    stages: tuple[LoadedStage, ...]


def load_pipeline(path: Path, *, environments: Path) -> LoadedPipeline:
    """The settings in ``path``, and those of the environments that they name, from the folder ``environments``.

    Raises:
        InputError: with every problem of the file and of the environments' files.
    """
    document, pipeline, faulty, problems = _read(path, environments=environments)
    read: dict[str, Environment | None] = {}
    for name in _stage_names(document.value):
        file = environments / f"{name}.yaml"
        if name in read or not os.path.lexists(file):
            continue  # reported already, by the pipeline's own line
        try:
            read[name] = load_environment(file)
        except InputError as error:
            read[name] = None
            problems += error.problems
    loaded = {name: environment for name, environment in read.items() if environment is not None}
    for named, finding in check_names_across(
        {str(environments / f"{name}.yaml"): each for name, each in loaded.items()}
    ):
        problems += to_problems(findings=[finding], path=Path(named))
    stages: list[LoadedStage] = []
    if pipeline is not None:
        for stage in {stage.environment: stage for stage in reversed(pipeline.stages)}.values():
            if stage.environment in loaded:
                file = environments / f"{stage.environment}.yaml"
                stages.insert(0, LoadedStage(settings=stage, environment=loaded[stage.environment], file=file))
        across = [each for each in _across(pipeline, stages) if not _within(each.location, faulty)]
        problems += to_problems(findings=across, path=path, document=document)
    if pipeline is None or problems:
        raise InputError(problems)
    return LoadedPipeline(settings=pipeline, stages=tuple(stages))


def _stage_names(value: Any) -> list[str]:
    """The environments that a pipeline's file names, whatever else is wrong with it."""
    stages = value.get("stages") if isinstance(value, dict) else None
    names = (
        [stage.get("environment") for stage in stages if isinstance(stage, dict)] if isinstance(stages, list) else []
    )
    return [name for name in names if isinstance(name, str) and re.fullmatch(ENVIRONMENT_PATTERN, name)]


def _read(path: Path, *, environments: Path) -> tuple[YamlDocument, Pipeline | None, set[Location], list[Problem]]:
    """The document, what of it is usable as settings, what is faulty, and every problem of the file itself.

    Raises:
        InputError: it is no YAML file.
    """
    if not os.path.lexists(path):
        problem = Problem(
            file=str(path),
            found="no such file",
            allowed="a pipeline's settings",
            advice="Write one (docs/pipeline.md), or name another: -c pipeline=<file>.",
        )
        raise InputError([problem])
    document = read_yaml(path)
    findings = [
        Finding(
            location=location,
            found=f"{location[-1]} again in line {later}",
            allowed=f"each key once in a mapping (it stands in line {first})",
            advice="Remove one of the two.",
        )
        for location, first, later in document.repeated
    ]
    pipeline: Pipeline | None = None
    faulty: set[Location] = set()
    try:
        pipeline = Pipeline.model_validate(document.value)
    except ValidationError as error:
        errors = [
            one for one in error.errors(include_url=False) if not echoes_bad_items(error=one, value=document.value)
        ]
        faulty = {location_of(one) for one in errors}
        findings += type_findings(errors=errors, model=Pipeline, document=document)
        pipeline = usable(document.value, Pipeline, faulty)
    findings += [each for each in _checks(document, environments) if not _within(each.location, faulty)]
    return document, pipeline, faulty, to_problems(findings=findings, path=path, document=document)


def _checks(document: YamlDocument, environments: Path) -> Iterator[Finding]:
    """What can be said of each usable field whatever the others are."""
    value = document.value
    if not isinstance(value, dict):
        return
    yield from _check_region(value)
    stages = value.get("stages")
    seen: dict[str, int] = {}
    known = sorted(path.stem for path in environments.glob("*.yaml"))
    for index, stage in enumerate(stages if isinstance(stages, list) else []):
        if not isinstance(stage, dict):
            continue
        name = stage.get("environment")
        if isinstance(name, str):
            yield from _check_environment(name, ("stages", index, "environment"), known=known, folder=environments)
            if name in seen:
                yield Finding(
                    location=("stages", index, "environment"),
                    found=f"{name} again",
                    allowed=f"each environment once (it is stage {seen[name] + 1} already)",
                )
            seen.setdefault(name, index)
            yield from _check_role_name(value.get("name", Pipeline.model_fields["name"].default), name, index)
        yield from _check_gates(stage.get("gates"), index)


def _check_region(value: dict[str, Any]) -> Iterator[Finding]:
    region = value.get("region")
    known = load_catalogue().regions
    if isinstance(region, str) and region not in known:
        near = difflib.get_close_matches(region, known, n=1)
        yield Finding(
            location=("region",),
            found=shown(region),
            allowed="a region of the catalogue",
            advice=f"Did you mean {near[0]}?" if near else f"One of {', '.join(known)}.",
        )


def _check_environment(name: str, location: Location, *, known: Sequence[str], folder: Path) -> Iterator[Finding]:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    yield Finding(
        location=location,
        found=shown(name),
        allowed=f"an environment of {folder}: {', '.join(known) or 'none there'}",
        advice=f"Did you mean {near[0]}?" if near else "",
    )


def _check_role_name(pipeline: object, environment: str, index: int) -> Iterator[Finding]:
    name = f"{pipeline}-{environment}{LONGEST_OF_ROLE}"
    if isinstance(pipeline, str) and len(name) > LONGEST_ROLE_NAME:
        yield Finding(
            location=("stages", index, "environment"),
            found=f"the role name {name}, {len(name)} characters",
            allowed=f"{LONGEST_ROLE_NAME} characters",
            advice="Give the pipeline a shorter name.",
        )


def _check_gates(gates: object, index: int) -> Iterator[Finding]:
    """A gate's name is that of an action, and CodePipeline refuses two of one name in a stage."""
    seen: dict[str, int] = {}
    for number, gate in enumerate(gates if isinstance(gates, list) else []):
        name = gate.get("name") if isinstance(gate, dict) else None
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Finding(
                location=("stages", index, "gates", number, "name"),
                found=f"{name} again",
                allowed=f"each name once in a stage (gate {seen[name] + 1} has it)",
            )
        seen.setdefault(name, number)


def _across(pipeline: Pipeline, stages: Sequence[LoadedStage]) -> Iterator[Finding]:
    """What only holds between the file and the environments."""
    partition = _partition(pipeline.region)
    order = {stage.environment: index for index, stage in enumerate(pipeline.stages)}
    for stage in stages:
        index = order[stage.settings.environment]
        if stage.environment.region != pipeline.region:
            yield Finding(
                location=("stages", index, "environment"),
                found=f"{stage.environment.environment} is in {stage.environment.region}",
                allowed=f"an environment in {pipeline.region}, where the pipeline is",
                advice="Write a file for a pipeline in that region: npx cdk deploy -c pipeline=<file> pipeline.",
            )
        if stage.settings.approval_text is not None and not stage.approved:
            yield Finding(
                location=("stages", index, "approval_text"),
                found=shown(stage.settings.approval_text),
                allowed="a text where there is an approval",
                advice="Write approval: true, or remove the text.",
            )
        for number, gate in enumerate(stage.settings.gates):
            if gate.load_test is not None:
                yield from _check_load_test(
                    gate.load_test, stage.environment, ("stages", index, "gates", number, "load_test")
                )
    connection = pipeline.source.connection.split(":")
    if connection[1] != partition:
        yield Finding(
            location=("source", "connection"),
            found=f"a connection of the partition {connection[1]}",
            allowed=f"one of {partition}, where {pipeline.region} is",
        )


def _check_load_test(gate: LoadTestGate, environment: Environment, location: Location) -> Iterator[Finding]:
    """A gate that measures needs what runs its test, and limits to hold it against."""
    name = environment.environment
    if environment.load_test is None or environment.load_test.gate is None:
        yield Finding(
            location=location,
            found=f"a gate, and no load_test.gate in environments/{name}.yaml",
            allowed="an environment whose file says what is measured, and what the figures must not exceed",
            advice="There: load_test: {gate: {p95_ms: …, usd_per_million: …}} (docs/load-tests.md).",
        )
        return
    tested = {each.name for each in environment.tested_endpoints}
    for number, endpoint in enumerate(gate.endpoints or ()):
        if endpoint not in tested:
            yield Finding(
                location=(*location, "endpoints", number),
                found=shown(endpoint),
                allowed=f"endpoints that load_test of {name} names: {', '.join(sorted(tested))}",
            )


def _partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def _within(location: Location, faulty: set[Location]) -> bool:
    return any(location[: len(at)] == at for at in faulty)
