"""How the roles of a pipeline are called: fixed, for each side of a trust names the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tritonstack.config.pipeline import Pipeline

Work = Literal["prepare", "verify", "measure"]


@dataclass(frozen=True, kw_only=True)
class PipelineNames:
    """Names of one pipeline's roles.

    Attributes:
        pipeline: its name.
        account: its account.
        partition: ``aws`` or another.
        role_path: the path of its own roles.
    """

    pipeline: str
    account: str
    partition: str
    role_path: str = "/"

    @classmethod
    def of(cls, settings: Pipeline) -> PipelineNames:
        """The names of a pipeline with these settings."""
        return cls(
            pipeline=settings.name,
            account=settings.account,
            partition=settings.source.connection.split(":")[1],
            role_path=settings.role_path or "/",
        )

    def build_role(self, environment: str, work: Work) -> str:
        """The role of the pipeline's own builds that do this work on an environment."""
        return f"{self.pipeline}-{environment}-{work}-build"

    def build_role_arn(self, environment: str, work: Work) -> str:
        """Its ARN, as ``aws:PrincipalArn`` has it: with the path, without a session."""
        return f"arn:{self.partition}:iam::{self.account}:role{self.role_path}{self.build_role(environment, work)}"

    def access_role(self, environment: str, work: Work) -> str:
        """The role in the environment's account that they assume."""
        return f"{self.pipeline}-{environment}-{work}"

    def access_role_arn(self, environment: str, work: Work, *, account: str, role_path: str | None) -> str:
        """Its ARN; ``role_path`` is the environment's."""
        return f"arn:{self.partition}:iam::{account}:role{role_path or '/'}{self.access_role(environment, work)}"
