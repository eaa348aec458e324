"""Patterns that texts of settings must match, and what each allows in words."""

from __future__ import annotations

import re

from tritonstack.catalogue.triton_releases import RELEASE_PATTERN
from tritonstack.naming import NAME_PATTERN

ACCOUNT_PATTERN = r"^[0-9]{12}$"
ENVIRONMENT_PATTERN = r"^[a-z][a-z0-9-]*[a-z0-9]$"
ECR_PATTERN = (
    r"^[0-9]{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[a-z0-9._/-]+(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})$"
)
"""A container definition takes images of other registries only inside a VPC (SageMaker API, ContainerDefinition)."""
ECR_URI = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?/(?P<repository>[a-z0-9._/-]+)"
    r"(:(?P<tag>[A-Za-z0-9_.-]+)|@(?P<digest>sha256:[0-9a-f]{64}))"
)
"""The same, with its parts by name."""
BUILD_IMAGE_PATTERN = rf"^aws/codebuild/[a-z0-9_.-]+:[A-Za-z0-9_.-]+$|{ECR_PATTERN}"
VARIANT_PATTERN = r"^[A-Za-z0-9](-*[A-Za-z0-9])*$"
"""SageMaker's of a VariantName (API reference, ProductionVariant)."""
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
NOT_BLANK_PATTERN = r"\S"
TAG_KEY_PATTERN = r"^[\w .:/=+@-]{1,128}$"
TAG_VALUE_PATTERN = r"^[\w .:/=+@-]+$"
"""Signs that every service takes in the value of a tag (AWS tagging guide, "Tag naming limits and requirements")."""
TIME_PATTERN = r"^(cron\(\S+( \S+){5}\)|at\([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\))$"
"""Schedules of Application Auto Scaling (API reference: PutScheduledAction), which checks the values."""
EMAIL_PATTERN = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
PATTERNS = {
    NAME_PATTERN: "lower-case letters, digits and hyphens, no hyphen at either end",
    ENVIRONMENT_PATTERN: "two or more lower-case letters, digits and hyphens, a letter first and no hyphen at the end",
    VARIANT_PATTERN: "letters, digits and hyphens, no hyphen at either end",
    VARIABLE_PATTERN: "a variable's name: letters, digits and _, no digit first",
    ECR_PATTERN: "an image in ECR, with a tag or a digest",
    BUILD_IMAGE_PATTERN: "an image of CodeBuild (aws/codebuild/standard:7.0) or in ECR, with a tag or a digest",
    RELEASE_PATTERN: "a release YY.MM",
    EMAIL_PATTERN: "an email address",
    TIME_PATTERN: "cron(minutes hours day-of-month month day-of-week year) or at(yyyy-mm-ddThh:mm:ss)",
    NOT_BLANK_PATTERN: "a text that is not blank",
    TAG_KEY_PATTERN: "1 to 128 letters, digits, blanks and _ . : / = + - @",
    TAG_VALUE_PATTERN: "letters, digits, blanks and _ . : / = + - @",
    rf"^$|{TAG_VALUE_PATTERN}": "letters, digits, blanks and _ . : / = + - @",
}
"""What a text must match, in words."""
