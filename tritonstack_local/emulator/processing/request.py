"""What CreateProcessingJob refuses beyond the service model: what SageMaker refuses, and what is not run here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from tritonstack.catalogue import load_catalogue
from tritonstack_local.emulator.gpu_stand_ins import gpu_of, known_instance_types
from tritonstack_local.emulator.refusal import RefusedError
from tritonstack_local.emulator.sagemaker.execution_role import check_execution_role
from tritonstack_local.emulator.sagemaker.records import API

Request = dict[str, Any]
FOLDER = "/opt/ml/processing/"
_IMAGE = re.compile(r"\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/[^:@]+(:[\w.-]+|@sha256:[0-9a-f]{64})?")
_HERE = "is not in the local AWS"


def check(request: Request) -> None:
    """Raise ``RefusedError`` with every problem at once, and for a role that SageMaker may not assume."""
    found = [*_of_cluster(request), *_of_image(request), *_of_inputs(request), *_of_outputs(request)]
    if "ExperimentConfig" in request:
        found.append(f"ExperimentConfig {_HERE}")
    if found:
        raise RefusedError("ValidationException", "; ".join(found), source=f"{API}, CreateProcessingJob")
    check_execution_role(request["RoleArn"])


def _of_cluster(request: Request) -> Iterator[str]:
    cluster = request["ProcessingResources"]["ClusterConfig"]
    unknown = cluster.keys() - {"InstanceCount", "InstanceType", "VolumeSizeInGB", "VolumeKmsKeyId"}
    yield from (f"ClusterConfig.{name} {_HERE}" for name in sorted(unknown))
    for name in ("InstanceCount", "InstanceType"):
        if name not in cluster:
            yield f"ClusterConfig.{name} must be specified"
    if cluster.get("InstanceCount", 1) != 1:
        yield f"more than one instance {_HERE}"
    kind = cluster.get("InstanceType")
    if kind is not None and gpu_of(kind) is None:
        yield f"the GPU of {kind} is not known; it is of {', '.join(known_instance_types())}"
    elif kind is not None and "VolumeKmsKeyId" in cluster and load_catalogue().instances[kind].local_nvme_gb:
        yield f"VolumeKmsKeyId: {kind} has local storage, which encrypts itself and takes no key"


def _of_image(request: Request) -> Iterator[str]:
    application = request["AppSpecification"]
    if not _IMAGE.fullmatch(application["ImageUri"]):
        yield f"ImageUri {application['ImageUri']} is no image of Amazon ECR"
    if "ContainerEntrypoint" not in application:
        yield "the local AWS starts no image and so knows no ENTRYPOINT: ContainerEntrypoint must be specified"


def _of_inputs(request: Request) -> Iterator[str]:
    inputs = request.get("ProcessingInputs", [])
    yield from _repeated("InputName", inputs)
    for number, one in enumerate(inputs, 1):
        where = f"ProcessingInputs.{number}"
        if one.get("AppManaged") or "DatasetDefinition" in one:
            yield f"{where}: AppManaged and DatasetDefinition: neither {_HERE}"
            continue
        given = one.get("S3Input")
        if given is None:
            yield f"{where}: S3Input must be specified"
            continue
        yield from _of_place(where, given)
        for name, run in (("S3DataType", "S3Prefix"), ("S3InputMode", "File"), ("S3CompressionType", "None")):
            if given.get(name, run) != run:
                yield f"{where}: {name} {given[name]} {_HERE}, {run} is"


def _of_outputs(request: Request) -> Iterator[str]:
    outputs = request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    yield from _repeated("OutputName", outputs)
    for number, one in enumerate(outputs, 1):
        where = f"ProcessingOutputConfig.Outputs.{number}"
        if one.get("AppManaged") or "FeatureStoreOutput" in one:
            yield f"{where}: AppManaged and FeatureStoreOutput: neither {_HERE}"
        elif "S3Output" not in one:
            yield f"{where}: S3Output must be specified"
        else:
            yield from _of_place(where, one["S3Output"])


def _of_place(where: str, given: dict[str, Any]) -> Iterator[str]:
    if not given["S3Uri"].startswith("s3://"):
        yield f"{where}: S3Uri {given['S3Uri']}: an https address {_HERE}, s3://… is"
    local = given.get("LocalPath", "")
    if not local.startswith(FOLDER) or ".." in PurePosixPath(local).parts:
        yield f"{where}: LocalPath {local or '(none)'} must begin with {FOLDER}"


def _repeated(name: str, given: list[dict[str, Any]]) -> Iterator[str]:
    for value, count in Counter(one[name] for one in given).items():
        if count > 1:
            yield f"{name} {value} is used {count} times"
