"""Physical names that an environment's stacks give, and those that two environments of one account would share.

Two environments may make one name of different parts: endpoint ``b-c`` of ``a`` and endpoint ``c`` of ``a-b`` are both
``a-b-c`` at SageMaker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonstack import naming
from tritonstack.config import Environment, load_environment
from tritonstack.config.yaml_loader import with_lines
from tritonstack.errors import InputError, Location, Problem, refuse
from tritonstack.monitoring.alarms import SEVERITIES, AlarmKind, alarm_name
from tritonstack.monitoring.graphs import variants_of
from tritonstack.monitoring.parts import observed_parts

_OF_ENDPOINTS = tuple(
    each for each in AlarmKind if each not in (AlarmKind.BUILD_FAILED, AlarmKind.UNDELIVERED, AlarmKind.NOT_CLEANED_UP)
)


@dataclass(frozen=True, kw_only=True)
class PhysicalName:
    """A name that a stack gives, and where in the environment's file it comes from."""

    kind: str  # what is called so, in AWS's words
    name: str
    of: str  # the part of the environment that makes it
    location: Location = ("environment",)
    in_every_region: bool = False  # whether the account has the name once, rather than once in each region


def physical_names(environment: Environment) -> Iterator[PhysicalName]:
    """Every physical name of an environment that another environment could give, too.

    Names below a path that is the environment's own (SSM parameters, log groups of builds) are no such.
    """
    name = environment.environment
    observed = observed_parts(environment)
    parts = {each.name: number for number, endpoints in enumerate(observed, start=1) for each in endpoints}
    for index, endpoint in enumerate(environment.endpoints):
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
        "pipeline-access": True,  # whether there is a pipeline is decided in another file
    }
    for stack, made in has.items():
        if made:
            full = naming.stack_name(environment=environment.environment, part=stack)
            yield PhysicalName(kind="CloudFormation stack", name=full, of=f"stack {stack}")
    if has["builds"]:
        function = naming.builds_function(environment.environment)
        yield PhysicalName(kind="Lambda function", name=function, of="stack builds")


def refuse_shared_names(environments: Sequence[tuple[Environment, Path]]) -> None:
    """Raise InputError where two of the environments, each with its file, give one physical name; both are named."""
    problems: list[Problem] = []
    for file, problem in _shared(environments):
        problems.extend(with_lines([problem], file))
    refuse(problems)


def refuse_names_of_others(environments: Iterable[Environment], *, folder: Path) -> None:
    """The same for some environments among all of a folder. Files that are wrong by themselves are not compared."""
    chosen = {each.environment: each for each in environments}
    every = []
    for file in sorted(folder.glob("*.yaml")):
        loaded = chosen.get(file.stem)
        if loaded is None:
            try:
                loaded = load_environment(file)
            except InputError:
                continue  # its own synthesis reports it
        every.append((loaded, file))
    refuse_shared_names(every)


def _shared(environments: Sequence[tuple[Environment, Path]]) -> Iterator[tuple[Path, Problem]]:
    """Names that are given twice, by two environments or by one: the file of the later one, and the problem."""
    given: dict[tuple[str, str, str, str], list[tuple[Environment, Path, PhysicalName]]] = defaultdict(list)
    for environment, file in environments:
        for each in dict.fromkeys(physical_names(environment)):
            region = "" if each.in_every_region else environment.region
            given[environment.account, region, each.kind, each.name].append((environment, file, each))
    reported = set()
    for (account, region, _, _), (first, *others) in given.items():
        for environment, file, own in others:
            pair = (first[1], first[2].of, file, own.of)
            if pair in reported:
                continue  # of two endpoints of one name, the names that follow from it
            reported.add(pair)
            yield file, _problem(first, own, environment, account=account, region=region)
    yield from _load_test_names(environments)


def _problem(
    first: tuple[Environment, Path, PhysicalName],
    own: PhysicalName,
    environment: Environment,
    *,
    account: str,
    region: str,
) -> Problem:
    other, file, theirs = first
    where = f"account {account}" + (f", {region}" if region else "")
    return Problem(
        location=own.location,
        found=f"the {own.kind} {own.name}, of {own.of}, is also that of {theirs.of} in {file} ({where})",
        allowed=f"a name that nothing else in that account{' and region' if region else ''} has",
        advice=f"Rename {own.of} of {environment.environment} or {theirs.of} of {other.environment}, or deploy one of "
        "the environments to another account or region.",
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
            for index, endpoint in enumerate(environment.endpoints):
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
