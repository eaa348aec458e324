"""Custom resources around an endpoint: its archives before it, verification and release records after it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from constructs import Construct, IConstruct

from constructs_lib.artifact_bucket import ArtifactBucketReference, grant_group
from constructs_lib.endpoint import Endpoint
from constructs_lib.handler_function import HandlerFunction, text_asset
from constructs_lib.permission import allow_group, parameter_arn, regional_service
from constructs_lib.triton_model import MultiModelData, TritonImage
from tritonstack import naming
from tritonstack.arns import bucket_arn
from tritonstack.config.endpoint import VerificationSettings

RELEASE_SET_SCHEMA = 1
"""It rises when an older function could no longer read a set: to undo an update, CloudFormation puts the old function
back before it calls that function with the new set. Members that older ones ignore (``commits``) do not count."""


class Activation(Construct):
    """Two custom resources around an endpoint, and the function behind both.

    Before the endpoint, the first checks that the archives of the release set exist: a deployment without them fails in
    seconds and changes nothing that serves. After it, the second moves the release records. The function responds to
    CloudFormation itself, without a framework.

    Attributes:
        endpoint: the endpoint, as given.
        platform: of its archives.
        release_set: the file that names every model's digest.
        archives: the custom resource that the endpoint depends on.
        records: the custom resource that depends on the endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: naming.EndpointReference,
        platform: naming.Platform,
        artifacts: ArtifactBucketReference,
        release_set: Mapping[str, str],
        around: IConstruct,
        commits: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """Make both custom resources.

        Args:
            endpoint: the endpoint, by its environment's name and its own name there.
            platform: of the archives.
            release_set: model name → digest, 16 hexadecimal digits.
            around: the endpoint, which is made to depend on the archives.
            commits: model name → the commit that its inputs come from, for the release records.
            tags: of the release records; CloudFormation does not tag parameters that a function writes.
        """
        super().__init__(scope, construct_id)
        self.endpoint, self.platform = endpoint, platform
        document = {
            "schema": RELEASE_SET_SCHEMA,
            "platform": str(platform),
            "models": dict(release_set),
            "commits": dict(commits),
        }
        text = json.dumps(document, indent=1, sort_keys=True) + "\n"
        self.artifacts = artifacts
        asset = self.release_set = text_asset(self, "ReleaseSet", text, suffix=naming.RELEASE_SET_SUFFIX)
        self.function = HandlerFunction(
            self, "Handler", handler="activation", description=f"Writes the release records of {endpoint}"
        )
        # Every platform of the endpoint: when a release change is rolled back, the set before lies under another one.
        grant_group(
            self.function.policy,
            "activation",
            artifacts=artifacts,
            prefixes=[naming.archives_prefix(endpoint.endpoint)],
            staging=self.staging_arn,
            records=[parameter_arn(self, path.rstrip("/")) for path in (endpoint.records, endpoint.removed_records)],
        )
        self.function.allow_seeing_operations()
        properties = {
            "ReleaseSetBucket": asset.s3_bucket_name,
            "ReleaseSetKey": asset.s3_object_key,
            "ArchiveBucket": artifacts.bucket_name,
            "ArchivePrefix": naming.platform_prefix(endpoint=endpoint.endpoint, platform=platform),
            "RecordPath": endpoint.records,
        }
        self.archives = self.function.custom_resource(
            self, "Archives", resource_type=naming.PUBLISHED_TYPE, properties=properties
        )
        properties = {**properties, "Tags": json.dumps(dict(tags), sort_keys=True)}
        self.records = self.function.custom_resource(
            self, "Records", resource_type=naming.RECORDS_TYPE, properties=properties
        )
        around.node.add_dependency(self.archives)
        self.records.node.add_dependency(around)

    @property
    def staging_arn(self) -> str:
        """The ARN of the bucket that release sets are assets in."""
        return bucket_arn(self.release_set.s3_bucket_name, partition=cdk.Stack.of(self).partition)


RESPONSE_MINUTES = 60
"""The longest that CloudFormation waits (user guide: ServiceTimeout); the function ends before."""


class Verification(Construct):
    """A custom resource between endpoint and release records, and its function.

    It fails, and with it the deployment, unless the live endpoint runs the requested config and the responses of
    changed models to their sample requests are what their manifests expect. See
    ``docs/decisions/0011-verification-after-deploy.md``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: Endpoint,
        image: TritonImage,
        settings: VerificationSettings,
        activation: Activation,
        streams: bool = False,
    ) -> None:
        """Make the custom resource, which the records of ``activation`` depend on.

        ``image``: what the containers run. ``streams``: whether their responses are streams of events.
        """
        super().__init__(scope, construct_id)
        manifest_prefix = naming.manifest_prefix(endpoint=activation.endpoint.endpoint, platform=activation.platform)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="verification",
            description=f"Verifies endpoint {endpoint.endpoint_name} after a deployment",
        )
        grant_group(
            self.function.policy,
            "verification",
            artifacts=activation.artifacts,
            s3=regional_service(self, "s3"),
            staging=activation.staging_arn,
            endpoint=endpoint.endpoint_arn,
            manifest_prefix=manifest_prefix,
            function=self.function.arn,
        )
        if streams:
            allow_group(self.function.policy, "verification-of-streams", endpoint=endpoint.endpoint_arn)
        self.function.allow_seeing_operations()
        data = [each.model.data for each in endpoint.variants]
        warms = any(isinstance(each, MultiModelData) and each.cache for each in data)
        variants = {}
        if len(data) > 1:  # each model is verified on the variant that serves it
            served = {each.model.archive.model: each.name for each in endpoint.variants if each.model.archive}
            variants = {"Variants": json.dumps(served, sort_keys=True)}
        resource = self.function.custom_resource(
            self,
            "Resource",
            resource_type=naming.VERIFIED_TYPE,
            response_minutes=RESPONSE_MINUTES,
            properties={
                "EndpointName": endpoint.endpoint_name,
                "EndpointConfigName": endpoint.config.attr_endpoint_config_name,
                "VariantName": endpoint.variant_name,
                **variants,
                "Image": image.uri,
                "MultiModel": str(endpoint.multi_model).lower(),
                **({"Streams": "true"} if streams else {}),
                "StopsAtUnload": str(warms).lower(),
                "Models": str(settings.models),
                "Minutes": str(settings.minutes),
                "ReleaseSetBucket": activation.release_set.s3_bucket_name,
                "ReleaseSetKey": activation.release_set.s3_object_key,
                "ArchiveBucket": activation.artifacts.bucket_name,
                "ManifestPrefix": manifest_prefix,
            },
            after=[endpoint],
        )
        activation.records.node.add_dependency(resource)
