"""What each stack tells: one SSM parameter ``/tritonstack/<environment>/_outputs/<stack>`` with one JSON object.

A ``TypedDict`` a kind of stack: the stacks write its fields, mypy checks what they write, and pydantic what is read.
Fields that a reader does not know are passed over: a later minor version adds some.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel, TypeAdapter

# pydantic reads no other TypedDict before Python 3.12.
from typing_extensions import TypedDict

from tritonstack.outputs.contract import CONTRACT


class StackOutputs(TypedDict):
    """What every stack tells."""

    contract: Annotated[int, Field(description=f"The contract's version: {CONTRACT}.")]
    minor: Annotated[int, Field(description="Its minor version: fields may have been added since 0.")]
    environment: Annotated[str, Field(description="The environment's name.")]
    account: Annotated[str, Field(description="Its AWS account.")]
    region: Annotated[str, Field(description="Its region.")]
    stack: Annotated[str, Field(description="The stack's name in CloudFormation.")]


class ArtifactsFields(TypedDict):
    """The artifacts stack."""

    bucket: Annotated[str, Field(description="Bucket of the archives.")]
    key_arn: Annotated[str, Field(description="KMS key that they are under.")]


class NetworkFields(TypedDict):
    """The network stack."""

    vpc_id: Annotated[str, Field(description="The VPC.")]
    subnets: Annotated[dict[str, str], Field(description="Zone → private subnet.")]
    security_groups: Annotated[list[str], Field(description="Of the containers.")]


class BuildsFields(TypedDict):
    """The builds stack."""

    project: Annotated[str, Field(description="CodeBuild project that builds archives.")]
    engine_project: Annotated[str | None, Field(description="Its GPU project; null where CodeBuild builds no engine.")]
    processing_role_arn: Annotated[
        str | None, Field(description="Role of processing jobs; null where these build no engine.")
    ]
    function_arn: Annotated[str, Field(description="Function that starts builds.")]
    log_group: Annotated[str, Field(description="Log group of the builds.")]


class ServingFields(TypedDict):
    """The stack of one endpoint."""

    endpoint: Annotated[str, Field(description="The endpoint's name in the environment.")]
    endpoint_name: Annotated[str, Field(description="Its name at SageMaker: EndpointName of InvokeEndpoint.")]
    endpoint_arn: Annotated[str, Field(description="Its ARN.")]
    variant: Annotated[str, Field(description="Its production variant.")]
    instance_type: Annotated[str, Field(description="What it runs on.")]
    mode: Annotated[
        Literal["multi-model", "single-model"], Field(description="With multi-model a call names a TargetModel.")
    ]
    release: Annotated[str, Field(description="Triton release.")]
    gpu: Annotated[str, Field(description="GPU, in lower case.")]
    platform: Annotated[str, Field(description="What its archives are for: release and GPU.")]
    bucket: Annotated[str, Field(description="Bucket of its archives.")]
    archive_prefix: Annotated[str, Field(description="Where in the bucket its archives lie, with a trailing slash.")]
    manifest_prefix: Annotated[str, Field(description="Where in the bucket their manifests lie.")]
    model_data_url: Annotated[str, Field(description="ModelDataUrl: a prefix in multi-model mode, else one archive.")]
    execution_role_arn: Annotated[str, Field(description="Role of its containers.")]
    log_group: Annotated[str, Field(description="Log group of its containers.")]
    release_records: Annotated[str, Field(description="SSM path of its release records, with a trailing slash.")]
    builds_on_deploy: Annotated[bool, Field(description="Whether a deployment waits for builds of the builds stack.")]


class ObservabilityFields(TypedDict):
    """The observability stack."""

    dashboard: Annotated[str | None, Field(description="CloudWatch dashboard; null where it has none.")]
    alarm_topic_arn: Annotated[str | None, Field(description="SNS topic of its alarms; null where it has none.")]
    composite_alarms: Annotated[
        dict[str, str] | None, Field(description="Severity → composite alarm; null where there are no alarms.")
    ]
    endpoint_alarms: Annotated[
        dict[str, list[str]] | None,
        Field(description="Endpoint → its alarms; null without alarms, or where a parameter cannot hold their names."),
    ]
    build_alarms: Annotated[list[str] | None, Field(description="Alarms of builds; null as endpoint_alarms.")]


class ArtifactsOutputs(StackOutputs, ArtifactsFields):
    """The parameter of that stack."""

    kind: Literal["artifacts"]


class NetworkOutputs(StackOutputs, NetworkFields):
    """The parameter of that stack."""

    kind: Literal["network"]


class BuildsOutputs(StackOutputs, BuildsFields):
    """The parameter of that stack."""

    kind: Literal["builds"]


class ServingOutputs(StackOutputs, ServingFields):
    """The parameter of that stack."""

    kind: Literal["serving"]


class ObservabilityOutputs(StackOutputs, ObservabilityFields):
    """The parameter of that stack."""

    kind: Literal["observability"]


KINDS: dict[str, type[Any]] = {
    "artifacts": ArtifactsOutputs,
    "network": NetworkOutputs,
    "builds": BuildsOutputs,
    "serving": ServingOutputs,
    "observability": ObservabilityOutputs,
}
"""Kind of stack → what it tells."""
AnyOutputs = Annotated[
    ArtifactsOutputs | NetworkOutputs | BuildsOutputs | ServingOutputs | ObservabilityOutputs,
    Field(discriminator="kind"),
]


class StackParameter(RootModel[AnyOutputs]):
    """The value of a parameter: what one stack tells. Its kind says which fields it has."""

    model_config = ConfigDict(json_schema_extra={"$id": f"urn:tritonstack:outputs-parameter:{CONTRACT}"})


PARAMETER: TypeAdapter[Any] = TypeAdapter(AnyOutputs)
"""Reads and checks the value of a parameter."""
