"""Stacks that serve release sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.review.small import Template, resource, serving, stack
from tritonstack.review.snapshot import EnvironmentSnapshot, StackSnapshot

A, B, C = "a" * 16, "b" * 16, "c" * 16
T4, A10G = "24.09-t4", "24.09-a10g"


def release_stack(
    models: Mapping[str, str],
    *,
    endpoint: str = "digits",
    platform: str = T4,
    dependencies: Mapping[str, str] | None = None,
    order: Mapping[str, Any] | None = None,
    variant: Mapping[str, Any] | None = None,
    region: str | None = "us-east-1",
) -> StackSnapshot:
    """The stack ``serving-<endpoint>`` as our constructs make it."""
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"
    records: Template = {
        "Records": resource(
            "Custom::ReleaseRecords",
            {
                "ReleaseSetKey": "{asset:Activation/ReleaseSet}.release-set",
                "RecordPath": f"/tritonstack/dev/{endpoint}/",
            },
            DependsOn=["Endpoint"],
        )
    }
    documents: dict[str, Any] = {"Activation/ReleaseSet": {"models": dict(models), "platform": platform, "schema": 1}}
    if dependencies is not None:
        release, _, gpu = platform.partition("-")
        documents["Builds/BuildSet"] = {
            "schema": 1,
            "environment": "dev",
            "endpoint": endpoint,
            "region": "us-east-1",
            "platform": {"release": release, "gpu": gpu},
            "image": image,
            "engine_builder": None,
            "archives": [
                {"model": model, "digest": digest, "dependency": dependencies.get(model)}
                for model, digest in models.items()
            ],
            **(order or {}),
        }
    resources = {**serving(name=f"dev-{endpoint}", image=image, variant=variant), **records}
    return stack(resources, name=f"serving-{endpoint}", documents=documents, region=region)


def dev(*stacks: StackSnapshot) -> EnvironmentSnapshot:
    """The environment ``dev``."""
    return EnvironmentSnapshot(name="dev", stacks={each.name: each for each in stacks}, findings=None)
