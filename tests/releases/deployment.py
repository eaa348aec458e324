"""An environment in the emulator: a bucket, and serving stacks whose records the real activation function writes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from constructs_lib.handler_function import entry_point, handler_files
from tests.tritonstack_local.emulator.running import IMAGE, ROLE, ROLE_ARN, Emulator
from tritonstack.models.manifest import ArchiveEntry, Manifest, ModelEntry, SampleEntry

A, B, C = "a" * 16, "b" * 16, "c" * 16
T4, OTHER = "24.09-t4", "24.10-t4"
ENDPOINT = """
  - name: {name}
    mode: {mode}
    release: "24.09"
    instance_type: ml.g4dn.xlarge
    initial_instance_count: 1
    models: [double]
"""


class Deployment:
    """One environment with its file, its bucket, and as many endpoints as a test deploys."""

    def __init__(self, aws: Emulator, name: str, project: Path) -> None:
        self.aws, self.name, self.project = aws, name, project
        self.bucket = f"{name}-artifacts"
        aws.client("s3").create_bucket(Bucket=self.bucket)
        self.parameter(f"/tritonstack/{name}/_artifacts/bucket-name", self.bucket)
        self.write_environment(digits="multi-model")
        self.function = self._function()

    def write_environment(self, **modes: str) -> None:
        """The environment's file: endpoint → mode."""
        endpoints = "".join(ENDPOINT.format(name=name, mode=mode) for name, mode in modes.items())
        head = f'environment: {self.name}\naccount: "123456789012"\nregion: us-east-1\nproduction: false\n'
        text = f"{head}endpoints:{endpoints}"
        file = self.project / "environments" / f"{self.name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def parameter(self, name: str, value: str) -> None:
        """Write a parameter."""
        self.aws.client("ssm").put_parameter(Name=name, Value=value, Type="String", Overwrite=True)

    def publish(
        self, models: Mapping[str, str], *, endpoint: str = "digits", platform: str = T4, skipped: str | None = None
    ) -> None:
        """Put archives, and manifests of archives that serve anywhere, into the bucket; ``skipped``: their proof."""
        for model, digest in models.items():
            content = f"{model} {digest}".encode()
            store = self.aws.client("s3")
            key = f"manifests/{endpoint}/{platform}/{model}.{digest}.json"
            written = manifest(model, digest, content).model_copy(update={"proof_skipped": skipped})
            store.put_object(Bucket=self.bucket, Key=key, Body=written.to_json().encode())
            store.put_object(
                Bucket=self.bucket,
                Key=f"endpoints/{endpoint}/{platform}/{model}.{digest}.tar.gz",
                Body=content,
                Metadata={"sha256": hashlib.sha256(content).hexdigest()},
            )

    def archives(self, *, endpoint: str = "digits", platform: str = T4) -> set[str]:
        """The archives under an endpoint's platform."""
        prefix = f"endpoints/{endpoint}/{platform}/"
        found = self.aws.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return {row["Key"].removeprefix(prefix) for row in found}

    def deploy(
        self,
        models: Mapping[str, str],
        *,
        endpoint: str = "digits",
        platform: str = T4,
        mode: str = "MultiModel",
        commits: Mapping[str, str] | None = None,
        failing: bool = False,
    ) -> str:
        """Deploy a release set; ``failing``: something after the records fails. Returns the stack's status."""
        self.publish(models, endpoint=endpoint, platform=platform)
        document = {"schema": 1, "platform": platform, "models": dict(models), "commits": dict(commits or {})}
        body = json.dumps(document, sort_keys=True).encode()
        key = f"{hashlib.sha256(body).hexdigest()}.release-set"
        self.aws.client("s3").put_object(Bucket=self.bucket, Key=key, Body=body)
        written = {
            "ServiceToken": self.function,
            "ReleaseSetBucket": self.bucket,
            "ReleaseSetKey": key,
            "ArchiveBucket": self.bucket,
            "ArchivePrefix": f"endpoints/{endpoint}/{platform}/",
            "RecordPath": f"/tritonstack/{self.name}/{endpoint}/",
        }
        container = {"Image": IMAGE, "Mode": mode, "ModelDataUrl": f"s3://{self.bucket}/endpoints/{endpoint}/"}
        resources: dict[str, Any] = {
            "Role": ROLE,
            "Model": {
                "Type": "AWS::SageMaker::Model",
                "Properties": {"ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]}, "PrimaryContainer": container},
            },
            "Archives": {"Type": "Custom::PublishedArchives", "Properties": written},
            "Records": {"Type": "Custom::ReleaseRecords", "Properties": written, "DependsOn": "Archives"},
        }
        if failing:
            wrong = {**written, "ArchivePrefix": "endpoints/nowhere/24.09-t4/"}
            resources["Later"] = {"Type": "Custom::PublishedArchives", "Properties": wrong, "DependsOn": "Records"}
        return self.aws.deploy(self.stack(endpoint), resources)

    def stack(self, endpoint: str = "digits") -> str:
        """The name of an endpoint's stack."""
        return f"{self.name}-serving-{endpoint}"

    def records(self, endpoint: str = "digits") -> dict[str, str]:
        """Model → digest."""
        path = f"/tritonstack/{self.name}/{endpoint}/"
        pages = self.aws.client("ssm").get_paginator("get_parameters_by_path").paginate(Path=path)
        return {row["Name"].removeprefix(path): row["Value"] for page in pages for row in page["Parameters"]}

    def _function(self) -> str:
        """The activation function as it is deployed."""
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            for name, content in handler_files("activation").items():
                archive.writestr(f"lambda/{name}", content)
        functions = self.aws.client("lambda")
        with contextlib.suppress(functions.exceptions.ResourceConflictException):
            functions.create_function(
                FunctionName="activation",
                Runtime="python3.12",
                Handler=entry_point("activation"),
                Role=ROLE_ARN,
                Code={"ZipFile": code.getvalue()},
                Timeout=60,
            )
        return str(functions.get_function(FunctionName="activation")["Configuration"]["FunctionArn"])


def manifest(model: str, digest: str, content: bytes) -> Manifest:
    """The manifest of an archive with these bytes that depends on nothing but its inputs."""
    hashed = hashlib.sha256(content).hexdigest()
    return Manifest(
        name=model,
        digest=digest,
        description="Doubles a number.",
        dependency="none",
        archive=ArchiveEntry(
            file=f"{model}.{digest}.tar.gz",
            bytes=len(content),
            sha256=hashed,
            tar_bytes=len(content),
            tar_sha256=hashed,
        ),
        model=ModelEntry(name=model, max_batch_size=0, inputs=(), outputs=()),
        backends=("python",),
        configs={},
        adapters={},
        sample=SampleEntry(file="request.json", answer={}, tolerance=0.0),
        figures={},
        tools={},
    )
