"""One build: its parameters from project and request, its variables, source and artifacts, and its record."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.codebuild.buildspec import ArtifactFiles, Buildspec, PhaseError
from tritonstack_local.emulator.request_validation import CREDENTIALS, RefusedError, client


@contextmanager
def failing_as_client_error(what: str) -> Iterator[None]:
    """Turn a refused or failed request within the block into the phase's failure, CodeBuild's ``CLIENT_ERROR``."""
    try:
        yield
    except ClientError as error:
        refusal = error.response["Error"]
        raise PhaseError("CLIENT_ERROR", f"{what}, error: {refusal['Code']}: {refusal.get('Message', '')}") from error
    except (BotoCoreError, OSError) as error:
        raise PhaseError("CLIENT_ERROR", f"{what}, error: {error}") from error


def build_environment(build: Build, buildspec: Buildspec, *, source: Path, home: Path) -> dict[str, str]:
    """Every variable: the buildspec's, then the project's and StartBuild's, then CodeBuild's own.

    Raises PhaseError where a parameter of Parameter Store is not there.
    """
    given = dict(buildspec.variables)
    for variable in build.parameters.variables:
        name, value, is_parameter = variable["name"], variable["value"], variable["type"] == "PARAMETER_STORE"
        given[name] = _parameter(value, build) if is_parameter else value
    return {**_machine(build, home), **given, **_codebuild(build, source)}


def _machine(build: Build, home: Path) -> dict[str, str]:
    """Variables of the container's image and of CodeBuild; the endpoint is this emulator."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "AWS_REGION": build.region,
        "AWS_DEFAULT_REGION": build.region,
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **build.credentials,
    }


def _codebuild(build: Build, source: Path) -> dict[str, str]:
    """CODEBUILD_RESOLVED_SOURCE_VERSION is missing: CodeBuild sets it for repositories and pipelines only."""
    parameters = build.parameters
    variables = {
        "CI": "true",
        "CODEBUILD_CI": "true",
        "CODEBUILD_BUILD_ARN": build.arn,
        "CODEBUILD_BUILD_ID": build.id,
        "CODEBUILD_BUILD_IMAGE": parameters.environment["image"],
        "CODEBUILD_BUILD_NUMBER": str(build.number),
        "CODEBUILD_BUILD_SUCCEEDING": "1",
        "CODEBUILD_INITIATOR": build.initiator,
        "CODEBUILD_KMS_KEY_ID": parameters.encryption_key,
        "CODEBUILD_LOG_PATH": build.log_stream,
        "CODEBUILD_PROJECT_ARN": parameters.project_arn,
        "CODEBUILD_SRC_DIR": str(source),
        "CODEBUILD_START_TIME": str(int(build.start * 1000)),
    }
    if parameters.source.get("location"):
        variables["CODEBUILD_SOURCE_REPO_URL"] = parameters.source["location"]
    return variables


def _parameter(name: str, build: Build) -> str:
    """A parameter's value, by the one action that CodeBuild's guide names for it: ssm:GetParameters."""
    try:
        with failing_as_client_error(f"parameter {name}"):
            found = client("ssm", build.region, build.credentials).get_parameters(Names=[name], WithDecryption=True)
    except PhaseError as error:
        raise PhaseError("Decrypted Variables Error", error.message) from error
    if not found["Parameters"]:
        raise PhaseError("Decrypted Variables Error", f"parameter {name}, error: ParameterNotFound")
    return str(found["Parameters"][0]["Value"])


GPU_ENVIRONMENT = "LINUX_GPU_CONTAINER"
_ENVIRONMENTS = ("LINUX_CONTAINER", GPU_ENVIRONMENT)
_SOURCES = ("S3", "NO_SOURCE")
_ARTIFACTS = ("S3", "NO_ARTIFACTS")


@dataclass(frozen=True, kw_only=True)
class BuildParameters:
    """Parameters of a build: those of its project with the overrides of StartBuild."""

    project: str
    project_arn: str
    service_role: str
    source: dict[str, Any]  # the API's ``source``, with overrides
    artifacts: dict[str, Any]  # the API's ``artifacts``, with overrides
    environment: dict[str, Any]  # the API's ``environment``, with overrides, variables merged by name
    cloud_watch_logs: dict[str, Any]  # the API's ``logsConfig.cloudWatchLogs``
    vpc: dict[str, Any] | None
    timeout_minutes: int
    queued_minutes: int
    encryption_key: str

    @property
    def variables(self) -> list[dict[str, str]]:
        """The environment's variables as the API spells them, the project's before the override's."""
        return [{"type": "PLAINTEXT", **one} for one in self.environment["environmentVariables"]]

    @property
    def on_gpu(self) -> bool:
        """Whether the image is one of a GPU container."""
        return bool(self.environment["type"] == GPU_ENVIRONMENT)


def build_parameters(project: dict[str, Any], request: dict[str, Any]) -> BuildParameters:
    """Merge a project with a StartBuild request; raises RefusedError with all that the local AWS does not have."""

    def overridden(**names: str) -> dict[str, Any]:
        return {name: request[override] for name, override in names.items() if override in request}

    changed = overridden(type="sourceTypeOverride", location="sourceLocationOverride")
    variables = {one["name"]: one for one in project["environment"].get("environmentVariables") or []}
    variables |= {one["name"]: one for one in request.get("environmentVariablesOverride") or []}
    environment = {
        "privilegedMode": False,
        "imagePullCredentialsType": "CODEBUILD",
        **project["environment"],
        **overridden(type="environmentTypeOverride", image="imageOverride", computeType="computeTypeOverride"),
        **overridden(imagePullCredentialsType="imagePullCredentialsTypeOverride"),
        "environmentVariables": list(variables.values()),
    }
    parameters = BuildParameters(
        project=project["name"],
        project_arn=project["arn"],
        service_role=project["serviceRole"],
        source={**project["source"], **changed},
        artifacts=request.get("artifactsOverride") or project["artifacts"],
        environment=environment,
        cloud_watch_logs=(project.get("logsConfig") or {}).get("cloudWatchLogs") or {"status": "ENABLED"},
        vpc=project.get("vpcConfig") or None,
        timeout_minutes=int(request.get("timeoutInMinutesOverride") or project.get("timeoutInMinutes") or 60),
        queued_minutes=int(project.get("queuedTimeoutInMinutes") or 480),
        encryption_key=project["encryptionKey"],
    )
    problems = list(_problems(parameters))
    if problems:
        raise RefusedError("InvalidInputException", "; ".join(problems), source="tritonstack_local.emulator.codebuild")
    return parameters


def _problems(parameters: BuildParameters) -> Iterator[str]:
    """Values that the local AWS does not build with, or that do not fit together."""
    if parameters.source.get("type") not in _SOURCES:
        yield f"source type {parameters.source.get('type')}: the local AWS builds from {' and '.join(_SOURCES)}"
    elif parameters.source["type"] == "S3" and "/" not in (parameters.source.get("location") or ""):
        yield f"source location {parameters.source.get('location')!r}: bucket/object.zip or bucket/folder/"
    elif parameters.source["type"] == "NO_SOURCE" and not parameters.source.get("buildspec"):
        yield "a project without source needs an inline buildspec"
    if parameters.environment["type"] not in _ENVIRONMENTS:
        yield f"environment type {parameters.environment['type']}: the local AWS has {' and '.join(_ENVIRONMENTS)}"
    for one in parameters.variables:
        if one["type"] not in ("PLAINTEXT", "PARAMETER_STORE"):
            yield f"variable {one['name']}: {one['type']} is not in the local AWS"
    artifacts = parameters.artifacts
    if artifacts.get("type") not in _ARTIFACTS:
        yield f"artifacts type {artifacts.get('type')}: the local AWS has {' and '.join(_ARTIFACTS)}"
    elif artifacts["type"] == "S3" and not artifacts.get("location"):
        yield "artifacts: type S3 needs a location, the bucket's name"


IN_PROGRESS = "IN_PROGRESS"


@dataclass(kw_only=True)
class PhaseRecord:
    """One phase; times in seconds since the epoch, ``end`` and ``status`` None while it runs."""

    name: str
    start: float
    end: float | None = None
    status: str | None = None
    code: str = ""
    message: str = ""

    def as_api(self) -> dict[str, Any]:
        """The API's ``BuildPhase``."""
        shown: dict[str, Any] = {"phaseType": self.name, "startTime": self.start}
        if self.end is not None:
            shown |= {"phaseStatus": self.status, "endTime": self.end, "durationInSeconds": int(self.end - self.start)}
        if self.code:
            shown["contexts"] = [{"statusCode": self.code, "message": self.message}]
        return shown


@dataclass(kw_only=True)
class Build:
    """A build from its start on. One worker thread changes it; others read ``as_api()``."""

    id: str  # ``<project>:<uuid>``
    arn: str
    number: int  # the project's how-manieth build
    parameters: BuildParameters
    initiator: str
    region: str
    start: float = field(default_factory=clock.now)
    end: float | None = None
    status: str = IN_PROGRESS  # ``IN_PROGRESS`` until the end
    phases: list[PhaseRecord] = field(default_factory=list)  # those that began, in order
    stop_requested: bool = False  # whether StopBuild was called for it
    abandoned: bool = False  # whether the emulator itself ends; no events are sent then
    credentials: Mapping[str, str] = field(default_factory=CREDENTIALS.copy)  # the service role's, once provisioned

    @property
    def log_group(self) -> str:
        return str(self.parameters.cloud_watch_logs.get("groupName") or f"/aws/codebuild/{self.parameters.project}")

    @property
    def log_stream(self) -> str:
        """The stream: the build's own part of its id."""
        return self.id.rpartition(":")[2]

    @property
    def deep_link(self) -> str:
        """The console's page of the log, as CodeBuild spells it."""
        return (
            f"https://console.aws.amazon.com/cloudwatch/home?region={self.region}"
            f"#logEvent:group={self.log_group};stream={self.log_stream}"
        )

    def begin(self, phase: str) -> PhaseRecord:
        """A phase begins now."""
        record = PhaseRecord(name=phase, start=clock.now())
        self.phases = [*self.phases, record]
        return record

    def as_api(self) -> dict[str, Any]:
        """The API's ``Build``."""
        parameters = self.parameters
        shown: dict[str, Any] = {
            "id": self.id,
            "arn": self.arn,
            "buildNumber": self.number,
            "startTime": self.start,
            "currentPhase": self.phases[-1].name,
            "buildStatus": self.status,
            "buildComplete": self.status != IN_PROGRESS,
            "projectName": parameters.project,
            "phases": [phase.as_api() for phase in self.phases],
            "source": parameters.source,
            "artifacts": {
                "location": f"arn:aws:s3:::{parameters.artifacts['location']}/{artifact_key(self)}"
                if parameters.artifacts["type"] == "S3"
                else ""
            },
            "environment": parameters.environment,
            "serviceRole": parameters.service_role,
            "logs": {
                "groupName": self.log_group,
                "streamName": self.log_stream,
                "deepLink": self.deep_link,
                "cloudWatchLogs": {"status": "ENABLED", "groupName": self.log_group, "streamName": self.log_stream},
            },
            "timeoutInMinutes": parameters.timeout_minutes,
            "queuedTimeoutInMinutes": parameters.queued_minutes,
            "initiator": self.initiator,
            "encryptionKey": parameters.encryption_key,
        }
        optional = {"endTime": self.end, "vpcConfig": parameters.vpc}
        return {**shown, **{name: value for name, value in optional.items() if value is not None}}


def artifact_key(build: Build) -> str:
    """The key of a build's output in its bucket: ``path/name``; name ``/`` is the folder above (ProjectArtifacts)."""
    artifacts = build.parameters.artifacts
    name = artifacts.get("name") or build.parameters.project
    return "/".join(part for part in ((artifacts.get("path") or "").strip("/"), name.strip("/")) if part)


# --- Source and artifacts in S3 ---


def download_source(build: Build, target: Path) -> None:
    """Fill ``target``; raises PhaseError where S3 refuses or the source is not what it should be."""
    source = build.parameters.source
    if source["type"] == "NO_SOURCE":
        return
    bucket, _, key = source["location"].removeprefix("arn:aws:s3:::").partition("/")
    if key == "" or key.endswith("/"):
        from tritonstack_local.emulator.processing import container  # noqa: PLC0415  needs MiniStack

        try:
            container.download(f"s3://{bucket}/{key}", target, build.credentials)
        except container.JobFailedError as error:
            raise PhaseError("CLIENT_ERROR", str(error)) from error
        return
    with failing_as_client_error(f"error while downloading key {key} of bucket {bucket}"):
        content: bytes = client("s3", build.region, build.credentials).get_object(Bucket=bucket, Key=key)["Body"].read()
    unpack(content, key, target)


def unpack(content: bytes, key: str, target: Path) -> None:
    """Unpack a ZIP file's bytes; a name that leads out of ``target`` is cut, as by unzip. Raises PhaseError."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                mode = entry.external_attr >> 16
                if stat.S_ISLNK(mode):
                    raise PhaseError("CLIENT_ERROR", f"{entry.filename!r}: the source has files and folders, no links")
                path = Path(archive.extract(entry, target))
                if mode & 0o111 and path.is_file():
                    path.chmod(0o755)
    # zipfile's last three: a compression that it lacks, a file under a password, an entry without a name.
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, IndexError) as error:
        raise PhaseError("CLIENT_ERROR", f"{key} cannot be unpacked as a ZIP file: {error}") from error


def upload_artifacts(build: Build, files: ArtifactFiles | None, *, source: Path, between: Callable[[], None]) -> None:
    """Upload the buildspec's artifacts to the project's destination.

    What ``between`` raises, called before each file, ends the upload. Raises PhaseError where nothing matches, or S3
    refuses.
    """
    artifacts = build.parameters.artifacts
    if artifacts["type"] == "NO_ARTIFACTS":
        return
    if files is None:
        raise PhaseError("CLIENT_ERROR", "no artifacts section in the buildspec, and the project has artifacts")
    for name, path in matching_files(files, source).items():
        between()
        target = f"{artifact_key(build)}/{name}".strip("/")
        with failing_as_client_error(f"Error in UPLOAD_ARTIFACTS phase: {target}"), path.open("rb") as content:
            client("s3", build.region, build.credentials).put_object(
                Bucket=artifacts["location"], Key=target, Body=content
            )


def matching_files(files: ArtifactFiles, source: Path) -> dict[str, Path]:
    """Name in the output → file, sorted; raises PhaseError where nothing matches, as CodeBuild does.

    Links to folders are not followed.
    """
    base = source / files.base_directory
    if not base.is_dir():
        raise PhaseError("CLIENT_ERROR", "no matching base directory path found for " + files.base_directory)
    try:
        found = {path for pattern in files.files for path in base.glob(pattern) if path.is_file()}
    except ValueError as error:
        raise PhaseError("CLIENT_ERROR", f"artifacts.files: {error}") from error
    if not found:
        raise PhaseError("CLIENT_ERROR", "no matching artifact paths found")
    inside = [
        path
        for path in sorted(found)
        if not any(parent.is_symlink() for parent in path.parents if base in parent.parents)
    ]
    return {path.relative_to(base).as_posix(): path for path in inside}
