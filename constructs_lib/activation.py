"""Custom resources around an endpoint: its archives before it, verification and release records after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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
    """Custom resources around an endpoint, and the function behind them.

    Before the endpoint, the first checks that the archives of the release set exist: a deployment without them fails in
    seconds and changes nothing that serves. Where instance pools have several GPUs, one for each checks first. After
    it, the second moves the release records. The function responds to CloudFormation itself, without a framework.

    Attributes:
        endpoint: the endpoint, as given.
        platforms: of its archives, that of the preferred instance type first.
        release_set: the file that names every model's digest.
        archives: the custom resource that the endpoint depends on.
        checks: the custom resources that look for archives, one for each platform; the last of them is ``archives``.
        records: the custom resource that depends on the endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint: naming.EndpointReference,
        platform: naming.Platform,
        further_platforms: Sequence[naming.Platform] = (),
        artifacts: ArtifactBucketReference,
        release_set: Mapping[str, str],
        around: IConstruct,
        commits: Mapping[str, str],
        tags: Mapping[str, str],
    ) -> None:
        """Make the custom resources.

        Args:
            endpoint: the endpoint, by its environment's name and its own name there.
            platform: of the archives.
            further_platforms: of the other GPUs of its instance pools. Default: none.
            release_set: model name → digest, 16 hexadecimal digits.
            around: the endpoint, which is made to depend on the archives.
            commits: model name → the commit that its inputs come from, for the release records.
            tags: of the release records; CloudFormation does not tag parameters that a function writes.
        """
        super().__init__(scope, construct_id)
        self.endpoint, self.platforms = endpoint, (platform, *further_platforms)
        document = {
            "schema": RELEASE_SET_SCHEMA,
            "platform": str(platform),
            **({"platforms": [str(each) for each in self.platforms]} if further_platforms else {}),
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
        further = [
            self.function.custom_resource(
                self,
                f"Archives-{each.gpu}",
                resource_type=naming.PUBLISHED_TYPE,
                properties={
                    **properties,
                    "ArchivePrefix": naming.platform_prefix(endpoint=endpoint.endpoint, platform=each),
                },
            )
            for each in further_platforms
        ]
        self.archives = self.function.custom_resource(
            self, "Archives", resource_type=naming.PUBLISHED_TYPE, properties=properties, after=further
        )
        self.checks = (*further, self.archives)
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

    Attributes:
        resource: the custom resource; of an endpoint with instance pools its attribute ``Landed`` is the number of
            instances of each type.
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
        pools: Mapping[str, naming.Platform] | None = None,
    ) -> None:
        """Make the custom resource, which the records of ``activation`` depend on.

        Args:
            endpoint: what is verified.
            image: what the containers run.
            settings: how many models are invoked, and for how long.
            activation: what moves the release records afterwards.
            streams: whether the responses are streams of events. Default: False.
            pools: instance type of the endpoint's pools → the platform of its archives. Default: None, no pools.
        """
        super().__init__(scope, construct_id)
        prefixes = {
            each: naming.manifest_prefix(endpoint=activation.endpoint.endpoint, platform=each)
            for each in activation.platforms
        }
        manifest_prefix, *further = prefixes.values()
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
            manifest_prefix=[manifest_prefix, *further],
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
        if pools:  # in order of preference: which of them an endpoint landed on is known once it is in service
            variants = {"Pools": json.dumps({name: prefixes[platform] for name, platform in pools.items()})}
        self.resource = resource = self.function.custom_resource(
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
