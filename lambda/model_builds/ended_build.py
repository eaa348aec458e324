"""A build that has ended: who waits for it hears of it, and nothing that it started goes on without it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .engines import stop_engines
from .failure import failure, last_lines
from .services import Clients, Place
from .wait import WAIT_VARIABLE, handle_of, signal


def build_ended(event: Mapping[str, Any], *, clients: Clients, place: Place) -> None:
    """Signal whoever waits for the build, and stop the engine jobs that it left behind where it did not succeed.

    Neither keeps the other from being done: what fails is tried again with the event, and both may be repeated.
    """
    identity = event["detail"]["build-id"].partition(":build/")[2]
    builds = clients.codebuild.batch_get_builds(ids=[identity])["builds"]
    if not builds:
        print(json.dumps({"ignored": identity, "reason": "CodeBuild does not know it any more"}))
        return
    build: Mapping[str, Any] = builds[0]
    try:
        tell(build, clients=clients, place=place)
    finally:
        if build["buildStatus"] != "SUCCEEDED":
            stop_engines(build, clients=clients, place=place)


def tell(build: Mapping[str, Any], *, clients: Clients, place: Place) -> None:
    """Signal the handle of the wait that a build names. One that names none was started by somebody else."""
    identity = build["id"]
    variables = {each["name"]: each["value"] for each in build["environment"].get("environmentVariables", [])}
    handle = handle_of(variables.get(WAIT_VARIABLE, ""), s3=clients.s3, bucket=place.bucket)
    unique = identity.rpartition(":")[2]  # without the project, whose name may be long: at most 64 characters
    if handle is None:
        print(json.dumps({"ignored": identity, "reason": "no deployment waits for it"}))
    elif build["buildStatus"] == "SUCCEEDED":
        signal(handle, status="SUCCESS", unique=unique, reason=f"built by {identity}")
    else:
        reason = failure(build, last_lines(clients.logs, build))
        signal(handle, status="FAILURE", unique=unique, reason=reason)
