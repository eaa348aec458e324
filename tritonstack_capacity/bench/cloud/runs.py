"""A load test that runs remotely: a build of CodeBuild, or an execution of the state machine around jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

FINAL = frozenset({"COMPLETED", "FAILED", "STOPPED", "DELETED"})
"""The statuses that a job ends in (API reference: DescribeInferenceRecommendationsJob, ``Status``)."""


@dataclass(frozen=True, kw_only=True)
class RunState:
    """Progress of a test."""

    ended: bool  # whether it has come to its end
    failed: str  # why it came to nothing; "" where it did not
    at: tuple[str, ...]  # where it is, a line a part of it


class BuildRun:
    """``tritonstack capacity bench`` in CodeBuild."""

    def __init__(self, codebuild: Any, *, project: str, bucket: str, test: str) -> None:
        """Start nothing yet."""
        self._client, self._project, self._test = codebuild, project, test
        self._variables = {"TRITONSTACK_BUCKET": bucket, "TRITONSTACK_TEST": test}
        self.identity = ""

    def start(self) -> None:
        """Start the build, once for repeated requests: CodeBuild starts one build for a token in five minutes."""
        started = self._client.start_build(
            projectName=self._project,
            idempotencyToken=self._test,
            environmentVariablesOverride=[
                {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in self._variables.items()
            ],
        )
        self.identity = str(started["build"]["id"])

    def look(self) -> RunState:
        """Progress of the build."""
        build = self._client.batch_get_builds(ids=[self.identity])["builds"][0]
        status = str(build["buildStatus"])
        if status == "IN_PROGRESS":
            return RunState(ended=False, failed="", at=(f"CodeBuild: {build.get('currentPhase', status)}",))
        link = build.get("logs", {}).get("deepLink", "")
        why = "" if status == "SUCCEEDED" else f"the build {self.identity} ended as {status}; its log: {link}"
        return RunState(ended=True, failed=why, at=(f"CodeBuild: {status}",))

    def stop(self) -> None:
        """Stop the build, if it runs."""
        if not self.look().ended:
            self._client.stop_build(id=self.identity)

    def cleaned(self, exists: Callable[[str], bool]) -> bool:  # noqa: ARG002 - a build makes nothing
        """A build has made nothing but results."""
        return self.look().ended


class ExecutionRun:
    """An execution of the state machine around Inference Recommender."""

    def __init__(self, stepfunctions: Any, sagemaker: Any, *, machine: str, settings: Mapping[str, Any]) -> None:
        """Start nothing yet."""
        self._client, self._sagemaker, self._machine, self._settings = stepfunctions, sagemaker, machine, settings
        self._ended: dict[str, str] = {}  # job → the status that it ended in, which is final, so that it is read once
        self.identity = ""

    def start(self) -> None:
        """Start the execution, once for repeated requests: Step Functions returns the one that runs."""
        test, given = self._settings["id"], json.dumps({"id": self._settings["id"]})
        try:
            started = self._client.start_execution(stateMachineArn=self._machine, name=test, input=given)
            self.identity = str(started["executionArn"])
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
            # It has ended meanwhile, and the error has no ARN.
            self.identity = self._arn

    def find(self) -> bool:
        """Find the execution of a test that was started earlier; whether it still runs."""
        try:
            found = self._client.describe_execution(executionArn=self._arn)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionDoesNotExist":
                raise
            return False
        self.identity = self._arn
        return str(found["status"]) == "RUNNING"

    @property
    def _arn(self) -> str:
        return f"{self._machine.replace(':stateMachine:', ':execution:', 1)}:{self._settings['id']}"

    def look(self) -> RunState:
        """Progress of the execution and of each of its jobs."""
        found = self._client.describe_execution(executionArn=self.identity)
        status = str(found["status"])
        statuses = {job["name"]: self.status(job["name"]) for job in self._settings["jobs"]}
        ended = sum(one in FINAL for one in statuses.values())
        at = (
            *(f"{job['request']['JobDescription']}: {statuses[job['name']]}" for job in self._settings["jobs"]),
            f"{ended} of {len(statuses)} jobs have ended",
        )
        if status == "RUNNING":
            return RunState(ended=False, failed="", at=at)
        why = f"the execution ended as {status}: {found.get('error', '')} {found.get('cause', '')}".rstrip(": ")
        return RunState(ended=True, failed="" if status == "SUCCEEDED" else why, at=at)

    def stop(self) -> None:
        """Stop the execution; its event then stops its jobs and removes what they made."""
        if self._client.describe_execution(executionArn=self.identity)["status"] == "RUNNING":
            self._client.stop_execution(executionArn=self.identity, cause="cancelled")

    def cleaned(self, exists: Callable[[str], bool]) -> bool:
        """Whether the note of the clean-up is there."""
        return exists("cleaned.json")

    def status(self, name: str) -> str:
        """Status of a job, in words where it has none."""
        if name in self._ended:
            return self._ended[name]
        try:
            status = str(self._sagemaker.describe_inference_recommendations_job(JobName=name)["Status"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFound":
                return "not started"
            return f"not known ({error.response['Error']['Code']})"
        if status in FINAL:
            self._ended[name] = status
        return status


RemoteRun = BuildRun | ExecutionRun
"""``identity``: the build's id, or the execution's ARN; "" until it is started."""
