"""Tags that every resource carries."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import IConstruct

from tritonstack import naming

ENVIRONMENT_TAG = naming.ENVIRONMENT_TAG
ENDPOINT_TAG = naming.ENDPOINT_TAG
LOCAL_MAX_LOADED_MODELS_TAG = "tritonstack:local-max-loaded-models"
"""Read by the local runtime alone: how many models a container may hold. SageMaker has no such limit to set."""


def tag_all(scope: IConstruct, tags: Mapping[str, str]) -> None:
    """Put tags on every resource under ``scope`` that takes tags."""
    for key in sorted(tags):
        cdk.Tags.of(scope).add(key, tags[key])
