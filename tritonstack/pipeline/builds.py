"""Builds of a pipeline: the names of their roles, and their shell commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tritonstack.arns import Arn, role_arn
from tritonstack.config.pipeline import Pipeline

Work = Literal["prepare", "verify", "measure"]
WORKS: tuple[Work, ...] = get_args(Work)


@dataclass(frozen=True, kw_only=True)
class PipelineNames:
    """Names of one pipeline's roles."""

    pipeline: str  # its name
    account: str  # its account
    partition: str  # ``aws`` or another
    role_path: str = "/"  # the path of its own roles

    @classmethod
    def of(cls, settings: Pipeline) -> PipelineNames:
        """The names of a pipeline with these settings."""
        return cls(
            pipeline=settings.name,
            account=settings.account,
            partition=Arn.parse(settings.source.connection).partition,
            role_path=settings.role_path or "/",
        )

    def build_role(self, environment: str, work: Work) -> str:
        """The role of the pipeline's own builds that do this work on an environment."""
        return f"{self.pipeline}-{environment}-{work}-build"

    def build_role_arn(self, environment: str, work: Work) -> str:
        """Its ARN, as ``aws:PrincipalArn`` has it: with the path, without a session."""
        name = self.build_role(environment, work)
        return role_arn(name, partition=self.partition, account=self.account, path=self.role_path)

    def access_role(self, environment: str, work: Work) -> str:
        """The role in the environment's account that they assume."""
        return f"{self.pipeline}-{environment}-{work}"

    def access_role_arn(self, environment: str, work: Work, *, account: str, role_path: str | None) -> str:
        """Its ARN; ``role_path`` is the environment's."""
        name = self.access_role(environment, work)
        return role_arn(name, partition=self.partition, account=account, path=role_path)


PYTHON = ".envs/main/bin/python"
SETUP = "scripts/setup.py"
"""Makes the environments of a clone."""
ROLE_VARIABLE, REGION_VARIABLE = "TRITONSTACK_ROLE_ARN", "TRITONSTACK_REGION"

PROFILE = (
    "export AWS_CONFIG_FILE=$PWD/.pipeline-aws-config AWS_PROFILE=environment; "
    r"printf '[profile environment]\nrole_arn = %s\ncredential_source = EcsContainer\nregion = %s\n' "
    f'"${ROLE_VARIABLE}" "${REGION_VARIABLE}" > "$AWS_CONFIG_FILE"'
)
"""What every SDK then does: take the build's own credentials, which CodeBuild serves as a container's, and assume the
role in the environment's account, anew before each hour is over (SDK reference guide: "Assume role credential
provider", ``credential_source``)."""


def synthesis(*, pipeline_file: str) -> tuple[str, ...]:
    """Synthesise the environments and the pipeline itself, out of this repository's lock files alone."""
    return (
        f"python3 {SETUP} main node",
        f"npx --no-install cdk synth --quiet -c pipeline={pipeline_file}",
    )


def preparation(environment: str, *, environments: Sequence[str]) -> tuple[str, ...]:
    """Make the archives of an environment that are missing. ``environments``: the Python environments to install."""
    return (
        f"python3 {SETUP} {' '.join(environments)}",
        PROFILE,
        f"{PYTHON} -m tritonstack prepare -e {environment}",
    )


def verification(environment: str) -> tuple[str, ...]:
    """Send every recorded model of an environment its sample request."""
    return (f"python3 {SETUP} main", PROFILE, f"{PYTHON} -m tritonstack verify -e {environment}")


def measurement(environment: str) -> tuple[str, ...]:
    """Run the environment's load test, and hold its gate."""
    bench = f"{PYTHON} -m tritonstack capacity bench --cloud -e {environment} --yes"
    return (f"python3 {SETUP} main", PROFILE, bench)


def gate(commands: Sequence[str]) -> tuple[str, ...]:
    """A gate's own commands, after the setup that they rely on."""
    return (f"python3 {SETUP} main", PROFILE, *commands)
