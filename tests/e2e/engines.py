"""A model in TensorRT whose export a test can hold up or break, and what its builds left behind."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.project import REPOSITORY, Project
from tritonstack.naming import ArchiveName, Platform, archive_key, artifact_parameter, builds_parameter, manifest_key
from tritonstack_local.aws import LocalAws

TINY_ENGINE = REPOSITORY / "tests" / "preparation" / "model_repos" / "tiny-engine"
HEAD = """
environment: {name}
account: "123456789012"
region: us-east-1
production: false
artifacts: {{retain: false}}
builds: {builds}
endpoints:
"""
A10G = Platform(release="24.09", gpu="a10g")
T4 = Platform(release="24.09", gpu="t4")
INSTANCE_TYPES = {A10G: "ml.g5.xlarge", T4: "ml.g4dn.xlarge"}


@dataclass(frozen=True)
class EngineProject:
    """An environment of the tests' project whose endpoints serve models in TensorRT."""

    project: Project
    aws: LocalAws
    name: str

    def add_model(self, model: str, *, seed: int = 7, before_export: str = "", **recipe: Any) -> None:
        """Write, or write anew, a copy of the tests' engine.

        Args:
            model: folder, model and archive.
            seed: of its weights: another seed is another digest.
            before_export: Python statements that its export script runs first.
            recipe: fields of the recipe that differ.
        """
        folder = self.project.root / "model_repos" / model
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TINY_ENGINE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        if model != "tiny-engine":
            (folder / "tiny-engine").rename(folder / model)
        for path in (folder / "recipe.yaml", folder / "export.py", folder / model / "config.pbtxt"):
            path.write_text(path.read_text().replace("tiny-engine", model))
        described = {**yaml.safe_load((folder / "recipe.yaml").read_text()), "seed": seed, **recipe}
        (folder / "recipe.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
        script = folder / "export.py"
        head, entry, tail = script.read_text().partition("def main() -> int:\n")
        indented = "".join(f"    {line}\n" for line in before_export.splitlines())
        script.write_text(head + entry + indented + tail)

    def write(self, endpoints: dict[str, tuple[Platform, list[str]]], *, more: str = "", builds: str = "{}") -> None:
        """Write the environment's file: endpoint → its platform and models; ``more``: settings of every endpoint."""
        rows = [
            f'  - {{name: {name}, mode: multi-model, release: "{platform.release}", initial_instance_count: 1, '
            f"instance_type: {INSTANCE_TYPES[platform]}, models: [{', '.join(models)}]{more}}}"
            for name, (platform, models) in endpoints.items()
        ]
        text = HEAD.format(name=self.name, builds=builds).lstrip() + "\n".join(rows) + "\n"
        self.project.write(f"environments/{self.name}.yaml", text)

    def deploy(self, *, expect: int = 0) -> str:
        """Deploy it with the real CLI; everything that was said."""
        done = self.project.run("local", "deploy", "-e", self.name, "--concurrency", "2", expect=expect)
        return done.stdout + done.stderr

    @property
    def bucket(self) -> str:
        return self._parameter(artifact_parameter(environment=self.name, value="bucket-name"))

    def builds(self, project: str = "project-name") -> list[dict[str, Any]]:
        """Every build of a project of the builds stack, newest first."""
        codebuild = self.aws.client("codebuild")
        name = self._parameter(builds_parameter(environment=self.name, value=project))
        ids = codebuild.list_builds_for_project(projectName=name, sortOrder="DESCENDING")["ids"]
        return list(codebuild.batch_get_builds(ids=ids)["builds"]) if ids else []

    def processing_jobs(self) -> list[dict[str, Any]]:
        jobs = self.aws.client("sagemaker").list_processing_jobs(NameContains=f"{self.name}-engine-")
        return list(jobs["ProcessingJobSummaries"])

    def keys(self, prefix: str) -> set[str]:
        """The keys in the bucket below a prefix."""
        pages = self.aws.client("s3").get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return {row["Key"] for page in pages for row in page.get("Contents", [])}

    def record(self, endpoint: str, model: str) -> str:
        return self._parameter(f"/tritonstack/{self.name}/{endpoint}/{model}")

    def manifest(self, endpoint: str, platform: Platform, archive: ArchiveName) -> dict[str, Any]:
        key = manifest_key(endpoint=endpoint, platform=platform, archive=archive)
        found: dict[str, Any] = json.loads(self.aws.client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read())
        return found

    def has(self, endpoint: str, platform: Platform, archive: ArchiveName) -> bool:
        key = archive_key(endpoint=endpoint, platform=platform, archive=archive)
        return key in self.keys(key)

    def stack(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.aws.client("cloudformation").describe_stacks(StackName=f"{self.name}-{name}")[
            "Stacks"
        ][0]
        return found

    def invoke(self, endpoint: str, model: str) -> list[float]:
        body = (TINY_ENGINE / "sample" / "request.json").read_bytes()
        archive = ArchiveName(model=model, digest=self.record(endpoint, model))
        answer = self.aws.client("sagemaker-runtime").invoke_endpoint(
            EndpointName=f"{self.name}-{endpoint}", TargetModel=str(archive), ContentType="application/json", Body=body
        )
        return list(json.loads(answer["Body"].read())["outputs"][0]["data"])

    def _parameter(self, name: str) -> str:
        value: str = self.aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        return value


def waits_for(marker: Path, *, started: Path) -> str:
    """Statements of an export that say that they began, and go on once a file is there (five minutes at most)."""
    return (
        "import pathlib, time\n"
        f"pathlib.Path({str(started)!r}).touch()\n"
        "for _ in range(3000):\n"
        f"    if pathlib.Path({str(marker)!r}).exists(): break\n"
        "    time.sleep(0.1)\n"
    )
