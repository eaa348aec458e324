"""Deployed stacks of an environment, found by their tags, and which of them the environment's file synthesises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonstack import naming
from tritonstack.aws.read_only import ReadOnlyCalls
from tritonstack.config import Environment, engines_built_on_deploy
from tritonstack.errors import InputError
from tritonstack.monitoring.parts import observed_parts

_OBSERVABILITY = re.compile(rf"{naming.OBSERVABILITY}(-[0-9]+)?")
_ORDER = (naming.OBSERVABILITY, naming.LOAD_TEST, naming.SERVING_PREFIX, naming.PIPELINE_ACCESS, naming.BUILDS,
          naming.NETWORK, naming.ARTIFACTS)  # fmt: skip
"""Kinds of stacks in the order of their deletion: what watches and calls others before them, what others read last."""


@dataclass(frozen=True, kw_only=True)
class DeployedStack:
    """One stack of the account in one region."""

    name: str  # its name in CloudFormation
    id: str  # its ARN, which still finds it when it is deleted
    status: str  # CREATE_COMPLETE, …
    reason: str = ""  # of the status; empty where CloudFormation gives none
    tags: Mapping[str, str]  # its own
    reads: frozenset[str] = (
        frozenset()
    )  # values of its parameters, among them the names of SSM parameters that it reads
    protected: bool = False  # whether its termination protection is on

    @property
    def environment(self) -> str:
        """The environment that its tag names; empty for a stack of something else."""
        return self.tags.get(naming.ENVIRONMENT_TAG, "")

    @property
    def endpoint(self) -> str:
        """The endpoint that its tag names; empty for a stack without one."""
        return self.tags.get(naming.ENDPOINT_TAG, "")

    @property
    def part(self) -> str:
        """Its id in the environment's stage (``serving-digits``), or empty: another stack that has the tag.

        Tags decide: by its name alone ``a-b-network`` would be of environment ``a``, too.
        """
        if not self.environment:
            return ""
        if self.endpoint:
            known = [naming.serving_part(self.endpoint)]
        else:
            known = [kind for kind in _ORDER if kind != naming.SERVING_PREFIX]
            found = self.name.removeprefix(f"{self.environment}-")
            known += [found] if _OBSERVABILITY.fullmatch(found) else []
        names = {naming.stack_name(environment=self.environment, part=part): part for part in known}
        return names.get(self.name, "")

    @property
    def kind(self) -> str:
        """Its part without the name or number of a single one: ``serving-``, ``observability``, ``network``."""
        if self.endpoint:
            return naming.SERVING_PREFIX
        return naming.OBSERVABILITY if _OBSERVABILITY.fullmatch(self.part) else self.part

    @property
    def in_progress(self) -> bool:
        """Whether CloudFormation is at work on it."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"

    @property
    def writes(self) -> tuple[str, ...]:
        """Paths of the SSM parameters that it makes for other stacks."""
        paths = [naming.outputs_parameter(environment=self.environment, stack=self.part)]
        kinds: dict[str, Callable[..., str]] = {
            naming.ARTIFACTS: naming.artifact_parameter,
            naming.NETWORK: naming.network_parameter,
            naming.BUILDS: naming.builds_parameter,
            naming.LOAD_TEST: naming.load_test_parameter,
        }
        if self.part in kinds:
            paths.append(kinds[self.part](environment=self.environment, value=""))
        if self.endpoint:
            paths.append(naming.release_parameter(environment=self.environment, endpoint=self.endpoint, model=""))
        return tuple(paths)

    def used_by(self, others: Iterable[DeployedStack]) -> tuple[str, ...]:
        """Names of the other stacks that read an SSM parameter of this one, whatever environment they are of."""
        own = self.writes

        def reads(other: DeployedStack) -> bool:
            return any(
                name.startswith(path) if path.endswith("/") else name == path for name in other.reads for path in own
            )

        return tuple(sorted(other.name for other in others if other.id != self.id and reads(other)))


def deployed_stacks(calls: ReadOnlyCalls, *, region: str | None = None) -> tuple[DeployedStack, ...]:
    """Every stack of the account in a region (None: the session's), by name, without nested ones and deleted ones.

    One listing with tags and parameters (API reference, DescribeStacks without a name; it needs ListStacks too).

    Raises:
        NotKnownError: AWS refuses, or does not respond.
    """
    rows = calls.pages("cloudformation", "describe_stacks", "Stacks", region=region)
    found = (stack_of(row) for row in rows if not row.get("ParentId"))
    return tuple(sorted((each for each in found if each.status != "DELETE_COMPLETE"), key=lambda each: each.name))


def stack_of(row: Mapping[str, Any]) -> DeployedStack:
    """A stack as DescribeStacks has it."""
    return DeployedStack(
        name=row["StackName"],
        id=row.get("StackId", row["StackName"]),
        status=row["StackStatus"],
        reason=row.get("StackStatusReason", ""),
        tags={tag["Key"]: tag["Value"] for tag in row.get("Tags", ())},
        # Of a parameter that is looked up in SSM the value is its name there, and ResolvedValue what that holds.
        reads=frozenset(each.get("ParameterValue", "") for each in row.get("Parameters", ())),
        protected=bool(row.get("EnableTerminationProtection")),
    )


def of_environment(stacks: Iterable[DeployedStack], environment: str) -> tuple[DeployedStack, ...]:
    """The stacks that this project made for an environment, in the order of their deletion."""
    own = (each for each in stacks if each.environment == environment and each.part)
    return tuple(sorted(own, key=lambda each: (_ORDER.index(each.kind), each.name)))


def left_stacks(
    stacks: Iterable[DeployedStack], settings: Environment, *, builds: Callable[[], bool | None]
) -> tuple[DeployedStack, ...]:
    """The deployed stacks of an environment that its file no longer synthesises, in the order of their deletion.

    ``builds``: returns whether it synthesises a builds stack, called only where one is deployed; None: unknown, and the
    stack counts as synthesised. So does the pipeline's access, which another file than the environment's decides.
    """
    expected = {*parts_of(settings), naming.PIPELINE_ACCESS}
    left = (each for each in of_environment(stacks, settings.environment) if each.part not in expected)
    return tuple(each for each in left if each.kind != naming.BUILDS or builds() is False)


def parts_of(settings: Environment) -> tuple[str, ...]:
    """Ids of the stacks that an environment's settings alone decide: all but ``builds`` (``expects_builds``)."""
    return (
        naming.ARTIFACTS,
        *([naming.NETWORK] if settings.network is not None else []),
        *(naming.serving_part(endpoint.name) for endpoint in settings.hosted_endpoints),
        *([naming.LOAD_TEST] if settings.tested_endpoints else []),
        *(naming.observability_part(number) for number, _ in enumerate(observed_parts(settings), start=1)),
    )


def expects_builds(settings: Environment, *, project: Path) -> bool | None:
    """Whether an environment has a builds stack; None where its model folders, which decide it, are wrong or absent."""
    if settings.builds.on_deploy is not None or not settings.endpoints:
        return engines_built_on_deploy(settings, needs_engine=False)
    from tritonstack.served import served_by  # noqa: PLC0415 - reads every model folder

    file = project / "environments" / f"{settings.environment}.yaml"
    try:
        served = served_by(settings, project / "model_repos", file=file)
    except InputError:
        return None
    return engines_built_on_deploy(settings, needs_engine=bool(served.engines.builds))


def why_left(stack: DeployedStack, *, file: str) -> str:
    """Why a stack left, in a few words. ``file``: the environment's, as messages name it."""
    if stack.endpoint:
        return f"{file} has no endpoint {stack.endpoint}"
    if stack.kind == naming.OBSERVABILITY != stack.part:
        return f"{file} has fewer endpoints, which fewer stacks watch"
    reasons = {
        naming.OBSERVABILITY: f"{file} has neither `dashboard` nor `alarms`, or no endpoint",
        naming.LOAD_TEST: f"{file} has no `load_test`, or no endpoint that it tests",
        naming.BUILDS: f"deployments of {file} build nothing",
        naming.NETWORK: f"{file} has no `network`",
    }
    return reasons.get(stack.kind, f"there is no {file}")
