"""A load test that runs in the cloud: started, asked after, stopped. A build, or an execution of the state machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.exceptions import ClientError

RUNNING = "running"


@dataclass(frozen=True, kw_only=True)
class RunState:
    """How far a test is.

    Attributes:
        ended: whether it has come to its end.
        failed: why it came to nothing; "" where it did not.
        at: where it is, a line a part of it.
    """

    ended: bool
    failed: str
    at: tuple[str, ...]


class RemoteRun(Protocol):
    """What runs remotely.

    Attributes:
        identity: the build's id, or the execution's ARN; "" until it is started.
    """

    identity: str

    def start(self) -> None:
        """Start it; once more, and it is learnt what was started: nothing is started twice."""

    def look(self) -> RunState:
        """How far it is."""

    def stop(self) -> None:
        """Ask it to end; no failure where it has."""

    def cleaned(self, exists: Callable[[str], bool]) -> bool:
        """Whether a stopped test has left nothing; ``exists``: whether the test has such an object."""


class BuildRun:
    """``tritonstack capacity bench`` in CodeBuild."""

    def __init__(self, codebuild: Any, *, project: str, bucket: str, test: str) -> None:
        """Start nothing yet."""
        self._client, self._project, self._test = codebuild, project, test
        self._variables = {"TRITONSTACK_BUCKET": bucket, "TRITONSTACK_TEST": test}
        self.identity = ""

    def start(self) -> None:
        """Start the build. CodeBuild answers the same token with the same build for five minutes."""
        started = self._client.start_build(
            projectName=self._project,
            idempotencyToken=self._test,
            environmentVariablesOverride=[
                {"name": name, "value": value, "type": "PLAINTEXT"} for name, value in self._variables.items()
            ],
        )
        self.identity = str(started["build"]["id"])

    def look(self) -> RunState:
        """How far the build is."""
        build = self._client.batch_get_builds(ids=[self.identity])["builds"][0]
        status = str(build["buildStatus"])
        if status == "IN_PROGRESS":
            return RunState(ended=False, failed="", at=(f"CodeBuild: {build.get('currentPhase', status)}",))
        link = build.get("logs", {}).get("deepLink", "")
        why = "" if status == "SUCCEEDED" else f"the build {self.identity} ended as {status}; its log: {link}"
        return RunState(ended=True, failed=why, at=(f"CodeBuild: {status}",))

    def stop(self) -> None:
        """Stop the build."""
        if not self.look().ended:
            self._client.stop_build(id=self.identity)

    def cleaned(self, exists: Callable[[str], bool]) -> bool:  # noqa: ARG002 - a build makes nothing
        """A build has made nothing but results."""
        return self.look().ended


class ExecutionRun:
    """An execution of the state machine around Inference Recommender."""

    def __init__(self, stepfunctions: Any, sagemaker: Any, *, machine: str, plan: Mapping[str, Any]) -> None:
        """Start nothing yet."""
        self._client, self._sagemaker, self._machine, self._plan = stepfunctions, sagemaker, machine, plan
        self.identity = ""

    def start(self) -> None:
        """Start the execution. Step Functions answers a name and input that run with the same execution."""
        test, given = self._plan["id"], json.dumps({"id": self._plan["id"]})
        try:
            started = self._client.start_execution(stateMachineArn=self._machine, name=test, input=given)
            self.identity = str(started["executionArn"])
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
            # It has ended meanwhile, and Step Functions tells no ARN then.
            self.identity = f"{self._machine.replace(':stateMachine:', ':execution:', 1)}:{test}"

    def look(self) -> RunState:
        """How far the execution is, and each of its jobs."""
        found = self._client.describe_execution(executionArn=self.identity)
        status = str(found["status"])
        at = tuple(f"{job['request']['JobDescription']}: {self._job(job['name'])}" for job in self._plan["jobs"])
        if status == "RUNNING":
            return RunState(ended=False, failed="", at=at)
        why = f"the execution ended as {status}: {found.get('error', '')} {found.get('cause', '')}".rstrip(": ")
        return RunState(ended=True, failed="" if status == "SUCCEEDED" else why, at=at)

    def stop(self) -> None:
        """Stop the execution; the event of it has its jobs stopped and removed what it made."""
        if self._client.describe_execution(executionArn=self.identity)["status"] == "RUNNING":
            self._client.stop_execution(executionArn=self.identity, cause="cancelled")

    def cleaned(self, exists: Callable[[str], bool]) -> bool:
        """Whether the note of the clean-up is there."""
        return exists("cleaned.json")

    def _job(self, name: str) -> str:
        try:
            return str(self._sagemaker.describe_inference_recommendations_job(JobName=name)["Status"])
        except ClientError:
            return "not started"
