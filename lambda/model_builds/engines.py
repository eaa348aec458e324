"""The engine jobs that a build started. They run on other machines, so they go on when the build is ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from .services import Clients, Place

STARTED_BY = "TRITONSTACK_STARTED_BY"
"""The variable of a job that names the build which started it; ``tritonstack.engines`` sets it."""


def stop_engines(build: Mapping[str, Any], *, clients: Clients, place: Place) -> list[str]:
    """Stop the jobs that this build started and that still run. Returns their names.

    Raises ClientError: some could not be stopped; the others are.
    """
    stopped, refused = [], []
    for name, stop in [*_builds(build, clients, place), *_jobs(build, clients, place)]:
        try:
            stop()
            stopped.append(name)
        except ClientError as error:
            refused.append(error)
    print(json.dumps({"ended": build["id"], "stopped": stopped, "not stopped": [str(error) for error in refused]}))
    if refused:
        raise refused[0]
    return stopped


def _builds(build: Mapping[str, Any], clients: Clients, place: Place) -> Iterator[tuple[str, Callable[[], object]]]:
    """Builds of the engine project, the newest first: those from before the build began are not looked at."""
    if not place.engine_project:
        return
    codebuild = clients.codebuild
    listed = codebuild.get_paginator("list_builds_for_project")
    for page in listed.paginate(projectName=place.engine_project, sortOrder="DESCENDING"):
        builds = codebuild.batch_get_builds(ids=page["ids"])["builds"] if page.get("ids") else []
        for each in builds:
            variables = {one["name"]: one["value"] for one in each["environment"].get("environmentVariables", [])}
            if each["buildStatus"] == "IN_PROGRESS" and variables.get(STARTED_BY) == build["id"]:
                # A build that has ended meanwhile is no error to CodeBuild.
                yield each["id"], partial(codebuild.stop_build, id=each["id"])
        if builds and all(each["startTime"] < build["startTime"] for each in builds):
            return


def _jobs(build: Mapping[str, Any], clients: Clients, place: Place) -> Iterator[tuple[str, Callable[[], object]]]:
    """Processing jobs of the environment that began after the build."""
    if not place.engine_jobs:
        return
    pages = clients.sagemaker.get_paginator("list_processing_jobs").paginate(
        NameContains=place.engine_jobs, StatusEquals="InProgress", CreationTimeAfter=build["startTime"]
    )
    for name in [job["ProcessingJobName"] for page in pages for job in page["ProcessingJobSummaries"]]:
        if name.startswith(place.engine_jobs):  # another environment's may contain it
            job = clients.sagemaker.describe_processing_job(ProcessingJobName=name)
            if job.get("Environment", {}).get(STARTED_BY) == build["id"]:
                yield name, partial(_stop_job, clients, name)


def _stop_job(clients: Clients, name: str) -> None:
    """Stop a job. SageMaker refuses where it has ended, which is as good."""
    try:
        clients.sagemaker.stop_processing_job(ProcessingJobName=name)
    except ClientError:
        status = clients.sagemaker.describe_processing_job(ProcessingJobName=name)["ProcessingJobStatus"]
        if status == "InProgress":
            raise
