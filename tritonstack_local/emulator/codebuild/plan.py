"""What one build is told: the project's settings with StartBuild's overrides, all of them honoured or refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tritonstack_local.emulator.refusal import RefusedError

GPU_ENVIRONMENT = "LINUX_GPU_CONTAINER"
_ENVIRONMENTS = ("LINUX_CONTAINER", GPU_ENVIRONMENT)
_SOURCES = ("S3", "NO_SOURCE")
_ARTIFACTS = ("S3", "NO_ARTIFACTS")
_OVERRIDES = frozenset(
    {
        "projectName",
        "sourceVersion",
        "sourceTypeOverride",
        "sourceLocationOverride",
        "buildspecOverride",
        "artifactsOverride",
        "environmentVariablesOverride",
        "environmentTypeOverride",
        "imageOverride",
        "computeTypeOverride",
        "imagePullCredentialsTypeOverride",
        "timeoutInMinutesOverride",
        "queuedTimeoutInMinutesOverride",
        "serviceRoleOverride",
        "logsConfigOverride",
        "encryptionKeyOverride",
        "idempotencyToken",
    }
)
_UNSUPPORTED_OF_PROJECT = (
    "secondarySources",
    "secondaryArtifacts",
    "fileSystemLocations",
    "buildBatchConfig",
    "autoRetryLimit",
    "concurrentBuildLimit",
)
_UNSUPPORTED_OF_ENVIRONMENT = ("certificate", "fleet", "registryCredential", "dockerServer")
_UNSUPPORTED_OF_ARTIFACTS = ("artifactIdentifier", "bucketOwnerAccess")


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One environment variable: ``PLAINTEXT``, or ``PARAMETER_STORE`` with a parameter's name as value."""

    name: str
    value: str
    kind: str = "PLAINTEXT"

    def as_api(self) -> dict[str, str]:
        """As the API spells it."""
        return {"name": self.name, "value": self.value, "type": self.kind}


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """A build's settings.

    Attributes:
        source: the API's ``source``, with overrides.
        source_version: the version of the S3 object, or None.
        artifacts: the API's ``artifacts``, with overrides.
        environment: the API's ``environment``, with overrides, variables merged by name.
        cloud_watch_logs: the API's ``logsConfig.cloudWatchLogs``.
    """

    project: str
    project_arn: str
    service_role: str
    source: dict[str, Any]
    source_version: str | None
    artifacts: dict[str, Any]
    environment: dict[str, Any]
    cloud_watch_logs: dict[str, Any]
    vpc: dict[str, Any] | None
    timeout_minutes: int
    queued_minutes: int
    encryption_key: str

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The environment's variables, project's before override's."""
        return tuple(
            Variable(name=one["name"], value=one["value"], kind=one.get("type", "PLAINTEXT"))
            for one in self.environment["environmentVariables"]
        )

    @property
    def on_gpu(self) -> bool:
        """Whether the image is one of a GPU container."""
        return bool(self.environment["type"] == GPU_ENVIRONMENT)


def plan_build(project: dict[str, Any], request: dict[str, Any]) -> BuildPlan:
    """Merge a project with a StartBuild request; raises RefusedError with all that the local AWS does not have."""
    source = {**project["source"]}
    _override(source, request, {"type": "sourceTypeOverride", "location": "sourceLocationOverride"})
    _override(source, request, {"buildspec": "buildspecOverride"})
    environment = _environment(project["environment"], request)
    logs = request.get("logsConfigOverride") or project.get("logsConfig") or {}
    plan = BuildPlan(
        project=project["name"],
        project_arn=project["arn"],
        service_role=request.get("serviceRoleOverride") or project["serviceRole"],
        source=source,
        source_version=request.get("sourceVersion") or project.get("sourceVersion") or None,
        artifacts=request.get("artifactsOverride") or project["artifacts"],
        environment=environment,
        cloud_watch_logs=logs.get("cloudWatchLogs") or {"status": "ENABLED"},
        vpc=project.get("vpcConfig") or None,
        timeout_minutes=int(request.get("timeoutInMinutesOverride") or project.get("timeoutInMinutes") or 60),
        queued_minutes=int(
            request.get("queuedTimeoutInMinutesOverride") or project.get("queuedTimeoutInMinutes") or 480
        ),
        encryption_key=request.get("encryptionKeyOverride") or project["encryptionKey"],
    )
    problems = [*_unsupported(project, request, logs), *_problems(plan)]
    if problems:
        raise RefusedError("InvalidInputException", "; ".join(problems), source="tritonstack_local.emulator.codebuild")
    return plan


def _environment(environment: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    merged = {"privilegedMode": False, "imagePullCredentialsType": "CODEBUILD", **environment}
    _override(merged, request, {"type": "environmentTypeOverride", "image": "imageOverride"})
    _override(merged, request, {"computeType": "computeTypeOverride"})
    _override(merged, request, {"imagePullCredentialsType": "imagePullCredentialsTypeOverride"})
    variables = {one["name"]: one for one in environment.get("environmentVariables") or []}
    variables |= {one["name"]: one for one in request.get("environmentVariablesOverride") or []}
    return {**merged, "environmentVariables": list(variables.values())}


def _override(settings: dict[str, Any], request: dict[str, Any], names: dict[str, str]) -> None:
    settings.update({name: request[override] for name, override in names.items() if override in request})


def _unsupported(project: dict[str, Any], request: dict[str, Any], logs: dict[str, Any]) -> Iterator[str]:
    """What is asked for by name and not here."""
    yield from (f"{name} is not in the local AWS" for name in sorted(request.keys() - _OVERRIDES))
    yield from (f"project: {name} is not in the local AWS" for name in _UNSUPPORTED_OF_PROJECT if project.get(name))
    environment = project["environment"]
    for name in _UNSUPPORTED_OF_ENVIRONMENT:
        if environment.get(name):
            yield f"environment.{name} is not in the local AWS"
    if environment.get("privilegedMode") in (True, "true"):
        yield "environment.privilegedMode is not in the local AWS: there is no container and no docker"
    if (logs.get("s3Logs") or {}).get("status", "DISABLED") != "DISABLED":
        yield "logsConfig.s3Logs is not in the local AWS"


def _problems(plan: BuildPlan) -> Iterator[str]:
    """Values that the local AWS does not build with, or that do not fit together."""
    if plan.source.get("type") not in _SOURCES:
        yield f"source type {plan.source.get('type')}: the local AWS builds from {' and '.join(_SOURCES)}"
    elif plan.source["type"] == "S3" and "/" not in (plan.source.get("location") or ""):
        yield f"source location {plan.source.get('location')!r}: bucket/object.zip or bucket/folder/"
    elif plan.source["type"] == "NO_SOURCE" and not plan.source.get("buildspec"):
        yield "a project without source needs an inline buildspec"
    if plan.environment["type"] not in _ENVIRONMENTS:
        yield f"environment type {plan.environment['type']}: the local AWS has {' and '.join(_ENVIRONMENTS)}"
    yield from (
        f"variable {one.name}: {one.kind} is not in the local AWS"
        for one in plan.variables
        if one.kind not in ("PLAINTEXT", "PARAMETER_STORE")
    )
    yield from _artifact_problems(plan.artifacts)


def _artifact_problems(artifacts: dict[str, Any]) -> Iterator[str]:
    if artifacts.get("type") not in _ARTIFACTS:
        yield f"artifacts type {artifacts.get('type')}: the local AWS has {' and '.join(_ARTIFACTS)}"
    elif artifacts["type"] == "S3" and not artifacts.get("location"):
        yield "artifacts: type S3 needs a location, the bucket's name"
    yield from (
        f"artifacts.{name} is not in the local AWS" for name in _UNSUPPORTED_OF_ARTIFACTS if artifacts.get(name)
    )
