"""The document of a whole environment: ``outputs.json``.

Every field is always there. What does not exist is null, and ``absent`` says why, by JSON Pointer (RFC 6901).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.outputs.contract import CONTRACT

SCHEMA_ID = f"urn:tritonstack:outputs:{CONTRACT}"
"""The schema's ``$id``; it has the contract's version, and stays through minor ones."""


class _Part(BaseModel):
    # A later minor version adds fields: a reader of this one passes over them.
    model_config = ConfigDict(extra="ignore", frozen=True)


class _OfStack(_Part):
    stack: str = Field(description="The stack's name in CloudFormation.")
    parameter: str = Field(description="The SSM parameter that holds what the stack tells.")


class Artifacts(_OfStack):
    """Where archives lie."""

    bucket: str = Field(description="Bucket of the archives.")
    key_arn: str = Field(description="KMS key that they are under.")


class Network(_OfStack):
    """What containers and builds run in."""

    vpc_id: str = Field(description="The VPC.")
    subnets: dict[str, str] = Field(description="Zone → private subnet.")
    security_groups: list[str] = Field(description="Of the containers.")


class Builds(_OfStack):
    """What a deployment builds with."""

    project: str = Field(description="CodeBuild project that builds archives.")
    engine_project: str | None = Field(description="CodeBuild project of the GPU machine.")
    processing_role_arn: str | None = Field(description="Role of the processing jobs that build engines.")
    function_arn: str = Field(description="Function that starts builds.")
    log_group: str = Field(description="Log group of the builds.")


class Observability(_OfStack):
    """What watches the environment; the alarms of an endpoint are told with it."""

    dashboard: str | None = Field(description="CloudWatch dashboard.")
    alarm_topic_arn: str | None = Field(description="SNS topic that tells of alarms.")
    composite_alarms: dict[str, str] | None = Field(description="Severity → the composite alarm that tells the topic.")
    build_alarms: list[str] | None = Field(description="Alarms of builds.")


class ReleaseRecord(_Part):
    """A model's current release."""

    parameter: str = Field(description="The SSM parameter: its value is the digest, and moves with a release.")
    digest: str = Field(description="What it held when this was written: 16 hexadecimal digits.")
    archive: str = Field(description="The archive's name: TargetModel in multi-model mode.")


class Endpoint(_OfStack):
    """One endpoint."""

    name: str = Field(description="Its name at SageMaker: EndpointName of InvokeEndpoint.")
    arn: str = Field(description="Its ARN.")
    variant: str = Field(description="Its production variant.")
    instance_type: str = Field(description="What it runs on.")
    mode: Literal["multi-model", "single-model"] = Field(description="With multi-model a call names a TargetModel.")
    release: str = Field(description="Triton release.")
    gpu: str = Field(description="GPU, in lower case.")
    platform: str = Field(description="What its archives are for: release and GPU.")
    bucket: str = Field(description="Bucket of its archives.")
    archive_prefix: str = Field(description="Where in the bucket its archives lie, with a trailing slash.")
    manifest_prefix: str = Field(description="Where in the bucket their manifests lie, with a trailing slash.")
    model_data_url: str = Field(description="ModelDataUrl: a prefix in multi-model mode, else one archive.")
    execution_role_arn: str = Field(description="Role of its containers.")
    log_group: str = Field(description="Log group of its containers.")
    release_records: str = Field(description="SSM path of its release records, with a trailing slash.")
    releases: dict[str, ReleaseRecord] = Field(description="Model → its current release.")
    alarms: list[str] | None = Field(description="Its CloudWatch alarms.")


class OutputsDocument(_Part):
    """An environment as it is deployed, for other pipelines."""

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
    endpoints: dict[str, Endpoint] = Field(description="Endpoint's name in the environment → endpoint.")
    absent: dict[str, str] = Field(description="JSON Pointer of each field that is null → why.")

    def text(self) -> str:
        """The document's text: the same for the same outputs."""
        return self.model_dump_json(indent=2) + "\n"
