"""One build as BatchGetBuilds shows it: phases with times and contexts, status, log, artifacts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tritonstack_local.emulator.clock import clock
from tritonstack_local.emulator.codebuild.plan import BuildPlan

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
    """A build from its start on. One worker thread changes it; others read ``as_api()``.

    Attributes:
        id: ``<project>:<uuid>``.
        number: the project's how-manieth build.
        status: ``IN_PROGRESS`` until the end.
        phases: those that began, in order.
        artifact: what was uploaded: location, and checksums of a ZIP file.
        stop_requested: whether StopBuild asked for its end.
        abandoned: whether the emulator itself ends; nobody is told any more.
    """

    id: str
    arn: str
    number: int
    plan: BuildPlan
    initiator: str
    region: str
    start: float = field(default_factory=clock.now)
    end: float | None = None
    status: str = IN_PROGRESS
    phases: list[PhaseRecord] = field(default_factory=list)
    artifact: dict[str, str] = field(default_factory=dict)
    stop_requested: bool = False
    abandoned: bool = False

    @property
    def uuid(self) -> str:
        """The build's own part of its id."""
        return self.id.rpartition(":")[2]

    @property
    def log_group(self) -> str | None:
        """The CloudWatch log group, None where the project wants no log."""
        logs = self.plan.cloud_watch_logs
        if logs.get("status") == "DISABLED":
            return None
        return str(logs.get("groupName") or f"/aws/codebuild/{self.plan.project}")

    @property
    def log_stream(self) -> str:
        """The stream: the uuid, after the project's prefix if it has one."""
        prefix = self.plan.cloud_watch_logs.get("streamName")
        return f"{prefix}/{self.uuid}" if prefix else self.uuid

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
        plan = self.plan
        shown: dict[str, Any] = {
            "id": self.id,
            "arn": self.arn,
            "buildNumber": self.number,
            "startTime": self.start,
            "currentPhase": self.phases[-1].name,
            "buildStatus": self.status,
            "buildComplete": self.status != IN_PROGRESS,
            "projectName": plan.project,
            "phases": [phase.as_api() for phase in self.phases],
            "source": plan.source,
            "artifacts": self._artifacts(),
            "cache": {"type": "NO_CACHE"},
            "environment": plan.environment,
            "serviceRole": plan.service_role,
            "logs": self._logs(),
            "timeoutInMinutes": plan.timeout_minutes,
            "queuedTimeoutInMinutes": plan.queued_minutes,
            "initiator": self.initiator,
            "encryptionKey": plan.encryption_key,
        }
        optional = {"endTime": self.end, "sourceVersion": plan.source_version, "vpcConfig": plan.vpc}
        return {**shown, **{name: value for name, value in optional.items() if value is not None}}

    def _artifacts(self) -> dict[str, Any]:
        """The API's ``BuildArtifacts``: where the output lies, empty where the project has none."""
        location = artifact_arn(self) if self.plan.artifacts["type"] == "S3" else ""
        sums: dict[str, Any] = {name: self.artifact[name] for name in ("md5sum", "sha256sum") if name in self.artifact}
        return {"location": location, **sums}

    def _logs(self) -> dict[str, Any]:
        if self.log_group is None:
            return {"cloudWatchLogs": self.plan.cloud_watch_logs}
        return {
            "groupName": self.log_group,
            "streamName": self.log_stream,
            "deepLink": self.deep_link,
            "cloudWatchLogs": {"status": "ENABLED", "groupName": self.log_group, "streamName": self.log_stream},
        }


def artifact_key(build: Build) -> str:
    """The key of a build's output in its bucket: a folder's without packaging, else the ZIP file's.

    ``path[/build id]/name``; name ``/`` is the folder above (API reference, ProjectArtifacts).
    """
    artifacts = build.plan.artifacts
    identity = build.uuid if artifacts.get("namespaceType") == "BUILD_ID" else ""
    name = build.artifact.get("name") or artifacts.get("name") or build.plan.project
    return "/".join(part for part in ((artifacts.get("path") or "").strip("/"), identity, name.strip("/")) if part)


def artifact_arn(build: Build) -> str:
    """The output's ARN."""
    key = build.artifact.get("location") or artifact_key(build)
    return f"arn:aws:s3:::{build.plan.artifacts['location']}/{key}"
