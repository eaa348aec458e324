"""CodeBuild and SageMaker with engine jobs that builds have started."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

# `lambda` is a word of the language, so the folder of that name cannot stand in an import statement.
fakes: Any = importlib.import_module("tests.lambda.fake_builds")
PAGE = 2
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
STARTED_BY = "TRITONSTACK_STARTED_BY"


@dataclass
class FakeEngines(fakes.FakeBuilds):  # type: ignore[misc] # imported by its name, so untyped
    """As FakeBuilds, with the engine project's builds and processing jobs.

    Attributes:
        jobs: name → what SageMaker tells of a processing job.
        stopped: what was stopped, in order.
        ends: jobs that end of themselves when they are asked to stop.
        unstoppable: jobs and builds that the services refuse to stop.
    """

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    ends: set[str] = field(default_factory=set)
    unstoppable: set[str] = field(default_factory=set)

    def begin(self, identity: str, *, minutes: int = 0) -> None:
        """Let a build begin."""
        build = {"id": identity, "buildStatus": "IN_PROGRESS", "startTime": BEGAN + timedelta(minutes=minutes)}
        self.builds[identity] = {**build, "environment": {"environmentVariables": []}}

    def begin_engine_build(self, identity: str, *, of: str | None, minutes: int, status: str = "IN_PROGRESS") -> None:
        """Let an engine's build begin."""
        self.begin(identity, minutes=minutes)
        variables = [] if of is None else [{"name": STARTED_BY, "value": of}]
        self.builds[identity] |= {"buildStatus": status, "environment": {"environmentVariables": variables}}

    def begin_job(self, name: str, *, of: str | None, minutes: int = 5, status: str = "InProgress") -> None:
        """Let a processing job begin."""
        variables = {} if of is None else {STARTED_BY: of}
        began = BEGAN + timedelta(minutes=minutes)
        self.jobs[name] = {"status": status, "began": began, "variables": variables}

    def _ListBuildsForProject(self, projectName: str, sortOrder: str, nextToken: str = "0") -> dict[str, Any]:
        assert sortOrder == "DESCENDING"
        ids = [identity for identity in self.builds if identity.startswith(f"{projectName}:")]
        ids.sort(key=lambda identity: self.builds[identity]["startTime"], reverse=True)
        start = int(nextToken)
        page: dict[str, Any] = {"ids": ids[start : start + PAGE]}
        return page | ({"nextToken": str(start + PAGE)} if start + PAGE < len(ids) else {})

    def _StopBuild(self, id: str) -> dict[str, Any]:  # noqa: A002 - as the API spells it
        if id in self.unstoppable:
            raise fakes.fakes.AwsError("InternalServerError")
        self.stopped.append(id)
        self.builds[id]["buildStatus"] = "STOPPED"
        return {"build": self.builds[id]}

    def _ListProcessingJobs(
        self,
        NameContains: str,
        StatusEquals: str,
        CreationTimeAfter: datetime,
        NextToken: str = "0",
    ) -> dict[str, Any]:
        names = [
            name
            for name, job in self.jobs.items()
            if NameContains in name and job["status"] == StatusEquals and job["began"] > CreationTimeAfter
        ]
        start = int(NextToken)
        page: dict[str, Any] = {
            "ProcessingJobSummaries": [{"ProcessingJobName": name} for name in names[start : start + PAGE]]
        }
        return page | ({"NextToken": str(start + PAGE)} if start + PAGE < len(names) else {})

    def _DescribeProcessingJob(self, ProcessingJobName: str) -> dict[str, Any]:
        job = self.jobs[ProcessingJobName]
        told = {"ProcessingJobName": ProcessingJobName, "ProcessingJobStatus": job["status"]}
        return {**told, **({"Environment": job["variables"]} if job["variables"] else {})}

    def _StopProcessingJob(self, ProcessingJobName: str) -> dict[str, Any]:
        job = self.jobs[ProcessingJobName]
        if ProcessingJobName in self.ends:
            job["status"] = "Completed"
        if ProcessingJobName in self.unstoppable or job["status"] != "InProgress":
            raise fakes.fakes.AwsError("ValidationException")
        self.stopped.append(ProcessingJobName)
        job["status"] = "Stopping"
        return {}
