"""Stacks that serve release sets, and manifests of what they serve."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.models.folders import make_engine
from tests.releases.deployment import manifest
from tests.review.small import Template, resource, serving, stack
from tritonstack.models.recipe import Dependency
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


def write_manifest(
    folder: Path,
    model: str,
    digest: str,
    *,
    target: str | None = None,
    dependency: Dependency = "none",
    sizes: tuple[int, int] = (1000, 3000),
    seconds: Mapping[str, float] | None = None,
    stand_in: bool = False,
) -> None:
    """A manifest as ``tritonstack build`` leaves it."""
    made = manifest(model, digest, b"")
    archive = made.archive.model_copy(update={"bytes": sizes[0], "tar_bytes": sizes[1]})
    engines = (
        {}
        if seconds is None
        else {model: make_engine(plan="m/1/model.plan", durations=dict(seconds), stand_in=stand_in)}
    )
    built = {"dependency": dependency, "target": target, "engines": engines, "archive": archive}
    path = folder / (target or "") / f"{model}.{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made.model_copy(update=built).to_json(), encoding="utf-8")
