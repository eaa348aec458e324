"""A build that has ended: signals its outcome to the deployment that waits, and stops engine jobs that it left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from ..shared.clients import Aws
from .wait import SIGNAL_REASON_LENGTH, WAIT_VARIABLE, Place, handle_of, signal, variables_of

if TYPE_CHECKING:
    from mypy_boto3_logs.client import CloudWatchLogsClient

FAILED_LINE = "FAILED in phase "
"""How the last lines of a build that failed begin: ``FAILED in phase <phase> of <archive>: <reason>``."""
AGENT_LINE = "[Container] "
"""How CodeBuild's own lines in a build's log begin."""
LINES_READ, LINES_SHOWN = 100, 20
STARTED_BY = "TRITONSTACK_STARTED_BY"
"""The variable of an engine job that names the build which started it; ``tritonstack.engines`` sets it."""


def build_ended(event: Mapping[str, Any], *, aws: Aws, place: Place) -> None:
    """Signal the deployment that waits for the build, and stop engine jobs that it left where it did not succeed.

    A failure of one does not prevent the other; the event is then repeated, and both may be.
    """
    identity = event["detail"]["build-id"].partition(":build/")[2]
    builds = aws.codebuild.batch_get_builds(ids=[identity])["builds"]
    if not builds:
        print(json.dumps({"ignored": identity, "reason": "CodeBuild has no such build any more"}))
        return
    build: Mapping[str, Any] = builds[0]
    try:
        signal_outcome(build, aws=aws, place=place)
    finally:
        if build["buildStatus"] != "SUCCEEDED":
            stop_engines(build, aws=aws, place=place)


def signal_outcome(build: Mapping[str, Any], *, aws: Aws, place: Place) -> None:
    """Signal the handle of the wait that a build names. A build that names none was not started by a deployment."""
    identity = build["id"]
    handle = handle_of(variables_of(build).get(WAIT_VARIABLE, ""), s3=aws.s3, bucket=place.bucket)
    unique = identity.rpartition(":")[2]  # without the project, whose name may be long: at most 64 characters
    if handle is None:
        print(json.dumps({"ignored": identity, "reason": "no deployment waits for it"}))
    elif build["buildStatus"] == "SUCCEEDED":
        signal(handle, status="SUCCESS", unique=unique, reason=f"built by {identity}")
    else:
        reason = failure(build, last_lines(aws.logs, build))
        signal(handle, status="FAILURE", unique=unique, reason=reason)


def last_lines(logs: CloudWatchLogsClient, build: Mapping[str, Any]) -> list[str]:
    """The last lines of a build's log, oldest first; none where it wrote none. CodeBuild's own only without others."""
    where = build.get("logs", {})
    if not (where.get("groupName") and where.get("streamName")):
        return []
    try:
        found = logs.get_log_events(
            logGroupName=where["groupName"], logStreamName=where["streamName"], limit=LINES_READ, startFromHead=False
        )
    except ClientError as error:  # the failure is signalled without them, too
        print(json.dumps({"log": str(error)}))
        return []
    lines = [line for each in found["events"] if (line := each["message"].rstrip())]
    return [line for line in lines if not line.startswith(AGENT_LINE)] or lines


def failure(build: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Why a build did not succeed: phase and reason, as many of its last lines as fit, and the link."""
    failed = [line for line in lines if line.startswith(FAILED_LINE)]
    head = "\n".join(failed) or f"{build['id']} {_ended(build)}"
    link = str(build.get("logs", {}).get("deepLink", ""))
    tail = f"\n{link}" if link else ""
    room = SIGNAL_REASON_LENGTH - len(tail)
    if len(head) > room:
        return f"{head[: room - 2]} …{tail}"
    rest = [line for line in lines if not any(each in line for each in failed)][-LINES_SHOWN:]
    while rest and len(head) + sum(len(line) + 3 for line in rest) > room:
        rest.pop(0)
    return head + "".join(f"\n| {line}" for line in rest) + tail


def _ended(build: Mapping[str, Any]) -> str:
    """How it ended, in which of CodeBuild's phases, and the phase's message."""
    status = build["buildStatus"]
    words = {"TIMED_OUT": "took longer than it may", "STOPPED": "was stopped by hand"}.get(status, str(status))
    for phase in build.get("phases", []):
        if phase.get("phaseStatus", "SUCCEEDED") != "SUCCEEDED":
            message = " ".join(str(each.get("message", "")).strip() for each in phase.get("contexts", []))
            return f"{words} in CodeBuild's phase {phase['phaseType']}" + (f": {message}" if message.strip() else "")
    return words


def stop_engines(build: Mapping[str, Any], *, aws: Aws, place: Place) -> list[str]:
    """Stop the engine jobs that this build started and that still run on other machines. Returns their names.

    Raises ClientError: some could not be stopped; the others are.
    """
    stopped, refused = [], []
    for name, stop in [*_builds(build, aws, place), *_jobs(build, aws, place)]:
        try:
            stop()
            stopped.append(name)
        except ClientError as error:
            refused.append(error)
    print(json.dumps({"ended": build["id"], "stopped": stopped, "not stopped": [str(error) for error in refused]}))
    if refused:
        raise refused[0]
    return stopped


def _builds(build: Mapping[str, Any], aws: Aws, place: Place) -> Iterator[tuple[str, Callable[[], object]]]:
    """Builds of the engine project, newest first; those that started before the build are not read."""
    if not place.engine_project:
        return
    codebuild = aws.codebuild
    listed = codebuild.get_paginator("list_builds_for_project")
    for page in listed.paginate(projectName=place.engine_project, sortOrder="DESCENDING"):
        builds = codebuild.batch_get_builds(ids=page["ids"])["builds"] if page.get("ids") else []
        for each in builds:
            if each["buildStatus"] == "IN_PROGRESS" and variables_of(each).get(STARTED_BY) == build["id"]:
                # A build that has ended meanwhile is no error to CodeBuild.
                yield each["id"], partial(codebuild.stop_build, id=each["id"])
        if builds and all(each["startTime"] < build["startTime"] for each in builds):
            return


def _jobs(build: Mapping[str, Any], aws: Aws, place: Place) -> Iterator[tuple[str, Callable[[], object]]]:
    """Processing jobs of the environment that began after the build."""
    if not place.engine_jobs:
        return
    pages = aws.sagemaker.get_paginator("list_processing_jobs").paginate(
        NameContains=place.engine_jobs, StatusEquals="InProgress", CreationTimeAfter=build["startTime"]
    )
    for name in [job["ProcessingJobName"] for page in pages for job in page["ProcessingJobSummaries"]]:
        if name.startswith(place.engine_jobs):  # another environment's may contain it
            job = aws.sagemaker.describe_processing_job(ProcessingJobName=name)
            if job.get("Environment", {}).get(STARTED_BY) == build["id"]:
                yield name, partial(_stop_job, aws, name)


def _stop_job(aws: Aws, name: str) -> None:
    """Stop a job. SageMaker refuses where it has ended, which is no failure."""
    try:
        aws.sagemaker.stop_processing_job(ProcessingJobName=name)
    except ClientError:
        status = aws.sagemaker.describe_processing_job(ProcessingJobName=name)["ProcessingJobStatus"]
        if status == "InProgress":
            raise
