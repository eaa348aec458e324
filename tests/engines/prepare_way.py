"""A project and an environment's parts on the local AWS that ``tritonstack prepare`` needs: bucket, key, builds."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.archives.folders import write_double
from tests.engines.tiny_engine import write_tiny
from tests.local.emulator.building import make_project, make_service_role
from tests.local.emulator.running import Emulator
from tritonstack.archives.bucket import ArtifactBucket
from tritonstack.archives.digest import model_digest
from tritonstack.archives.places import Places
from tritonstack.archives.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.engines.order import Order, OrderedArchive
from tritonstack.engines.preparation import PrepareSummary
from tritonstack.engines.prepare import Preparation, RunnerFor
from tritonstack.engines.recorded import source_of_digest
from tritonstack.naming import ArchiveName, Platform, artifact_parameter, builds_parameter

IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"
A10G, T4 = Platform(release="24.09", gpu="a10g"), Platform(release="24.09", gpu="t4")
ENGINE_BUILDSPEC = {
    "version": "0.2",
    "phases": {"build": {"commands": ["python3 engine_step.py job.json"]}},
    "artifacts": {"base-directory": "output", "files": ["**/*"]},
}


@dataclass(frozen=True)
class PatientClients:
    """Makes clients of an emulator that try again."""

    emulator: Emulator

    def client(self, service_name: str) -> Any:
        """A boto3 client."""
        return self.emulator.client(service_name)


@dataclass
class Way:
    """One environment on the local AWS, and a project whose folders are ``tiny-engine`` and ``double``.

    Attributes:
        root: the project.
        emulator: the local AWS.
        name: the environment's, and the bucket's.
        said: what the preparations said, as (archive, text).
        stop: what their runners listen to.
    """

    root: Path
    emulator: Emulator
    name: str
    said: list[tuple[str, str]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def make(cls, root: Path, emulator: Emulator, name: str, *, builds: bool = True) -> Way:
        """Make the bucket, and what the builds stack makes unless ``builds`` is off."""
        way = cls(root, emulator, name)
        write_tiny(root)
        write_double(root)
        emulator.client("s3").create_bucket(Bucket=name)
        way.parameter(artifact_parameter(environment=name, value="bucket-name"), name)
        way.parameter(artifact_parameter(environment=name, value="key-arn"), "arn:aws:kms:us-east-1:123456789012:key/k")
        if builds:
            way.make_builds()
        return way

    def make_builds(self) -> None:
        """The engine project of CodeBuild and the role of Processing jobs."""
        make_service_role(self.emulator, "engines", "sagemaker.amazonaws.com")
        make_project(
            self.emulator,
            f"{self.name}-engines",
            ENGINE_BUILDSPEC,
            source={"type": "S3", "location": f"{self.name}/staging/jobs/", "buildspec": json.dumps(ENGINE_BUILDSPEC)},
            artifacts={"type": "S3", "location": self.name, "name": "output", "packaging": "NONE"},
            environment={"type": "LINUX_GPU_CONTAINER", "image": IMAGE, "computeType": "BUILD_GENERAL1_SMALL"},
        )
        self.parameter(builds_parameter(environment=self.name, value="engine-project-name"), f"{self.name}-engines")
        role = "arn:aws:iam::123456789012:role/engines"
        self.parameter(builds_parameter(environment=self.name, value="processing-role-arn"), role)

    def parameter(self, name: str, value: str) -> None:
        """Write an SSM parameter."""
        self.emulator.client("ssm").put_parameter(Name=name, Value=value, Type="String", Overwrite=True)

    @property
    def places(self) -> Places:
        """Where the project's archives are built."""
        return Places(
            repositories=self.root / "model_repos", archives=self.root / "archives", exports=self.root / "exports"
        )

    @property
    def bucket(self) -> ArtifactBucket:
        """The environment's bucket."""
        return ArtifactBucket(environment=self.name, session=PatientClients(self.emulator))

    def source(self, model: str) -> ArchiveSource:
        """An archive of the project."""
        (source,) = (one for folder in self.places.repositories.iterdir() for one in archives_of(folder)
                     if one.name == model)  # fmt: skip
        return source

    def archive(self, model: str) -> ArchiveName:
        """Its name."""
        return ArchiveName(model=model, digest=model_digest(self.source(model)))

    def order(self, *models: str, endpoint: str = "one", platform: Platform = A10G, **more: Any) -> Order:
        """What an endpoint needs of the project's archives."""
        rows = [
            OrderedArchive(name=self.archive(model), dependency=self.source(model).recipe.dependency)
            for model in models
        ]
        order = Order(
            environment=self.name,
            endpoint=endpoint,
            region="us-east-1",
            platform=platform,
            image=IMAGE,
            engine_builder=None,
            choice=BuildChoice(),
            parallel_engines=2,
            engine_timeout_minutes=5,
            network=None,
            archives=tuple(sorted(rows, key=lambda row: row.name)),
        )
        return dataclasses.replace(order, **more)

    def preparation(
        self, *orders: Order, runner_for: RunnerFor | None = None, places: Places | None = None
    ) -> Preparation:
        """A run over some orders."""
        places, bucket = places or self.places, self.bucket
        (self.root / "inputs").mkdir(exist_ok=True)

        def source_of(name: ArchiveName, choice: BuildChoice) -> ArchiveSource:
            return source_of_digest(
                name.model, name.digest, repositories=places.repositories, bucket=bucket, work=self.root / "inputs",
                choice=choice,
            )  # fmt: skip

        return Preparation(
            orders=orders,
            session=PatientClients(self.emulator),
            source_of=source_of,
            bucket=bucket,
            places=places,
            watch=lambda archive, text: self.said.append((archive, text)),
            stop=self.stop,
            runner_for=runner_for,
        )

    def run(self, *orders: Order, runner_for: RunnerFor | None = None) -> PrepareSummary:
        """Prepare some orders."""
        return self.preparation(*orders, runner_for=runner_for).run()

    def keys(self, prefix: str = "") -> list[str]:
        """The keys in the bucket."""
        return sorted(str(row["Key"]) for row in self.bucket.keys(prefix))

    def builds(self) -> Sequence[str]:
        """The builds of the engine project."""
        found: Sequence[str] = self.emulator.client("codebuild").list_builds_for_project(
            projectName=f"{self.name}-engines"
        )["ids"]
        return found

    def jobs(self) -> Sequence[dict[str, Any]]:
        """The Processing jobs of the environment."""
        found: Sequence[dict[str, Any]] = self.emulator.client("sagemaker").list_processing_jobs(
            NameContains=f"{self.name}-engine-"
        )["ProcessingJobSummaries"]
        return found


Check = Callable[[Way], None]
