"""One environment: ``cdk deploy 'dev/*'`` deploys it whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.account_requirements import apply_account_requirements, tag_all
from tritonstack import naming
from tritonstack.config import Environment, engines_built_on_deploy, load_environment
from tritonstack.monitoring.parts import observed_parts

from .artifacts import ArtifactsStack
from .serving import ServingStack

if TYPE_CHECKING:
    from pathlib import Path

    from tritonstack.preparation.deployed_builds import DeployedBuilds
    from tritonstack.served import Served

    from .builds import BuildsStack
    from .load_test import LoadTestStack
    from .network import NetworkStack
    from .observability import ObservabilityStack

ReleaseSets = Mapping[str, Mapping[str, str]]
"""Endpoint name → model name → digest."""


class EnvironmentStage(cdk.Stage):
    """The stacks of one environment, as attributes; None for a stack that it does not have.

    ``artifacts`` is deployed first: archives are published into it before anything serves. ``serving`` is a mapping of
    endpoint names to stacks.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        environment: Environment,
        release_sets: ReleaseSets,
        commits: Mapping[str, str] | None = None,
        builds: DeployedBuilds | None = None,
    ) -> None:
        """Make the stage, whose id is the environment's name. Without an endpoint it has no stack that serves them.

        Args:
            release_sets: for every endpoint of the environment.
            commits: model name → the commit that its inputs come from, for the release records.
            builds: what its deployments build; None where archives are published before.
        """
        super().__init__(
            scope, environment.environment, env=cdk.Environment(account=environment.account, region=environment.region)
        )
        tag_all(self, environment.resource_tags)
        self.artifacts = ArtifactsStack(self, "artifacts", environment=environment)
        apply_account_requirements(
            self,
            stack=self.artifacts,
            role_path=environment.role_path,
            permissions_boundary_arn=environment.permissions_boundary,
            function_log_days=environment.logs.function_days,
        )
        self.network = self._network(environment, builds)
        self.builds = None if builds is None else self._builds(environment, builds)
        self.serving: dict[str, ServingStack] = {}
        for endpoint in environment.hosted_endpoints:
            stack = ServingStack(
                self,
                naming.serving_part(endpoint.name),
                environment=environment,
                endpoint=endpoint,
                release_set=release_sets[endpoint.name],
                commits={model: (commits or {}).get(model, "unknown") for model in release_sets[endpoint.name]},
                build_sets=() if builds is None else builds.build_sets[endpoint.name],
            )
            stack.add_stack_dependency(self.network or self.artifacts)
            if self.builds is not None:
                stack.add_stack_dependency(self.builds)
            self.serving[endpoint.name] = stack
        self.load_test = self._load_test(environment)
        self.observability = self._observability(environment)

    @classmethod
    def from_file(cls, scope: Construct, *, file: Path, models: Path) -> EnvironmentStage:
        """The stage of an environment's file, as ``app.main`` makes it; for a pipeline or an app of one's own.

        Args:
            scope: the app; or a pipeline's stack, whose stages need not be its children.
            file: ``environments/<name>.yaml``.
            models: the folder of the model folders.

        Raises:
            InputError: the file or a model is wrong; with every problem.
        """
        from tritonstack.served import served_by  # noqa: PLC0415 - the app has matched it before

        return cls.from_served(scope, served_by(load_environment(file), models, file=file), models=models)

    @classmethod
    def from_served(cls, scope: Construct, served: Served, *, models: Path) -> EnvironmentStage:
        """The stage of an environment that was matched with the model folders in ``models``."""
        from tritonstack.releases.commits import commits_of  # noqa: PLC0415 - a stage may be made without

        return cls(
            scope,
            environment=served.environment,
            release_sets=served.release_sets,
            commits=commits_of(served.sources, models),
            builds=builds_of(served, models=models),
        )

    def _network(self, environment: Environment, builds: DeployedBuilds | None) -> NetworkStack | None:
        if environment.network is None:
            return None
        from .network import NetworkStack  # noqa: PLC0415 - EC2's types, which most environments do not need

        stack = NetworkStack(self, "network", environment=environment, settings=environment.network, builds=builds)
        stack.add_stack_dependency(self.artifacts)
        return stack

    def _builds(self, environment: Environment, builds: DeployedBuilds) -> BuildsStack:
        from .builds import BuildsStack  # noqa: PLC0415 - CodeBuild's types, which most environments do not need

        stack = BuildsStack(self, "builds", environment=environment, builds=builds)
        stack.add_stack_dependency(self.network or self.artifacts)
        return stack

    def _load_test(self, environment: Environment) -> LoadTestStack | None:
        if environment.load_test is None or not environment.tested_endpoints:
            return None
        from .load_test import LoadTestStack  # noqa: PLC0415 - as the builds stack's types

        stack = LoadTestStack(self, "load-test", environment=environment, settings=environment.load_test)
        stack.add_stack_dependency(self.network or self.artifacts)
        return stack

    def _observability(self, environment: Environment) -> ObservabilityStack | None:
        if not environment.watched:
            return None
        from .observability import FurtherObservabilityStack, ObservabilityStack  # noqa: PLC0415 - as the builds stack's types

        single_models_tests = None if self.load_test is None or self.load_test.machine is None else self.load_test
        further = [
            FurtherObservabilityStack(self, naming.observability_part(number), environment=environment, part=number)
            for number in range(2, len(observed_parts(environment)) + 1)
        ]
        stack = ObservabilityStack(
            self,
            "observability",
            environment=environment,
            builds=self.builds is not None,
            engines=self.builds is not None and self.builds.engines is not None,
            load_tests=single_models_tests is not None,
            further=further,
        )
        for watched in (self.artifacts, self.builds, single_models_tests, *self.serving.values()):
            if watched is not None:
                stack.add_stack_dependency(watched)
        for number, each in enumerate(further, start=2):
            for endpoint in observed_parts(environment)[number - 1]:
                each.add_stack_dependency(self.serving[endpoint.name])
        return stack


def builds_of(served: Served, *, models: Path) -> DeployedBuilds | None:
    """The archives that a deployment of an environment builds; None where they are published before it."""
    if not engines_built_on_deploy(served.environment, bool(served.engines.builds)):
        return None
    from tritonstack.preparation.deployed_builds import deployed_builds  # noqa: PLC0415 - most environments need no such

    return deployed_builds(served, models)
