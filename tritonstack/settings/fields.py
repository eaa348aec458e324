"""What every settings model shares: the base class, kinds of text, and lists for editors to complete from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tritonstack.catalogue.releases import RELEASE_PATTERN
from tritonstack.naming import NAME_PATTERN

MAXIMUM_NAME = 63
"""SageMaker's limit for the names of endpoints, configs, variants and models."""


class SettingsModel(BaseModel):
    """Settings are typed strictly (``"1"`` is no number, ``1`` is no text), closed to unknown fields, and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


ENVIRONMENT_PATTERN = r"^[a-z][a-z0-9-]*[a-z0-9]$"
ECR_PATTERN = (
    r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[a-z0-9._/-]+(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})$"
)
"""A container definition takes images of other registries only inside a VPC (SageMaker API, ContainerDefinition)."""
BUILD_IMAGE_PATTERN = rf"^aws/codebuild/[a-z0-9_.-]+:[A-Za-z0-9_.-]+$|{ECR_PATTERN}"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
NOT_BLANK_PATTERN = r"\S"
EMAIL_PATTERN = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
PATTERNS = {
    NAME_PATTERN: "lower-case letters, digits and hyphens, no hyphen at either end",
    ENVIRONMENT_PATTERN: "two or more lower-case letters, digits and hyphens, a letter first and no hyphen at the end",
    VARIABLE_PATTERN: "a variable's name: letters, digits and _, no digit first",
    ECR_PATTERN: "an image in ECR, with a tag or a digest",
    BUILD_IMAGE_PATTERN: "an image of CodeBuild (aws/codebuild/standard:7.0) or in ECR, with a tag or a digest",
    RELEASE_PATTERN: "a release YY.MM",
    EMAIL_PATTERN: "an email address",
    NOT_BLANK_PATTERN: "a text that is not blank",
}
"""What a text must match, in words."""

Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=MAXIMUM_NAME)]
"""Lower-case letters, digits and hyphens, no hyphen at either end."""

EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT_PATTERN, max_length=MAXIMUM_NAME)]
"""As ``Name``, with a letter first and two characters at least: so begin the names of CDK stages and stacks."""

VariableName = Annotated[str, Field(pattern=VARIABLE_PATTERN, max_length=1024)]
VariableValue = Annotated[str, Field(max_length=1024)]


def choices(values: Iterable[str]) -> dict[str, Any]:
    """JSON Schema's ``enum`` for a text field whose values stand in the catalogue, so that editors complete them."""
    return {"enum": list(values)}
