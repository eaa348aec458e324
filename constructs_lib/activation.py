"""Custom resources around an endpoint: its archives before it, verification and release records after it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct, IConstruct

from constructs_lib.acknowledgement import acknowledge_wildcard
from constructs_lib.artifact_bucket import ArtifactBucketReference, allow_key_through_s3, allow_listing
from constructs_lib.endpoint import Endpoint
from constructs_lib.handler_function import HandlerFunction, text_asset
from constructs_lib.permission import allow, allow_metrics, parameter_arn
from constructs_lib.triton_model import MultiModelData, TritonImage
from tritonstack import naming
from tritonstack.config.endpoint import VerificationSettings

RELEASE_SET_SCHEMA = 1
"""It rises when an older function could no longer read a set: to undo an update, CloudFormation puts the old function
back before it calls that function with the new set. Members that older ones ignore (``commits``) do not count."""


class Activation(Construct):
    """Two custom resources around an endpoint, and the function behind both.

    Before the endpoint, the archives of the release set must be there: a deployment that was not published fails in
    seconds and touches nothing that serves. After it, the release records move. The function answers CloudFormation
    itself; there is no framework between them.

    Attributes:
        endpoint: the endpoint, as given.
        platform: of its archives.
        release_set: the file that names every model's digest.
        archives: the custom resource that the endpoint waits for.
        records: the custom resource that waits for the endpoint.
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
            around: the endpoint, which is made to wait for the archives.
            commits: model name → the commit that its inputs come from, for the release records.
            tags: of the release records; CloudFormation's tags reach no parameter that a function writes.
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
        self._allow_reading(asset, artifacts=artifacts)
        self._allow_records()
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

    def _allow_reading(self, asset: s3_assets.Asset, *, artifacts: ArtifactBucketReference) -> None:
        sets = f"arn:{cdk.Stack.of(self).partition}:s3:::{asset.s3_bucket_name}/*{naming.RELEASE_SET_SUFFIX}"
        allow(
            self.function.policy,
            "ReadReleaseSets",
            ["s3:GetObject"],
            [sets],
            wildcard="The release sets of earlier and later deployments must be readable in an update or a rollback; "
            f"their keys are not known here. Nothing but release sets ends in {naming.RELEASE_SET_SUFFIX}.",
        )
        # Every platform of the endpoint: when a release change is rolled back, the set before lies under another one.
        prefixes = [naming.archives_prefix(self.endpoint.endpoint)]
        allow_listing(self.function.policy, "FindArchives", artifacts=artifacts, prefixes=prefixes)

    def _allow_records(self) -> None:
        paths = (self.endpoint.records, self.endpoint.removed_records)
        folders = [parameter_arn(self, path.rstrip("/")) for path in paths]
        records = [f"{folder}/*" for folder in folders]
        reading = ["ssm:GetParameters", "ssm:GetParameterHistory"]
        writing = ["ssm:PutParameter", "ssm:DeleteParameters", "ssm:AddTagsToResource", "ssm:RemoveTagsFromResource"]
        allow(self.function.policy, "MoveRecords", [*reading, *writing], records)
        allow(self.function.policy, "FindRecords", ["ssm:GetParametersByPath"], [*folders, *records])
        for each in records:
            acknowledge_wildcard(
                self.function.policy,
                resource=each,
                reason="One parameter a model lies there: its release record, or what that held before its model left "
                "the release set. Models come and go, and no other part of the stack has a parameter there.",
            )


ANSWER_MINUTES = 60
"""The longest that CloudFormation waits (user guide: ServiceTimeout); the function gives up before."""


class Verification(Construct):
    """A custom resource between endpoint and release records, and its function.

    It fails, and with it the deployment, unless the live endpoint runs the requested config and the models that changed
    answer their sample requests as their manifests expect. See ``docs/decisions/0011-verification-after-deploy.md``.
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
    ) -> None:
        """Make the custom resource; the records of ``activation`` wait for it.

        ``image``: what the containers run.
        """
        super().__init__(scope, construct_id)
        manifest_prefix = naming.manifest_prefix(endpoint=activation.endpoint.endpoint, platform=activation.platform)
        self.function = HandlerFunction(
            self,
            "Handler",
            handler="verification",
            description=f"Verifies endpoint {endpoint.endpoint_name} after a deployment",
        )
        policy, called = self.function.policy, [endpoint.endpoint_arn]
        allow(policy, "SeeEndpoint", ["sagemaker:DescribeEndpoint"], called)
        # No condition on TargetModel: names of a thousand models are longer than a policy may be (10,240 bytes).
        allow(policy, "SendSampleRequests", ["sagemaker:InvokeEndpoint"], called)
        allow_metrics(policy, "SeeUnloads", "cloudwatch:GetMetricStatistics")
        self._allow_reading(activation, manifest_prefix=manifest_prefix)
        allow(self.function.policy, "InvokeItself", ["lambda:InvokeFunction"], [self.function.arn])
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
            answer_minutes=ANSWER_MINUTES,
            properties={
                "EndpointName": endpoint.endpoint_name,
                "EndpointConfigName": endpoint.config.attr_endpoint_config_name,
                "VariantName": endpoint.variant_name,
                **variants,
                "Image": image.uri,
                "MultiModel": str(endpoint.multi_model).lower(),
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

    def _allow_reading(self, activation: Activation, *, manifest_prefix: str) -> None:
        policy, bucket = self.function.policy, activation.release_set.s3_bucket_name
        sets = f"arn:{cdk.Stack.of(self).partition}:s3:::{bucket}/*{naming.RELEASE_SET_SUFFIX}"
        allow(
            policy,
            "ReadReleaseSets",
            ["s3:GetObject"],
            [sets],
            wildcard="The models that changed follow from the release set before, whose key is not known. Only release "
            "sets end so.",
        )
        manifests = activation.artifacts.objects_arn(f"{manifest_prefix}*")
        allow(
            policy,
            "ReadManifests",
            ["s3:GetObject"],
            [manifests],
            wildcard="The manifests of this endpoint's archives for this platform, and the sample requests beside "
            "them; models come and go. Archives lie under another prefix.",
        )
        allow_key_through_s3(policy, "DecryptManifests", ["kms:Decrypt"], artifacts=activation.artifacts)
