"""One environment: ``cdk deploy 'dev/*'`` deploys it whole."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.tags import ENVIRONMENT_TAG, tag_all
from stacks.artifacts import ArtifactsStack
from stacks.serving import ServingStack
from tritonstack.settings import Environment

ReleaseSets = Mapping[str, Mapping[str, str]]
"""Endpoint name → model name → digest."""


class EnvironmentStage(cdk.Stage):
    """The stacks of one environment.

    Attributes:
        artifacts: the artifacts stack, deployed first: archives are published into it before anything serves.
        serving: endpoint name → serving stack.
    """

    def __init__(self, scope: Construct, *, environment: Environment, release_sets: ReleaseSets) -> None:
        """Make the stage, whose id is the environment's name.

        Args:
            scope: the app.
            environment: its settings.
            release_sets: for every endpoint of the environment.
        """
        super().__init__(
            scope,
            environment.environment,
            env=cdk.Environment(account=environment.account, region=environment.region),
        )
        tag_all(self, {**environment.tags, ENVIRONMENT_TAG: environment.environment})
        self.artifacts = ArtifactsStack(self, "artifacts", environment=environment)
        self.serving: dict[str, ServingStack] = {}
        for endpoint in environment.endpoints:
            stack = ServingStack(
                self,
                f"serving-{endpoint.name}",
                environment=environment,
                endpoint=endpoint,
                release_set=release_sets[endpoint.name],
            )
            stack.add_stack_dependency(self.artifacts)
            self.serving[endpoint.name] = stack
