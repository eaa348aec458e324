"""``builds``: how an environment's models are built, and where a deployment builds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from tritonstack.config.fields import OwnerAccount, SecurityGroupId, SettingsModel, SubnetId, VpcId
from tritonstack.config.patterns import BUILD_IMAGE_PATTERN
from tritonstack.errors import Problem
from tritonstack.naming import PARAMETERS

LogDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]
"""The retentions that CloudWatch Logs takes (API reference: PutRetentionPolicy)."""

ComputeType = Literal[
    "BUILD_GENERAL1_SMALL",
    "BUILD_GENERAL1_MEDIUM",
    "BUILD_GENERAL1_LARGE",
    "BUILD_GENERAL1_XLARGE",
    "BUILD_GENERAL1_2XLARGE",
]
"""CodeBuild's on-demand machines for LINUX_CONTAINER (API reference: ProjectEnvironment)."""


SHORTEST_MINUTES = 5
"""CodeBuild's shortest time-out (API reference: CreateProject, ``timeoutInMinutes`` 5 to 2160)."""


class BuildNetwork(SettingsModel):
    """The VPC that builds run in. They read the package index, ECR, S3, KMS, SSM, SageMaker and CloudWatch Logs."""

    vpc_id: VpcId = Field(description="The VPC that builds join.")
    subnet_ids: Annotated[tuple[SubnetId, ...], Field(strict=False, min_length=1, max_length=16)] = Field(
        description="Its private subnets, with a NAT gateway or endpoints to all that builds read."
    )
    security_group_ids: Annotated[tuple[SecurityGroupId, ...], Field(strict=False, min_length=1, max_length=5)] = Field(
        description="Its security groups; builds need egress to port 443 and no ingress."
    )
    owner_account: OwnerAccount = None


class HubSettings(SettingsModel):
    """How builds get weights from the Hugging Face Hub (tritonstack docs hub-weights)."""

    token_parameter: str | None = Field(
        default=None,
        pattern=r"^/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$",
        description="Name of the SSM parameter that holds the token (HF_TOKEN) for models that need one: a "
        "SecureString under the key aws/ssm, in the environment's account and region; for a pipeline's builds in the "
        "pipeline's.",
    )
    endpoint: str | None = Field(
        default=None,
        pattern=r"^https://[^\s/]+(/\S*)?$",
        description="URL of a mirror that is read instead of https://huggingface.co (HF_ENDPOINT).",
    )
    folder: str | None = Field(
        default=None,
        pattern=r"^/\S+$",
        description="Folder in builds.image that is read instead of the hub, laid out as "
        "<organisation>/<name>/<revision>/… (TRITONSTACK_HUB_FOLDER).",
    )

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of builds, without the token."""
        named = {"HF_ENDPOINT": self.endpoint, "TRITONSTACK_HUB_FOLDER": self.folder}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def parameters(self) -> dict[str, str]:
        """Environment variables whose value is an SSM parameter's: variable → parameter."""
        return {} if self.token_parameter is None else {"HF_TOKEN": self.token_parameter}


class BuildSettings(SettingsModel):
    """Settings of an environment's builds."""

    size: Literal["full", "tiny"] = Field(
        default="full", description="full, or tiny: the same architectures with few layers, for tests."
    )
    weights: Literal["pretrained", "random"] = Field(
        default="pretrained",
        description="pretrained: those of each recipe's source; random: of its seed, nothing fetched.",
    )
    hub: HubSettings = Field(
        default_factory=HubSettings, description="How a deployment's builds get weights from the Hugging Face Hub."
    )
    engine_builder: Literal["codebuild", "processing"] | None = Field(
        default=None,
        description="The one service that builds TensorRT engines; null: CodeBuild where it has the endpoint's GPU, "
        "else SageMaker Processing on the smallest instance type with that GPU.",
    )
    on_deploy: bool | None = Field(
        default=None,
        description="Whether a deployment builds the archives that are missing and waits for them; null: where an "
        "archive of the environment needs a TensorRT engine.",
    )
    parallel_engines: int = Field(
        default=2, ge=1, le=20, description="Engines built at once, each on a GPU machine of its own."
    )
    timeout_minutes: int = Field(
        default=480,
        ge=SHORTEST_MINUTES,
        description="Minutes that one build may take, the engines that it waits for included.",
    )
    engine_timeout_minutes: int = Field(
        default=240, ge=SHORTEST_MINUTES, description="Minutes that one engine may take."
    )
    log_days: LogDays = Field(default=90, description="Days that the logs of builds are kept.")
    image: str = Field(
        default="aws/codebuild/standard:7.0",
        pattern=BUILD_IMAGE_PATTERN,
        description="The CPU image that exports, proves and packs: one of CodeBuild's, or one in ECR. It has "
        "Python 3.11 with its shared library, and glibc 2.35 or newer.",
    )
    compute_type: ComputeType = Field(
        default="BUILD_GENERAL1_LARGE",
        description="The CPU machine of a build, with 4, 8, 16, 72, 144 GiB of memory: exports and proofs need several "
        "times a model's weights (tritonstack docs large-models#time-and-memory-of-a-build).",
    )
    network: BuildNetwork | None = Field(
        default=None, description="The VPC that builds run in; null: the environment's network, where it has one."
    )
    outside_network: bool = Field(
        default=False,
        description="Whether builds stay out of the environment's network, in CodeBuild's and SageMaker's own.",
    )


WAIT_MINUTES = 12 * 60
"""The longest that a CloudFormation wait condition waits (template reference: AWS::CloudFormation::WaitCondition)."""
QUEUE_MINUTES = 60
"""How long a build may be in CodeBuild's queue before it is given up; ours, of 5 to 480 minutes."""
START_MINUTES = 15
"""For what lies around a build: its start, and the event that ends the wait."""


def check_builds(builds: BuildSettings) -> Iterator[Problem]:
    """Time limits that cannot hold together, and a secret among parameters that others read."""
    token = builds.hub.token_parameter
    if token is not None and token.startswith(PARAMETERS):
        yield Problem(
            location=("builds", "hub", "token_parameter"),
            found=token,
            allowed=f"a name outside {PARAMETERS}: whatever reads release records may read every parameter below it",
        )
    whole, engine = builds.timeout_minutes, builds.engine_timeout_minutes
    around = QUEUE_MINUTES + START_MINUTES
    if whole + around > WAIT_MINUTES:
        yield Problem(
            location=("builds", "timeout_minutes"),
            found=f"{whole}: with {QUEUE_MINUTES} minutes in the queue and {START_MINUTES} around it {whole + around} "
            f"minutes, and a deployment waits for {WAIT_MINUTES} at most",
            allowed=f"{WAIT_MINUTES - around} or less",
        )
    if engine + QUEUE_MINUTES > whole:
        yield Problem(
            location=("builds", "engine_timeout_minutes"),
            found=f"{engine}: with {QUEUE_MINUTES} minutes in the queue {engine + QUEUE_MINUTES} minutes, and the "
            f"build that waits for the engine may take {whole} (builds.timeout_minutes)",
            allowed=f"{SHORTEST_MINUTES} or more, and {QUEUE_MINUTES} minutes less than builds.timeout_minutes: "
            f"{whole - QUEUE_MINUTES} or less",
        )
