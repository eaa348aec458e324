"""A project and an environment's parts on the local AWS that ``tritonstack prepare`` needs: bucket, key, builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.models.folders import write_double
from tests.preparation.tiny_engine import write_tiny
from tests.tritonstack_local.emulator.building import make_project, make_service_role
from tests.tritonstack_local.emulator.running import Emulator
from tritonstack.archives.bucket import ArtifactBucket, Place
from tritonstack.archives.programs import Report
from tritonstack.archives.publish import stored_manifest
from tritonstack.archives.stored_inputs import source_of_digest
from tritonstack.engines.engine_builds import Builder
from tritonstack.engines.trtexec import change_job
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Manifest, Places
from tritonstack.models.source import ArchiveSource, BuildChoice, archives_of
from tritonstack.naming import ArchiveName, Platform, artifact_parameter, builds_parameter
from tritonstack.preparation.build_order import Order, OrderedArchive
from tritonstack.preparation.gpu_step import EngineStoppedError, engine_failure, require_built
from tritonstack.preparation.needed_work import PrepareSummary
from tritonstack.preparation.prepare import Preparation, RunnerFor
from tritonstack.preparation.prepare import runner_for as real_runner_for
from tritonstack_local.trtexec.launchers import machine_with, make_stand_ins

IMAGE = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"
A10G, T4 = Platform(release="24.09", gpu="a10g"), Platform(release="24.09", gpu="t4")
ENGINE_BUILDSPEC = {
    "version": "0.2",
    "phases": {"build": {"commands": ["python3 engine_step.py job.json"]}},
    "artifacts": {"base-directory": "output", "files": ["**/*"]},
}


def order_of(environment: str, endpoint: str, platform: Platform, rows: Sequence[OrderedArchive]) -> Order:
    return Order(
        schema=1,
        environment=environment,
        endpoint=endpoint,
        region="us-east-1",
        platform=platform,
        image=IMAGE,
        engine_builder=None,
        size="full",
        weights="pretrained",
        parallel_engines=2,
        engine_timeout_minutes=5,
        network=None,
        archives=tuple(rows),
    )


@dataclass(frozen=True, kw_only=True)
class HereRunner:
    """Runs the engine step as a process of this machine, with further variables, unless ``stop`` is set by then."""

    stop: threading.Event
    variables: Mapping[str, str]

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        if self.stop.is_set():
            raise EngineStoppedError
        change_job(job, output=str(output.resolve()))
        report(name)
        done = subprocess.run(
            [sys.executable, "engine_step.py", "job.json"],
            cwd=job, env={**os.environ, **self.variables}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise engine_failure(output, otherwise=f"the engine step ended with exit code {done.returncode}")
        require_built(output)


@dataclass(frozen=True)
class Clients:
    """Makes clients of a local AWS; ``attempts`` is how often each calls it."""

    emulator: Emulator
    attempts: int = 3

    def client(self, service_name: str, *, config: Any = None) -> Any:
        return boto3.client(
            service_name,
            endpoint_url=self.emulator.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"mode": "standard", "total_max_attempts": self.attempts}),
        )


@dataclass(frozen=True)
class CountingRunner:
    """Runs the step here, with the stand-ins for a builder's machine, and counts; ``before`` may fail or wait."""

    inner: HereRunner
    runs: list[str]
    before: Callable[[str], None] = lambda _name: None

    def run(self, *, name: str, job: Path, output: Path, report: Report) -> None:
        self.runs.append(name)
        self.before(name)
        self.inner.run(name=name, job=job, output=output, report=report)


@dataclass
class Way:
    """One environment on the local AWS, and a project whose folders are ``tiny-engine`` and ``double``.

    Attributes:
        root: the project.
        emulator: the local AWS.
        name: the environment's, and the bucket's.
        exports: where finished exports are kept.
        said: messages of the preparations, as (archive, text).
        stop: the event that their runners wait for.
        runs: the engines that :meth:`here` started.
        before_run: called with each engine's name before it runs.
    """

    root: Path
    emulator: Emulator
    name: str
    exports: Path
    messages: list[tuple[str, str]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    runs: list[str] = field(default_factory=list)
    before_run: Callable[[str], None] = lambda _name: None

    @classmethod
    def make(cls, root: Path, emulator: Emulator, name: str, *, exports: Path) -> Way:
        """Make the project and the environment's bucket; :meth:`make_builds` makes the rest."""
        way = cls(root, emulator, name, exports)
        root.mkdir(parents=True, exist_ok=True)
        write_tiny(root)
        write_double(root)
        emulator.client("s3").create_bucket(Bucket=name)
        way.parameter(artifact_parameter(environment=name, value="bucket-name"), name)
        way.parameter(artifact_parameter(environment=name, value="key-arn"), "arn:aws:kms:us-east-1:123456789012:key/k")
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
        self.emulator.client("ssm").put_parameter(Name=name, Value=value, Type="String", Overwrite=True)

    @property
    def places(self) -> Places:
        return Places(repositories=self.root / "model_repos", archives=self.root / "archives", exports=self.exports)

    @property
    def bucket(self) -> ArtifactBucket:
        return ArtifactBucket(environment=self.name, session=Clients(self.emulator))

    def source(self, model: str) -> ArchiveSource:
        (source,) = (one for folder in self.places.repositories.iterdir() for one in archives_of(folder)
                     if one.name == model)  # fmt: skip
        return source

    def archive(self, model: str) -> ArchiveName:
        return ArchiveName(model=model, digest=model_digest(self.source(model)))

    def order(self, *models: str, endpoint: str = "one", platform: Platform = A10G, **more: Any) -> Order:
        """What an endpoint needs of the project's archives."""
        rows = [
            OrderedArchive(
                model=model, digest=self.archive(model).digest, dependency=self.source(model).recipe.dependency
            )
            for model in models
        ]
        return order_of(self.name, endpoint, platform, rows).model_copy(update=more)

    def preparation(self, *orders: Order, runner_for: RunnerFor | None = None) -> Preparation:
        places, bucket = self.places, self.bucket
        (self.root / "inputs").mkdir(exist_ok=True)

        def source_of(name: ArchiveName, choice: BuildChoice) -> ArchiveSource:
            return source_of_digest(
                name.model, name.digest, repositories=places.repositories, bucket=bucket, work=self.root / "inputs",
                choice=choice,
            )  # fmt: skip

        return Preparation(
            orders=orders,
            source_of=source_of,
            bucket=bucket,
            places=places,
            watch=lambda archive, text: self.messages.append((archive, text)),
            stop=self.stop,
            runner_for=runner_for
            or partial(real_runner_for, session=Clients(self.emulator), bucket=bucket, stop=self.stop),
        )

    def here(self, builder: Builder, _order: Order) -> CountingRunner:
        """Runs engines on this machine, whose stand-ins are those of the builder's GPU; a ``RunnerFor``."""
        folder = self.root / "programs" / str(builder.platform)
        machine = builder.machine
        programs = make_stand_ins(
            folder, machine_with(tensorrt="10.4.0", gpu=machine.gpu, compute_capability=machine.compute_capability)
        )
        inner = HereRunner(stop=self.stop, variables=programs.environment())
        return CountingRunner(inner=inner, runs=self.runs, before=self.before_run)

    def run_here(self, *orders: Order) -> PrepareSummary:
        """Prepare some orders with engines built on this machine."""
        self.stop.clear()
        return self.preparation(*orders, runner_for=self.here).run()

    def run(self, *orders: Order, runner_for: RunnerFor | None = None) -> PrepareSummary:
        self.stop.clear()
        return self.preparation(*orders, runner_for=runner_for).run()

    def keys(self, prefix: str = "") -> list[str]:
        return sorted(str(row["Key"]) for row in self.bucket.keys(prefix))

    def builds(self) -> Sequence[str]:
        found: Sequence[str] = self.emulator.client("codebuild").list_builds_for_project(
            projectName=f"{self.name}-engines"
        )["ids"]
        return found

    def jobs(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self.emulator.client("sagemaker").list_processing_jobs(
            NameContains=f"{self.name}-engine-"
        )["ProcessingJobSummaries"]
        return found

    def manifest(self, model: str, place: Place) -> Manifest:
        """The manifest of the archive at a place."""
        found = stored_manifest(self.bucket, self.archive(model), place)
        assert found is not None
        return found
