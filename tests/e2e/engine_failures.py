"""An environment whose builds fail, the release that serves meanwhile, and what a failed deployment must leave."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.calls import Callers
from tests.e2e.deployments import clock_ahead
from tests.e2e.engines import T4, TINY_ENGINE, EngineProject
from tests.e2e.project import PROGRAM
from tritonstack.naming import ArchiveName
from tritonstack_local.aws import LocalAws

ENDPOINT, MODEL = "served", "fragile-engine"
STACK = f"serving-{ENDPOINT}"
SECONDS_TO_FAIL = 60.0
"""A deployment fails within so many seconds of its build."""


@dataclass(frozen=True)
class Before:
    """What a failed deployment must leave as it was."""

    archive: ArchiveName
    archives: set[str]
    manifests: set[str]
    builds: int

    @classmethod
    def of(cls, engines: EngineProject) -> Before:
        return cls(
            archive=ArchiveName(model=MODEL, digest=engines.record(ENDPOINT, MODEL)),
            archives=engines.keys("endpoints/"),
            manifests=engines.keys("manifests/"),
            builds=len(engines.builds()),
        )


def write(engines: EngineProject, *, more: str = "") -> None:
    engines.write({ENDPOINT: (T4, [MODEL])}, more=more)


@contextmanager
def serving(aws: LocalAws, engines: EngineProject) -> Iterator[Before]:
    """Call the release of now all the while; it must answer as it does now, and no call may fail."""
    before = Before.of(engines)
    request = (TINY_ENGINE / "sample" / "request.json").read_bytes()
    call = same_answer(aws, endpoint=f"{engines.name}-{ENDPOINT}", archive=before.archive, request=request)
    with Callers([call]).calling() as callers:
        callers.check(more=3)
        yield before
        callers.check(more=3)


def same_answer(aws: LocalAws, *, endpoint: str, archive: ArchiveName, request: bytes) -> Callable[[], None]:
    """A request whose response must be the one that an archive has now."""
    client = aws.client("sagemaker-runtime")

    def answer() -> list[float]:
        got = client.invoke_endpoint(
            EndpointName=endpoint, TargetModel=str(archive), ContentType="application/json", Body=request
        )
        return list(json.loads(got["Body"].read())["outputs"][0]["data"])

    expected = answer()

    def call() -> None:
        assert answer() == expected
        time.sleep(0.05)  # a deployment on few cores has to go on

    return call


def check_failed(engines: EngineProject, before: Before, printed: str, *, said: list[str]) -> None:
    """One build failed and with it the deployment, for the reasons ``said``; everything else is as it was."""
    [build] = engines.builds()[: len(engines.builds()) - before.builds]
    event = failed_event(engines, STACK)
    for told in (event["ResourceStatusReason"], printed):
        words = " ".join(told.split())  # the CDK wraps lines
        for part in [*said, "| ", build["logs"]["deepLink"]]:
            assert part in words, f"{part!r} is not in:\n{told}"
    assert "/tritonstack/cli/" not in printed, "a traceback of ours"
    assert len(set(re.findall(rf"{MODEL}\.[0-9a-f]{{16}}", printed))) <= 1, "an earlier deployment's failure is shown"
    assert 0 <= seconds_after(build, event, aws=engines.aws) < SECONDS_TO_FAIL
    check_unmoved(engines, before)


def check_unmoved(engines: EngineProject, before: Before) -> None:
    """The stack is back, no record moved, no archive came, and nothing is left between the phases."""
    assert engines.stack(STACK)["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert engines.record(ENDPOINT, MODEL) == before.archive.digest
    assert engines.keys("endpoints/") == before.archives
    assert engines.keys("staging/jobs/") == set()


def failed_event(engines: EngineProject, stack: str) -> dict[str, Any]:
    """The newest event of a wait that failed."""
    events = engines.aws.client("cloudformation").describe_stack_events(StackName=f"{engines.name}-{stack}")
    found: dict[str, Any] = next(
        row
        for row in events["StackEvents"]
        if row["ResourceType"] == "AWS::CloudFormation::WaitCondition" and row["ResourceStatus"] == "CREATE_FAILED"
    )
    return found


def seconds_after(build: dict[str, Any], event: dict[str, Any], *, aws: LocalAws) -> float:
    """From a build's end, which is told on the clock of the local AWS, to a stack's event, on the system's."""
    ended: datetime = build["endTime"]
    # Both are told in milliseconds, and one is rounded.
    return float(event["Timestamp"].timestamp() - (ended.timestamp() - clock_ahead(aws))) + 0.5


def check_deployed(engines: EngineProject, before: Before) -> ArchiveName:
    """A new release is recorded, its archive lies there, and it answers otherwise than the old one."""
    archive = ArchiveName(model=MODEL, digest=engines.record(ENDPOINT, MODEL))
    assert archive != before.archive
    assert engines.has(ENDPOINT, T4, archive)
    assert engines.manifest(ENDPOINT, T4, archive)["archive"]["file"] == str(archive)
    assert engines.invoke(ENDPOINT, MODEL)
    assert engines.keys("staging/jobs/") == set()
    return archive


def fails_while(marker: Path) -> str:
    """Statements of an export that raise as long as a file is there: a cause outside the inputs."""
    return f"import pathlib\nif pathlib.Path({str(marker)!r}).exists(): raise RuntimeError('the disk is full')\n"


def versions(engines: EngineProject, key: str) -> list[str]:
    """How often an object was written."""
    found = engines.aws.client("s3").list_object_versions(Bucket=engines.bucket, Prefix=key)
    return [row["VersionId"] for row in found.get("Versions", [])]


def tritonstack(engines: EngineProject, *arguments: str) -> str:
    """What a command prints that is told by the environment's variables which AWS it talks to."""
    command = [str(PROGRAM), *arguments]
    return engines.project.execute(command, timeout=180, variables=engines.aws.variables()).stdout
