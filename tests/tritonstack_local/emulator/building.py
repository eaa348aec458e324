"""CodeBuild projects for tests, and what they look at of a build."""

from __future__ import annotations

import contextlib
import io
import json
import stat
import zipfile
from typing import Any

import psutil

from tests.tritonstack_local.emulator.running import Emulator, wait_until

ROLE = "arn:aws:iam::123456789012:role/builder"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "codebuild.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
TRITON = "301217895009.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:24.09-py3"
NO_ARTIFACTS = {"type": "NO_ARTIFACTS"}


def make_service_role(emulator: Emulator, name: str = "builder", service: str = "codebuild.amazonaws.com") -> None:
    """A role that a service may assume."""
    trust = json.loads(json.dumps(TRUST).replace("codebuild.amazonaws.com", service))
    roles = emulator.client("iam")
    with contextlib.suppress(roles.exceptions.EntityAlreadyExistsException):
        roles.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))


def make_project(emulator: Emulator, name: str, buildspec: Any, **more: Any) -> None:
    """A project without source, unless ``source`` is given; the buildspec as JSON, which is YAML too."""
    make_service_role(emulator)
    text = buildspec if isinstance(buildspec, str) else json.dumps(buildspec)
    settings = {
        "source": {"type": "NO_SOURCE", "buildspec": text},
        "artifacts": NO_ARTIFACTS,
        "environment": {"type": "LINUX_CONTAINER", "image": IMAGE, "computeType": "BUILD_GENERAL1_SMALL"},
        "serviceRole": ROLE,
    }
    emulator.client("codebuild").create_project(name=name, **{**settings, **more})


def buildspec(*commands: str, **more: Any) -> dict[str, Any]:
    """A buildspec whose BUILD phase has the commands."""
    return {"version": "0.2", "phases": {"build": {"commands": list(commands)}}, **more}


def start(emulator: Emulator, project: str, **more: Any) -> str:
    """Start a build; its id."""
    return str(emulator.client("codebuild").start_build(projectName=project, **more)["build"]["id"])


def look(emulator: Emulator, build: str) -> dict[str, Any]:
    """The build as it is now."""
    found: dict[str, Any] = emulator.client("codebuild").batch_get_builds(ids=[build])["builds"][0]
    return found


def ended(emulator: Emulator, build: str) -> dict[str, Any]:
    """The build, once it has ended."""
    found: dict[str, Any] = wait_until(lambda: look(emulator, build), lambda build: build["buildComplete"])
    return found


def run(emulator: Emulator, project: str, **more: Any) -> dict[str, Any]:
    """Start a build and wait for its end."""
    return ended(emulator, start(emulator, project, **more))


def phases(build: dict[str, Any]) -> dict[str, str | None]:
    """Phase → its status."""
    return {phase["phaseType"]: phase.get("phaseStatus") for phase in build["phases"]}


def context(build: dict[str, Any], phase: str) -> tuple[str, str]:
    """Status code and message of a phase's context."""
    found = next(one for one in build["phases"] if one["phaseType"] == phase)["contexts"][0]
    return found["statusCode"], found["message"]


def log(emulator: Emulator, build: dict[str, Any]) -> list[str]:
    """The lines of a build's log."""
    logs = emulator.client("logs")
    where = build["logs"]
    response = logs.get_log_events(
        logGroupName=where["groupName"], logStreamName=where["streamName"], startFromHead=True, limit=10000
    )
    return [event["message"].rstrip("\n") for event in response["events"]]


def logged(emulator: Emulator, build: str, text: str) -> None:
    """Wait until a running build has logged a line."""

    def lines() -> list[str]:
        try:
            return log(emulator, look(emulator, build))
        except emulator.client("logs").exceptions.ResourceNotFoundException:
            return []

    wait_until(lines, lambda lines: text in lines)


def bucket(emulator: Emulator, name: str) -> Any:
    """A new bucket; the S3 client."""
    store = emulator.client("s3")
    store.create_bucket(Bucket=name)
    return store


def zipped(files: dict[str, str], *, links: dict[str, str] | None = None, programs: tuple[str, ...] = ()) -> bytes:
    """A ZIP archive; ``links`` are name → target, ``programs`` names of files that may be executed."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | (0o755 if name in programs else 0o644)) << 16
            archive.writestr(entry, text)
        for name, target in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, target)
    return content.getvalue()


# Processes in the background. The second leaves its group, its session and its parent. The others keep no variable
# that names the build: the third leaves its group and its session, the fourth its parent.
ENDLESS = """
    sh -c 'echo pid=$$; exec sleep 600' &
    setsid -f sh -c 'echo pid=$$; exec sleep 600'
    env -i PATH="$PATH" setsid sh -c 'echo pid=$$; exec sleep 600' &
    (env -i PATH="$PATH" sh -c 'echo pid=$$; exec sleep 600' &)
    echo started
    sleep 600
"""


def endless_processes(emulator: Emulator, build: str) -> list[int]:
    """The endless processes of a running build."""
    logged(emulator, build, "started")

    def pids() -> list[int]:
        lines = log(emulator, look(emulator, build))
        return [int(line.removeprefix("pid=")) for line in lines if line.startswith("pid=")]

    found: list[int] = wait_until(pids, lambda pids: len(pids) == 4)
    assert all(alive(pid) for pid in found)
    return found


def alive(pid: int) -> bool:
    """Whether it runs; an unreaped process does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
