"""Verification: after an endpoint's update, and before any release record moves, what was deployed must answer."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IConstruct

from constructs_lib.acknowledgement import acknowledge, acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference
from constructs_lib.endpoint import Endpoint
from constructs_lib.handler_function import HandlerFunction
from constructs_lib.permission import allow
from constructs_lib.triton_image import TritonImage
from constructs_lib.triton_model import MultiModelData
from tritonstack.config.endpoint import VerificationSettings

VERIFIED_TYPE = "Custom::VerifiedEndpoint"
ANSWER_MINUTES = 60
"""The longest that CloudFormation waits (user guide: ServiceTimeout); the function gives up before."""


class Verification(Construct):
    """A custom resource between endpoint and release records, and its function.

    It fails, and with it the deployment, unless the live endpoint runs the requested config and the models that changed
    answer their sample requests as their manifests expect. See ``docs/decisions/0011-verification-after-deploy.md``.

    Attributes:
        function: what answers CloudFormation.
        resource: the custom resource.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: Endpoint,
        image: TritonImage,
        settings: VerificationSettings,
        artifacts: ArtifactBucketReference,
        manifest_prefix: str,
        release_set: s3_assets.Asset,
        before: IConstruct,
        permissions_boundary_arn: str | None = None,
    ) -> None:
        """Make the custom resource.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            endpoint: what is verified, once it is there.
            image: what its containers run.
            settings: how many models are called, and how long that may take.
            artifacts: where the manifests lie.
            manifest_prefix: the platform's prefix of the manifests, with its trailing slash.
            release_set: the file that names every model's digest.
            before: what waits for the verification: the release records.
            permissions_boundary_arn: a managed policy that bounds the function's role. Default: None.
        """
        super().__init__(scope, construct_id)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="verification",
            description=f"Verifies endpoint {endpoint.endpoint_name} after a deployment",
            log_retention=logs.RetentionDays.THREE_MONTHS,
            permissions_boundary_arn=permissions_boundary_arn,
        )
        self._allow_asking(endpoint)
        self._allow_reading(release_set, artifacts=artifacts, manifest_prefix=manifest_prefix)
        self._allow_going_on()
        data = endpoint.model.data
        warms = isinstance(data, MultiModelData) and data.cache
        self.resource = self.function.custom_resource(
            self,
            "Resource",
            resource_type=VERIFIED_TYPE,
            answer_minutes=ANSWER_MINUTES,
            properties={
                "EndpointName": endpoint.endpoint_name,
                "EndpointConfigName": endpoint.config.attr_endpoint_config_name,
                "VariantName": endpoint.variant_name,
                "Image": image.uri,
                "MultiModel": str(endpoint.model.multi_model).lower(),
                "StopsAtUnload": str(warms).lower(),
                "Models": str(settings.models),
                "Minutes": str(settings.minutes),
                "ReleaseSetBucket": release_set.s3_bucket_name,
                "ReleaseSetKey": release_set.s3_object_key,
                "ArchiveBucket": artifacts.bucket_name,
                "ManifestPrefix": manifest_prefix,
            },
            after=[endpoint],
        )
        before.node.add_dependency(self.resource)

    def _allow_asking(self, endpoint: Endpoint) -> None:
        """No condition on TargetModel: names of a thousand models are longer than a policy may be (10,240 bytes)."""
        policy, arn = self.function.policy, endpoint.endpoint_arn
        allow(policy, "SeeEndpoint", actions=["sagemaker:DescribeEndpoint"], resources=[arn])
        allow(policy, "SendSampleRequests", actions=["sagemaker:InvokeEndpoint"], resources=[arn])
        allow(policy, "SeeUnloads", actions=["cloudwatch:GetMetricStatistics"], resources=["*"])
        acknowledge(
            policy,
            finding="AwsSolutions-IAM5[Resource::*]",
            reason="cloudwatch:GetMetricStatistics has no resource type and no condition key (service authorization "
            "reference, CloudWatch); it reads figures and changes nothing.",
        )

    def _allow_reading(
        self, release_set: s3_assets.Asset, *, artifacts: ArtifactBucketReference, manifest_prefix: str
    ) -> None:
        policy, stack = self.function.policy, cdk.Stack.of(self)
        sets = f"arn:{stack.partition}:s3:::{release_set.s3_bucket_name}/*.release-set"
        allow(policy, "ReadReleaseSets", actions=["s3:GetObject"], resources=[sets])
        acknowledge_wildcard(
            policy,
            resource=sets,
            reason="What changed is told by the release set before, whose key is not known here. Nothing but release "
            "sets ends so.",
        )
        manifests = artifacts.objects_arn(f"{manifest_prefix}*")
        allow(policy, "ReadManifests", actions=["s3:GetObject"], resources=[manifests])
        acknowledge_wildcard(
            policy,
            resource=manifests,
            reason="The manifests of this endpoint's archives for this platform, and the sample requests beside them; "
            "models come and go. Archives lie under another prefix.",
        )
        allow(
            policy,
            "DecryptManifests",
            actions=["kms:Decrypt"],
            resources=[artifacts.key_arn],
            conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.amazonaws.com"}},
        )

    def _allow_going_on(self) -> None:
        stack, policy = cdk.Stack.of(self), self.function.policy
        allow(policy, "GoOn", actions=["lambda:InvokeFunction"], resources=[self.function.arn])
        allow(policy, "SeeRollbacks", actions=["cloudformation:DescribeStacks"], resources=[stack.stack_id])
