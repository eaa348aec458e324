"""The outputs contract: the SSM parameter that each stack writes, and the document of an environment."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter
from typing_extensions import TypedDict

CONTRACT = 1
"""It rises when a field is removed, renamed or gets another type or meaning: readers of the older one would break."""
MINOR = 1
"""It rises when fields are added, which readers of the same contract pass over; with a new contract it is 0 again."""
PARAMETER_BYTES = 4096
"""The longest value of a standard SSM parameter (Systems Manager user guide, "Managing parameter tiers")."""


# A ``TypedDict`` a kind of stack: the stacks write its fields, mypy checks what they write, and pydantic what is read.
# Readers ignore unknown fields: a later minor version adds some.


# pydantic reads no other TypedDict before Python 3.12.


class StackOutputs(TypedDict):
    """Outputs of every stack."""

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


InstanceTypes = Annotated[
    list[str],
    Field(description="Every type that it may run on, the preferred first; several with instance pools."),
]
Platforms = Annotated[
    list[str],
    Field(description="What its archives are for, one for each GPU of instance_types; platform is the first."),
]
Variants = Annotated[
    dict[str, str],
    Field(description="Name in the settings → production variant (TargetVariant), of an endpoint with several."),
]


Streams = Annotated[
    bool,
    Field(description="Whether its responses are streams: InvokeEndpointWithResponseStream, with generate's requests."),
]


class EndpointFields(TypedDict):
    """One endpoint, in its stack's parameter and in the document."""

    variant: Annotated[str, Field(description="Its production variant, the first of several.")]
    instance_type: Annotated[str, Field(description="What it runs on.")]
    mode: Annotated[
        Literal["multi-model", "single-model"], Field(description="In multi-model mode a request names a TargetModel.")
    ]
    release: Annotated[str, Field(description="Triton release.")]
    gpu: Annotated[str, Field(description="GPU, in lower case.")]
    platform: Annotated[str, Field(description="What its archives are for: release and GPU.")]
    bucket: Annotated[str, Field(description="Bucket of its archives.")]
    archive_prefix: Annotated[str, Field(description="Where in the bucket its archives lie, with a trailing slash.")]
    manifest_prefix: Annotated[
        str, Field(description="Where in the bucket their manifests lie, with a trailing slash.")
    ]
    model_data_url: Annotated[str, Field(description="ModelDataUrl: a prefix in multi-model mode, else one archive.")]
    execution_role_arn: Annotated[str, Field(description="Role of its containers.")]
    log_group: Annotated[str, Field(description="Log group of its containers.")]
    release_records: Annotated[str, Field(description="SSM path of its release records, with a trailing slash.")]


class ServingFields(EndpointFields):
    """The stack of one endpoint."""

    endpoint: Annotated[str, Field(description="The endpoint's name in the environment.")]
    endpoint_name: Annotated[str, Field(description="Its name at SageMaker: EndpointName of InvokeEndpoint.")]
    endpoint_arn: Annotated[str, Field(description="Its ARN.")]
    streams: NotRequired[Streams]
    builds_on_deploy: Annotated[bool, Field(description="Whether a deployment waits for builds of the builds stack.")]
    variants: NotRequired[Variants]
    instance_types: NotRequired[InstanceTypes]
    platforms: NotRequired[Platforms]


class WatchFields(TypedDict):
    """Dashboard and alarms of an environment, in the stack's parameter and in the document."""

    dashboard: Annotated[str | None, Field(description="CloudWatch dashboard; null where it has none.")]
    alarm_topic_arn: Annotated[str | None, Field(description="SNS topic of its alarms; null where it has none.")]
    composite_alarms: Annotated[
        dict[str, str] | None, Field(description="Severity → composite alarm; null where there are no alarms.")
    ]
    build_alarms: Annotated[
        list[str] | None,
        Field(description="Alarms of builds; null without alarms, or where a parameter cannot hold their names."),
    ]


class ObservabilityFields(WatchFields):
    """The observability stack."""

    endpoint_alarms: Annotated[
        dict[str, list[str]] | None, Field(description="Endpoint → its alarms; null as build_alarms.")
    ]


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
"""Kind of stack → model of its outputs."""
AnyOutputs = Annotated[
    ArtifactsOutputs | NetworkOutputs | BuildsOutputs | ServingOutputs | ObservabilityOutputs,
    Field(discriminator="kind"),
]


class StackParameter(RootModel[AnyOutputs]):
    """The value of a parameter: the outputs of one stack. Its fields depend on its kind."""

    model_config = ConfigDict(json_schema_extra={"$id": f"urn:tritonstack:outputs-parameter:{CONTRACT}"})


PARAMETER: TypeAdapter[Any] = TypeAdapter(AnyOutputs)
"""Reads and checks the value of a parameter."""


# The document. Every field is always there. What does not exist is null, and ``absent`` has the reason, by JSON Pointer
# (RFC 6901).
SCHEMA_ID = f"urn:tritonstack:outputs:{CONTRACT}"
"""The schema's ``$id``; it has the contract's version, and stays through minor ones."""


class _StackEntry(TypedDict):
    stack: Annotated[str, Field(description="The stack's name in CloudFormation.")]
    parameter: Annotated[str, Field(description="The SSM parameter that holds the stack's outputs.")]


class Artifacts(_StackEntry, ArtifactsFields):
    """Bucket and key of the archives."""


class Network(_StackEntry, NetworkFields):
    """The network of containers and builds."""


class Builds(_StackEntry, BuildsFields):
    """The builds stack."""


class Observability(_StackEntry, WatchFields):
    """Dashboard and alarms of the environment; an endpoint's own alarms are listed with the endpoint."""


class ReleaseRecord(TypedDict):
    """A model's current release."""

    parameter: Annotated[str, Field(description="The SSM parameter: its value is the digest, which a release moves.")]
    digest: Annotated[str, Field(description="What it held when this was written: 16 hexadecimal digits.")]
    archive: Annotated[str, Field(description="The archive's name: TargetModel in multi-model mode.")]


class _Named(_StackEntry):
    name: Annotated[str, Field(description="Its name at SageMaker: EndpointName of InvokeEndpoint.")]
    arn: Annotated[str, Field(description="Its ARN.")]


class EndpointEntry(_Named, EndpointFields):
    """One endpoint."""

    variants: Variants
    streams: Streams
    instance_types: InstanceTypes
    platforms: Platforms
    releases: Annotated[dict[str, ReleaseRecord], Field(description="Model → its current release.")]
    alarms: Annotated[list[str] | None, Field(description="Its CloudWatch alarms.")]


class OutputsDocument(BaseModel):
    """An environment as it is deployed, for other pipelines."""

    # A later minor version adds fields: a reader of this one passes over them.
    model_config = ConfigDict(extra="ignore", frozen=True, json_schema_extra={"$id": SCHEMA_ID})

    contract: Literal[1] = Field(description="The contract's version.")
    minor: int = Field(ge=0, description="Its minor version: fields are only added within a contract.")
    environment: str = Field(description="The environment's name.")
    account: str = Field(description="Its AWS account.")
    region: str = Field(description="Its region.")
    artifacts: Artifacts = Field(description="Bucket and key.")
    network: Network | None = Field(description="Null where containers are in SageMaker's own network.")
    builds: Builds | None = Field(description="Null where deployments build nothing.")
    observability: Observability | None = Field(description="Null without dashboard and alarms.")
    endpoints: dict[str, EndpointEntry] = Field(description="Endpoint's name in the environment → endpoint.")
    absent: dict[str, str] = Field(description="JSON Pointer of each field that is null → why.")

    def text(self) -> str:
        """The document's text: the same for the same outputs."""
        return self.model_dump_json(indent=2) + "\n"
