"""The stack of the network: the VPC that containers and builds run in, and the endpoints by which they reach AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.network import Network
from constructs_lib.outputs import publish_outputs
from tritonstack.config import Environment, NetworkSettings
from tritonstack.preparation.deployed_builds import DeployedBuilds

if TYPE_CHECKING:
    from tritonstack.outputs.contract import NetworkFields


class NetworkStack(cdk.Stack):
    """The network of one environment; its values are SSM parameters, so nothing is exported."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        settings: NetworkSettings,
        builds: DeployedBuilds | None,
    ) -> None:
        """Make the stack for one environment, whose builds, if any, may run in it."""
        super().__init__(
            scope,
            construct_id,
            stack_name=f"{environment.environment}-network",
            description=f"Network of {environment.environment}",
        )
        self.network = Network(
            self,
            "Network",
            environment=environment,
            settings=settings,
            artifacts=ArtifactBucketReference(
                self, "Artifacts", environment=environment.environment, earlier_key=environment.artifacts.earlier_key
            ),
            builds=builds,
        )
        outputs: NetworkFields = {
            "vpc_id": self.network.vpc_id,
            "subnets": dict(self.network.subnets),
            "security_groups": list(self.network.groups),
        }
        publish_outputs(self, environment=environment, kind="network", outputs=outputs)
