"""A local AWS for the time of a block, of which nothing is left after it; and the end of what was deployed to it."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import psutil

from tests.e2e.guard import guarded
from tests.e2e.project import Project
from tritonstack_local.aws import LocalAws
from tritonstack_local.keys import LocalKeys
from tritonstack_local.processes import ProcessRecord, await_end, is_alive

REMOVAL_SECONDS = 120.0
END_SECONDS = 20.0
"""What has ended is gone once its parent has asked for it."""


@contextmanager
def running(project: Project, *options: str, denied: Collection[str] = ()) -> Iterator[LocalAws]:
    """A local AWS on free ports; at the end it is stopped, and none of its processes may be left.

    Nothing may have been denied by then: so a right that a role lacks fails the test, also where nobody looked.

    Args:
        project: whose state it is.
        options: of ``local up``.
        denied: patterns of AWS's sentences on what the tests want denied.
    """
    with guarded(project):
        project.run("local", "up", "--port", "0", "--runtime-port", "0", *options)
        aws = local_aws_of(project)
        roots = [psutil.Process(record.pid) for record in (aws.emulator, aws.runtime)]
        family = list(roots)
        try:
            yield aws
            sentences = [each["message"] for each in aws.iam()["denials"]]
            lacking = [each for each in sentences if not any(fnmatchcase(each, pattern) for pattern in denied)]
            assert not lacking, "\n".join(lacking)
            family += [child for root in roots for child in root.children(recursive=True)]
        finally:
            project.run("local", "down")
    await_end(family, END_SECONDS)
    assert not [process for process in family if is_alive(process)]


def remove_stacks(aws: LocalAws, *, but: str = "CDKToolkit") -> None:
    """Delete every deployed stack, the newest first, but the CDK's own and those whose names begin with ``but``.

    Through CloudFormation itself: the files that an environment was deployed from may be gone by now.
    """
    cloudformation = aws.client("cloudformation")
    stacks = cloudformation.describe_stacks()["Stacks"]
    for stack in sorted(stacks, key=lambda each: each["CreationTime"], reverse=True):
        name = stack["StackName"]
        if name.startswith(("CDKToolkit", but)):
            continue
        cloudformation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
        cloudformation.delete_stack(StackName=name)
        deadline = time.monotonic() + REMOVAL_SECONDS
        while (status := cloudformation.describe_stacks(StackName=stack["StackId"])["Stacks"][0]["StackStatus"]) != (
            "DELETE_COMPLETE"
        ):
            assert status == "DELETE_IN_PROGRESS", f"{name}: {status}: {failed_events(cloudformation, stack)}"
            assert time.monotonic() < deadline, f"{name} is not deleted after {REMOVAL_SECONDS:.0f} s"
            time.sleep(0.1)


def failed_events(cloudformation: Any, stack: Any) -> list[str]:
    """Why resources of a stack failed, as CloudFormation's events have it."""
    events = cloudformation.describe_stack_events(StackName=stack["StackId"])["StackEvents"]
    return [
        f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason')}"
        for each in events
        if each["ResourceStatus"].endswith("_FAILED")
    ]


def local_aws_of(project: Project) -> LocalAws:
    record = json.loads((project.root / ".local" / "running.json").read_text())
    return LocalAws(
        emulator_port=record["emulator_port"],
        runtime_port=record["runtime_port"],
        keys=LocalKeys(**record["keys"]),
        emulator=ProcessRecord(**record["emulator"]),
        runtime=ProcessRecord(**record["runtime"]),
    )
