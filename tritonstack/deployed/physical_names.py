"""Physical names that stacks give, and those that two environments of one account, or a pipeline, would share.

Two environments may make one name of different parts: endpoint ``b-c`` of ``a`` and endpoint ``c`` of ``a-b`` are both
``a-b-c`` at SageMaker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tritonstack import naming
from tritonstack.config import Environment, load_environment
from tritonstack.config.pipeline import LoadedPipeline, load_pipeline
from tritonstack.config.yaml_loader import with_lines
from tritonstack.errors import InputError, Location, Problem, refuse
from tritonstack.monitoring.alarms import SEVERITIES, AlarmKind, alarm_name
from tritonstack.monitoring.graphs import variants_of
from tritonstack.monitoring.parts import observed_parts
from tritonstack.pipeline.builds import WORKS, PipelineNames

_OF_ENDPOINTS = tuple(
    each for each in AlarmKind if each not in (AlarmKind.BUILD_FAILED, AlarmKind.UNDELIVERED, AlarmKind.NOT_CLEANED_UP)
)


@dataclass(frozen=True, kw_only=True)
class PhysicalName:
    """A name that a stack gives, and where in the file of an environment or a pipeline it comes from."""

    kind: str  # what is called so, in AWS's words
    name: str
    of: str  # the part of the environment, or the pipeline, that makes it
    location: Location = ("environment",)
    in_every_region: bool = False  # whether the account has the name once, rather than once in each region


def physical_names(environment: Environment) -> Iterator[PhysicalName]:
    """Every physical name of an environment that another environment could give, too.

    Names below a path that is the environment's own (SSM parameters) are no such.
    """
    name = environment.environment
    observed = observed_parts(environment)
    parts = {each.name: number for number, endpoints in enumerate(observed, start=1) for each in endpoints}
    for index, endpoint in enumerate(environment.hosted_endpoints):
        place, of = ("endpoints", index, "name"), f"endpoint {endpoint.name}"
        full = endpoint.sagemaker_name(name)
        stack = naming.stack_name(environment=name, part=naming.serving_part(endpoint.name))
        yield PhysicalName(kind="SageMaker endpoint", name=full, of=of, location=place)
        yield PhysicalName(kind="CloudFormation stack", name=stack, of=of, location=place)
        if environment.alarms is not None:
            part = parts[endpoint.name]
            subjects = dict.fromkeys((full, *(each.subject for each in variants_of(environment, endpoint))))
            for subject in subjects:
                for kind in _OF_ENDPOINTS:
                    alarm = alarm_name(subject, kind, part=part)
                    yield PhysicalName(kind="CloudWatch alarm", name=alarm, of=of, location=place)
    yield from _names_of_stacks(environment)
    for number, _ in enumerate(observed, start=1):
        part_name = naming.observability_part(number)
        stack = naming.stack_name(environment=name, part=part_name)
        yield PhysicalName(kind="CloudFormation stack", name=stack, of=f"stack {part_name}")
        if environment.dashboard:
            dashboard = naming.dashboard(name, part=number)
            yield PhysicalName(kind="CloudWatch dashboard", name=dashboard, of="dashboard", in_every_region=True)
        if environment.alarms is not None:
            for severity in SEVERITIES:
                composite = naming.composite_alarm(name, severity=severity, part=number)
                yield PhysicalName(kind="CloudWatch alarm", name=composite, of="alarms")
    if environment.alarms is not None:
        yield PhysicalName(kind="SNS topic", name=f"{name}-alarms", of="alarms")
        kinds = (AlarmKind.UNDELIVERED.anchor, AlarmKind.NOT_CLEANED_UP.anchor)
        built = (f"{what}-{AlarmKind.BUILD_FAILED.anchor}" for what in ("archives", "engines"))
        for each in (*kinds, *built):
            yield PhysicalName(kind="CloudWatch alarm", name=f"{name}-{each}", of="alarms")


def _names_of_stacks(environment: Environment) -> Iterator[PhysicalName]:
    """Names of the stacks besides those of endpoints, and of the functions in them."""
    has = {
        "artifacts": True,
        "network": environment.network is not None,
        "builds": bool(environment.endpoints) and environment.builds.on_deploy is not False,
        "load-test": environment.load_test is not None,
    }
    for stack, made in has.items():
        if made:
            full = naming.stack_name(environment=environment.environment, part=stack)
            yield PhysicalName(kind="CloudFormation stack", name=full, of=f"stack {stack}")
    if has["builds"]:
        function = naming.builds_function(environment.environment)
        yield PhysicalName(kind="Lambda function", name=function, of="stack builds")
    for of in ("builds", "engines", "network", "load-tests"):
        group = naming.log_group(environment=environment.environment, of=of)
        yield PhysicalName(kind="log group", name=group, of=f"logs of {of}")


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Whose names are compared, and where they are given."""

    file: Path
    account: str
    region: str


def names_of_pipeline(loaded: LoadedPipeline, *, file: Path) -> Iterator[tuple[Owner, PhysicalName]]:
    """Every physical name of a pipeline: in its own account, and in those of its environments."""
    settings, names = loaded.settings, PipelineNames.of(loaded.settings)
    of = f"pipeline {settings.name}"

    def named(kind: str, name: str, *, in_every_region: bool = False) -> PhysicalName:
        return PhysicalName(kind=kind, name=name, of=of, location=("name",), in_every_region=in_every_region)

    own = Owner(file=file, account=settings.account, region=settings.region)
    yield own, named("CloudFormation stack", naming.pipeline_stack(settings.name))
    yield own, named("pipeline", settings.name)
    yield own, named("log group", naming.pipeline_log_group(settings.name))
    for stage in loaded.stages:
        environment = stage.environment
        there = Owner(file=file, account=environment.account, region=environment.region)
        stack = naming.stack_name(environment=environment.environment, part=naming.PIPELINE_ACCESS)
        yield there, named("CloudFormation stack", stack)
        for work in WORKS:
            yield own, named("IAM role", names.build_role(environment.environment, work), in_every_region=True)
            yield there, named("IAM role", names.access_role(environment.environment, work), in_every_region=True)


def refuse_names_of_others(environments: Iterable[Environment], *, folder: Path, pipelines: Iterable[Path]) -> None:
    """Raise InputError where an account would have a name of some environments twice; both places are named.

    ``environments``: those that are synthesised. They are compared among all of ``folder``, and with the
    ``pipelines``, files that need not be there. Files that are wrong by themselves are not compared: their own
    synthesis reports it.
    """
    chosen = {each.environment: each for each in environments}
    every: list[tuple[Environment, Path]] = []
    for file in sorted(folder.glob("*.yaml")):
        loaded = chosen.get(file.stem)
        if loaded is not None:
            every.append((loaded, file))
            continue
        with suppress(InputError):
            every.append((load_environment(file), file))
    given: list[tuple[Owner, PhysicalName]] = []
    for environment, file in every:
        owner = Owner(file=file, account=environment.account, region=environment.region)
        given.extend((owner, each) for each in dict.fromkeys(physical_names(environment)))
    known = {file: environment for environment, file in every}
    for file in dict.fromkeys(each.resolve() for each in pipelines if each.is_file()):
        with suppress(InputError):
            given.extend(names_of_pipeline(load_pipeline(file, environments=folder, known=known), file=file))
    problems: list[Problem] = []
    for file, problem in (*_shared(given), *_load_test_names(every)):
        problems.extend(with_lines([problem], file))
    refuse(problems)


def _shared(given: Iterable[tuple[Owner, PhysicalName]]) -> Iterator[tuple[Path, Problem]]:
    """Names that are given twice: the file of the later one, and the problem."""
    by_name: dict[tuple[str, str, str, str], list[tuple[Owner, PhysicalName]]] = defaultdict(list)
    for owner, each in given:
        region = "" if each.in_every_region else owner.region
        by_name[owner.account, region, each.kind, each.name].append((owner, each))
    reported = set()
    for (account, region, _, _), ((other, theirs), *others) in by_name.items():
        for owner, own in others:
            pair = (other.file, theirs.of, owner.file, own.of)
            if pair in reported:
                continue  # of two endpoints of one name, the names that follow from it
            reported.add(pair)
            found = f"the {own.kind} {own.name}, of {own.of}, is also that of {theirs.of} in {other.file}"
            yield (
                owner.file,
                Problem(
                    location=own.location,
                    found=f"{found} (account {account}{f', {region}' if region else ''})",
                    allowed=f"a name that nothing else in that account{' and region' if region else ''} has",
                    advice=f"Rename {own.of} here or {theirs.of} there, or deploy one of them to another account or "
                    "region.",
                ),
            )


def _load_test_names(environments: Sequence[tuple[Environment, Path]]) -> Iterator[tuple[Path, Problem]]:
    """Endpoints that a load test's clean-up could take for its own: it deletes by the prefix of its jobs' names."""
    for tester, their_file in environments:
        if tester.load_test is None:
            continue
        prefix = naming.load_test_job_prefix(tester.environment)
        for environment, file in environments:
            if (environment.account, environment.region) != (tester.account, tester.region):
                continue
            for index, endpoint in enumerate(environment.hosted_endpoints):
                full = endpoint.sagemaker_name(environment.environment)
                if full.startswith(prefix):
                    yield (
                        file,
                        Problem(
                            location=("endpoints", index, "name"),
                            found=f"the SageMaker endpoint {full}: names with {prefix} belong to jobs of the load "
                            f"tests of {their_file}, which delete what is called so",
                            allowed=f"a name that does not make {prefix}… of environment and endpoint",
                        ),
                    )
