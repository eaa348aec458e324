"""The stack of the network: the VPC that containers and builds run in, and the endpoints by which they reach AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aws_cdk as cdk
from constructs import Construct

from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.network import Network
from constructs_lib.outputs import publish_outputs
from constructs_lib.permission import parameter_arn
from constructs_lib.triton_model import TritonImage
from constructs_lib.vpc_endpoints import BuildCalls, Reach
from tritonstack.config import Environment, NetworkSettings
from tritonstack.engines.order import DeployedBuilds

if TYPE_CHECKING:
    from tritonstack.outputs.contract import NetworkFields


class NetworkStack(cdk.Stack):
    """The network of one environment; its values are SSM parameters, so nothing is exported.

    Attributes:
        network: VPC, subnets, security groups and endpoints.
    """

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
            settings=settings,
            artifacts=ArtifactBucketReference(self, "Artifacts", environment=environment.environment),
            reach=Reach(
                environment=environment.environment,
                builds=_calls(self, environment, builds) if builds_are_inside(environment) else None,
                load_test_images=_load_test_images(environment),
            ),
        )
        outputs: NetworkFields = {
            "vpc_id": self.network.vpc_id,
            "subnets": dict(self.network.subnets),
            "security_groups": list(self.network.groups),
        }
        publish_outputs(self, environment=environment, kind="network", outputs=outputs)


def builds_are_inside(environment: Environment) -> bool:
    """Whether builds run in the environment's network."""
    settings = environment.builds
    return environment.joined_network is not None and settings.network is None and not settings.outside_network


def _calls(stack: cdk.Stack, environment: Environment, builds: DeployedBuilds | None) -> BuildCalls | None:
    if builds is None:
        return None
    kinds = {builder.kind for builder in builds.builders}
    pulled = {builder.image for builder in builds.builders if builder.kind == "codebuild"}
    images = [TritonImage.of_machine(name) for name in sorted({*pulled, environment.builds.image})]
    return BuildCalls(
        images=[image for image in images if image is not None],
        engines="codebuild" in kinds,
        processing="processing" in kinds,
        weights=[f"arn:{stack.partition}:s3:::{url.removeprefix('s3://')}" for url in builds.weights],
        parameters=sorted({parameter_arn(stack, name) for name in environment.builds.hub.parameters.values()}),
    )


def _load_test_images(environment: Environment) -> list[TritonImage] | None:
    if environment.load_test is None or not environment.benched_in_network:
        return None
    image = TritonImage.of_machine(environment.load_test.bench.image)
    return [] if image is None else [image]
