"""What an endpoint's deployment waits for: the archives of its build set, made by a build that may take hours."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from constructs_lib.build_signals import BUILD_SET_SUFFIX
from tritonstack import naming

BUILDS_TYPE = "Custom::ModelBuilds"
WAIT_SECONDS = 12 * 60 * 60
"""The longest that a wait condition waits (template reference: AWS::CloudFormation::WaitCondition)."""
ANSWER_MINUTES = 16
"""Past the 15 minutes that a function may run; this one answers within seconds."""
HASH_DIGITS = 12


class BuildWait(Construct):
    """A custom resource that starts what is missing, and a wait for the build's signal.

    A custom resource must answer within the hour, and a build may take longer; a wait condition takes one signal within
    twelve. A condition that was signalled once never waits again, so its logical id and its handle's carry the hash of
    the build set: another set is another wait, and the same set is no change of the template at all.

    Attributes:
        builds: the custom resource.
        condition: what everything that needs the archives must wait for.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: str, endpoint: str, build_set: str) -> None:
        """Make custom resource, handle and condition.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            environment: the environment's name.
            endpoint: the endpoint's name in its environment.
            build_set: the document of all that the endpoint serves; the same text for the same set.
        """
        super().__init__(scope, construct_id)
        digits = hashlib.sha256(build_set.encode()).hexdigest()[:HASH_DIGITS]
        asset = self._asset(build_set)
        function = cdk.CfnParameter(
            self,
            "FunctionArn",
            type="AWS::SSM::Parameter::Value<String>",
            default=naming.builds_parameter(environment=environment, value="function-arn"),
        )
        handle = cdk.CfnWaitConditionHandle(self, f"Handle{digits}")
        self.builds = cdk.CustomResource(
            self,
            "Builds",
            resource_type=BUILDS_TYPE,
            service_token=function.value_as_string,
            service_timeout=cdk.Duration.minutes(ANSWER_MINUTES),
            properties={
                "BuildSetBucket": asset.s3_bucket_name,
                "BuildSetKey": asset.s3_object_key,
                "WaitHandle": handle.ref,
                "Of": f"{environment}/{endpoint}",
            },
        )
        self.condition = cdk.CfnWaitCondition(
            self, f"Condition{digits}", count=1, handle=handle.ref, timeout=str(WAIT_SECONDS)
        )
        # Its time runs from here: not before there is something to wait for.
        self.condition.node.add_dependency(self.builds)

    def _asset(self, build_set: str) -> s3_assets.Asset:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"set{BUILD_SET_SUFFIX}")
            path.write_text(build_set)
            return s3_assets.Asset(self, "BuildSet", path=str(path))  # copied at once into the cloud assembly
